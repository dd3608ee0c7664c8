// SPDX-License-Identifier: Apache-2.0
#include "vmm/migration/migration_address.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include "vmm/migration/socket_channel.hpp"

namespace tandem::migration {
namespace {

using Kind = MigrationAddress::Kind;

struct BadCase {
  const char* name;
  std::string text;
  Errc code;
};
class BadAddressTest : public testing::TestWithParam<BadCase> {};

TEST_P(BadAddressTest, IsRefused) {
  const auto address = MigrationAddress::parse(GetParam().text);
  ASSERT_FALSE(address);
  EXPECT_EQ(address.error().code(), GetParam().code);
}

const BadCase kBadCases[] = {
    {"Empty", "", Errc::kInvalidArgument},
    {"NoScheme", "/tmp/socket", Errc::kInvalidArgument},
    {"UnknownScheme", "http:localhost:80", Errc::kInvalidArgument},
    {"EmptyPath", "unix:", Errc::kOutOfRange},
    {"PathOf108Bytes", "unix:" + std::string(108, 'p'), Errc::kOutOfRange},
    {"PathWithNul", std::string("unix:a\0b", 8), Errc::kOutOfRange},
    {"NoPort", "tcp:127.0.0.1", Errc::kInvalidArgument},
    {"EmptyPort", "tcp:127.0.0.1:", Errc::kInvalidArgument},
    {"PortTooLarge", "tcp:127.0.0.1:65536", Errc::kInvalidArgument},
    {"PortWithJunk", "tcp:127.0.0.1:80x", Errc::kInvalidArgument},
    {"Name", "tcp:example.org:80", Errc::kInvalidArgument},
    {"NoHost", "tcp::80", Errc::kInvalidArgument},
    {"NoNumber", "fd:three", Errc::kInvalidArgument},
    {"StandardStream", "fd:1", Errc::kInvalidArgument},
    {"NegativeDescriptor", "fd:-4", Errc::kInvalidArgument},
};
INSTANTIATE_TEST_SUITE_P(Cases, BadAddressTest, testing::ValuesIn(kBadCases),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(MigrationAddressTest, APathMayHave107Bytes) {
  const auto address = MigrationAddress::parse("unix:" + std::string(107, 'p'));
  ASSERT_TRUE(address);
  EXPECT_EQ(address->kind, Kind::kUnix);
  EXPECT_EQ(address->path.size(), 107U);
  EXPECT_TRUE(address->is_local());
}

TEST(MigrationAddressTest, TellsWhetherOthersCanConnect) {
  EXPECT_TRUE(MigrationAddress::parse("tcp:localhost:0")->is_local());
  EXPECT_TRUE(MigrationAddress::parse("tcp:[::1]:4444")->is_local());
  EXPECT_FALSE(MigrationAddress::parse("tcp:0.0.0.0:4444")->is_local());
  EXPECT_FALSE(MigrationAddress::parse("tcp:[2001:db8::1]:4444")->is_local());
  EXPECT_FALSE(MigrationAddress::parse("tcp:10.0.0.1:4444")->is_local());
}

TEST(MigrationAddressTest, AUnixListenerHearsOfItsSender) {
  std::array<char, 32> folder{"/tmp/tandem-migration-XXXXXX"};
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const auto address = MigrationAddress::parse(std::string("unix:") + folder.data() + "/socket");
  ASSERT_TRUE(address);
  {
    auto listener = MigrationListener::create(*address);
    ASSERT_TRUE(listener) << listener.error().message();
    const auto sender = connect_to(*address, Deadline(std::chrono::seconds(10)));
    ASSERT_TRUE(sender) << sender.error().message();
    EXPECT_TRUE(listener->accept(-1));
    EXPECT_TRUE(listener->may_have_another());
  }
  EXPECT_EQ(connect_to(*address, Deadline(std::chrono::seconds(10))).error().code(), Errc::kNotFound);
  ::rmdir(folder.data());
}

TEST(MigrationAddressTest, AnInterruptEndsTheWaitForASender) {
  auto listener = MigrationListener::create(*MigrationAddress::parse("tcp:127.0.0.1:0"));
  ASSERT_TRUE(listener) << listener.error().message();
  const UniqueFd interrupt = create_eventfd().value();
  signal_eventfd(interrupt.get());
  EXPECT_EQ(listener->accept(interrupt.get()).error().code(), Errc::kClosed);
  EXPECT_NE(*listener->port(), 0);
}

// A listener that accepts nobody makes connect(2) wait once its queue is full.
TEST(MigrationAddressTest, AnInterruptEndsTheWaitForAReceiver) {
  auto listener = MigrationListener::create(*MigrationAddress::parse("tcp:127.0.0.1:0"));
  ASSERT_TRUE(listener) << listener.error().message();
  const auto address = *MigrationAddress::parse(fmt::format("tcp:127.0.0.1:{}", *listener->port()));
  std::vector<UniqueFd> queue;
  while (queue.size() < 16) {
    auto connected = connect_to(address, Deadline(std::chrono::milliseconds(50)));
    if (!connected) {
      EXPECT_EQ(connected.error().code(), Errc::kIo);
      break;
    }
    queue.push_back(*std::move(connected));
  }
  ASSERT_LT(queue.size(), 16U);
  const UniqueFd interrupt = create_eventfd().value();
  signal_eventfd(interrupt.get());
  EXPECT_EQ(connect_to(address, Deadline(), interrupt.get()).error().code(), Errc::kClosed);
}

TEST(MigrationAddressTest, AnInheritedConnectionIsHandedOutOnce) {
  std::array<int, 2> ends{-1, -1};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const UniqueFd other(ends[1]);
  auto listener = MigrationListener::create(*MigrationAddress::parse("fd:" + std::to_string(ends[0])));
  ASSERT_TRUE(listener);
  EXPECT_EQ(listener->accept(-1)->get(), ends[0]);
  EXPECT_FALSE(listener->accept(-1));
  EXPECT_FALSE(listener->may_have_another());
}

TEST(MigrationAddressTest, ADescriptorThatIsNotThereIsRefused) {
  EXPECT_FALSE(connect_to(*MigrationAddress::parse("fd:1000000"), Deadline()));
}

TEST(MigrationAddressTest, OnlyAConnectedStreamSocketIsAChannel) {
  EXPECT_EQ(SocketChannel::create(UniqueFd(::dup(0))).error().code(), Errc::kInvalidArgument);
  EXPECT_EQ(SocketChannel::create(UniqueFd(::socket(AF_UNIX, SOCK_STREAM, 0))).error().code(), Errc::kInvalidArgument);
  EXPECT_EQ(SocketChannel::create(UniqueFd(::socket(AF_UNIX, SOCK_DGRAM, 0))).error().code(), Errc::kInvalidArgument);
}

}  // namespace
}  // namespace tandem::migration
