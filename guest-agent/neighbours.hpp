// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ifaddrs.h>
#include <net/ethernet.h>

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "guest-agent/protocol/messages.hpp"
#include "vmm/lib/result/result.hpp"

namespace tandem::agent {

/// An Ethernet that is up.
struct Ethernet {
  unsigned index = 0;
  std::array<uint8_t, ETH_ALEN> mac{};
};

/// Tells neighbours on an Ethernet that `address` is there.
using Announce = std::function<Result<void>(const Ethernet& ethernet, const sockaddr& address)>;

/// Calls `announce` for each IPv4 and IPv6 address of `list` that is on an Ethernet which is up. One that fails keeps it from
/// no other; one that the kernel still tests for duplicates is left out. @return the addresses.
/// @errors  Errc::kIo: some were not announced; which, and why.
Result<std::vector<NetworkAddress>> announce_each(const ifaddrs* list, const Announce& announce);

/// Tells neighbours on each Ethernet that is up where our addresses are: a gratuitous ARP request for each IPv4 address, an
/// unsolicited advertisement for each IPv6 address. @return the addresses that were announced.
/// @errors  as announce_each
/// @spec RFC 5227 "ARP Announcement"; RFC 4861 "Sending Unsolicited Neighbor Advertisements"
Result<std::vector<NetworkAddress>> announce_addresses();

}  // namespace tandem::agent
