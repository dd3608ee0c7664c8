// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/connection_relay.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "vmm/migration/migration_address.hpp"
#include "vmm/migration/socket_channel.hpp"

namespace tandem::cli {
namespace {

using migration::SocketChannel;

class ConnectionRelayTest : public testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> ends{-1, -1};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    far_.emplace(SocketChannel::create(UniqueFd(ends[0])).value());
    path_ = fmt::format("{}relay-{}", testing::TempDir(), ::getpid());
    relay_ = ConnectionRelay::create(UniqueFd(ends[1]), path_).value();
    const auto address = migration::MigrationAddress::parse("unix:" + relay_->path()).value();
    near_.emplace(SocketChannel::create(migration::connect_to(address, Deadline()).value()).value());
  }
  static void expect_passes(SocketChannel& from, SocketChannel& to) {
    const std::array<std::byte, 3> sent{std::byte{1}, std::byte{2}, std::byte{3}};
    std::array<std::byte, 3> got{};
    ASSERT_TRUE(from.write(sent, Deadline()));
    ASSERT_TRUE(to.read(got, Deadline()));
    EXPECT_EQ(got, sent);
  }

  std::string path_;
  std::optional<SocketChannel> far_;
  std::optional<SocketChannel> near_;
  std::unique_ptr<ConnectionRelay> relay_;
};

TEST_F(ConnectionRelayTest, PassesBytesBothWays) {
  expect_passes(*near_, *far_);
  expect_passes(*far_, *near_);
}

TEST_F(ConnectionRelayTest, PassesTheEndOfOneSideOnAndStillTheOthersBytes) {
  near_->end_output();
  std::array<std::byte, 1> byte{};
  EXPECT_EQ(far_->read(byte, Deadline()).error().code(), Errc::kClosed);
  expect_passes(*far_, *near_);
}

TEST_F(ConnectionRelayTest, ItsEndClosesBoth) {
  expect_passes(*near_, *far_);
  relay_.reset();
  std::array<std::byte, 1> byte{};
  EXPECT_EQ(far_->read(byte, Deadline()).error().code(), Errc::kClosed);
  EXPECT_EQ(near_->read(byte, Deadline()).error().code(), Errc::kClosed);
  EXPECT_NE(::access(path_.c_str(), F_OK), 0);
}

}  // namespace
}  // namespace tandem::cli
