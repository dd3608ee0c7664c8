// SPDX-License-Identifier: Apache-2.0
#include "vmm/control/guest_settler.hpp"

#include <thread>

#include "tests/unit/vmm/control/vsock_rig.hpp"

namespace tandem::control {
namespace {

class GuestSettlerTest : public VsockTest {
 protected:
  /// Settles the guest, and returns what came of each step.
  std::vector<std::string> settle(GuestSettler::Order order) {
    auto settler = GuestSettler::create(std::move(order)).value();
    settler->start();
    while (!settler->status().ended) {
      std::this_thread::yield();
    }
    return outcomes(*settler);
  }
  static std::vector<std::string> outcomes(const GuestSettler& settler) {
    std::vector<std::string> lines;
    for (const auto& [subject, outcome] : settler.status().steps) {
      lines.push_back(subject + " " + outcome);
    }
    return lines;
  }
};

TEST_F(GuestSettlerTest, TheAgentDoesAllOfIt) {
  serve_one();
  const auto lines = settle({.vsock_path = path_});
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_TRUE(lines[0].starts_with("clock set forward by ")) << lines[0];
  EXPECT_EQ(lines[1], "random pool reseeded");
  EXPECT_EQ(lines[2], "network announced with 1 address");
  EXPECT_GT(guest_.realtime_ns, 1'000'000'000'000'000'000) << "this century";
  const auto deeds = guest_.deeds();
  ASSERT_EQ(deeds.size(), 1U);
  EXPECT_NE(deeds[0], "reseed " + std::string(deeds[0].size() - 7, '\0'));
}

TEST_F(GuestSettlerTest, AClockThatGoesOnFromTheSavedTimeIsLeftAlone) {
  serve_one();
  EXPECT_EQ(settle({.vsock_path = path_, .step_clock = false})[0], "clock left as it was");
  EXPECT_EQ(guest_.realtime_ns, 1'000);
}

TEST_F(GuestSettlerTest, WithoutADeviceNothingIsAsked) {
  const auto lines = settle({});
  EXPECT_EQ(lines[0], "clock not set: the virtual machine has no vsock device");
  EXPECT_EQ(lines[2], "network not announced: the virtual machine has no vsock device");
}

TEST_F(GuestSettlerTest, WhatAnOldAgentCannotDoIsSaid) {
  pretend(hello_frame({.version = "0.9", .capabilities = {"ping"}}));
  const auto lines = settle({.vsock_path = path_});
  EXPECT_EQ(lines[1], "random pool not reseeded: the guest's agent (0.9) does not know 'reseed'");
}

TEST_F(GuestSettlerTest, GarbageIsNoAgent) {
  pretend(std::vector<std::byte>(1000, std::byte{0xa5}));
  EXPECT_EQ(settle({.vsock_path = path_})[0],
            "clock not set: " + path_ + ": the guest's agent: not a frame of the agent's protocol");
}

TEST_F(GuestSettlerTest, AConnectionThatEndsWithThoseOfTheSavedGuestIsMadeAgain) {
  device_ = std::thread([this] {
    take_one("");        // while the guest wakes up
    take_one("OK 5\n");  // and is reset with the others
    agent_.serve_here(take_one("OK 5\n"));
  });
  EXPECT_EQ(settle({.vsock_path = path_})[1], "random pool reseeded");
}

TEST_F(GuestSettlerTest, TheEndOfTheMachineEndsTheWait) {
  answer_one("OK 5\n", [](const UniqueFd& socket) {
    char byte = 0;
    EXPECT_EQ(::recv(socket.get(), &byte, 1, 0), 0) << "the client goes";
  });
  auto settler = GuestSettler::create({.vsock_path = path_}).value();
  EXPECT_EQ(outcomes(*settler)[0], "clock not yet set");
  settler->start();
  settler->start();
  settler.reset();
}

}  // namespace
}  // namespace tandem::control
