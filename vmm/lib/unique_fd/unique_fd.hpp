// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "vmm/lib/result/result.hpp"

namespace tandem {

/// Owns one file descriptor and closes it.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      reset(std::exchange(other.fd_, -1));
    }
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { reset(); }

  /// The descriptor, or -1 when there is none.
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] explicit operator bool() const { return fd_ >= 0; }
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

/// A new eventfd: close-on-exec, non-blocking, counter 0.
Result<UniqueFd> create_eventfd();

/// Adds 1 to the eventfd's counter. @thread any, also a signal handler.
void signal_eventfd(int fd);

/// Reads the eventfd's counter and sets it to 0. @return false when it was 0 already.
bool drain_eventfd(int fd);

}  // namespace tandem
