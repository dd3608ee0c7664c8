// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "guest-agent/protocol/messages.hpp"
#include "vmm/lib/result/result.hpp"

namespace tandem::agent {

/// Tells neighbours on each Ethernet that is up where our addresses are: a gratuitous ARP request for each IPv4 address, an
/// unsolicited advertisement for each IPv6 address. @return the addresses that were announced.
/// @spec RFC 5227 "ARP Announcement"; RFC 4861 "Sending Unsolicited Neighbor Advertisements"
Result<std::vector<NetworkAddress>> announce_addresses();

}  // namespace tandem::agent
