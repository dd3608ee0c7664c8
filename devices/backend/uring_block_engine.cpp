// SPDX-License-Identifier: Apache-2.0
#include "devices/backend/uring_block_engine.hpp"

#include <cerrno>

namespace tandem::devices {
namespace {

/// More is not moved by the thread that submits it: what the host has in its cache is copied then and there, and a driver
/// may ask for a gigabyte at once. Linux asks for up to 1.25 MiB.
constexpr size_t kMaxInlineBytes = 2U << 20;

size_t size_of(std::span<const iovec> memory) {
  size_t size_bytes = 0;
  for (const iovec& piece : memory) {
    size_bytes += piece.iov_len;
  }
  return size_bytes;
}

}  // namespace

UringBlockEngine::Ring::~Ring() {
  if (is_owner_) {
    ::io_uring_queue_exit(&ring_);
  }
}

Result<UringBlockEngine::Ring> UringBlockEngine::create_ring(unsigned max_requests) {
  io_uring ring{};
  if (const int result = ::io_uring_queue_init(max_requests, &ring, 0); result != 0) {
    return std::unexpected(Error::from_errno("io_uring_setup", -result));
  }
  return Ring(ring);
}

Result<std::unique_ptr<BlockEngine>> UringBlockEngine::create(DiskFile disk, Ring ring) {
  UniqueFd completion = TANDEM_TRY(create_eventfd());
  if (const int result = ::io_uring_register_eventfd(ring.get(), completion.get()); result != 0) {
    return std::unexpected(Error::from_errno("IORING_REGISTER_EVENTFD", -result));
  }
  return std::unique_ptr<BlockEngine>(new UringBlockEngine(std::move(disk), std::move(ring), std::move(completion)));
}

void UringBlockEngine::submit(BlockRequest& request) {
  switch (request.kind) {
    case BlockRequest::Kind::kRead:
    case BlockRequest::Kind::kWrite:
    case BlockRequest::Kind::kFlush:
      enqueue(request);
      break;
    case BlockRequest::Kind::kDiscard:
    case BlockRequest::Kind::kWriteZeroes:
      give_to_worker(request);
      break;
  }
}

void UringBlockEngine::enqueue(BlockRequest& request) {
  io_uring_sqe* entry = ::io_uring_get_sqe(ring_.get());
  if (entry == nullptr) {  // full of what was not kicked yet
    kick();
    entry = ::io_uring_get_sqe(ring_.get());
  }
  if (entry == nullptr) {
    end(request, EBUSY);
    return;
  }
  const auto memory = request.remaining();
  const auto count = static_cast<unsigned>(memory.size());
  const uint64_t place = request.offset + request.done_bytes;
  switch (request.kind) {
    case BlockRequest::Kind::kRead:
      ::io_uring_prep_readv(entry, disk_.fd(), memory.data(), count, place);
      break;
    case BlockRequest::Kind::kWrite:
      ::io_uring_prep_writev2(entry, disk_.fd(), memory.data(), count, place, request.durable ? RWF_DSYNC : 0);
      break;
    default:
      ::io_uring_prep_fsync(entry, disk_.fd(), IORING_FSYNC_DATASYNC);
  }
  if (size_of(memory) > kMaxInlineBytes) {
    ::io_uring_sqe_set_flags(entry, IOSQE_ASYNC);
  }
  ::io_uring_sqe_set_data(entry, &request);
}

void UringBlockEngine::give_to_worker(BlockRequest& request) {
  if (!worker_) {
    auto worker = BlockWorker::create(disk_, completion_.get());
    if (!worker) {
      end(request, worker.error().os_error());
      return;
    }
    worker_ = std::move(*worker);
  }
  worker_->submit(request);
}

void UringBlockEngine::end(BlockRequest& request, int os_error) {
  request.os_error = os_error;
  ended_early_.push_back(&request);
  signal_eventfd(completion_.get());
}

void UringBlockEngine::kick() {
  if (::io_uring_sq_ready(ring_.get()) == 0) {
    return;
  }
  const int result = ::io_uring_submit(ring_.get());
  if (result < 0 || ::io_uring_sq_ready(ring_.get()) != 0) {
    signal_eventfd(completion_.get());  // the kernel was short of something, or interrupted: `reap` tries again
  }
}

void UringBlockEngine::reap(std::vector<BlockRequest*>& ended) {
  drain_eventfd(completion_.get());  // first: what ends from here on signals anew
  io_uring_cqe* entry = nullptr;
  while (::io_uring_peek_cqe(ring_.get(), &entry) == 0) {
    BlockRequest& request = *static_cast<BlockRequest*>(::io_uring_cqe_get_data(entry));
    const int result = entry->res;
    ::io_uring_cqe_seen(ring_.get(), entry);
    if (request.kind == BlockRequest::Kind::kFlush) {
      request.os_error = result < 0 ? -result : 0;
      ended.push_back(&request);
    } else if (request.advance(result)) {
      ended.push_back(&request);
    } else {
      enqueue(request);
    }
  }
  if (worker_) {
    worker_->reap(ended);
  }
  ended.insert(ended.end(), ended_early_.begin(), ended_early_.end());
  ended_early_.clear();
  kick();
}

}  // namespace tandem::devices
