// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "vmm/lib/result/result.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem {

/// A file that the user named, open for reading. Opening one never blocks, and anything but a regular file is refused:
/// a FIFO, a directory or a terminal is a mistake that would show up later as a hang.
class RegularFile {
 public:
  /// @param what  what the file is for: errors, here and from `read_at`, start with "`what` `path`: ".
  /// @errors  as open(2) fails; Errc::kInvalidArgument: not a regular file.
  static Result<RegularFile> open(std::string_view what, const std::string& path);

  /// The file `name` in `directory` itself: nothing that a symbolic link leads to.
  /// @param label  what errors start with.
  /// @errors  as `open`, and without touching what is no regular file.
  static Result<RegularFile> open_in(int directory, const char* name, std::string label);

  /// "`what` `path`", for the caller's own errors.
  [[nodiscard]] const std::string& label() const { return label_; }
  [[nodiscard]] int fd() const { return fd_.get(); }
  /// Length when it was opened [bytes].
  [[nodiscard]] uint64_t size() const { return size_bytes_; }

  /// Reads from `offset` until `out` is full or the file ends.
  /// @return  the number of bytes read.
  Result<size_t> read_at(uint64_t offset, std::span<std::byte> out) const;

 private:
  static Result<RegularFile> create(std::string label, UniqueFd fd);
  RegularFile(std::string label, UniqueFd fd, uint64_t size_bytes)
      : label_(std::move(label)), fd_(std::move(fd)), size_bytes_(size_bytes) {}

  std::string label_;
  UniqueFd fd_;
  uint64_t size_bytes_;
};

}  // namespace tandem
