// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/neighbours.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <netpacket/packet.h>

#include <cerrno>
#include <deque>
#include <string>

namespace tandem::agent {
namespace {

/// What getifaddrs(3) would say of a guest.
class AddressList {
 public:
  void add_link(const char* name, unsigned index, unsigned flags = IFF_UP, unsigned short type = ARPHRD_ETHER) {
    auto& link = reinterpret_cast<sockaddr_ll&>(addresses_.emplace_back());
    link.sll_family = AF_PACKET;
    link.sll_ifindex = static_cast<int>(index);
    link.sll_hatype = type;
    link.sll_halen = ETH_ALEN;
    link.sll_addr[ETH_ALEN - 1] = static_cast<unsigned char>(index);
    add(name, flags);
  }
  void add_ipv4(const char* name, const char* text) {
    auto& address = reinterpret_cast<sockaddr_in&>(addresses_.emplace_back());
    address.sin_family = AF_INET;
    ASSERT_EQ(::inet_pton(AF_INET, text, &address.sin_addr), 1);
    add(name, IFF_UP);
  }
  void add_ipv6(const char* name, const char* text) {
    auto& address = reinterpret_cast<sockaddr_in6&>(addresses_.emplace_back());
    address.sin6_family = AF_INET6;
    ASSERT_EQ(::inet_pton(AF_INET6, text, &address.sin6_addr), 1);
    add(name, IFF_UP);
  }
  void add_without_address(const char* name) {
    addresses_.emplace_back();
    add(name, IFF_UP);
    entries_.back().ifa_addr = nullptr;
  }
  [[nodiscard]] const ifaddrs* first() const { return entries_.empty() ? nullptr : &entries_.front(); }

 private:
  void add(const char* name, unsigned flags) {
    ifaddrs entry{};
    entry.ifa_name = const_cast<char*>(name);
    entry.ifa_flags = flags;
    entry.ifa_addr = reinterpret_cast<sockaddr*>(&addresses_.back());
    entries_.push_back(entry);
    if (entries_.size() > 1) {
      entries_[entries_.size() - 2].ifa_next = &entries_.back();
    }
  }
  std::deque<sockaddr_storage> addresses_;
  std::deque<ifaddrs> entries_;
};

/// "interface/address" for each.
std::vector<std::string> texts_of(const std::vector<NetworkAddress>& addresses) {
  std::vector<std::string> texts;
  for (const NetworkAddress& one : addresses) {
    texts.push_back(one.interface + "/" + one.address);
  }
  return texts;
}

TEST(NeighboursTest, AddressesOfEthernetsThatAreUpAreAnnounced) {
  AddressList list;
  list.add_link("lo", 1, IFF_UP, ARPHRD_LOOPBACK);
  list.add_link("eth0", 2);
  list.add_link("eth1", 3, 0);
  list.add_without_address("tun0");
  list.add_ipv4("lo", "127.0.0.1");
  list.add_ipv4("eth0", "192.0.2.1");
  list.add_ipv4("eth1", "192.0.2.2");
  list.add_ipv6("eth0", "fe80::1");
  std::vector<unsigned> macs;
  const auto announced = announce_each(list.first(), [&](const Ethernet& ethernet, const sockaddr&) -> Result<void> {
    macs.push_back(ethernet.mac.back());
    return {};
  });
  ASSERT_TRUE(announced);
  EXPECT_EQ(texts_of(*announced), (std::vector<std::string>{"eth0/192.0.2.1", "eth0/fe80::1"}));
  EXPECT_EQ(macs, (std::vector<unsigned>{2, 2}));
}

TEST(NeighboursTest, AnAddressWithALabelIsThatOfItsInterface) {
  AddressList list;
  list.add_link("eth0", 2);
  list.add_ipv4("eth0:1", "192.0.2.9");
  const auto announced = announce_each(list.first(), [](const Ethernet& ethernet, const sockaddr&) -> Result<void> {
    EXPECT_EQ(ethernet.index, 2U);
    return {};
  });
  ASSERT_TRUE(announced);
  EXPECT_EQ(texts_of(*announced), std::vector<std::string>{"eth0:1/192.0.2.9"});
}

TEST(NeighboursTest, AnAddressThatFailsKeepsNoOtherBack) {
  AddressList list;
  list.add_link("eth0", 2);
  list.add_ipv6("eth0", "fe80::1");
  list.add_ipv4("eth0", "192.0.2.1");
  list.add_ipv6("eth0", "fe80::2");
  unsigned sent = 0;
  const auto announced = announce_each(list.first(), [&](const Ethernet&, const sockaddr& address) -> Result<void> {
    if (address.sa_family == AF_INET6) {
      return fail(Errc::kIo, "no way");
    }
    ++sent;
    return {};
  });
  EXPECT_EQ(sent, 1U);
  ASSERT_FALSE(announced);
  EXPECT_EQ(announced.error().message(), "fe80::1 on eth0: no way; fe80::2 on eth0: no way");
}

TEST(NeighboursTest, AnAddressThatIsNotInUseYetIsLeftOut) {
  AddressList list;
  list.add_link("eth0", 2);
  list.add_ipv6("eth0", "fe80::1");
  const auto announced = announce_each(list.first(), [](const Ethernet&, const sockaddr&) -> Result<void> {
    return std::unexpected(Error::from_errno("announce", EADDRNOTAVAIL));
  });
  ASSERT_TRUE(announced) << announced.error().message();
  EXPECT_TRUE(announced->empty());
}

TEST(NeighboursTest, AGuestWithoutAddressesAnnouncesNone) {
  const auto announced = announce_each(nullptr, [](const Ethernet&, const sockaddr&) -> Result<void> { return {}; });
  ASSERT_TRUE(announced);
  EXPECT_TRUE(announced->empty());
}

}  // namespace
}  // namespace tandem::agent
