// SPDX-License-Identifier: Apache-2.0
#include "devices/backend/pty_backend.hpp"

#include <termios.h>

#include "tests/unit/devices/backend/backend_test.hpp"

namespace tandem::devices {
namespace {

class PtyBackendTest : public BackendTest {
 protected:
  PtyBackendTest() { backend_->set_sink(&sink_); }
  [[nodiscard]] UniqueFd open_other_side() const {
    return UniqueFd(::open(backend_->endpoint().c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  }

  FakeCharSink sink_;
  std::unique_ptr<PtyBackend> backend_ = PtyBackend::create(executor_).value();
};

TEST_F(PtyBackendTest, BytesPassUnchangedInBothDirections) {
  const UniqueFd other = open_other_side();
  backend_->write(bytes_of("a\r\nb\n"));
  expect_output(other.get(), "a\r\nb\n");
  send_all(other.get(), "c\r\x03\n");
  expect_input(sink_, "c\r\x03\n");
}

TEST_F(PtyBackendTest, OutputBeforeTheFirstReaderIsKept) {
  backend_->write(bytes_of("boot messages"));
  const UniqueFd other = open_other_side();
  expect_output(other.get(), "boot messages");
}

TEST_F(PtyBackendTest, ReadersMayComeAndGo) {
  UniqueFd first = open_other_side();
  send_all(first.get(), "1");
  expect_input(sink_, "1");
  first.reset();
  run_until_called();  // the hang-up
  backend_->write(bytes_of("between"));
  const UniqueFd second = open_other_side();
  expect_output(second.get(), "between");
  send_all(second.get(), "2");
  expect_input(sink_, "12");
}

TEST_F(PtyBackendTest, WithoutAReaderTheLoopIsMostlyIdle) {
  constexpr size_t kRounds = 1000;
  size_t calls = 0;
  for (size_t round = 0; round < kRounds; ++round) {
    backend_->write(bytes_of("x"));
    calls += loop_->run_ready();
  }
  EXPECT_LT(calls, kRounds / 2);
}

}  // namespace
}  // namespace tandem::devices
