// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "devices/bus/device_executor.hpp"
#include "devices/virtio_balloon/ballooned_pages.hpp"
#include "devices/virtio_balloon/page_discard.hpp"
#include "devices/virtio_balloon/virtio_balloon_regs.hpp"
#include "devices/virtio_queue/virtio_device.hpp"
#include "vmm/lib/log/log.hpp"

namespace tandem::devices {

/// What the guest last said of its memory; nothing where it did not say. (virtio 1.2, "Memory Statistics Tags")
struct BalloonStats {
  enum Tag : uint8_t {
    kSwapIn,   ///< Swapped in so far [bytes].
    kSwapOut,  ///< Swapped out so far [bytes].
    kMajorFaults,
    kMinorFaults,
    kFree,        ///< Used for nothing at all [bytes].
    kTotal,       ///< [bytes].
    kAvailable,   ///< What new programs could have without swapping [bytes].
    kDiskCaches,  ///< What could be dropped without I/O [bytes].
    kHugetlbAllocations,
    kHugetlbFailures,
    kTagCount,
  };
  std::array<std::optional<uint64_t>, kTagCount> values;
  uint64_t update_count = 0;  ///< How often the guest has said something.
};

/// What a balloon did since it was made.
struct BalloonCounters {
  uint64_t discarded_bytes = 0;  ///< Given back to the host.
  uint64_t ignored_pages = 0;    ///< Pages named by the driver that are not guest RAM.
  uint64_t failed_discards = 0;  ///< Ranges that the host did not take.
  bool operator==(const BalloonCounters&) const = default;
};

/// Memory balloon with statistics and reporting of free pages.
///
/// Page numbers are in units of 4 KiB whatever the host's page size: see BalloonedPages. A host page of several 4 KiB
/// pages is put together over several buffers only if the driver agreed to VIRTIO_BALLOON_F_MUST_TELL_HOST, because
/// otherwise it may use a page again before it says so. Discarding takes time, so it is done in runs, between which the
/// event loop serves the other devices.
///
/// The specification numbers the queues 0 to 4, absent ones included; Linux on virtio-mmio counts only those that it
/// uses. Every queue that is neither of the first two nor agreed to be for statistics is taken for free-page reporting,
/// which is right for both.
/// Not offered: VIRTIO_BALLOON_F_FREE_PAGE_HINT, VIRTIO_BALLOON_F_PAGE_POISON.
/// @spec  virtio 1.2, "Traditional Memory Balloon Device"
class VirtioBalloon final : public VirtioDevice {
 public:
  /// Most pages that are put in or taken out before other devices have their turn.
  static constexpr size_t kPagesPerRun = 1024;
  /// Most reported bytes that are discarded before other devices have their turn: the 32 blocks of 4 MiB that Linux
  /// reports at once.
  static constexpr uint64_t kReportBytesPerRun = 128U << 20;
  /// Most buffers of one queue that are taken before other devices have their turn.
  static constexpr unsigned kBuffersPerRun = 16;

  /// @param host_page_bytes  see BalloonedPages.
  /// @pre `executor` and `ram` outlive the device, and the device the event loop's last callback.
  VirtioBalloon(std::string name, DeviceExecutor& executor, PageDiscard& ram, uint64_t host_page_bytes)
      : name_(std::move(name)), executor_(executor), ram_(ram), pages_(host_page_bytes) {}

  /// Asks the guest to give up `bytes` of its memory in all; what it has given beyond that, it takes back.
  /// @errors  Errc::kOutOfRange: more than 16 TiB.
  Result<void> set_target(uint64_t bytes);
  [[nodiscard]] uint64_t target_bytes() const { return state_.num_pages * virtio_balloon::kPageBytes; }
  /// What the guest says it has given up.
  [[nodiscard]] uint64_t actual_bytes() const { return state_.actual * virtio_balloon::kPageBytes; }

  [[nodiscard]] const BalloonStats& stats() const { return stats_; }
  /// Asks the guest for new statistics. @return false when it cannot be asked now.
  bool request_stats();

  [[nodiscard]] const BalloonCounters& counters() const { return counters_; }

  [[nodiscard]] std::string_view name() const override { return name_; }
  /// The target stays; the guest has given up nothing any more.
  Result<void> reset() override;
  Result<void> pause() override;
  Result<void> resume() override;
  Result<StateRecord> save() override;
  Result<void> restore(const StateRecord& record) override;

  [[nodiscard]] uint32_t device_id() const override;
  [[nodiscard]] uint64_t device_features() const override;
  [[nodiscard]] std::span<const uint16_t> queue_sizes() const override { return kQueueSizes; }
  void read_config(uint64_t offset, std::span<std::byte> out) override;
  void write_config(uint64_t offset, std::span<const std::byte> bytes) override;
  void activate(const VirtioActivation& activation) override;
  void notify(uint16_t queue) override;

 private:
  static constexpr std::array<uint16_t, virtio_balloon::kQueueCount> kQueueSizes{128, 128, 128, 128, 128};

  struct State {
    uint32_t num_pages = 0;
    uint32_t actual = 0;
  };
  /// Progress on one queue.
  struct Work {
    uint64_t done_bytes = 0;  // of the next buffer: page numbers read, or reported bytes discarded
    bool posted = false;      // a run is due
  };
  enum class Role : uint8_t { kInflate, kDeflate, kStats, kReport, kNone };
  enum class Step : uint8_t { kDone, kPartly, kIdle };

  [[nodiscard]] Role role_of(uint16_t queue) const;
  void serve(uint16_t queue);
  Step serve_next(uint16_t queue, uint64_t& left_bytes);
  void work_on(Role role, DescriptorChain& chain, uint64_t offset, uint64_t size_bytes);
  void inflate(std::span<uint32_t> pages);
  void report(DescriptorChain& chain, uint64_t offset, uint64_t size_bytes);
  void discard(GuestRange range);
  void serve_later(uint16_t queue);

  void take_stats();
  void put_back_stats_buffer();

  [[nodiscard]] std::array<std::byte, virtio_balloon::kConfigBytes> config() const;
  void signal(uint16_t queue);
  void stop(std::string_view why);
  [[nodiscard]] bool is_running() const { return active_ && !paused_; }
  [[nodiscard]] bool has_feature(uint64_t feature) const { return (active_->features & feature) != 0; }

  // Fixed configuration
  const std::string name_;
  // Connections
  DeviceExecutor& executor_;
  PageDiscard& ram_;
  std::optional<VirtioActivation> active_;
  // Guest-visible state
  State state_;
  // Book-keeping
  BalloonedPages pages_;
  BalloonStats stats_;
  BalloonCounters counters_;
  std::optional<DescriptorChain> stats_buffer_;  // returned to the driver to ask for new statistics
  std::array<Work, virtio_balloon::kQueueCount> work_{};
  bool paused_ = false;
  log::RateLimit discard_failures_;
};

}  // namespace tandem::devices
