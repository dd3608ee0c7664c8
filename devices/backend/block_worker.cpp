// SPDX-License-Identifier: Apache-2.0
#include "devices/backend/block_worker.hpp"

#include <sys/uio.h>

#include <cerrno>

#include "vmm/lib/thread/start_thread.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem::devices {
namespace {

void transfer(const DiskFile& disk, BlockRequest& request) {
  bool ended = false;
  while (!ended) {
    const auto memory = request.remaining();
    const auto count = static_cast<int>(memory.size());
    const auto place = static_cast<off_t>(request.offset + request.done_bytes);
    const ssize_t done = request.kind == BlockRequest::Kind::kRead ? ::preadv(disk.fd(), memory.data(), count, place)
                                                                   : ::pwritev(disk.fd(), memory.data(), count, place);
    ended = request.advance(done < 0 ? -errno : done);
  }
}

int for_each_range(const BlockRequest& request, auto operation) {
  for (const BlockRequest::Range& range : request.ranges) {
    if (const int os_error = operation(range); os_error != 0) {
      return os_error;
    }
  }
  return 0;
}

}  // namespace

void perform(const DiskFile& disk, BlockRequest& request) {
  switch (request.kind) {
    case BlockRequest::Kind::kRead:
    case BlockRequest::Kind::kWrite:
      transfer(disk, request);
      break;
    case BlockRequest::Kind::kFlush:
      request.os_error = disk.flush();
      break;
    case BlockRequest::Kind::kDiscard:
      request.os_error = for_each_range(
          request, [&disk](const BlockRequest::Range& range) { return disk.discard(range.offset, range.size_bytes); });
      break;
    case BlockRequest::Kind::kWriteZeroes:
      request.os_error = for_each_range(request, [&disk](const BlockRequest::Range& range) {
        return disk.write_zeroes(range.offset, range.size_bytes, range.unmap);
      });
      break;
  }
  if (request.durable && request.os_error == 0) {
    request.os_error = disk.flush();
  }
}

Result<std::unique_ptr<BlockWorker>> BlockWorker::create(const DiskFile& disk, int completion_fd) {
  std::unique_ptr<BlockWorker> worker(new BlockWorker(disk, completion_fd));
  worker->thread_ = TANDEM_TRY(start_thread("disk", [raw = worker.get()] { raw->run(); }));
  return worker;
}

BlockWorker::~BlockWorker() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void BlockWorker::submit(BlockRequest& request) {
  {
    const std::lock_guard lock(mutex_);
    submitted_.push_back(&request);
  }
  wake_.notify_one();
}

void BlockWorker::reap(std::vector<BlockRequest*>& ended) {
  const std::lock_guard lock(mutex_);
  ended.insert(ended.end(), ended_.begin(), ended_.end());
  ended_.clear();
}

void BlockWorker::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !submitted_.empty(); });
    if (submitted_.empty()) {
      return;
    }
    BlockRequest& request = *submitted_.front();
    submitted_.pop_front();
    lock.unlock();
    perform(disk_, request);
    lock.lock();
    ended_.push_back(&request);
    signal_eventfd(completion_fd_);
  }
}

}  // namespace tandem::devices
