// SPDX-License-Identifier: Apache-2.0
#include "devices/backend/block_engine.hpp"

#include <poll.h>

#include <cerrno>
#include <cstddef>

#include "devices/backend/uring_block_engine.hpp"
#include "devices/backend/worker_block_engine.hpp"
#include "vmm/lib/log/log.hpp"

namespace tandem::devices {

void BlockRequest::clear() {
  buffers.clear();
  ranges.clear();
  first_buffer_ = 0;
  offset = 0;
  durable = false;
  done_bytes = 0;
  os_error = 0;
}

bool BlockRequest::advance(int64_t result) {
  if (result == -EINTR) {
    return false;
  }
  // Nothing was transferred although something was left: the disk ends earlier than it used to.
  if (result <= 0) {
    os_error = result < 0 ? static_cast<int>(-result) : EIO;
    return true;
  }
  auto left = static_cast<size_t>(result);
  done_bytes += left;
  while (first_buffer_ < buffers.size() && left >= buffers[first_buffer_].iov_len) {
    left -= buffers[first_buffer_].iov_len;
    ++first_buffer_;
  }
  if (first_buffer_ == buffers.size()) {
    return true;
  }
  iovec& partly_done = buffers[first_buffer_];
  partly_done.iov_base = static_cast<std::byte*>(partly_done.iov_base) + left;
  partly_done.iov_len -= left;
  return false;
}

void wait_for_completion(const BlockEngine& engine) {
  pollfd completion{.fd = engine.completion_fd(), .events = POLLIN, .revents = 0};
  // Fails only with EINTR: then the caller finds nothing, and waits again.
  [[maybe_unused]] const int ready = ::poll(&completion, 1, -1);
}

Result<std::unique_ptr<BlockEngine>> create_block_engine(DiskFile disk, unsigned max_requests, BlockEngineKind kind) {
  if (kind == BlockEngineKind::kWorker) {
    return WorkerBlockEngine::create(std::move(disk));
  }
  auto ring = UringBlockEngine::create_ring(max_requests);
  if (ring) {
    return UringBlockEngine::create(std::move(disk), std::move(*ring));
  }
  if (kind == BlockEngineKind::kUring) {
    return std::unexpected(std::move(ring).error());
  }
  log::info("disk {}: {}: using a thread instead", disk.path(), ring.error().message());
  return WorkerBlockEngine::create(std::move(disk));
}

}  // namespace tandem::devices
