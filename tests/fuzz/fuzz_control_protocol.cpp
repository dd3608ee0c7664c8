// SPDX-License-Identifier: Apache-2.0
// A line of any content is a request, and a reply, or an error that says why not; what was understood is written as a line
// that is understood in the same way.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "vmm/control/control_protocol.hpp"

namespace {

using namespace tandem::control;

void check(bool condition) {
  if (!condition) {
    std::abort();
  }
}

void take_request(std::string_view line) {
  const auto request = parse_request(line);
  const std::string answer =
      request ? result_line(request->id, request->arguments) : error_line(request.error().id, request.error().error);
  check(answer.find('\n') == answer.size() - 1 && parse_reply(answer).has_value());
  if (request) {
    std::string again = request_line(*request);
    again.pop_back();
    const auto same = parse_request(again);
    check(same && same->id == request->id && same->command == request->command &&
          same->arguments == request->arguments);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(bytes), size);
  take_request(line);
  const auto reply = parse_reply(line);
  check(reply || !reply.error().message().empty());
  return 0;
}
