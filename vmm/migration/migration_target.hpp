// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vmm/lib/result/result.hpp"
#include "vmm/lib/sealed_image/sealed_image.hpp"
#include "vmm/lib/state/machine_state.hpp"

namespace tandem::migration {

/// A boot image that came with a machine; its checksum was right.
struct ArrivedImage {
  std::string role;
  SealedImage image;
};

/// What a target made for the machine that comes.
struct PreparedMachine {
  /// All of guest RAM, zero.
  std::span<std::byte> ram;
  /// Every disk that the machine may write to is seen to be locked by somebody else, and there is one: that is the source,
  /// on the same disk.
  bool sees_locks = false;
};

/// The place for a machine that comes to this host, as the receiver needs it. All that the source says is hostile: the
/// target opens nothing but what its own user named. Called from the receiver's thread only, in this order.
class MigrationTarget {
 public:
  virtual ~MigrationTarget() = default;

  /// Why this host cannot have the machine that `spec_document` describes, one line each; none if it can. Opens nothing.
  /// @errors  Errc::kCorrupt: it describes no machine.
  virtual Result<std::vector<std::string>> differences(std::string_view spec_document) = 0;

  /// Builds the machine; opens its disks without a lock.
  /// @pre differences of that document were none.
  virtual Result<PreparedMachine> prepare(std::string_view spec_document, std::vector<ArrivedImage> images) = 0;

  /// Puts the state into the machine, whose RAM is complete, and gets all that it takes to go on: from here on that cannot fail,
  /// for soon nobody else has the guest any more.
  virtual Result<void> restore(MachineState state) = 0;

  /// Locks the disks; at once, and all or none.
  /// @errors  Errc::kBusy: somebody else has one.
  virtual Result<void> take_disks() = 0;
  /// Undoes `take_disks`.
  virtual void release_disks() = 0;

  /// How the machine goes on.
  enum class Arrival : uint8_t { kRunning, kPaused };
  /// Lets the machine go on. @pre take_disks succeeded.
  virtual void go_on(Arrival arrival) = 0;
};

}  // namespace tandem::migration
