// SPDX-License-Identifier: Apache-2.0
// Streams between a Linux guest and programs of the host, one that is long and as many as somebody may want.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "tests/harness/child_process.hpp"
#include "tests/system/guest_fixture.hpp"
#include "tests/system/stream_load.hpp"

namespace tandem::tests {
namespace {

namespace fs = std::filesystem;

constexpr size_t kManyStreams = 1000;
constexpr uint64_t kShortBytes = 4096;
constexpr uint64_t kLongBytes = 4U << 20;

/// A folder for sockets, and the guest's end of the tests on a disk: its initramfs needs nothing but a shell.
class LinuxVsockTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
    raise_descriptor_limit();
    const fs::path peer = fs::read_symlink("/proc/self/exe").parent_path() / "vsock_peer";
    constexpr uintmax_t kSectorBytes = 512;
    fs::copy_file(peer, disk());
    fs::resize_file(disk(), (fs::file_size(disk()) + kSectorBytes - 1) / kSectorBytes * kSectorBytes);
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string disk() const { return folder_ + "/peer"; }
  [[nodiscard]] std::string socket() const { return folder_ + "/vsock"; }

  /// The command that boots a guest in which `commands` call the peer as `$P`, and which ends when one fails.
  [[nodiscard]] std::vector<std::string> run_command(const std::string& commands) const {
    return {"tandem",
            "run",
            "--kernel",
            variable("TANDEM_GUEST_KERNEL"),
            "--initrd",
            variable("TANDEM_GUEST_INITRAMFS"),
            "--disk",
            disk() + ",ro",
            "--vsock",
            socket() + ",cid=42",
            "--cmdline",
            kKernelParameters + "tandem.exec=\"set -e; P=/tmp/peer; dd if=/dev/vda of=$P bs=64k 2>/dev/null;" +
                " chmod 700 $P; " + commands + "\""};
  }
  static void expect_good_end(ChildProcess& tandem) {
    EXPECT_EQ(tandem.wait(kHangLimit), 0) << tandem.output() << tandem.errors();
    EXPECT_NE(tandem.output().find("tandem.exec: exit status 0"), std::string::npos) << tandem.output();
    expect_healthy(tandem.output());
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
    const sockaddr_un address = address_of(socket() + "_" + port);
    EXPECT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener.get(), kManyStreams), 0);
    return listener;
  }
  /// Connects to a port of the guest. @return no descriptor if it is refused.
  [[nodiscard]] UniqueFd dial(const std::string& port) const {
    UniqueFd stream(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_un address = address_of(socket());
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

  std::string folder_ = fs::temp_directory_path() / "vsock-XXXXXX";
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
  ChildProcess tandem(run_command("$P refuse 7; $P exchange 5000 1 " + std::to_string(kLongBytes) +
                                  "; $P exchange 5001 " + std::to_string(kManyStreams) + " " +
                                  std::to_string(kShortBytes)));
  tandem.close_input();
  expect_good_end(tandem);
  ::shutdown(one.get(), SHUT_RDWR);
  ::shutdown(many.get(), SHUT_RDWR);
  server.join();
  EXPECT_EQ(why[0], "");
  EXPECT_EQ(why[1], "");
}

TEST_F(LinuxVsockTest, TheHostConnectsToTheGuest) {
  ChildProcess tandem(run_command("$P echo 6000 1; $P echo 6001 " + std::to_string(kManyStreams)));
  tandem.close_input();
  const auto one = tandem.wait_for("READY", 0, kHangLimit);
  ASSERT_TRUE(one) << tandem.output() << tandem.errors();
  EXPECT_FALSE(dial("7")) << "nobody is there";
  EXPECT_EQ(exchange(dial_often("6000", 1), kLongBytes), "");
  ASSERT_TRUE(tandem.wait_for("READY", *one, kHangLimit)) << tandem.output() << tandem.errors();
  EXPECT_EQ(exchange(dial_often("6001", kManyStreams), kShortBytes), "");
  expect_good_end(tandem);
}

}  // namespace
}  // namespace tandem::tests
