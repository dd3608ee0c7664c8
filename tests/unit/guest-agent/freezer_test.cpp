// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/freezer.hpp"

#include <poll.h>

#include <fstream>
#include <thread>

#include "tests/unit/guest-agent/agent_rig.hpp"

namespace tandem::agent {
namespace {

using Deeds = std::vector<std::string>;
constexpr uint64_t kLong = 3'600'000'000'000;

class FreezerTest : public AgentTest {
 protected:
  FreezerTest() { guest_.mounts = {{"/", "ext4", "/dev/vda"}, {"/var", "ext4", "/dev/vdb"}}; }
  ~FreezerTest() override { guest_.release(); }
  Freezer::LeasePtr freeze() {
    auto lease = freezer_.begin().value();
    pollfd settled{.fd = lease->settled.get(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&settled, 1, -1), 1);
    return lease;
  }
  /// A client of its own begins to freeze what hangs, as it is when this returns.
  FrameChannel freeze_what_hangs(uint64_t timeout_ns) {
    guest_.hang("/");
    FrameChannel client = new_client();
    EXPECT_TRUE(client.send(FreezeRequest{timeout_ns}));
    while (guest_.deeds().size() < 2) {
      std::this_thread::yield();
    }
    return client;
  }
  [[nodiscard]] bool is_marked() const { return std::filesystem::exists(folder_ + "/frozen"); }

