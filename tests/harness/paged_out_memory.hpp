// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>

#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem::tests {

/// A swap area of the host, in a file below /tmp behind a loop device: what is read back from it is waited for.
class SwapArea {
 public:
  SwapArea();
  SwapArea(const SwapArea&) = delete;
  SwapArea& operator=(const SwapArea&) = delete;
  ~SwapArea();

  /// Why there is none; empty if there is one.
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  std::string device_;
  std::string error_;
};

/// Has the kernel take a process's largest mapping out of memory, over and over, from a thread of its own.
class PagedOutMemory {
 public:
  /// @return nothing if there is no such process, or the kernel refuses.
  static std::unique_ptr<PagedOutMemory> of(pid_t process);
  PagedOutMemory(const PagedOutMemory&) = delete;
  PagedOutMemory& operator=(const PagedOutMemory&) = delete;
  ~PagedOutMemory();

 private:
  PagedOutMemory(UniqueFd process, void* first, size_t size_bytes);
  bool page_out();

  UniqueFd process_;
  void* first_;  // in that process
  size_t size_bytes_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace tandem::tests
