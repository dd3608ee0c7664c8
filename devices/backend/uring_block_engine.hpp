// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <liburing.h>

#include <memory>

#include "devices/backend/block_engine.hpp"
#include "devices/backend/block_worker.hpp"

namespace tandem::devices {

/// Reads, writes and flushes through io_uring. Discarding and zeroing have no operation there that works on files and
/// block devices of all kernels: a thread does them, which exists from the first such request on.
class UringBlockEngine final : public BlockEngine {
 public:
  /// Owns an io_uring instance.
  class Ring {
   public:
    Ring(Ring&& other) noexcept : ring_(other.ring_), is_owner_(std::exchange(other.is_owner_, false)) {}
    Ring& operator=(Ring&&) = delete;
    ~Ring();
    io_uring* get() { return &ring_; }

   private:
    friend class UringBlockEngine;
    explicit Ring(const io_uring& ring) : ring_(ring) {}
    io_uring ring_;
    bool is_owner_ = true;
  };

  /// @errors  Errc::kUnsupported, kPermission, kOutOfMemory: the host has no io_uring for us.
  static Result<Ring> create_ring(unsigned max_requests);
  static Result<std::unique_ptr<BlockEngine>> create(DiskFile disk, Ring ring);

  [[nodiscard]] const DiskFile& disk() const override { return disk_; }
  [[nodiscard]] std::string_view name() const override { return "io_uring"; }
  void submit(BlockRequest& request) override;
  void kick() override;
  [[nodiscard]] int completion_fd() const override { return completion_.get(); }
  void reap(std::vector<BlockRequest*>& ended) override;

 private:
  UringBlockEngine(DiskFile disk, Ring ring, UniqueFd completion)
      : disk_(std::move(disk)), completion_(std::move(completion)), ring_(std::move(ring)) {}
  void enqueue(BlockRequest& request);
  void give_to_worker(BlockRequest& request);
  void end(BlockRequest& request, int os_error);

  DiskFile disk_;
  UniqueFd completion_;
  Ring ring_;
  std::vector<BlockRequest*> ended_early_;  // could not be started
  std::unique_ptr<BlockWorker> worker_;     // last: it uses the members above
};

}  // namespace tandem::devices
