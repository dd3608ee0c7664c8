// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/neighbours.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/icmp6.h>
#include <netinet/if_ether.h>
#include <netinet/ip6.h>
#include <netpacket/packet.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem::agent {
namespace {

using Mac = std::array<uint8_t, ETH_ALEN>;

/// An Ethernet that is up.
struct Ethernet {
  unsigned index = 0;
  Mac mac{};
};

using Interfaces = std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)>;

std::map<std::string, Ethernet> ethernets(const Interfaces& list) {
  std::map<std::string, Ethernet> found;
  for (const ifaddrs* entry = list.get(); entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_PACKET || (entry->ifa_flags & IFF_UP) == 0) {
      continue;
    }
    const auto& link = *reinterpret_cast<const sockaddr_ll*>(entry->ifa_addr);
    if (link.sll_hatype == ARPHRD_ETHER && link.sll_halen == ETH_ALEN) {
      Ethernet& ethernet = found[entry->ifa_name];
      ethernet.index = static_cast<unsigned>(link.sll_ifindex);
      std::memcpy(ethernet.mac.data(), link.sll_addr, ETH_ALEN);
    }
  }
  return found;
}

Result<void> sent(const UniqueFd& socket, std::span<const std::byte> packet, const sockaddr& to, socklen_t to_bytes) {
  if (!socket || ::sendto(socket.get(), packet.data(), packet.size(), 0, &to, to_bytes) < 0) {
    return fail_errno("announce");
  }
  return {};
}

Result<void> announce(const Ethernet& ethernet, const in_addr& address) {
  ether_arp request{};
  request.ea_hdr = {htons(ARPHRD_ETHER), htons(ETHERTYPE_IP), ETH_ALEN, sizeof address, htons(ARPOP_REQUEST)};
  std::memcpy(request.arp_sha, ethernet.mac.data(), ETH_ALEN);
  std::memcpy(request.arp_spa, &address, sizeof address);
  std::memcpy(request.arp_tpa, &address, sizeof address);
  sockaddr_ll everybody{};
  everybody.sll_family = AF_PACKET;
  everybody.sll_protocol = htons(ETHERTYPE_ARP);
  everybody.sll_ifindex = static_cast<int>(ethernet.index);
  everybody.sll_halen = ETH_ALEN;
  std::memset(everybody.sll_addr, 0xff, ETH_ALEN);
  const UniqueFd socket(::socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return sent(socket, std::as_bytes(std::span(&request, 1)), reinterpret_cast<const sockaddr&>(everybody),
              sizeof everybody);
}

/// An advertisement with the one option that says which hardware address it is about.
struct Advertisement {
  nd_neighbor_advert header;
  nd_opt_hdr option;
  Mac mac;
};

Result<void> announce(const Ethernet& ethernet, const in6_addr& address) {
  constexpr int kHops = 255;  // others are ignored
  Advertisement advertisement{};
  advertisement.header.nd_na_type = ND_NEIGHBOR_ADVERT;
  advertisement.header.nd_na_flags_reserved = ND_NA_FLAG_OVERRIDE;
  advertisement.header.nd_na_target = address;
  advertisement.option = {ND_OPT_TARGET_LINKADDR, 1};
  advertisement.mac = ethernet.mac;
  sockaddr_in6 all_nodes{};
  all_nodes.sin6_family = AF_INET6;
  all_nodes.sin6_scope_id = ethernet.index;
  ::inet_pton(AF_INET6, "ff02::1", &all_nodes.sin6_addr);
  const UniqueFd socket(::socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMPV6));
  const auto index = static_cast<int>(ethernet.index);
  ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &kHops, sizeof kHops);
  ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_MULTICAST_IF, &index, sizeof index);
  return sent(socket, std::as_bytes(std::span(&advertisement, 1)), reinterpret_cast<const sockaddr&>(all_nodes),
              sizeof all_nodes);
}

/// Announces the address of `entry`, and notes it.
Result<void> announce(const ifaddrs& entry, const Ethernet& ethernet, std::vector<NetworkAddress>& announced) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = entry.ifa_addr->sa_family;
  if (family == AF_INET) {
    const in_addr& address = reinterpret_cast<const sockaddr_in*>(entry.ifa_addr)->sin_addr;
    TANDEM_TRY(announce(ethernet, address));
    ::inet_ntop(family, &address, text.data(), text.size());
  } else if (family == AF_INET6) {
    const in6_addr& address = reinterpret_cast<const sockaddr_in6*>(entry.ifa_addr)->sin6_addr;
    TANDEM_TRY(announce(ethernet, address));
    ::inet_ntop(family, &address, text.data(), text.size());
  } else {
    return {};
  }
  announced.push_back({entry.ifa_name, text.data(), 0});
  return {};
}

}  // namespace

Result<std::vector<NetworkAddress>> announce_addresses() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) {
    return fail_errno("getifaddrs");
  }
  const Interfaces list(first, &::freeifaddrs);
  const std::map<std::string, Ethernet> up = ethernets(list);
  std::vector<NetworkAddress> announced;
  for (const ifaddrs* entry = list.get(); entry != nullptr; entry = entry->ifa_next) {
    const auto ethernet = up.find(entry->ifa_name);
    if (entry->ifa_addr != nullptr && ethernet != up.end()) {
      TANDEM_TRY(announce(*entry, ethernet->second, announced));
    }
  }
  return announced;
}

}  // namespace tandem::agent
