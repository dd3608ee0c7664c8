// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/guest_facts.hpp"

#include <arpa/inet.h>
#include <glob.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <ctime>
#include <memory>
#include <optional>

#include "guest-agent/mount_table.hpp"
#include "pv/abi/pv_vcpu_state.h"

namespace tandem::agent {
namespace {

constexpr uint64_t kNsPerS = 1'000'000'000;

/// Takes the first line off the front of `text`.
std::string_view take_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

/// Takes a number and the spaces around it off the front of `line`.
std::optional<uint64_t> take_number(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
  if (error != std::errc()) {
    return std::nullopt;
  }
  line.remove_prefix(static_cast<size_t>(end - line.data()));
  return value;
}

/// How many bits of a netmask are set.
uint32_t prefix_length(const sockaddr* mask) {
  if (mask == nullptr) {
    return 0;
  }
  const bool is_v4 = mask->sa_family == AF_INET;
  std::array<uint32_t, 4> words{};
  if (is_v4) {
    std::memcpy(words.data(), &reinterpret_cast<const sockaddr_in*>(mask)->sin_addr, 4);
  } else {
    std::memcpy(words.data(), &reinterpret_cast<const sockaddr_in6*>(mask)->sin6_addr, 16);
  }
  uint32_t bits = 0;
  for (const uint32_t word : words) {
    bits += static_cast<uint32_t>(std::popcount(word));
  }
  return bits;
}

std::optional<NetworkAddress> address_of(const ifaddrs& entry) {
  if (entry.ifa_addr == nullptr || (entry.ifa_flags & IFF_LOOPBACK) != 0) {
    return std::nullopt;
  }
  const int family = entry.ifa_addr->sa_family;
  const void* address = nullptr;
  if (family == AF_INET) {
    address = &reinterpret_cast<const sockaddr_in*>(entry.ifa_addr)->sin_addr;
  } else if (family == AF_INET6) {
    address = &reinterpret_cast<const sockaddr_in6*>(entry.ifa_addr)->sin6_addr;
  } else {
    return std::nullopt;
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(family, address, text.data(), text.size());
  return NetworkAddress{entry.ifa_name, text.data(), prefix_length(entry.ifa_netmask)};
}

Result<std::vector<NetworkAddress>> addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) {
    return fail_errno("getifaddrs");
  }
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  std::vector<NetworkAddress> found;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (auto address = address_of(*entry)) {
      found.push_back(std::move(*address));
    }
  }
  return found;
}

std::vector<Filesystem> with_sizes(const std::vector<Mount>& mounts) {
  std::vector<Filesystem> filesystems;
  for (const Mount& mount : mounts) {
    struct statvfs status{};
    if (::statvfs(mount.mount_point.c_str(), &status) == 0) {
      filesystems.push_back({.mount_point = mount.mount_point,
                             .type = mount.type,
                             .source = mount.source,
                             .size_bytes = uint64_t{status.f_blocks} * status.f_frsize,
                             .free_bytes = uint64_t{status.f_bavail} * status.f_frsize});
    }
  }
  return filesystems;
}

/// Whether a file's path matches `pattern`.
bool has_match(const std::string& pattern) {
  glob_t found{};
  const bool matches = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0;
  ::globfree(&found);
  return matches;
}

/// Why the kernel exports no records.
std::string why_no_preemption(const std::string& root) {
  if (!has_match(root + "/proc/device-tree/" PV_VCPU_STATE_DT_NODE "@*")) {
    return "this machine offers no PV vCPU state";
  }
  if (!has_match(root + "/sys/kernel/debug/*")) {
    return "debugfs is not mounted";
  }
  return "this kernel does not export PV vCPU state";
}

}  // namespace

uint64_t uptime_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * kNsPerS + static_cast<uint64_t>(now.tv_nsec);
}

Result<InfoReply> describe_guest(GuestControl& guest) {
  utsname name{};
  ::uname(&name);
  std::string boot_id = TANDEM_TRY(read_kernel_file("/proc/sys/kernel/random/boot_id"));
  boot_id.resize(std::min(boot_id.find('\n'), boot_id.size()));
  return InfoReply{.hostname = name.nodename,
                   .kernel = name.release,
                   .kernel_version = name.version,
                   .machine = name.machine,
                   .boot_id = std::move(boot_id),
                   .uptime_ns = uptime_ns(),
                   .addresses = TANDEM_TRY(addresses()),
                   .filesystems = with_sizes(TANDEM_TRY(guest.block_mounts()))};
}

std::vector<VcpuState> parse_stolen_time(std::string_view stat, uint64_t tick_ns) {
  constexpr int kColumnsBeforeSteal = 7;
  std::vector<VcpuState> vcpus;
  while (!stat.empty()) {
    std::string_view line = take_line(stat);
    if (!line.starts_with("cpu") || line.starts_with("cpu ")) {
      continue;
    }
    line.remove_prefix(3);
    const auto vcpu = take_number(line);
    for (int column = 0; column < kColumnsBeforeSteal; ++column) {
      take_number(line);
    }
    const auto steal = take_number(line);
    if (vcpu) {
      vcpus.push_back(
          {.vcpu = static_cast<uint32_t>(*vcpu), .stolen_ns = steal ? std::optional(*steal * tick_ns) : std::nullopt});
    }
  }
  return vcpus;
}

void parse_preemption(std::string_view records, std::vector<VcpuState>& vcpus) {
  while (!records.empty()) {
    std::string_view line = take_line(records);
    const auto vcpu = take_number(line);
    const auto preempted = take_number(line);
    const auto count = take_number(line);
    const auto found = std::ranges::find_if(vcpus, [&](const VcpuState& state) { return state.vcpu == vcpu; });
    if (count && found != vcpus.end()) {
      found->preempted = *preempted != 0;
      found->preempt_count = count;
    }
  }
}

Result<PvStateReply> describe_vcpus(const std::string& root) {
  const uint64_t tick_ns = kNsPerS / static_cast<uint64_t>(::sysconf(_SC_CLK_TCK));
  PvStateReply reply;
  reply.vcpus = parse_stolen_time(TANDEM_TRY(read_kernel_file(root + "/proc/stat")), tick_ns);
  if (std::ranges::none_of(reply.vcpus, [](const VcpuState& state) { return state.stolen_ns.has_value(); })) {
    reply.no_stolen = "this kernel has no steal column in /proc/stat";
  }
  if (const auto records = read_kernel_file(root + "/sys/kernel/debug/pv_vcpu_state/records")) {
    parse_preemption(*records, reply.vcpus);
  } else {
    reply.no_preemption = why_no_preemption(root);
  }
  return reply;
}

}  // namespace tandem::agent
