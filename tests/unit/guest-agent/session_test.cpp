// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/session.hpp"

#include <fstream>

#include "tests/unit/guest-agent/agent_rig.hpp"

namespace tandem::agent {
namespace {

class SessionTest : public AgentTest {};

/// A request that no agent knows.
struct OddRequest {
  static constexpr std::string_view kName = "make-tea";
  template <class A>
  void fields(A& /*archive*/) {}
};

/// A request for the clock that does not say what to set it to.
struct EmptySetTime {
  static constexpr std::string_view kName = SetTimeRequest::kName;
  template <class A>
  void fields(A& /*archive*/) {}
};

TEST_F(SessionTest, TheAgentSaysWhatItSpeaksAndCanDo) {
  FrameChannel channel = FrameChannel::create(new_session()).value();
  const auto hello = channel.receive_message().value().as<AgentHello>().value();
  EXPECT_EQ(hello.oldest_protocol, kOldestProtocol);
  EXPECT_EQ(hello.newest_protocol, kNewestProtocol);
  EXPECT_EQ(hello.capabilities, (std::vector<std::string>{kCapabilities.begin(), kCapabilities.end()}));
}

TEST_F(SessionTest, AProtocolThatIsNotSpokenIsRefused) {
  FrameChannel channel = FrameChannel::create(new_session()).value();
  ASSERT_TRUE(channel.receive_message());
  ASSERT_TRUE(channel.send(ClientHello{.protocol = kNewestProtocol + 1}));
  EXPECT_TRUE(channel.receive_message().value().as<ErrorReply>());
  EXPECT_EQ(channel.receive().error().code(), Errc::kClosed);
}

TEST_F(SessionTest, GarbageInPlaceOfAFrameEndsTheConnectionWithAnError) {
  const std::string_view garbage = "GET / HTTP/1.1\r\n\r\n";
  ASSERT_EQ(::send(channel_->fd(), garbage.data(), garbage.size(), 0), static_cast<ssize_t>(garbage.size()));
  EXPECT_EQ(channel_->receive_message().value().as<ErrorReply>().value().code, "frame");
  EXPECT_EQ(channel_->receive().error().code(), Errc::kClosed);
}

TEST_F(SessionTest, AnUnknownRequestIsRefusedAndTheNextServed) {
  EXPECT_EQ(error_of(OddRequest{}), "unknown");
  EXPECT_GT(ask_for<PingReply>(PingRequest{}).uptime_ns, 0U);
}

TEST_F(SessionTest, ARequestWithoutItsFieldsIsRefusedAndTheNextServed) {
  EXPECT_EQ(error_of(EmptySetTime{}), "bad-request");
  EXPECT_EQ(guest_.realtime_ns, 1'000);
  ask_for<PingReply>(PingRequest{});
}

TEST_F(SessionTest, AnErrorAboutTheLongestTextsIsCutShort) {
  const std::string longest(kMaxMessageBytes - 100, 'x');
  const auto expect_short = [&](const auto& request) {
    const auto error = ask_for<ErrorReply>(request);
    EXPECT_FALSE(error.text.empty());
    EXPECT_LE(error.text.size(), kMaxErrorBytes);
  };
  expect_short(GetRequest{.path = std::string(kMaxMessageBytes - 16, 'x')});
  expect_short(PutRequest{.path = longest});
  expect_short(ExecRequest{.arguments = {longest}});
  expect_short(ExecRequest{.arguments = {"true"}, .environment = {longest}});
  expect_short(ExecRequest{.arguments = {"true"}, .directory = longest});
  ask_for<PingReply>(PingRequest{});
}

TEST_F(SessionTest, AnAnswerThatIsTooLongIsAnError) {
  guest_.mounts.assign(kMaxMessageBytes / 10, {"/", "ext4", "/dev/vda"});
  EXPECT_EQ(error_of(InfoRequest{}), "failed");
  ask_for<PingReply>(PingRequest{});
}

TEST_F(SessionTest, AFrameThatOnlyTheAgentSendsIsRefused) {
  ASSERT_TRUE(channel_->send(FrameKind::kOutput, {}));
  EXPECT_EQ(channel_->receive_message().value().as<ErrorReply>().value().code, "bad-request");
}

TEST_F(SessionTest, InputThatNothingWantsIsPassedOver) {
  send_input("left over");
  ask_for<PingReply>(PingRequest{});
}

TEST_F(SessionTest, InfoTellsOfTheGuest) {
  const auto info = ask_for<InfoReply>(InfoRequest{});
  EXPECT_EQ(info.boot_id.size(), 36U);
  EXPECT_FALSE(info.kernel.empty());
  EXPECT_EQ(info.agent_version, TANDEM_VERSION);
  EXPECT_EQ(info.agent_ready_ns, 77U);
}

TEST_F(SessionTest, TheClockIsSet) {
  EXPECT_EQ(ask_for<SetTimeReply>(SetTimeRequest{.realtime_ns = 400}).step_ns, -600);
  EXPECT_EQ(guest_.realtime_ns, 400);
}

TEST_F(SessionTest, TheRandomPoolGetsItsSeed) {
  const std::string seed(kMinSeedBytes, '\x80');
  ask_for<Done>(ReseedRequest{.seed = seed});
  EXPECT_EQ(guest_.deeds(), (std::vector<std::string>{"reseed " + seed}));
}

TEST_F(SessionTest, ASeedOfTheWrongLengthIsRefused) {
  EXPECT_EQ(error_of(ReseedRequest{.seed = std::string(kMinSeedBytes - 1, 's')}), "bad-request");
  EXPECT_EQ(error_of(ReseedRequest{.seed = std::string(kMaxSeedBytes + 1, 's')}), "bad-request");
  EXPECT_TRUE(guest_.deeds().empty());
}

TEST_F(SessionTest, AddressesAreAnnounced) {
  EXPECT_EQ(ask_for<AnnounceReply>(AnnounceRequest{}).addresses.at(0).address, "192.0.2.2");
}

TEST_F(SessionTest, InitShutsDownBeforeTheAnswer) {
  ask_for<Done>(PowerRequest{.reboots = true});
  EXPECT_EQ(guest_.deeds(), (std::vector<std::string>{"reboot"}));
}

TEST_F(SessionTest, AForcedShutdownComesAfterTheAnswer) {
  ask_for<Done>(PowerRequest{.forced = true});
  disconnect();
  EXPECT_EQ(guest_.deeds(), (std::vector<std::string>{"sync", "power off by force"}));
}

TEST_F(SessionTest, StolenTimeIsThereWhereTheKernelHasItAndPreemptionSaysWhyNot) {
  std::filesystem::create_directories(folder_ + "/proc");
  std::ofstream(folder_ + "/proc/stat") << "cpu  1 2 3\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
  const auto state = ask_for<PvStateReply>(PvStateRequest{});
  ASSERT_EQ(state.vcpus.size(), 1U);
  EXPECT_EQ(state.vcpus[0].stolen_ns, 80'000'000U);
  EXPECT_EQ(state.vcpus[0].preempted, std::nullopt);
  EXPECT_EQ(state.no_stolen, std::nullopt);
  EXPECT_EQ(state.no_preemption, "this machine offers no PV vCPU state");
}

TEST_F(SessionTest, ManyClientsAreServedAtOnce) {
  std::vector<FrameChannel> clients;
  for (int count = 0; count < 100; ++count) {
    clients.push_back(new_client());
  }
  for (FrameChannel& client : clients) {
    ASSERT_TRUE(client.send(PingRequest{}));
  }
  for (FrameChannel& client : clients) {
    EXPECT_TRUE(client.receive_message().value().as<PingReply>());
  }
}

TEST_F(SessionTest, AClientTooManyIsToldSo) {
  auto [ours, agents] = socket_pair();
  Session session(FrameChannel::create(std::move(agents)).value(), context_);
  session.refuse();
  FrameChannel client = FrameChannel::create(std::move(ours)).value();
  EXPECT_EQ(client.receive_message().value().as<ErrorReply>().value().code, "busy");
}

}  // namespace
}  // namespace tandem::agent
