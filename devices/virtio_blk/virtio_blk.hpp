// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "devices/backend/block_engine.hpp"
#include "devices/bus/device_executor.hpp"
#include "devices/virtio_blk/virtio_blk_regs.hpp"
#include "devices/virtio_queue/virtio_device.hpp"
#include "vmm/lib/log/log.hpp"

namespace tandem::devices {

/// A virtio block device on one disk, with one queue. Data goes between the disk and guest RAM without a copy.
///
/// Requests run at the same time and end in any order. FLUSH covers the writes that ended before it was submitted; a
/// driver that did not agree on FLUSH gets writes that are durable when they end. A disk that is read-only stays so
/// whatever the driver agreed on; FLUSH of one succeeds.
///
/// What a driver gets wrong: a request without room for its status byte, or a broken ring, needs a reset; every other
/// malformed request (short header, sectors beyond the disk, half sectors, more than kMaxRequestBytes) ends with IOERR
/// and touches neither disk nor guest RAM beside its status. Unknown types and flags end with UNSUPP.
///
/// Everything a guest can see is the same for every host and image of that size. Not offered: several queues, write-back
/// control, secure erase, zoned disks, life time.
/// @spec  virtio 1.2, "Block Device"
class VirtioBlk final : public VirtioDevice {
 public:
  static constexpr uint16_t kQueueSize = 256;
  /// Pieces of one request's data: what the queue holds beside header and status.
  static constexpr uint32_t kMaxSegments = kQueueSize - 2;
  static constexpr uint32_t kMaxSegmentBytes = 4U << 20;
  /// Data of one request [bytes].
  static constexpr uint64_t kMaxRequestBytes = uint64_t{kMaxSegments} * kMaxSegmentBytes;
  /// Data of the requests in flight with which no more are taken on: what a pause or reset may have to wait for, beside
  /// one request that is larger. A queue of the largest requests would be hundreds of gigabytes.
  static constexpr uint64_t kMaxInFlightBytes = 64U << 20;
  /// Pieces of one request to discard or zero, and the sectors of each. Zeroing may have to write them all.
  static constexpr uint32_t kMaxRanges = 32;
  static constexpr uint32_t kMaxDiscardSectors = 1U << 22;
  static constexpr uint32_t kMaxWriteZeroesSectors = 1U << 17;

  /// @param serial  what GET_ID answers; at most 20 bytes, the rest is cut off.
  /// @pre     `executor` outlives the device.
  static Result<std::unique_ptr<VirtioBlk>> create(std::string name, std::string serial,
                                                   std::unique_ptr<BlockEngine> engine, DeviceExecutor& executor);
  VirtioBlk(const VirtioBlk&) = delete;
  VirtioBlk& operator=(const VirtioBlk&) = delete;
  /// Waits for what is in flight.
  ~VirtioBlk() override;

  [[nodiscard]] uint32_t device_id() const override { return virtio_blk::kDeviceId; }
  [[nodiscard]] uint64_t device_features() const override;
  [[nodiscard]] std::span<const uint16_t> queue_sizes() const override;
  void read_config(uint64_t offset, std::span<std::byte> out) override;
  void write_config(uint64_t offset, std::span<const std::byte> bytes) override;
  void activate(const VirtioActivation& activation) override;
  void notify(uint16_t queue) override;

  [[nodiscard]] std::string_view name() const override { return name_; }
  Result<void> reset() override;
  Result<void> pause() override;
  Result<void> resume() override;
  Result<StateRecord> save() override;
  Result<void> restore(const StateRecord& record) override;

 private:
  using Status = virtio_blk::Status;

  /// A buffer of the driver on its way through the engine.
  struct Request : BlockRequest {
    std::optional<DescriptorChain> chain;
    uint64_t size_bytes = 0;  ///< To be read, written or zeroed.
  };
  /// What a request that the engine needs not see ends with.
  struct Answer {
    Status status;
    uint64_t data_bytes = 0;  ///< Written to the start of the device-writable part.
  };

  VirtioBlk(std::string name, std::string serial, std::unique_ptr<BlockEngine> engine, DeviceExecutor& executor);

  void serve_queue();
  /// Takes on what the driver made available. @return false when the ring was seen to be empty, or is broken.
  bool take_available();
  /// Has the rest of the ring served if there may be more, and there is room for it in flight.
  void go_on();
  /// @return false when the driver broke the rules.
  bool take(DescriptorChain chain);
  /// Fills `request` from the driver's buffer. @return the answer, if there is nothing to do for the engine.
  std::optional<Answer> prepare(Request& request) const;
  std::optional<Answer> prepare_transfer(Request& request, uint64_t sector) const;
  std::optional<Answer> prepare_ranges(Request& request) const;
  [[nodiscard]] std::expected<void, Status> check_range(const virtio_blk::DiscardWriteZeroes& range,
                                                        BlockRequest::Kind kind) const;

  /// Takes back what the engine ended.
  void take_ended();
  void finish(Request& request, Answer answer);
  void interrupt_if_wanted();
  void set_broken(std::string_view why);
  /// Waits for all that is in flight.
  void drain();

  [[nodiscard]] bool is_running() const { return activation_.has_value() && !paused_ && !broken_; }
  [[nodiscard]] bool has_feature(uint64_t bit) const { return (activation_->features & bit) != 0; }
  [[nodiscard]] bool has_room() const { return in_flight_bytes_ < kMaxInFlightBytes; }
  [[nodiscard]] bool is_on_disk(uint64_t sector, uint64_t count) const;
  [[nodiscard]] SplitQueue& queue() { return activation_->queues[0]; }
  Request& take_idle();

  // Fixed configuration
  const std::string name_;
  const std::string serial_;
  const virtio_blk::Config config_;

  // Connections
  DeviceExecutor& executor_;
  std::unique_ptr<BlockEngine> engine_;

  // Book-keeping
  std::optional<VirtioActivation> activation_;
  bool paused_ = false;
  bool broken_ = false;                             // the driver broke the rules: nothing more until reset
  bool may_be_more_ = false;                        // available, as far as the ring was looked at
  bool serve_posted_ = false;                       // serve_queue() follows on the event loop
  uint64_t in_flight_bytes_ = 0;                    // of the requests that the engine has
  std::vector<std::unique_ptr<Request>> requests_;  // all there are, at most as many as the queue is long
  std::vector<Request*> idle_;
  std::vector<BlockRequest*> ended_;  // used in take_ended only
  log::RateLimit io_errors_;

  EventLoop::Watch watch_;  // last: its callback uses the members above
};

}  // namespace tandem::devices
