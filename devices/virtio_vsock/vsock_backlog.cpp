// SPDX-License-Identifier: Apache-2.0
#include "devices/virtio_vsock/vsock_backlog.hpp"

#include <utility>

namespace tandem::devices {

std::span<std::byte> VsockBacklog::extend(size_t size_bytes) {
  store_.erase(store_.begin(), store_.begin() + static_cast<ptrdiff_t>(std::exchange(taken_bytes_, 0)));
  const size_t old_bytes = store_.size();
  store_.resize(old_bytes + size_bytes);
  return std::span(store_).subspan(old_bytes);
}

void VsockBacklog::drop_front(size_t size_bytes) {
  taken_bytes_ += size_bytes;
  if (taken_bytes_ == store_.size()) {
    clear();
  }
}

void VsockBacklog::clear() {
  store_ = {};
  taken_bytes_ = 0;
}

}  // namespace tandem::devices
