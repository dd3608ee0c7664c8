// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "vmm/migration/chunk.hpp"
#include "vmm/migration/migration_stream.hpp"
#include "vmm/migration/migration_target.hpp"

namespace tandem::migration {

/// The side of a migration that a machine arrives at.
///
/// The machine runs only after `Committed` was sent with its disks locked by us. Every failure before leaves nothing
/// behind but what the target has made so far, and the source is told why.
class MigrationReceiver {
 public:
  /// @pre all outlive the receiver.
  MigrationReceiver(ByteChannel& channel, MigrationTarget& target, const MigrationLimits& limits = {})
      : stream_(channel, limits), target_(target) {}

  enum class End : uint8_t {
    kArrived,  ///< The machine runs here.
    kChecked,  ///< It was only asked whether it could come.
  };
  /// Does it all; called once.
  /// @errors  why the machine did not arrive.
  Result<End> run();

 private:
  Result<End> receive();
  Result<void> answer(const Offer& offer);
  Result<std::vector<ArrivedImage>> receive_images(const Offer& offer);
  Result<ArrivedImage> receive_image(uint32_t index, const ImageOffer& offer);
  /// Receives rounds until something else comes, which is left in `received_`.
  Result<void> receive_rounds(std::span<std::byte> ram);
  Result<void> receive_round(ChunkPlacer& placer);
  Result<MachineState> receive_state();
  Result<void> take_over();

  MigrationStream stream_;
  MigrationTarget& target_;
  MigrationStream::Received received_{};
  uint32_t rounds_ = 0;
  MigrationTarget::Arrival arrival_ = MigrationTarget::Arrival::kRunning;
};

}  // namespace tandem::migration
