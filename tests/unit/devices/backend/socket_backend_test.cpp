// SPDX-License-Identifier: Apache-2.0
#include "devices/backend/socket_backend.hpp"

#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>
#include <fstream>

#include "tests/unit/devices/backend/backend_test.hpp"

namespace tandem::devices {
namespace {

class SocketBackendTest : public BackendTest {
 protected:
  [[nodiscard]] UniqueFd connect() const {
    UniqueFd client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.data(), path_.size());
    EXPECT_EQ(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return client;
  }
  void start() {
    backend_ = SocketBackend::create(executor_, path_).value();
    backend_->set_sink(&sink_);
  }
  [[nodiscard]] bool at_end(int client) const {
    std::array<char, 1> byte{};
    return ::recv(client, byte.data(), byte.size(), MSG_DONTWAIT) == 0;
  }

  const std::string path_ = folder_ + "/socket";
  FakeCharSink sink_;
  std::unique_ptr<SocketBackend> backend_;
};

TEST_F(SocketBackendTest, AClientGetsOutputAndGivesInput) {
  start();
  const UniqueFd client = connect();
  backend_->write(bytes_of("login: "));
  expect_output(client.get(), "login: ");
  send_all(client.get(), "root\n");
  expect_input(sink_, "root\n");
}

TEST_F(SocketBackendTest, OutputBeforeTheFirstClientIsReplayed) {
  start();
  backend_->write(bytes_of("boot messages"));
  const UniqueFd client = connect();
  expect_output(client.get(), "boot messages");
}

TEST_F(SocketBackendTest, OnlyTheNewestOutputIsKept) {
  start();
  backend_->write(bytes_of(std::string(kHistoryBytes, 'o')));
  backend_->write(bytes_of("end"));
  const UniqueFd client = connect();
  expect_output(client.get(), std::string(kHistoryBytes - 3, 'o') + "end");
}

TEST_F(SocketBackendTest, KeepsListeningAfterAClientLeft) {
  start();
  UniqueFd first = connect();
  backend_->write(bytes_of("one"));
  expect_output(first.get(), "one");
  first.reset();
  const UniqueFd second = connect();
  expect_output(second.get(), "one");
  send_all(second.get(), "x");
  expect_input(sink_, "x");
}

TEST_F(SocketBackendTest, ASecondClientIsToldThatTheConsoleIsInUse) {
  start();
  const UniqueFd first = connect();
  send_all(first.get(), "1");
  expect_input(sink_, "1");
  const UniqueFd second = connect();
  std::string answer;
  run_until([&] { return !(answer = read_ready(second.get())).empty(); });
  EXPECT_NE(answer.find("in use"), std::string::npos);
  run_until([&] { return at_end(second.get()); });
  send_all(first.get(), "2");
  expect_input(sink_, "12");
}

TEST_F(SocketBackendTest, AClientThatEndedItsInputStillGetsOutputUntilAnotherComes) {
  start();
  const UniqueFd first = connect();
  send_all(first.get(), "poweroff\n");
  ASSERT_EQ(::shutdown(first.get(), SHUT_WR), 0);
  expect_input(sink_, "poweroff\n");
  backend_->write(bytes_of("bye"));
  expect_output(first.get(), "bye");
  const UniqueFd second = connect();
  expect_output(second.get(), "bye");
  run_until([&] { return at_end(first.get()); });
}

TEST_F(SocketBackendTest, AClientThatDoesNotReadIsBoundedAndCounted) {
  start();
  const UniqueFd client = connect();
  backend_->write(bytes_of("x"));
  expect_output(client.get(), "x");
  for (int round = 0; round < 16; ++round) {
    backend_->write(bytes_of(std::string(65536, 'm')));
  }
  EXPECT_GT(backend_->dropped_bytes(), 0U);
}

TEST_F(SocketBackendTest, OnlyTheOwnerMayConnect) {
  start();
  struct stat status{};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST_F(SocketBackendTest, ThePathGoesWithTheBackend) {
  start();
  backend_.reset();
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(SocketBackendTest, AnothersSocketAtThePathIsLeftAlone) {
  start();
  std::filesystem::remove(path_);
  auto other = SocketBackend::create(executor_, path_).value();
  backend_.reset();
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(SocketBackendTest, APathWhereSomeoneListensIsRefused) {
  start();
  const auto second = SocketBackend::create(executor_, path_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Errc::kBusy);
}

TEST_F(SocketBackendTest, AStaleSocketIsReplaced) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path_.data(), path_.size());
  {
    const UniqueFd left_behind(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(left_behind.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  start();
  backend_->write(bytes_of("here"));
  const UniqueFd client = connect();
  expect_output(client.get(), "here");
}

TEST_F(SocketBackendTest, AFileAtThePathIsLeftAlone) {
  std::ofstream(path_) << "precious";
  const auto backend = SocketBackend::create(executor_, path_);
  ASSERT_FALSE(backend);
  EXPECT_EQ(backend.error().code(), Errc::kExists);
  EXPECT_EQ(std::filesystem::file_size(path_), 8U);
}

TEST_F(SocketBackendTest, APathOf107BytesIsTaken) {
  const std::string path = folder_ + "/" + std::string(107 - folder_.size() - 1, 'p');
  EXPECT_TRUE(SocketBackend::create(executor_, path));
}

TEST_F(SocketBackendTest, APathOf108BytesIsRefusedNamingTheLimit) {
  const std::string path = folder_ + "/" + std::string(108 - folder_.size() - 1, 'p');
  const auto backend = SocketBackend::create(executor_, path);
  ASSERT_FALSE(backend);
  EXPECT_EQ(backend.error().code(), Errc::kOutOfRange);
  EXPECT_NE(backend.error().message().find("107"), std::string::npos);
}

}  // namespace
}  // namespace tandem::devices
