// SPDX-License-Identifier: Apache-2.0
// Streams between a Linux guest and programs of the host, one that is long and as many as somebody may want.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <thread>
#include <tuple>

#include "tests/harness/child_process.hpp"
#include "tests/system/equipped_guest.hpp"
#include "tests/system/stream_load.hpp"

namespace tandem::tests {
namespace {

namespace fs = std::filesystem;

constexpr size_t kManyStreams = 1000;
constexpr uint64_t kShortBytes = 4096;
constexpr uint64_t kLongBytes = 4U << 20;
const std::string kPeer = "/tmp/vsock_peer";

/// The guest's end of the tests goes into the guest by its agent.
class LinuxVsockTest : public EquippedGuestTest {
 protected:
  void SetUp() override {
    EquippedGuestTest::SetUp();
    if (HasFatalFailure()) {
      return;
    }
    raise_descriptor_limit();
    const fs::path peer = fs::read_symlink("/proc/self/exe").parent_path() / "vsock_peer";
    const CommandResult put = guest().agent({"put", peer, kPeer, "--mode", "700"});
    ASSERT_EQ(put.status, 0) << put.errors;
  }

  static sockaddr_un address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), std::min(path.size(), sizeof address.sun_path - 1));
    return address;
  }
  /// A socket that serves a port of the host.
  [[nodiscard]] UniqueFd serve(const std::string& port) const {
    UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_un address = address_of(guest().vsock() + "_" + port);
    EXPECT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener.get(), kManyStreams), 0);
    return listener;
  }
  /// Connects to a port of the guest. @return no descriptor if it is refused.
  [[nodiscard]] UniqueFd dial(const std::string& port) const {
    UniqueFd stream(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_un address = address_of(guest().vsock());
    EXPECT_EQ(::connect(stream.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    const std::string line = "CONNECT " + port + "\n";
    EXPECT_EQ(::send(stream.get(), line.data(), line.size(), MSG_NOSIGNAL), static_cast<ssize_t>(line.size()));
    std::string answer;
    for (char byte = 0; byte != '\n'; answer += byte) {
      if (::recv(stream.get(), &byte, 1, 0) != 1) {
        return {};
      }
    }
    EXPECT_TRUE(answer.starts_with("OK ")) << answer;
    return stream;
  }
  [[nodiscard]] std::vector<UniqueFd> dial_often(const std::string& port, size_t count) const {
    std::vector<UniqueFd> streams;
    do {
      streams.push_back(dial(port));
    } while (streams.back() && streams.size() < count);
    EXPECT_TRUE(streams.back()) << "stream " << streams.size() << " was refused";
    return streams;
  }
};

TEST_F(LinuxVsockTest, TheGuestConnectsToTheHost) {
  const UniqueFd one = serve("5000");
  const UniqueFd many = serve("5001");
  // A guest that fails connects no more: the end of the listeners ends the echoes then.
  std::array<std::string, 2> why;
  std::thread server([&] {
    why[0] = echo(one.get(), 1);
    why[1] = echo(many.get(), kManyStreams);
  });
  const CommandResult refused = guest().run(kPeer + " refuse 7");
  EXPECT_EQ(refused.status, 0) << refused.output;
  const CommandResult long_one = guest().run(kPeer + " exchange 5000 1 " + std::to_string(kLongBytes));
  EXPECT_EQ(long_one.status, 0) << long_one.output << long_one.errors;
  const CommandResult short_ones =
      guest().run(kPeer + " exchange 5001 " + std::to_string(kManyStreams) + " " + std::to_string(kShortBytes));
  EXPECT_EQ(short_ones.status, 0) << short_ones.output << short_ones.errors;
  ::shutdown(one.get(), SHUT_RDWR);
  ::shutdown(many.get(), SHUT_RDWR);
  server.join();
  EXPECT_EQ(why[0], "");
  EXPECT_EQ(why[1], "");
}

TEST_F(LinuxVsockTest, TheHostConnectsToTheGuest) {
  EXPECT_FALSE(dial("7")) << "nobody is there";
  for (const auto& [port, count, size_bytes] :
       {std::tuple{"6000", size_t{1}, kLongBytes}, {"6001", kManyStreams, kShortBytes}}) {
    ChildProcess peer(guest().agent_command({"exec", "--", kPeer, "echo", port, std::to_string(count)}));
    ASSERT_TRUE(peer.wait_for("READY", 0, kHangLimit)) << peer.output() << peer.errors();
    EXPECT_EQ(exchange(dial_often(port, count), size_bytes), "");
    EXPECT_EQ(peer.wait(kHangLimit), 0) << peer.output() << peer.errors();
  }
}

TEST_F(LinuxVsockTest, AGuestEndThatStopsReadingStallsOnlyItsOwnStream) {
  constexpr int kRounds = 4;
  constexpr size_t kMostBytes = 16U << 20;  // far more than the buffers on the way hold
  ChildProcess staller(guest().agent_command({"exec", "--", kPeer, "stall", "6002"}));
  ASSERT_TRUE(staller.wait_for("READY", 0, kHangLimit)) << staller.output() << staller.errors();
  ChildProcess peer(guest().agent_command({"exec", "--", kPeer, "echo", "6003", std::to_string(kRounds)}));
  ASSERT_TRUE(peer.wait_for("READY", 0, kHangLimit)) << peer.output() << peer.errors();
  const UniqueFd stalled = dial("6002");
  ASSERT_TRUE(stalled);
  const std::string data(64U << 10, 's');
  size_t sent_bytes = 0;
  // What the other stream does meanwhile gives this one time to fill up on its whole way.
  for (int round = 0; round < kRounds; ++round) {
    ssize_t count = 0;
    do {
      count = ::send(stalled.get(), data.data(), data.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      sent_bytes += static_cast<size_t>(std::max<ssize_t>(count, 0));
    } while (count > 0 && sent_bytes < kMostBytes);
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_EQ(exchange(dial_often("6003", 1), kLongBytes), "");
  }
  EXPECT_LT(sent_bytes, kMostBytes) << "somebody keeps what nobody reads";
  EXPECT_EQ(peer.wait(kHangLimit), 0) << peer.output() << peer.errors();
}

}  // namespace
}  // namespace tandem::tests
