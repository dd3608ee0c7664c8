// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "devices/backend/block_engine.hpp"
#include "devices/backend/block_worker.hpp"

namespace tandem::devices {

/// Performs all requests on one thread: for hosts without io_uring.
class WorkerBlockEngine final : public BlockEngine {
 public:
  static Result<std::unique_ptr<BlockEngine>> create(DiskFile disk);

  [[nodiscard]] const DiskFile& disk() const override { return disk_; }
  [[nodiscard]] std::string_view name() const override { return "thread"; }
  void submit(BlockRequest& request) override { worker_->submit(request); }
  void kick() override {}
  [[nodiscard]] int completion_fd() const override { return completion_.get(); }
  void reap(std::vector<BlockRequest*>& ended) override;

 private:
  WorkerBlockEngine(DiskFile disk, UniqueFd completion) : disk_(std::move(disk)), completion_(std::move(completion)) {}

  DiskFile disk_;
  UniqueFd completion_;
  std::unique_ptr<BlockWorker> worker_;  // last: it uses the members above
};

}  // namespace tandem::devices
