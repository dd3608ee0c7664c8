// SPDX-License-Identifier: Apache-2.0
// A client that sends whatever it likes to a session of the guest agent, in whole frames, in halves, or garbage: each request is
// answered or refused, the session ends when the client goes, and nothing stays frozen.
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "guest-agent/agent.hpp"
#include "guest-agent/protocol/messages.hpp"
#include "tests/fakes/fake_guest_control.hpp"
#include "tests/fuzz/input_reader.hpp"

namespace {

using namespace tandem::agent;
using tandem::UniqueFd;

template <typename T>
void append(std::vector<std::byte>& out, const T& message) {
  append_frame(out, FrameKind::kMessage, encode_message(message));
}

std::vector<std::byte> take_bytes(tandem::fuzz::InputReader& input) {
  std::vector<std::byte> bytes(input.take<uint8_t>());
  for (std::byte& byte : bytes) {
    byte = input.take<std::byte>();
  }
  return bytes;
}

/// A frame whose message has the name of a request, and anything for its fields.
void append_named(std::vector<std::byte>& out, tandem::fuzz::InputReader& input) {
  const std::string_view name = kCapabilities.at(input.take<uint8_t>() % kCapabilities.size());
  std::vector<std::byte> payload{static_cast<std::byte>(name.size())};
  payload.insert(payload.end(), std::as_bytes(std::span(name)).begin(), std::as_bytes(std::span(name)).end());
  const auto fields = take_bytes(input);
  payload.insert(payload.end(), fields.begin(), fields.end());
  append_frame(out, FrameKind::kMessage, payload);
}

void append_step(std::vector<std::byte>& out, tandem::fuzz::InputReader& input) {
  switch (input.take<uint8_t>() % 12) {
    case 0:
      return append(out, ClientHello{});
    case 1:
      return append(out, PingRequest{});
    case 2:
      return append(out, FreezeRequest{.timeout_ns = input.take<uint64_t>()});
    case 3:
      return append(out, ThawRequest{});
    case 4:
      return append(out, PowerRequest{.reboots = input.take<uint8_t>() % 2 == 0, .forced = false});
    case 5:
      return append(out, SetTimeRequest{.realtime_ns = input.take<uint64_t>()});
    case 6:
      return append(out, AnnounceRequest{});
    case 7:
      return append(out, EventsRequest{});
    case 8:
      return append_frame(out, FrameKind::kInput, take_bytes(input));
    case 9:
    case 10:
      return append_named(out, input);
    default: {
      const auto bytes = take_bytes(input);
      out.insert(out.end(), bytes.begin(), bytes.end());
    }
  }
}

/// Whether the session could be made to run a program of this machine, or to touch a file of it.
bool reaches_this_machine(std::span<const std::byte> bytes) {
  FrameDecoder decoder;
  decoder.append(bytes);
  for (auto frame = decoder.next(); frame && *frame; frame = decoder.next()) {
    const auto message = Message::decode(std::move((*frame)->payload));
    if (message && (message->as<ExecRequest>() || message->as<PutRequest>() || message->as<GetRequest>())) {
      return true;
    }
  }
  return false;
}

/// Where the agent keeps its marker: a folder that goes with the process.
struct Folder {
  Folder() {
    if (::mkdtemp(path.data()) == nullptr) {
      std::abort();
    }
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { ::rmdir(path.c_str()); }
  std::string path = "/tmp/fuzz-agent-XXXXXX";
};

void serve(std::span<const std::byte> bytes, const std::string& folder) {
  FakeGuestControl guest;
  guest.mounts = {{.mount_point = "/"}, {.mount_point = "/var"}};
  Freezer freezer(guest, folder + "/frozen");
  const SessionContext context{
      .guest = guest, .freezer = freezer, .events = {.kernel_log = folder + "/kmsg", .folder = folder}, .root = folder};
  Agent agent(context);
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) {
    std::abort();
  }
  const UniqueFd client(pair[0]);
  std::thread session([&agent, socket = UniqueFd(pair[1])]() mutable { agent.serve_here(std::move(socket)); });
  std::thread reader([&client] {
    std::array<char, 4096> answers{};
    while (::read(client.get(), answers.data(), answers.size()) > 0) {
    }
  });
  while (!bytes.empty()) {
    const ssize_t count = ::send(client.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) {
      break;  // the session has had enough
    }
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  ::shutdown(client.get(), SHUT_WR);
  session.join();
  reader.join();
  freezer.end();
  if (agent.session_count() != 0 || !freezer.refuse_if_frozen()) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Folder folder;
  tandem::fuzz::InputReader input(data, size);
  std::vector<std::byte> bytes;
  if (input.take<uint8_t>() % 2 == 0) {
    append(bytes, ClientHello{});
  }
  while (!input.is_empty()) {
    append_step(bytes, input);
  }
  if (reaches_this_machine(bytes)) {
    return -1;
  }
  serve(bytes, folder.path);
  return 0;
}
