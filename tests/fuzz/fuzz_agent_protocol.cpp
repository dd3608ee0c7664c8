// SPDX-License-Identifier: Apache-2.0
// Whatever comes on a connection, in whatever pieces, is taken apart into frames and messages or refused; a message that is
// accepted is written back as one that is accepted and written the same.
#include <algorithm>
#include <cstdlib>

#include "guest-agent/protocol/frame.hpp"
#include "guest-agent/protocol/messages.hpp"
#include "tests/fuzz/input_reader.hpp"

namespace {

using namespace tandem::agent;
using tandem::Result;

template <typename T>
void expect_stable(const Message& message) {
  const auto value = message.as<T>();
  if (!value) {
    return;
  }
  const auto written = encode_message(*value);
  const Result<Message> again = Message::decode(written);
  if (!again) {
    std::abort();
  }
  const Message& read = *again;
  if (const auto same = read.as<T>(); !same || encode_message(*same) != written) {
    std::abort();
  }
}

template <typename... Types>
void expect_all_stable(const Message& message) {
  (expect_stable<Types>(message), ...);
}

void look_at(Frame frame) {
  if (frame.kind == FrameKind::kCredit) {
    static_cast<void>(credit_of(frame));
  }
  if (const auto message = Message::decode(std::move(frame.payload))) {
    expect_all_stable<AgentHello, ClientHello, ErrorReply, Done, PingReply, InfoReply, ExecRequest, ExecStarted,
                      ExecSignal, ExecEnded, PutRequest, GetRequest, FileReply, FreezeRequest, FreezeReply, ThawReply,
                      PowerRequest, PvStateReply, SetTimeRequest, SetTimeReply, ReseedRequest, AnnounceReply, Event>(
        *message);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  tandem::fuzz::InputReader input(bytes, size);
  const size_t piece = std::max<size_t>(input.take<uint8_t>(), 1);
  FrameDecoder decoder;
  for (auto rest = input.rest(); !rest.empty(); rest = rest.subspan(std::min(piece, rest.size()))) {
    decoder.append(rest.first(std::min(piece, rest.size())));
    auto frame = decoder.next();
    for (; frame && *frame; frame = decoder.next()) {
      look_at(std::move(**frame));
    }
    if (!frame) {
      return 0;
    }
  }
  return 0;
}
