// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "devices/bus/mmio_handler.hpp"
#include "vmm/lib/checked_range/checked_range.hpp"
#include "vmm/lib/log/log.hpp"
#include "vmm/lib/result/result.hpp"

namespace tandem::devices {

/// Maps disjoint guest-physical ranges to handlers, serialises access per handler, and applies the bad-access policy:
/// an access that nobody answers, or that a handler calls bad, reads as zero and is ignored as a write (RAZ/WI); it is
/// counted, and logged at doubling intervals.
class MmioBus {
 public:
  /// Connects `handler` to `window`; `mutex` is held during each access.
  /// @pre     no access is in progress; handler and mutex outlive the bus.
  /// @errors  Errc::kExists: the window overlaps another one.
  Result<void> map(GuestRange window, std::string name, MmioHandler& handler, std::mutex& mutex);

  /// @param width_bytes  1, 2, 4 or 8.
  /// @thread  any.
  uint64_t read(GuestAddr addr, unsigned width_bytes);
  void write(GuestAddr addr, unsigned width_bytes, uint64_t value);

  /// Number of accesses so far that the policy answered. @thread any.
  [[nodiscard]] uint64_t bad_access_count() const { return bad_accesses_.total(); }

 private:
  struct Window {
    GuestRange range;
    std::string name;
    MmioHandler* handler;
    std::mutex* mutex;
  };
  /// The window that holds all of the access, or nullptr.
  const Window* find(GuestAddr addr, unsigned width_bytes) const;
  void note(const char* access, GuestAddr addr, unsigned width_bytes, std::string_view why);

  std::vector<Window> windows_;  // sorted by base
  log::RateLimit bad_accesses_;
};

}  // namespace tandem::devices
