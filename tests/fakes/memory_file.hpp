// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tandem::fakes {

/// A file with given content and a path, in memory: nothing is left behind.
class MemoryFile {
 public:
  explicit MemoryFile(std::span<const std::byte> content)
      : fd_(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    if (::write(fd_, content.data(), content.size()) != static_cast<ssize_t>(content.size())) {
      throw std::runtime_error("cannot fill a file in memory");
    }
  }
  explicit MemoryFile(std::string_view content) : MemoryFile(std::as_bytes(std::span(content))) {}
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(fd_); }

  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
};

}  // namespace tandem::fakes
