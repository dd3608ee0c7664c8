// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "vmm/control/job_runner.hpp"
#include "vmm/lib/result/result.hpp"

/// The lines of the control protocol, for both ends: docs/control.md.
namespace tandem::control {

inline constexpr uint64_t kControlVersion = 1;
/// Longest request, and longest reply, without the newline [bytes].
inline constexpr size_t kMaxRequestBytes = 64U << 10;
inline constexpr size_t kMaxReplyBytes = 4U << 20;

/// One line from a client.
struct ControlRequest {
  std::optional<uint64_t> id{};  ///< Of the client's choice; comes back with every line about the request.
  std::string command{};
  Json arguments = Json::object();
};

/// What is wrong with a line from a client.
struct RequestError {
  std::optional<uint64_t> id;  ///< As far as it could be read.
  Error error;
};

/// The request in a line.
/// @errors  Errc::kInvalidArgument: no request. Errc::kUnsupported: of another version.
std::expected<ControlRequest, RequestError> parse_request(std::string_view line);

// Lines, each with its newline.
std::string request_line(const ControlRequest& request);
std::string result_line(std::optional<uint64_t> id, const Json& result);
std::string error_line(std::optional<uint64_t> id, const Error& error);
std::string progress_line(std::optional<uint64_t> id, const JobProgress& progress);
/// As progress lines and `status` have it.
Json to_json(const JobProgress& progress);

/// One line from a VM: the result or error that ends a request, or how far it is.
struct ControlReply {
  std::optional<uint64_t> id{};
  std::variant<Result<Json>, JobProgress> what{};
};

/// @errors  Errc::kCorrupt: no reply.
Result<ControlReply> parse_reply(std::string_view line);

/// The value of `name` in `arguments`; nothing if it is not there.
/// @errors  Errc::kInvalidArgument: it is of another type.
template <typename T>
Result<std::optional<T>> argument(const Json& arguments, const char* name);

/// Refuses arguments that `known` does not name.
Result<void> check_arguments(const Json& arguments, std::initializer_list<std::string_view> known);

}  // namespace tandem::control
