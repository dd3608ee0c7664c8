// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "devices/backend/block_engine.hpp"
#include "devices/backend/disk_file.hpp"
#include "vmm/lib/result/result.hpp"

namespace tandem::devices {

/// A thread that performs requests one after another with blocking system calls.
class BlockWorker {
 public:
  /// @param completion_fd  an eventfd, signalled for each request that ended.
  /// @pre     `disk` and `completion_fd` outlive the worker.
  /// @errors  Errc::kBusy: the host gives no more threads.
  static Result<std::unique_ptr<BlockWorker>> create(const DiskFile& disk, int completion_fd);
  BlockWorker(const BlockWorker&) = delete;
  BlockWorker& operator=(const BlockWorker&) = delete;
  /// @pre nothing is in flight.
  ~BlockWorker();

  void submit(BlockRequest& request);
  /// Appends the requests that ended to `ended`.
  void reap(std::vector<BlockRequest*>& ended);

 private:
  BlockWorker(const DiskFile& disk, int completion_fd) : disk_(disk), completion_fd_(completion_fd) {}
  void run();

  const DiskFile& disk_;
  const int completion_fd_;

  std::mutex mutex_;  // guards the three below; a leaf
  std::condition_variable wake_;
  std::deque<BlockRequest*> submitted_;
  std::vector<BlockRequest*> ended_;
  bool stopping_ = false;

  std::thread thread_;
};

/// Performs `request` before it returns.
void perform(const DiskFile& disk, BlockRequest& request);

}  // namespace tandem::devices
