// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <expected>
#include <string>
#include <utility>

namespace tandem {

/// Kind of a failure, for callers that branch on it.
enum class Errc : uint8_t {
  kInvalidArgument,  ///< The user's request makes no sense.
  kNotFound,         ///< A named thing is not there.
  kExists,           ///< A thing to be made is there already.
  kPermission,       ///< The caller may not do that.
  kBusy,             ///< Somebody else holds it.
  kUnsupported,      ///< This host, or this build, cannot do that.
  kOutOfRange,       ///< A number or address is outside what is allowed.
  kOutOfMemory,      ///< The host gave no memory.
  kCorrupt,          ///< Data read does not have the form it must have.
  kClosed,           ///< The other end went away.
  kIo,               ///< Any other failure of a system call.
};

/// A failure of the environment: kind, errno if a system call failed, and one line that says what was being done.
class [[nodiscard]] Error {
 public:
  /// @param os_error  errno of the failed system call, or 0.
  Error(Errc code, std::string message, int os_error = 0);

  /// An error whose kind follows from `os_error`; its text is "`doing`: <text of the errno>".
  static Error from_errno(std::string doing, int os_error = errno);

  [[nodiscard]] Errc code() const { return code_; }
  [[nodiscard]] int os_error() const { return os_error_; }
  /// The whole chain, outermost context first: "restore vgic: KVM_SET_DEVICE_ATTR: Device or resource busy".
  [[nodiscard]] const std::string& message() const { return message_; }

  /// Puts what the caller was doing in front; once per layer.
  Error context(std::string_view doing) &&;

 private:
  Errc code_;
  int os_error_;
  std::string message_;
};

/// A value, or why there is none.
template <typename T>
using Result = std::expected<T, Error>;

/// The failing side of a `Result`, with a formatted message.
template <typename... Args>
[[nodiscard]] std::unexpected<Error> fail(Errc code, fmt::format_string<Args...> format, Args&&... args) {
  return std::unexpected(Error(code, fmt::format(format, std::forward<Args>(args)...)));
}

/// The failing side of a `Result` after a failed system call; reads errno first.
template <typename... Args>
[[nodiscard]] std::unexpected<Error> fail_errno(fmt::format_string<Args...> format, Args&&... args) {
  const int os_error = errno;
  return std::unexpected(Error::from_errno(fmt::format(format, std::forward<Args>(args)...), os_error));
}

/// `result` with `doing` in front of its error, if it is one.
template <typename T>
[[nodiscard]] Result<T> with_context(Result<T> result, std::string_view doing) {
  if (!result) {
    return std::unexpected(std::move(result).error().context(doing));
  }
  return result;
}

namespace detail {
[[noreturn]] void assertion_failed(const char* condition, const char* why, const char* file, int line);
}  // namespace detail

}  // namespace tandem

#define TANDEM_CONCAT_INNER(a, b) a##b
#define TANDEM_CONCAT(a, b) TANDEM_CONCAT_INNER(a, b)
#define TANDEM_TRY_INNER(result, expression)             \
  ({                                                     \
    auto&& result = (expression);                        \
    if (!result) {                                       \
      return std::unexpected(std::move(result).error()); \
    }                                                    \
    *std::move(result);                                  \
  })

/// The value of a `Result` expression; returns its error from the enclosing function when it has none.
#define TANDEM_TRY(expression) TANDEM_TRY_INNER(TANDEM_CONCAT(tandem_try_, __COUNTER__), expression)

/// Aborts when an invariant of our own code is broken; never reachable from input. Always compiled in.
#define TANDEM_ASSERT(condition, why) \
  ((condition) ? void(0) : ::tandem::detail::assertion_failed(#condition, why, __FILE__, __LINE__))

/// Marks a place that no input can reach.
#define TANDEM_UNREACHABLE(why) ::tandem::detail::assertion_failed("unreachable", why, __FILE__, __LINE__)
