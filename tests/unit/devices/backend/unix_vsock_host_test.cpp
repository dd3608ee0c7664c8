// SPDX-License-Identifier: Apache-2.0
#include "devices/backend/unix_vsock_host.hpp"

#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

#include "tests/fakes/fake_timer.hpp"
#include "tests/unit/devices/backend/backend_test.hpp"

namespace tandem::devices {
namespace {

class UnixVsockHostTest : public BackendTest, public VsockClient {
 protected:
  void vsock_connected(UniqueFd socket, uint32_t guest_port) override {
    connected_.push_back({.socket = std::move(socket), .port = guest_port});
  }
  void start() {
    host_ = UnixVsockHost::create(executor_, path_).value();
    host_->set_client(this);
  }
  /// As `start`, with fakes for what the world decides.
  void start_with_fakes() {
    auto retry = std::make_unique<FakeTimer>();
    auto round = std::make_unique<FakeTimer>();
    retry_ = retry.get();
    round_ = round.get();
    const auto accept = [this](const ListeningSocket& listener) -> Result<UniqueFd> {
      if (accepts_that_fail_ != 0) {
        --accepts_that_fail_;
        return std::unexpected(Error::from_errno("accept", EMFILE));
      }
      return listener.accept();
    };
    host_ =
        UnixVsockHost::create(executor_, path_,
                              {.accept = accept, .accept_retry = std::move(retry), .handshake_round = std::move(round)})
            .value();
    host_->set_client(this);
  }
  static sockaddr_un address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    return address;
  }
  [[nodiscard]] UniqueFd dial() const {
    UniqueFd client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_un address = address_of(path_);
    EXPECT_EQ(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return client;
  }
  void run() {
    while (loop_->run_ready() != 0) {
    }
  }
  [[nodiscard]] static bool is_refused(const UniqueFd& client) {
    char byte = 0;
    const ssize_t got = ::recv(client.get(), &byte, 1, MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno == ECONNRESET);
  }
  void expect_refused(std::string_view text) {
    const UniqueFd client = dial();
    send_all(client.get(), text);
    run();
    EXPECT_TRUE(is_refused(client)) << text;
    EXPECT_TRUE(connected_.empty()) << text;
  }

  struct Connected {
    UniqueFd socket;
    uint32_t port;
  };
  const std::string path_ = folder_ + "/vsock";
  std::unique_ptr<UnixVsockHost> host_;
  std::vector<Connected> connected_;
  FakeTimer* retry_ = nullptr;
  FakeTimer* round_ = nullptr;
  size_t accepts_that_fail_ = 0;
};

TEST_F(UnixVsockHostTest, ALineNamesThePort) {
  start();
  const UniqueFd client = dial();
  send_all(client.get(), "CONNECT 716\n");
  run();
  ASSERT_EQ(connected_.size(), 1U);
  EXPECT_EQ(connected_[0].port, 716U);
  EXPECT_FALSE(is_refused(client));
}

TEST_F(UnixVsockHostTest, ALineMayComeByteByByte) {
  start();
  const UniqueFd client = dial();
  for (const char c : std::string_view("CONNECT 4294967294")) {
    send_all(client.get(), std::string(1, c));
    run();
    EXPECT_TRUE(connected_.empty());
  }
  send_all(client.get(), "\n");
  run();
  ASSERT_EQ(connected_.size(), 1U);
  EXPECT_EQ(connected_[0].port, 4294967294U);
}

TEST_F(UnixVsockHostTest, WhatComesBehindTheLineStaysInTheSocket) {
  start();
  const UniqueFd client = dial();
  send_all(client.get(), "CONNECT 1\nhello\n");
  run();
  ASSERT_EQ(connected_.size(), 1U);
  std::array<char, 16> bytes{};
  EXPECT_EQ(::recv(connected_[0].socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT), 6);
  EXPECT_STREQ(bytes.data(), "hello\n");
}

TEST_F(UnixVsockHostTest, OtherLinesAreRefused) {
  log::set_level(log::Level::kOff);
  start();
  for (const std::string_view line :
       {"\n", "CONNECT\n", "CONNECT \n", "CONNECT x\n", "CONNECT -1\n", "CONNECT 1 \n", "CONNECT  1\n", "connect 1\n",
        "CONNECT 4294967295\n", "CONNECT 4294967296\n", "CONNECT 1\r\n", "GET / HTTP/1.1\r\n",
        "CONNECT 0000000000000000000000000000000000000001\n"}) {
    expect_refused(line);
  }
  expect_refused(std::string(1 << 16, '\0'));
  expect_refused(std::string(UnixVsockHost::kMaxLineBytes, 'x'));
  log::set_level(log::Level::kInfo);
}

TEST_F(UnixVsockHostTest, ALineThatIsNotFinishedWaits) {
  start();
  const UniqueFd client = dial();
  send_all(client.get(), "CONNE");
  run();
  EXPECT_FALSE(is_refused(client));
  EXPECT_EQ(loop_->run_ready(), 0U) << "the loop is idle meanwhile";
  const UniqueFd other = dial();
  send_all(other.get(), "CONNECT 2\n");
  run();
  EXPECT_EQ(connected_.size(), 1U);
}

TEST_F(UnixVsockHostTest, AClientThatLeavesIsForgotten) {
  start();
  UniqueFd silent = dial();
  silent.reset();
  UniqueFd client = dial();
  send_all(client.get(), "CONNECT 1");
  client.reset();
  run();
  EXPECT_TRUE(connected_.empty());
  EXPECT_EQ(loop_->run_ready(), 0U);
}

TEST_F(UnixVsockHostTest, OfTooManySilentClientsTheOldestGivesWay) {
  log::set_level(log::Level::kOff);
  start();
  std::vector<UniqueFd> clients;
  for (size_t count = 0; count <= UnixVsockHost::kMaxHandshakes; ++count) {
    clients.push_back(dial());
    run();
  }
  EXPECT_TRUE(is_refused(clients[0]));
  EXPECT_FALSE(is_refused(clients[1]));
  send_all(clients.back().get(), "CONNECT 5\n");
  run();
  EXPECT_EQ(connected_.size(), 1U);
  log::set_level(log::Level::kInfo);
}

TEST_F(UnixVsockHostTest, WhereDescriptorsAreShortTheOldestSilentClientGivesWay) {
  log::set_level(log::Level::kOff);
  start_with_fakes();
  const UniqueFd silent = dial();
  const UniqueFd other = dial();
  run();
  const UniqueFd client = dial();
  send_all(client.get(), "CONNECT 7\n");
  accepts_that_fail_ = 1;
  run();
  EXPECT_TRUE(is_refused(silent));
  EXPECT_FALSE(is_refused(other));
  ASSERT_EQ(connected_.size(), 1U);
  EXPECT_EQ(connected_[0].port, 7U);
  EXPECT_FALSE(retry_->is_armed());
  log::set_level(log::Level::kInfo);
}

TEST_F(UnixVsockHostTest, WhereDescriptorsAreShortAndNoneCanBeGivenUpClientsWait) {
  log::set_level(log::Level::kOff);
  start_with_fakes();
  accepts_that_fail_ = 1;
  const UniqueFd client = dial();
  send_all(client.get(), "CONNECT 7\n");
  run();
  EXPECT_TRUE(connected_.empty());
  ASSERT_TRUE(retry_->is_armed());
  retry_->fire();
  run();
  EXPECT_EQ(connected_.size(), 1U);
  log::set_level(log::Level::kInfo);
}

TEST_F(UnixVsockHostTest, ASilentClientIsDroppedInTheSecondRound) {
  log::set_level(log::Level::kOff);
  start_with_fakes();
  EXPECT_FALSE(round_->is_armed());
  const UniqueFd silent = dial();
  run();
  ASSERT_EQ(round_->delay_ns(), UnixVsockHost::kHandshakeNs);
  round_->fire();
  const UniqueFd later = dial();
  run();
  EXPECT_FALSE(is_refused(silent));
  ASSERT_TRUE(round_->is_armed());
  round_->fire();
  EXPECT_TRUE(is_refused(silent));
  EXPECT_FALSE(is_refused(later));
  ASSERT_TRUE(round_->is_armed());
  round_->fire();
  EXPECT_TRUE(is_refused(later));
  EXPECT_FALSE(round_->is_armed()) << "nobody waits";
  log::set_level(log::Level::kInfo);
}

TEST_F(UnixVsockHostTest, APauseDoesNotCount) {
  start_with_fakes();
  const UniqueFd early = dial();
  run();
  host_->set_accepting(false);
  EXPECT_FALSE(round_->is_armed());
  send_all(early.get(), "CONNECT 1\n");
  host_->set_accepting(true);
  EXPECT_TRUE(round_->is_armed());
  run();
  EXPECT_EQ(connected_.size(), 1U);
}

TEST_F(UnixVsockHostTest, WhileNoConnectionsAreTakenClientsWait) {
  start();
  const UniqueFd early = dial();
  run();
  host_->set_accepting(false);
  const UniqueFd late = dial();
  send_all(early.get(), "CONNECT 1\n");
  send_all(late.get(), "CONNECT 2\n");
  run();
  EXPECT_TRUE(connected_.empty());
  host_->set_accepting(true);
  run();
  EXPECT_EQ(connected_.size(), 2U);
}

TEST_F(UnixVsockHostTest, TheGuestsConnectionsGoToTheSocketOfThePort) {
  start();
  const ListeningSocket program = ListeningSocket::create(path_ + "_52").value();
  const UniqueFd socket = host_->connect(52).value();
  EXPECT_NE(::fcntl(socket.get(), F_GETFL) & O_NONBLOCK, 0);
  const UniqueFd accepted = program.accept().value();
  ASSERT_TRUE(accepted);
  send_all(socket.get(), "hi");
  expect_output(accepted.get(), "hi");
}

TEST_F(UnixVsockHostTest, APortThatNobodyServesCannotBeReached) {
  start();
  EXPECT_EQ(host_->connect(52).error().code(), Errc::kNotFound);
  std::ofstream(path_ + "_53") << "no socket";
  EXPECT_FALSE(host_->connect(53));
}

TEST_F(UnixVsockHostTest, AProgramThatAcceptsNothingIsNotWaitedFor) {
  start();
  const ListeningSocket program = ListeningSocket::create(path_ + "_52", 0).value();
  const UniqueFd waiting = host_->connect(52).value();
  EXPECT_FALSE(host_->connect(52));
}

TEST_F(UnixVsockHostTest, APortWhosePathIsTooLongCannotBeReached) {
  std::string long_path = folder_ + "/";
  long_path.resize(sizeof(sockaddr_un::sun_path) - 1, 'v');
  host_ = UnixVsockHost::create(executor_, long_path).value();
  EXPECT_EQ(host_->connect(1).error().code(), Errc::kOutOfRange);
}

TEST_F(UnixVsockHostTest, TheSocketIsTheOwnersAndGoesWithTheHost) {
  start();
  struct stat status{};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  host_.reset();
  EXPECT_NE(::stat(path_.c_str(), &status), 0);
}

TEST_F(UnixVsockHostTest, PathsThatCannotBeUsedAreRefused) {
  start();
  EXPECT_EQ(UnixVsockHost::create(executor_, path_).error().code(), Errc::kBusy);
  const std::string file = folder_ + "/file";
  std::ofstream(file) << "kept";
  EXPECT_EQ(UnixVsockHost::create(executor_, file).error().code(), Errc::kExists);
  EXPECT_EQ(UnixVsockHost::create(executor_, std::string(108, 'v')).error().code(), Errc::kOutOfRange);
}

}  // namespace
}  // namespace tandem::devices
