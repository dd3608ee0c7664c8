// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "vmm/lib/result/result.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem::devices {

/// Unit of a virtual disk's size, and of every access to it [bytes].
inline constexpr uint64_t kSectorBytes = 512;

/// A disk's contents: a raw image in a regular file, or a block device; locked while it is open.
///
/// The lock is an open file description's (fcntl(2), F_OFD_SETLK) on the whole file: a disk that somebody writes to is
/// nobody else's, whether in another process or in this one; a disk may have any number of readers. A block device that
/// is written to is also claimed with O_EXCL, which a mounted one refuses, unless it was opened to be locked later: its
/// owner until then may have claimed it.
class DiskFile {
 public:
  enum class Access : uint8_t { kReadWrite, kReadOnly };
  /// `kLater`: somebody else, who hands the disk over, has the lock until then. Nothing may be read or written before.
  enum class Locking : uint8_t { kNow, kLater };

  /// Opens the disk at `path`, and locks it now; never waits.
  /// A file system without locks is warned of.
  /// @errors  as open(2) and fcntl(F_OFD_SETLK) fail; Errc::kBusy: somebody else has it; Errc::kInvalidArgument: neither a regular file nor a
  ///          block device, empty, or not a whole number of sectors. Texts begin with "disk <path>: ".
  static Result<DiskFile> open(const std::string& path, Access access, Locking locking = Locking::kNow);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int fd() const { return fd_.get(); }
  /// A multiple of kSectorBytes, not 0.
  [[nodiscard]] uint64_t size_bytes() const { return storage_.size_bytes; }
  [[nodiscard]] bool is_read_only() const { return access_ == Access::kReadOnly; }

  /// Locks the disk; never waits. What is locked by this object already stays so.
  /// @errors  Errc::kBusy: somebody else has it; as fcntl(F_OFD_SETLK) fails, but on a file system that never had locks.
  [[nodiscard]] Result<void> take_lock() const;
  /// Lets others have the disk. @pre nothing is being read or written.
  void drop_lock() const;
  /// Whether somebody else has a lock on the disk that keeps us from taking ours.
  [[nodiscard]] bool is_locked_elsewhere() const;

  // These block, and return 0 or an errno. @pre the range is within the disk.

  /// Makes completed writes durable.
  [[nodiscard]] int flush() const;
  /// Gives storage back where the host can; the contents are unspecified afterwards.
  [[nodiscard]] int discard(uint64_t offset, uint64_t size_bytes) const;
  enum class Unmap : uint8_t { kNo, kAllowed };
  /// Makes the contents zero; with `kAllowed` by giving storage back where the host can.
  [[nodiscard]] int write_zeroes(uint64_t offset, uint64_t size_bytes, Unmap unmap) const;

 private:
  /// What was found when the disk was opened.
  struct Storage {
    bool is_block_device;
    bool has_locks;
    uint64_t size_bytes;
  };

  DiskFile(std::string path, UniqueFd fd, Access access, const Storage& storage)
      : path_(std::move(path)), fd_(std::move(fd)), access_(access), storage_(storage) {}

  std::string path_;
  UniqueFd fd_;
  Access access_;
  Storage storage_;
};

}  // namespace tandem::devices
