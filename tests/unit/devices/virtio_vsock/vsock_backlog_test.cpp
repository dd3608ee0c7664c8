// SPDX-License-Identifier: Apache-2.0
#include "devices/virtio_vsock/vsock_backlog.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace tandem::devices {
namespace {

void add(VsockBacklog& backlog, std::string_view text) {
  std::ranges::copy(std::as_bytes(std::span(text)), backlog.extend(text.size()).begin());
}
std::string text_of(const VsockBacklog& backlog) {
  return {reinterpret_cast<const char*>(backlog.bytes().data()), backlog.bytes().size()};
}

TEST(VsockBacklogTest, KeepsTheOrder) {
  VsockBacklog backlog;
  EXPECT_TRUE(backlog.is_empty());
  add(backlog, "abc");
  add(backlog, "def");
  EXPECT_EQ(text_of(backlog), "abcdef");
}

TEST(VsockBacklogTest, GoesOnBehindWhatWasTaken) {
  VsockBacklog backlog;
  add(backlog, "abcdef");
  backlog.drop_front(2);
  EXPECT_EQ(text_of(backlog), "cdef");
  add(backlog, "gh");
  EXPECT_EQ(text_of(backlog), "cdefgh");
  backlog.drop_front(6);
  EXPECT_TRUE(backlog.is_empty());
}

TEST(VsockBacklogTest, IsEmptyWhenCleared) {
  VsockBacklog backlog;
  add(backlog, "abc");
  backlog.drop_front(1);
  backlog.clear();
  EXPECT_TRUE(backlog.is_empty());
  add(backlog, "x");
  EXPECT_EQ(text_of(backlog), "x");
}

}  // namespace
}  // namespace tandem::devices
