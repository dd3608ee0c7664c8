// SPDX-License-Identifier: Apache-2.0
// The guest's end of the tests of vsock: a static program that runs in the initramfs.
//   vsock_peer echo PORT COUNT            listens, says READY, and echoes COUNT streams
//   vsock_peer stall PORT                 listens, says READY, and reads nothing of the first stream, until it is killed
//   vsock_peer old-agent                  takes the agent's place for one client, and speaks protocol 0 alone
//   vsock_peer exchange PORT COUNT BYTES  opens COUNT streams to the host, and exchanges BYTES on each
//   vsock_peer refuse PORT                connects to a port of the host that nobody serves
#include <sys/socket.h>
#include <sys/time.h>
// After the socket header, whose types it uses:
#include <linux/vm_sockets.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "guest-agent/protocol/frame_channel.hpp"
#include "guest-agent/protocol/messages.hpp"
#include "tests/system/stream_load.hpp"

namespace {

using tandem::UniqueFd;

/// The kernel's default is 2 s, which a busy host can take.
constexpr time_t kConnectSeconds = 300;

sockaddr_vm address_of(unsigned cid, unsigned port) {
  sockaddr_vm address{};
  address.svm_family = AF_VSOCK;
  address.svm_cid = cid;
  address.svm_port = port;
  return address;
}
const sockaddr* generic(const sockaddr_vm& address) { return reinterpret_cast<const sockaddr*>(&address); }

UniqueFd vsock() { return UniqueFd(::socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

/// @return whether `listener` listens on the port now.
bool listen_on(const UniqueFd& listener, unsigned port) {
  const sockaddr_vm address = address_of(VMADDR_CID_ANY, port);
  return ::bind(listener.get(), generic(address), sizeof address) == 0 && ::listen(listener.get(), 1024) == 0;
}

std::string listen_and_echo(unsigned port, size_t count) {
  const UniqueFd listener = vsock();
  if (!listen_on(listener, port)) {
    return std::string("listen: ") + std::strerror(errno);
  }
  std::puts("READY");
  std::fflush(stdout);
  return tandem::tests::echo(listener.get(), count);
}

std::string listen_and_stall(unsigned port) {
  const UniqueFd listener = vsock();
  if (!listen_on(listener, port)) {
    return std::string("listen: ") + std::strerror(errno);
  }
  std::puts("READY");
  std::fflush(stdout);
  const UniqueFd stream(::accept(listener.get(), nullptr, nullptr));
  while (true) {
    ::pause();
  }
}

std::string stand_in_for_agent() {
  const UniqueFd listener = vsock();
  while (!listen_on(listener, tandem::agent::kAgentPort)) {
    ::usleep(1000);  // the agent is still there
  }
  auto client = tandem::agent::FrameChannel::create(UniqueFd(::accept(listener.get(), nullptr, nullptr)));
  if (!client ||
      !client->send(tandem::agent::AgentHello{.oldest_protocol = 0, .newest_protocol = 0, .version = "0.0.1"})) {
    return "no client";
  }
  return client->receive() ? "the client goes on" : "";
}

std::string connect_and_exchange(unsigned port, size_t count, uint64_t size_bytes) {
  std::vector<UniqueFd> streams;
  const sockaddr_vm address = address_of(VMADDR_CID_HOST, port);
  const timeval patience{.tv_sec = kConnectSeconds, .tv_usec = 0};
  while (streams.size() < count) {
    streams.push_back(vsock());
    if (::setsockopt(streams.back().get(), AF_VSOCK, SO_VM_SOCKETS_CONNECT_TIMEOUT, &patience, sizeof patience) != 0) {
      return std::string("setsockopt: ") + std::strerror(errno);
    }
    if (::connect(streams.back().get(), generic(address), sizeof address) != 0) {
      return "connect " + std::to_string(streams.size()) + ": " + std::strerror(errno);
    }
  }
  return tandem::tests::exchange(streams, size_bytes);
}

std::string connect_in_vain(unsigned port) {
  const sockaddr_vm address = address_of(VMADDR_CID_HOST, port);
  if (::connect(vsock().get(), generic(address), sizeof address) == 0) {
    return "somebody is there";
  }
  return errno == ECONNRESET ? "" : std::string("not refused: ") + std::strerror(errno);
}

}  // namespace

int main(int argument_count, char** arguments) {
  const std::vector<std::string> words(arguments + 1, arguments + argument_count);
  tandem::tests::raise_descriptor_limit();
  const auto number = [&](size_t index) { return std::strtoul(words.at(index).c_str(), nullptr, 10); };
  std::string why = "unknown command";
  if (words.size() == 3 && words[0] == "echo") {
    why = listen_and_echo(static_cast<unsigned>(number(1)), number(2));
  } else if (words.size() == 2 && words[0] == "stall") {
    why = listen_and_stall(static_cast<unsigned>(number(1)));
  } else if (words.size() == 1 && words[0] == "old-agent") {
    why = stand_in_for_agent();
  } else if (words.size() == 4 && words[0] == "exchange") {
    why = connect_and_exchange(static_cast<unsigned>(number(1)), number(2), number(3));
  } else if (words.size() == 2 && words[0] == "refuse") {
    why = connect_in_vain(static_cast<unsigned>(number(1)));
  }
  std::printf("%s %s\n", words.empty() ? "" : words[0].c_str(), why.empty() ? "done" : why.c_str());
  return why.empty() ? 0 : 1;
}
