// SPDX-License-Identifier: Apache-2.0
#include "vmm/control/control_protocol.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace tandem::control {
namespace {

constexpr std::array<std::pair<Errc, std::string_view>, 11> kKinds{{{Errc::kInvalidArgument, "bad-request"},
                                                                    {Errc::kNotFound, "not-found"},
                                                                    {Errc::kExists, "exists"},
                                                                    {Errc::kPermission, "permission"},
                                                                    {Errc::kBusy, "busy"},
                                                                    {Errc::kUnsupported, "unsupported"},
                                                                    {Errc::kOutOfRange, "out-of-range"},
                                                                    {Errc::kOutOfMemory, "out-of-memory"},
                                                                    {Errc::kCorrupt, "corrupt"},
                                                                    {Errc::kClosed, "closed"},
                                                                    {Errc::kIo, "failed"}}};

std::string_view kind_of(Errc code) {
  const auto* const it = std::ranges::find(kKinds, code, &decltype(kKinds)::value_type::first);
  return it->second;  // every code is in the table
}

Errc code_of(std::string_view kind) {
  const auto* const it = std::ranges::find(kKinds, kind, &decltype(kKinds)::value_type::second);
  return it == kKinds.end() ? Errc::kIo : it->first;
}

/// Bytes that are no UTF-8, which paths may hold, become U+FFFD.
std::string line_of(const Json& object) { return object.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n'; }

Json id_value(std::optional<uint64_t> id) { return id ? Json(*id) : Json(nullptr); }

std::optional<uint64_t> id_of(const Json& object) {
  const auto id = object.find("id");
  return id != object.end() && id->is_number_unsigned() ? std::optional(id->get<uint64_t>()) : std::nullopt;
}

/// The object in a line, or a discarded value. What is nested deeper than any message is none: to copy it would take as much
/// stack as somebody wants.
Json object_in(std::string_view line) {
  constexpr int kMostDepth = 16;
  bool too_deep = false;
  const auto bounded = [&too_deep](int depth, Json::parse_event_t, const Json&) {
    too_deep = too_deep || depth > kMostDepth;
    return !too_deep;
  };
  Json object = Json::parse(line, bounded, false);
  return object.is_object() && !too_deep ? object : Json(Json::value_t::discarded);
}

Result<void> check_request(const Json& object) {
  const auto version = object.find("version");
  if (version == object.end() || !version->is_number_unsigned()) {
    return fail(Errc::kInvalidArgument, "a version is needed");
  }
  if (version->get<uint64_t>() != kControlVersion) {
    return fail(Errc::kUnsupported, "version {} is not spoken here, but {}", version->get<uint64_t>(), kControlVersion);
  }
  TANDEM_TRY(check_arguments(object, {"version", "id", "command", "arguments"}));
  if (const auto id = object.find("id"); id != object.end() && !id->is_number_unsigned()) {
    return fail(Errc::kInvalidArgument, "the id is no number from 0 on");
  }
  if (const auto command = object.find("command"); command == object.end() || !command->is_string()) {
    return fail(Errc::kInvalidArgument, "a command is needed");
  }
  if (const auto arguments = object.find("arguments"); arguments != object.end() && !arguments->is_object()) {
    return fail(Errc::kInvalidArgument, "the arguments are no object");
  }
  return {};
}

Result<JobProgress> progress_in(const Json& object) {
  const auto phase = TANDEM_TRY(argument<std::string>(object, "phase"));
  const auto details = TANDEM_TRY(argument<std::string>(object, "details"));
  const auto done = TANDEM_TRY(argument<uint64_t>(object, "done"));
  const auto total = TANDEM_TRY(argument<uint64_t>(object, "total"));
  return JobProgress{.phase = phase.value_or(""),
                     .details = details.value_or(""),
                     .done = done.value_or(0),
                     .total = total.value_or(0)};
}

Result<Error> error_in(const Json& object) {
  const auto kind = TANDEM_TRY(argument<std::string>(object, "kind"));
  auto message = TANDEM_TRY(argument<std::string>(object, "message"));
  return Error(code_of(kind.value_or("")), std::move(message).value_or("no reason was given"));
}

/// What a JSON value has to be for a `T`, and what it is called.
template <typename T>
struct Type;
template <>
struct Type<bool> {
  static bool fits(const Json& value) { return value.is_boolean(); }
  static constexpr std::string_view kName = "true or false";
};
template <>
struct Type<uint64_t> {
  static bool fits(const Json& value) { return value.is_number_unsigned(); }
  static constexpr std::string_view kName = "a number from 0 on";
};
template <>
struct Type<std::string> {
  static bool fits(const Json& value) { return value.is_string(); }
  static constexpr std::string_view kName = "a string";
};

}  // namespace

std::expected<ControlRequest, RequestError> parse_request(std::string_view line) {
  const Json object = object_in(line);
  if (object.is_discarded()) {
    return std::unexpected(RequestError{std::nullopt, Error(Errc::kInvalidArgument, "a line is one JSON object")});
  }
  if (auto checked = check_request(object); !checked) {
    return std::unexpected(RequestError{id_of(object), std::move(checked).error()});
  }
  return ControlRequest{.id = id_of(object),
                        .command = object["command"].get<std::string>(),
                        .arguments = object.value("arguments", Json::object())};
}

std::string request_line(const ControlRequest& request) {
  return line_of({{"version", kControlVersion},
                  {"id", id_value(request.id)},
                  {"command", request.command},
                  {"arguments", request.arguments}});
}

std::string result_line(std::optional<uint64_t> id, const Json& result) {
  return line_of({{"id", id_value(id)}, {"result", result.is_null() ? Json::object() : result}});
}

std::string error_line(std::optional<uint64_t> id, const Error& error) {
  return line_of({{"id", id_value(id)}, {"error", {{"kind", kind_of(error.code())}, {"message", error.message()}}}});
}

Json to_json(const JobProgress& progress) {
  Json json{{"phase", progress.phase}, {"done", progress.done}, {"total", progress.total}};
  if (!progress.details.empty()) {
    json["details"] = progress.details;
  }
  return json;
}

std::string progress_line(std::optional<uint64_t> id, const JobProgress& progress) {
  return line_of({{"id", id_value(id)}, {"progress", to_json(progress)}});
}

Result<ControlReply> parse_reply(std::string_view line) {
  const Json object = object_in(line);
  if (!object.is_discarded()) {
    ControlReply reply{.id = id_of(object)};
    if (const auto result = object.find("result"); result != object.end()) {
      reply.what = Result<Json>(*result);
      return reply;
    }
    if (const auto error = object.find("error"); error != object.end() && error->is_object()) {
      reply.what = Result<Json>(std::unexpected(TANDEM_TRY(error_in(*error))));
      return reply;
    }
    if (const auto progress = object.find("progress"); progress != object.end() && progress->is_object()) {
      reply.what = TANDEM_TRY(progress_in(*progress));
      return reply;
    }
  }
  return fail(Errc::kCorrupt, "this is no virtual machine's control socket");
}

template <typename T>
Result<std::optional<T>> argument(const Json& arguments, const char* name) {
  const auto it = arguments.find(name);
  if (it == arguments.end()) {
    return std::optional<T>();
  }
  if (!Type<T>::fits(*it)) {
    return fail(Errc::kInvalidArgument, "'{}' is not {}", name, Type<T>::kName);
  }
  return std::optional<T>(it->template get<T>());
}

template Result<std::optional<bool>> argument<bool>(const Json&, const char*);
template Result<std::optional<uint64_t>> argument<uint64_t>(const Json&, const char*);
template Result<std::optional<std::string>> argument<std::string>(const Json&, const char*);

Result<void> check_arguments(const Json& arguments, std::initializer_list<std::string_view> known) {
  for (const auto& [name, value] : arguments.items()) {
    if (std::ranges::find(known, name) == known.end()) {
      return fail(Errc::kInvalidArgument, "'{}' is not known", name);
    }
  }
  return {};
}

}  // namespace tandem::control
