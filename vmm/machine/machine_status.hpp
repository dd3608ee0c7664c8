// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tandem {

/// The host's end of one device.
struct BackEndStatus {
  std::string kind;  ///< "console", "disk", "net", "vsock", "balloon", "rng".
  std::string id;    ///< Name of the device.
  /// What there is to know, by name, in the order of showing: {"path", "/a/disk.img"}, {"engine", "io_uring"}.
  std::vector<std::pair<std::string, std::string>> facts;
};

/// The memory that a guest with a balloon was asked for, and gave.
struct BalloonStatus {
  uint64_t target_bytes = 0;
  uint64_t actual_bytes = 0;
};

/// What keeps the PV vCPU state.
struct PvVcpuStateStatus {
  std::string back_end;  ///< "off" if the guest has none.
  std::string reason;    ///< Why nothing better does; may be empty.
};

/// What the agent of a guest that was restored, or has moved, was asked to do for it, and what came of it.
struct SettlingStatus {
  bool ended = false;
  /// What it is about, and what was done: {"clock", "set forward by 3.210 s"}, in the order of showing.
  std::vector<std::pair<std::string, std::string>> steps{};
};

/// What a machine is and does, at one moment.
struct MachineStatus {
  std::string name;
  pid_t pid = 0;
  std::string state;  ///< "created", "running", "paused" or "ended".
  bool paused_by_user = false;
  uint64_t uptime_ns = 0;  ///< Since it was started, pauses included.
  uint64_t reset_count = 0;
  uint64_t memory_bytes = 0;
  std::string gic;  ///< "v3" or "v2".
  bool its = false;
  std::vector<pid_t> vcpu_threads;  ///< By vCPU index.
  std::vector<BackEndStatus> back_ends;
  std::optional<BalloonStatus> balloon;
  PvVcpuStateStatus pv_vcpu_state;
  bool pv_time = false;
  std::optional<SettlingStatus> settling{};  ///< If the machine did not start here.
};

}  // namespace tandem
