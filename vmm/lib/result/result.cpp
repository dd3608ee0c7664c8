// SPDX-License-Identifier: Apache-2.0
#include "vmm/lib/result/result.hpp"

#include <execinfo.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <system_error>

namespace tandem {
namespace {

Errc errc_of(int os_error) {
  switch (os_error) {
    case EINVAL:
      return Errc::kInvalidArgument;
    case ENOENT:
    case ENODEV:
    case ENXIO:
      return Errc::kNotFound;
    case EEXIST:
      return Errc::kExists;
    case EACCES:
    case EPERM:
    case EROFS:
      return Errc::kPermission;
    case EBUSY:
    case EAGAIN:
    case EADDRINUSE:
      return Errc::kBusy;
    case ENOSYS:
    case ENOTTY:
    case EOPNOTSUPP:
      return Errc::kUnsupported;
    case ERANGE:
    case E2BIG:
    case ENAMETOOLONG:
      return Errc::kOutOfRange;
    case ENOMEM:
      return Errc::kOutOfMemory;
    case EPIPE:
    case ECONNRESET:
      return Errc::kClosed;
    default:
      return Errc::kIo;
  }
}

}  // namespace

Error::Error(Errc code, std::string message, int os_error)
    : code_(code), os_error_(os_error), message_(std::move(message)) {}

Error Error::from_errno(std::string doing, int os_error) {
  doing += ": ";
  doing += std::generic_category().message(os_error);
  return {errc_of(os_error), std::move(doing), os_error};
}

Error Error::context(std::string_view doing) && {
  message_.insert(0, ": ");
  message_.insert(0, doing);
  return std::move(*this);
}

namespace detail {

void assertion_failed(const char* condition, const char* why, const char* file, int line) {
  std::fprintf(stderr, "tandem: %s:%d: assertion failed: %s (%s)\n", file, line, condition, why);
  std::array<void*, 32> frames{};
  backtrace_symbols_fd(frames.data(), backtrace(frames.data(), frames.size()), STDERR_FILENO);
  std::abort();
}

}  // namespace detail
}  // namespace tandem
