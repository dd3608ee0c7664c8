// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/freezer.hpp"

#include <fstream>

#include "tests/unit/guest-agent/agent_rig.hpp"

namespace tandem::agent {
namespace {

using Deeds = std::vector<std::string>;
constexpr uint64_t kLong = 3'600'000'000'000;

class FreezerTest : public AgentTest {
 protected:
  FreezerTest() { guest_.mounts = {{"/", "ext4", "/dev/vda"}, {"/var", "ext4", "/dev/vdb"}}; }
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
  ask_for<FreezeReply>(FreezeRequest{.timeout_ns = 1'000'000});
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
  EXPECT_FALSE(freezer_.is_frozen());
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
  const auto first = freezer_.freeze().value();
  EXPECT_TRUE(freezer_.thaw());
  const auto second = freezer_.freeze().value();
  EXPECT_FALSE(freezer_.thaw(first));
  EXPECT_TRUE(freezer_.is_frozen());
  EXPECT_TRUE(freezer_.thaw(second));
}

}  // namespace
}  // namespace tandem::agent