  const Deeds frozen_and_thawed_{"freeze /var", "freeze /", "thaw /", "thaw /var"};
};

TEST_F(FreezerTest, TheLastMountedFreezesFirstAndThawsLast) {
  EXPECT_EQ(ask_for<FreezeReply>(FreezeRequest{kLong}).mount_points, (Deeds{"/var", "/"}));
  EXPECT_TRUE(is_marked());
  EXPECT_FALSE(ask_for<ThawReply>(ThawRequest{}).timed_out);
  EXPECT_EQ(guest_.deeds(), frozen_and_thawed_);
  EXPECT_FALSE(is_marked());
}

TEST_F(FreezerTest, AnotherConnectionMayThaw) {
  ask_for<FreezeReply>(FreezeRequest{kLong});
  FrameChannel other = new_client();
  ASSERT_TRUE(other.send(ThawRequest{}));
  EXPECT_TRUE(other.receive_message().value().as<ThawReply>());
  EXPECT_FALSE(channel_->receive_message().value().as<ThawReply>().value().timed_out);
  ask_for<PingReply>(PingRequest{});
}

TEST_F(FreezerTest, TheTimeOutThaws) {
  // Which has to be over for the freezing, too, however busy this machine is.
  ask_for<FreezeReply>(FreezeRequest{.timeout_ns = 1'000'000'000});
  EXPECT_TRUE(channel_->receive_message().value().as<ThawReply>().value().timed_out);
  EXPECT_EQ(guest_.deeds(), frozen_and_thawed_);
}

TEST_F(FreezerTest, ALostConnectionThaws) {
  ask_for<FreezeReply>(FreezeRequest{kLong});
  disconnect();
  EXPECT_EQ(guest_.deeds(), frozen_and_thawed_);
}

TEST_F(FreezerTest, GarbageOnTheConnectionThaws) {
  ask_for<FreezeReply>(FreezeRequest{kLong});
  ASSERT_EQ(::send(channel_->fd(), "garbage!", 8, 0), 8);
  EXPECT_TRUE(channel_->receive_message().value().as<ErrorReply>());
  EXPECT_EQ(guest_.deeds(), frozen_and_thawed_);
}

TEST_F(FreezerTest, WhatWouldWriteIsRefusedWhileFrozen) {
  ask_for<FreezeReply>(FreezeRequest{kLong});
  FrameChannel other = new_client();
  const auto code_for = [&](const auto& request) {
    EXPECT_TRUE(other.send(request));
    return other.receive_message().value().template as<ErrorReply>().value().code;
  };
  EXPECT_EQ(code_for(ExecRequest{.arguments = {"true"}}), "busy");
  EXPECT_EQ(code_for(PutRequest{.path = folder_ + "/file"}), "busy");
  EXPECT_EQ(code_for(FreezeRequest{kLong}), "busy");
}

TEST_F(FreezerTest, WhileADiskHangsRequestsAreBusyOrServed) {
  FrameChannel client = freeze_what_hangs(kLong);
  for (const auto& error :
       {ask_for<ErrorReply>(ExecRequest{.arguments = {"true"}}),
        ask_for<ErrorReply>(PutRequest{.path = folder_ + "/f"}), ask_for<ErrorReply>(FreezeRequest{kLong}),
        ask_for<ErrorReply>(ThawRequest{}), ask_for<ErrorReply>(PowerRequest{})}) {
    EXPECT_EQ(error.code, "busy");
    EXPECT_EQ(error.text, "file systems are being frozen");
  }
  ask_for<PingReply>(PingRequest{});
  guest_.release();
  EXPECT_EQ(client.receive_message().value().as<FreezeReply>().value().mount_points, (Deeds{"/var", "/"}));
}

TEST_F(FreezerTest, WhileADiskHangsAForcedShutdownGoesOn) {
  const FrameChannel client = freeze_what_hangs(kLong);
  ask_for<Done>(PowerRequest{.forced = true});
  while (guest_.deeds().size() < 4) {
    std::this_thread::yield();
  }
  EXPECT_EQ(guest_.deeds(), (Deeds{"freeze /var", "freeze /", "sync", "power off by force"}));
  guest_.release();
}

TEST_F(FreezerTest, WhatDoesNotFreezeInTimeIsGivenUp) {
  FrameChannel client = freeze_what_hangs(1'000'000);
  const auto error = client.receive_message().value().as<ErrorReply>().value();
  EXPECT_EQ(error.code, "failed");
  EXPECT_EQ(error.text, "file systems did not freeze in time");
  EXPECT_EQ(error_of(ExecRequest{.arguments = {"true"}}), "busy") << "the kernel is still at it";
  guest_.release();
  freezer_.end();
  EXPECT_EQ(guest_.deeds(), frozen_and_thawed_);
  EXPECT_FALSE(is_marked());
}

TEST_F(FreezerTest, AClientThatGoesWhileADiskHangsLeavesNothingFrozen) {
  freeze_what_hangs(kLong);
  guest_.release();
  disconnect();
  freezer_.end();
  EXPECT_EQ(guest_.deeds(), frozen_and_thawed_);
}

TEST_F(FreezerTest, ThawingWhatIsNotFrozenIsAnError) { EXPECT_EQ(error_of(ThawRequest{}), "not-found"); }

TEST_F(FreezerTest, AFileSystemThatCannotFreezeIsLeftOut) {
  guest_.cannot_freeze = {"/var"};
  EXPECT_EQ(ask_for<FreezeReply>(FreezeRequest{kLong}).mount_points, Deeds{"/"});
}

TEST_F(FreezerTest, AFileSystemThatFailsLeavesNoneFrozen) {
  guest_.fails_freeze = {"/"};
  EXPECT_EQ(error_of(FreezeRequest{kLong}), "failed");
  EXPECT_EQ(guest_.deeds(), (Deeds{"freeze /var", "thaw /var"}));
  EXPECT_FALSE(is_marked());
}

TEST_F(FreezerTest, AListOfFileSystemsThatIsTooLongToTellLeavesNoneFrozen) {
  guest_.mounts.assign(kMaxMessageBytes / 1000, {std::string(1000, '/'), "ext4", "/dev/vda"});
  EXPECT_EQ(error_of(FreezeRequest{kLong}), "failed");
  EXPECT_TRUE(freezer_.refuse_if_frozen());
  EXPECT_EQ(guest_.deeds().size(), 2 * guest_.mounts.size());
}

TEST_F(FreezerTest, AShutdownThawsFirst) {
  ask_for<FreezeReply>(FreezeRequest{kLong});
  FrameChannel other = new_client();
  ASSERT_TRUE(other.send(PowerRequest{}));
  EXPECT_TRUE(other.receive_message().value().as<Done>());
  EXPECT_EQ(guest_.deeds(), (Deeds{"freeze /var", "freeze /", "thaw /", "thaw /var", "power off"}));
}

TEST_F(FreezerTest, AnAgentThawsWhatOneThatWasKilledLeftFrozen) {
  std::ofstream(folder_ + "/frozen") << "";
  freezer_.thaw_what_was_left();
  EXPECT_EQ(guest_.deeds(), (Deeds{"thaw /", "thaw /var"}));
  EXPECT_FALSE(is_marked());
}

TEST_F(FreezerTest, AnAgentLeavesAloneWhatNoAgentFroze) {
  freezer_.thaw_what_was_left();
  EXPECT_TRUE(guest_.deeds().empty());
}

TEST_F(FreezerTest, AnOldLeaseDoesNotThawANewFreeze) {
  const auto first = freeze();
  EXPECT_TRUE(freezer_.thaw());
  const auto second = freeze();
  EXPECT_FALSE(freezer_.thaw(first));
  EXPECT_FALSE(freezer_.outcome(*first));
  EXPECT_FALSE(freezer_.refuse_if_frozen());
  EXPECT_TRUE(freezer_.thaw(second));
  EXPECT_TRUE(freezer_.refuse_if_frozen());
}

}  // namespace
}  // namespace tandem::agent
