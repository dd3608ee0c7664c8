// SPDX-License-Identifier: Apache-2.0
#include "devices/backend/tap.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tandem::devices {
namespace {

struct InterfaceName {
  const char* what;
  std::string name;
  bool is_valid;
};

class InterfaceNameTest : public ::testing::TestWithParam<InterfaceName> {};

TEST_P(InterfaceNameTest, IsCheckedBeforeAnythingIsOpened) {
  const auto done = check_interface_name(GetParam().name);
  EXPECT_EQ(done.has_value(), GetParam().is_valid);
  if (!done) {
    EXPECT_EQ(done.error().code(), Errc::kInvalidArgument);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Names, InterfaceNameTest,
    ::testing::Values(InterfaceName{"Usual", "tap0", true}, InterfaceName{"Longest", std::string(15, 't'), true},
                      InterfaceName{"TooLong", std::string(16, 't'), false},
                      InterfaceName{"VeryLong", std::string(100'000, 't'), false}, InterfaceName{"Empty", "", false},
                      InterfaceName{"Dot", ".", false}, InterfaceName{"DotDot", "..", false},
                      InterfaceName{"Path", "net/tun", false}, InterfaceName{"Pattern", "tap%d", false},
                      InterfaceName{"Alias", "eth0:1", false}, InterfaceName{"Space", "tap 0", false},
                      InterfaceName{"NewLine", "tap0\n", false}, InterfaceName{"Nul", std::string("tap\0x", 5), false}),
    [](const auto& row) { return std::string(row.param.what); });

class TapBackendTest : public ::testing::Test {
 protected:
  std::unique_ptr<EventLoop> loop_ = EventLoop::create().value();  // a test that gets no epoll cannot go on
  DeviceExecutor executor_{*loop_};
};

TEST_F(TapBackendTest, AnInterfaceThatIsNotThereIsAnErrorThatSaysHowToMakeOne) {
  const auto tap = TapBackend::open("tandem-absent0", executor_);
  ASSERT_FALSE(tap);
  EXPECT_EQ(tap.error().code(), Errc::kNotFound);
  EXPECT_NE(tap.error().message().find("ip tuntap add dev tandem-absent0 mode tap"), std::string::npos);
  EXPECT_EQ(tap.error().message().find('\n'), std::string::npos);
}

TEST_F(TapBackendTest, ABadNameIsRefused) {
  const auto tap = TapBackend::open("tap%d", executor_);
  ASSERT_FALSE(tap);
  EXPECT_EQ(tap.error().code(), Errc::kInvalidArgument);
}

}  // namespace
}  // namespace tandem::devices
