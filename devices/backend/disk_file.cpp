// SPDX-License-Identifier: Apache-2.0
#include "devices/backend/disk_file.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "vmm/lib/log/log.hpp"

namespace tandem::devices {
namespace {

std::string_view kind_of(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return "a directory";
    case S_IFIFO:
      return "a FIFO";
    case S_IFSOCK:
      return "a socket";
    case S_IFCHR:
      return "a character device";
    default:
      return "of an unknown type";
  }
}

bool is_disk(const struct stat& file) { return S_ISREG(file.st_mode) || S_ISBLK(file.st_mode); }

/// Opens `path` if it is a disk. Looks before it opens: opening a device of another kind can do things.
Result<UniqueFd> open_disk(const std::string& path, DiskFile::Access access, DiskFile::Locking locking) {
  struct stat before = {};
  if (::stat(path.c_str(), &before) != 0) {
    return fail_errno("disk {}", path);
  }
  if (!is_disk(before)) {
    return fail(Errc::kInvalidArgument, "disk {}: is {}, where a regular file or block device is due", path,
                kind_of(before.st_mode));
  }
  const bool writes = access == DiskFile::Access::kReadWrite;
  const bool claims = writes && locking == DiskFile::Locking::kNow && S_ISBLK(before.st_mode);
  const int claim = claims ? O_EXCL : 0;
  // O_NONBLOCK: what is at `path` may have become a FIFO meanwhile.
  UniqueFd fd(::open(path.c_str(), (writes ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | claim));
  if (!fd) {
    return fail_errno("disk {}", path);
  }
  struct stat opened = {};
  if (::fstat(fd.get(), &opened) != 0) {
    return fail_errno("disk {}", path);
  }
  if (opened.st_dev != before.st_dev || opened.st_ino != before.st_ino || !is_disk(opened)) {
    return fail(Errc::kBusy, "disk {}: was replaced while it was opened", path);
  }
  // io_uring takes O_NONBLOCK to mean that a read may fail instead of waiting for the storage.
  if (::fcntl(fd.get(), F_SETFL, 0) != 0) {
    return fail_errno("disk {}: fcntl(F_SETFL)", path);
  }
  return fd;
}

struct flock whole_file_lock(DiskFile::Access access) {
  struct flock whole_file = {};
  whole_file.l_type = access == DiskFile::Access::kReadWrite ? F_WRLCK : F_RDLCK;
  whole_file.l_whence = SEEK_SET;
  return whole_file;
}

/// What says that there are no locks, and not that one could not be had: of a file system whose lock server is away, say.
bool means_no_locks(int os_error) { return os_error == EINVAL || os_error == ENOSYS || os_error == EOPNOTSUPP; }

/// @return whether the file system has locks.
Result<bool> lock(int fd, const std::string& path, DiskFile::Access access) {
  const bool writes = access == DiskFile::Access::kReadWrite;
  struct flock whole_file = whole_file_lock(access);
  if (::fcntl(fd, F_OFD_SETLK, &whole_file) == 0) {
    return true;
  }
  if (errno == EAGAIN || errno == EACCES) {
    return fail(Errc::kBusy, "disk {}: is in use{}: locked by another process, or given twice", path,
                writes ? "" : " for writing");
  }
  if (!means_no_locks(errno)) {
    return fail_errno("disk {}: cannot be locked", path);
  }
  log::warn("disk {}: its file system has no locks: make sure that nobody else uses it", path);
  return false;
}

bool has_locks(int fd) {
  struct flock whole_file = whole_file_lock(DiskFile::Access::kReadOnly);
  return ::fcntl(fd, F_OFD_GETLK, &whole_file) == 0 || !means_no_locks(errno);
}

Result<uint64_t> size_of(int fd, const std::string& path, bool is_block_device) {
  uint64_t size_bytes = 0;
  if (is_block_device) {
    if (::ioctl(fd, BLKGETSIZE64, &size_bytes) != 0) {
      return fail_errno("disk {}: BLKGETSIZE64", path);
    }
  } else {
    struct stat file = {};
    if (::fstat(fd, &file) != 0) {
      return fail_errno("disk {}", path);
    }
    size_bytes = static_cast<uint64_t>(file.st_size);
  }
  if (size_bytes == 0) {
    return fail(Errc::kInvalidArgument, "disk {}: is empty", path);
  }
  if (size_bytes % kSectorBytes != 0) {
    return fail(Errc::kInvalidArgument, "disk {}: its size of {} bytes is not a multiple of {}", path, size_bytes,
                kSectorBytes);
  }
  return size_bytes;
}

int fallocate_errno(int fd, int mode, uint64_t offset, uint64_t size_bytes) {
  int result = 0;
  do {
    result = ::fallocate(fd, mode, static_cast<off_t>(offset), static_cast<off_t>(size_bytes));
  } while (result != 0 && errno == EINTR);
  return result == 0 ? 0 : errno;
}

int write_zero_bytes(int fd, uint64_t offset, uint64_t size_bytes) {
  static const std::array<std::byte, 1U << 15> zeroes{};
  while (size_bytes > 0) {
    const ssize_t written =
        ::pwrite(fd, zeroes.data(), std::min<uint64_t>(zeroes.size(), size_bytes), static_cast<off_t>(offset));
    if (written < 0 && errno != EINTR) {
      return errno;
    }
    if (written == 0) {
      return EIO;
    }
    const uint64_t done = written < 0 ? 0 : static_cast<uint64_t>(written);
    offset += done;
    size_bytes -= done;
  }
  return 0;
}

}  // namespace

Result<DiskFile> DiskFile::open(const std::string& path, Access access, Locking locking) {
  UniqueFd fd = TANDEM_TRY(open_disk(path, access, locking));
  struct stat file = {};
  if (::fstat(fd.get(), &file) != 0) {
    return fail_errno("disk {}", path);
  }
  const bool is_block_device = S_ISBLK(file.st_mode);
  const bool has_locks_here = locking == Locking::kNow ? TANDEM_TRY(lock(fd.get(), path, access)) : has_locks(fd.get());
  const uint64_t size_bytes = TANDEM_TRY(size_of(fd.get(), path, is_block_device));
  return DiskFile(path, std::move(fd), access,
                  {.is_block_device = is_block_device, .has_locks = has_locks_here, .size_bytes = size_bytes});
}

Result<void> DiskFile::take_lock() const {
  if (!TANDEM_TRY(lock(fd_.get(), path_, access_)) && storage_.has_locks) {
    return fail(Errc::kBusy, "disk {}: cannot be locked any more: its file system had locks when it was opened", path_);
  }
  return {};
}

void DiskFile::drop_lock() const {
  struct flock whole_file = whole_file_lock(access_);
  whole_file.l_type = F_UNLCK;
  if (::fcntl(fd_.get(), F_OFD_SETLK, &whole_file) != 0) {
    log::debug("disk {}: cannot be unlocked: {}", path_, std::strerror(errno));
  }
}

bool DiskFile::is_locked_elsewhere() const {
  struct flock whole_file = whole_file_lock(access_);
  return ::fcntl(fd_.get(), F_OFD_GETLK, &whole_file) == 0 && whole_file.l_type != F_UNLCK;
}

int DiskFile::flush() const {
  // EINTR is not retried: fdatasync(2) may have dropped the pages whose writing failed.
  return ::fdatasync(fd_.get()) == 0 ? 0 : errno;
}

int DiskFile::discard(uint64_t offset, uint64_t size_bytes) const {
  int os_error = 0;
  if (storage_.is_block_device) {
    std::array<uint64_t, 2> range{offset, size_bytes};
    os_error = ::ioctl(fd_.get(), BLKDISCARD, range.data()) == 0 ? 0 : errno;
  } else {
    os_error = fallocate_errno(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, size_bytes);
  }
  return os_error == EOPNOTSUPP ? 0 : os_error;  // it was only a hint
}

int DiskFile::write_zeroes(uint64_t offset, uint64_t size_bytes, Unmap unmap) const {
  if (unmap == Unmap::kAllowed &&
      fallocate_errno(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, size_bytes) == 0) {
    return 0;
  }
  if (fallocate_errno(fd_.get(), FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, offset, size_bytes) == 0) {
    return 0;
  }
  // Not every file system and device can do either. A real error shows again here.
  return write_zero_bytes(fd_.get(), offset, size_bytes);
}

}  // namespace tandem::devices
