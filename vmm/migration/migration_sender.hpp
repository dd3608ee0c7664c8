// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vmm/migration/cancellation.hpp"
#include "vmm/migration/convergence.hpp"
#include "vmm/migration/migration_report.hpp"
#include "vmm/migration/migration_source.hpp"
#include "vmm/migration/migration_stream.hpp"
#include "vmm/migration/ram_sender.hpp"

namespace tandem::migration {

/// What the user wants of a migration.
struct MigrationWishes {
  std::chrono::nanoseconds downtime = std::chrono::milliseconds(300);
  std::optional<std::chrono::nanoseconds> timeout;  ///< For what comes before the guest is stopped.
  bool check_only = false;
  bool verify_ram = false;  ///< Compare all of RAM before the hand-over.
  ChunkEncoder::Compress compress = ChunkEncoder::Compress::kNo;
};

/// How a migration ended for the machine that was to leave.
struct MigrationOutcome {
  enum class Kind : uint8_t {
    kChecked,  ///< It was only asked whether it could; `differences` has the answer.
    kMoved,    ///< The machine runs on the other side, and must not run here.
    kStays,    ///< The machine goes on here as before; `reason` says why.
    kUnknown,  ///< Stopped here: it may run on the other side. `reason` says what is known.
  };
  Kind kind = Kind::kStays;
  std::string reason;
  std::vector<std::string> differences;
  MigrationReport report;
};

/// The side of a migration that a machine leaves from.
///
/// Until `Commit` is sent, every failure leaves the machine with us. From then on the receiver runs the machine if it has locked
/// the disks and has said so. If we do not hear that, the locks tell: whoever gets them, runs. Without a disk whose lock
/// both sides see, nobody can tell, and the machine stays stopped.
class MigrationSender {
 public:
  /// @pre all outlive the sender.
  MigrationSender(ByteChannel& channel, MigrationSource& source, MigrationObserver& observer,
                  Cancellation& cancellation, MigrationWishes wishes, const MigrationLimits& limits = {});

  /// Does it all; called once.
  MigrationOutcome run();

 private:
  /// How far it is: what a failure has to undo.
  enum class Stage : uint8_t { kTalking, kCopying, kStopped, kReleased, kCommitted };

  Result<void> migrate();
  Result<void> agree();
  Result<Offer> offer();
  Result<void> send_images();
  Result<void> send_image(uint32_t index, const SealedImage& image);
  Result<void> copy_ram();
  /// @return  what to do after the round.
  Result<Convergence::Next> copy_round(DirtyBitmap& pages);
  Result<void> stop_and_copy_rest(DirtyBitmap& pages);
  Result<void> send_state(MachineState state);
  Result<void> hand_over();

  void note_failure(const Error& error);
  Result<void> undo();
  Result<void> undo_hand_over();
  Result<void> reclaim_disks();
  [[nodiscard]] Result<void> check_may_go_on() const;
  void throttle(unsigned percent);
  void show(MigrationPhase phase);

  MigrationStream stream_;
  MigrationSource& source_;
  MigrationObserver& observer_;
  Cancellation& cancellation_;

  MigrationWishes wishes_;
  Deadline pre_copy_deadline_;
  Stage stage_ = Stage::kTalking;
  MigrationOutcome outcome_;
  MigrationProgress progress_;
  Convergence convergence_;
  std::optional<RamSender> ram_;
  bool receiver_sees_locks_ = false;
};

}  // namespace tandem::migration
