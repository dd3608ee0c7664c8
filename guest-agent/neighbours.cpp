// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/neighbours.hpp"

#include <arpa/inet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/icmp6.h>
#include <netinet/if_ether.h>
#include <netinet/ip6.h>
#include <netpacket/packet.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem::agent {
namespace {

std::map<std::string, Ethernet, std::less<>> ethernets(const ifaddrs* list) {
  std::map<std::string, Ethernet, std::less<>> found;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
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
  std::array<uint8_t, ETH_ALEN> mac;
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

Result<void> announce(const Ethernet& ethernet, const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    return announce(ethernet, reinterpret_cast<const sockaddr_in&>(address).sin_addr);
  }
  return announce(ethernet, reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

/// The text of an IPv4 or IPv6 address; nothing if it is neither.
std::optional<std::string> text_of(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address != nullptr && address->sa_family == AF_INET) {
    return ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text.data(), text.size());
  }
  if (address != nullptr && address->sa_family == AF_INET6) {
    return ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, text.data(), text.size());
  }
  return std::nullopt;
}

}  // namespace

Result<std::vector<NetworkAddress>> announce_each(const ifaddrs* list, const Announce& announce) {
  const auto up = ethernets(list);
  std::vector<NetworkAddress> announced;
  std::string failures;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    // An IPv4 address may have a label, which stands where the interface's name does: "eth0:1".
    const std::string_view label = entry->ifa_name;
    const auto ethernet = up.find(label.substr(0, label.find(':')));
    const auto text = text_of(entry->ifa_addr);
    if (!text || ethernet == up.end()) {
      continue;
    }
    if (const auto sent = announce(ethernet->second, *entry->ifa_addr)) {
      announced.push_back({entry->ifa_name, *text, 0});
    } else if (sent.error().os_error() != EADDRNOTAVAIL) {  // that one is not in use yet: the kernel still tests it
      failures += fmt::format("{}{} on {}: {}", failures.empty() ? "" : "; ", *text, label, sent.error().message());
    }
  }
  if (!failures.empty()) {
    return fail(Errc::kIo, "{}", failures);
  }
  return announced;
}

Result<std::vector<NetworkAddress>> announce_addresses() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) {
    return fail_errno("getifaddrs");
  }
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> list(first, &::freeifaddrs);
  return announce_each(list.get(),
                       [](const Ethernet& ethernet, const sockaddr& address) { return announce(ethernet, address); });
}

}  // namespace tandem::agent
