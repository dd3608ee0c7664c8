// SPDX-License-Identifier: Apache-2.0
#include "vmm/control/frozen_guest.hpp"

#include "tests/unit/vmm/control/vsock_rig.hpp"

namespace tandem::control {
namespace {

using Deeds = std::vector<std::string>;

class FrozenGuestTest : public VsockTest {
 protected:
  FrozenGuestTest() { guest_.mounts = {{.mount_point = "/"}, {.mount_point = "/data"}}; }
  void wait_for_end() { device_.join(); }
};

TEST_F(FrozenGuestTest, ThawsWhenAsked) {
  serve_one();
  auto frozen = FrozenGuest::create(path_, -1);
  ASSERT_TRUE(frozen) << frozen.error().message();
  EXPECT_EQ(guest_.deeds(), (Deeds{"freeze /data", "freeze /"}));
  EXPECT_TRUE(frozen->thaw());
  EXPECT_EQ(guest_.deeds(), (Deeds{"freeze /data", "freeze /", "thaw /", "thaw /data"}));
}

TEST_F(FrozenGuestTest, ThawsWhenNobodyHoldsItAnyMore) {
  serve_one();
  {
    ASSERT_TRUE(FrozenGuest::create(path_, -1));
  }
  wait_for_end();
  EXPECT_EQ(guest_.deeds(), (Deeds{"freeze /data", "freeze /", "thaw /", "thaw /data"}));
}

TEST_F(FrozenGuestTest, AFileSystemThatFailsIsNamed) {
  guest_.fails_freeze = {"/data"};
  serve_one();
  const auto frozen = FrozenGuest::create(path_, -1);
  ASSERT_FALSE(frozen);
  EXPECT_NE(frozen.error().message().find("/data"), std::string::npos) << frozen.error().message();
}

TEST_F(FrozenGuestTest, ThatItHadThawedIsAnError) {
  serve_one();
  auto frozen = FrozenGuest::create(path_, -1).value();
  ASSERT_TRUE(ask_for<agent::ThawReply>(agent::ThawRequest{}).timed_out == false);  // somebody else
  EXPECT_FALSE(frozen.thaw());
}

TEST_F(FrozenGuestTest, AnInterruptEndsTheWaitForAnAgent) {
  answer_one("", [](const UniqueFd& socket) {
    char byte = 0;
    EXPECT_EQ(::recv(socket.get(), &byte, 1, 0), 0) << "the client goes";
  });
  const auto [interrupt, other] = agent::socket_pair();
  EXPECT_EQ(::send(other.get(), "x", 1, 0), 1);
  EXPECT_NE(FrozenGuest::create(path_, interrupt.get()).error().message().find("interrupted"), std::string::npos);
}

}  // namespace
}  // namespace tandem::control
