// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "guest-agent/guest_control.hpp"
#include "guest-agent/protocol/messages.hpp"
#include "vmm/lib/result/result.hpp"

/// What the agent finds out about the guest.
namespace tandem::agent {

/// Time since the kernel started, suspension included [ns].
uint64_t uptime_ns();

/// All of `InfoReply` but what the agent knows about itself.
Result<InfoReply> describe_guest(GuestControl& guest);

/// What the kernel exports of each vCPU.
/// @param root  the folder that holds proc and sys; empty for the guest's own.
Result<PvStateReply> describe_vcpus(const std::string& root);

/// The vCPUs of /proc/stat, with their stolen time if it is there.
/// @param tick_ns  the unit of its columns.
std::vector<VcpuState> parse_stolen_time(std::string_view stat, uint64_t tick_ns);

/// Puts into `vcpus` what the lines `<cpu> <preempted> <preempt_count>` say about them.
void parse_preemption(std::string_view records, std::vector<VcpuState>& vcpus);

}  // namespace tandem::agent
