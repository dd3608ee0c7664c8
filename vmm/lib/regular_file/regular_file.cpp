// SPDX-License-Identifier: Apache-2.0
#include "vmm/lib/regular_file/regular_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tandem {
namespace {

const char* kind_of(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return "a directory";
    case S_IFIFO:
      return "a FIFO";
    case S_IFSOCK:
      return "a socket";
    case S_IFCHR:
      return "a character device";
    case S_IFBLK:
      return "a block device";
    case S_IFLNK:
      return "a symbolic link";
    default:
      return "no file";
  }
}

// Without O_NONBLOCK, opening a FIFO would wait for its writer.
constexpr int kOpenFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

Result<void> check_is_regular(const std::string& label, mode_t mode) {
  if (!S_ISREG(mode)) {
    return fail(Errc::kInvalidArgument, "{}: is {}; a regular file is needed", label, kind_of(mode));
  }
  return {};
}

}  // namespace

Result<RegularFile> RegularFile::open(std::string_view what, const std::string& path) {
  std::string label = fmt::format("{} {}", what, path);
  UniqueFd fd(::open(path.c_str(), kOpenFlags));
  if (!fd) {
    return fail_errno("{}", label);
  }
  return create(std::move(label), std::move(fd));
}

Result<RegularFile> RegularFile::open_in(int directory, const char* name, std::string label) {
  // Looked at before it is opened: a device may act on being opened.
  struct stat status{};
  if (::fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
    return fail_errno("{}", label);
  }
  TANDEM_TRY(check_is_regular(label, status.st_mode));
  UniqueFd fd(::openat(directory, name, kOpenFlags | O_NOFOLLOW));
  if (!fd) {
    return fail_errno("{}", label);
  }
  return create(std::move(label), std::move(fd));
}

Result<RegularFile> RegularFile::create(std::string label, UniqueFd fd) {
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) {
    return fail_errno("{}: fstat", label);
  }
  TANDEM_TRY(check_is_regular(label, status.st_mode));
  return RegularFile(std::move(label), std::move(fd), static_cast<uint64_t>(status.st_size));
}

Result<size_t> RegularFile::read_at(uint64_t offset, std::span<std::byte> out) const {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t count = ::pread(fd_.get(), out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (count < 0) {
      if (errno == EINTR) {
        continue;
      }
      return fail_errno("{}: read", label_);
    }
    if (count == 0) {
      break;
    }
    done += static_cast<size_t>(count);
  }
  return done;
}

}  // namespace tandem
