// SPDX-License-Identifier: Apache-2.0
#include "devices/backend/stdio_backend.hpp"

#include <stdlib.h>

#include "tests/unit/devices/backend/backend_test.hpp"

namespace tandem::devices {
namespace {

class StdioBackendTest : public BackendTest {
 protected:
  void start(int input_fd, int output_fd) {
    backend_ =
        StdioBackend::create(executor_, {.on_quit = [this] { ++quits_; }, .input_fd = input_fd, .output_fd = output_fd})
            .value();
    backend_->set_sink(&sink_);
  }

  FakeCharSink sink_;
  int quits_ = 0;
  std::unique_ptr<StdioBackend> backend_;
};

TEST_F(StdioBackendTest, PipesCarryBytesUnchanged) {
  const Pipe input = make_pipe();
  const Pipe output = make_pipe();
  start(input.read_end.get(), output.write_end.get());
  backend_->write(bytes_of("out\n"));
  expect_output(output.read_end.get(), "out\n");
  send_all(input.write_end.get(), "in\x01x\n");
  expect_input(sink_, "in\x01x\n");
  EXPECT_EQ(quits_, 0);
}

TEST_F(StdioBackendTest, ClosedInputIsNotLookedAtAgain) {
  Pipe input = make_pipe();
  const Pipe output = make_pipe();
  start(input.read_end.get(), output.write_end.get());
  send_all(input.write_end.get(), "x");
  input.write_end.reset();
  expect_input(sink_, "x");
  while (loop_->run_ready() != 0) {
  }
  EXPECT_EQ(loop_->run_ready(), 0U);
}

TEST_F(StdioBackendTest, OutputGoesOnAfterTheInputHasEnded) {
  const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const Pipe output = make_pipe();
  start(null.get(), output.write_end.get());
  loop_->run_ready();
  backend_->write(bytes_of("still here"));
  expect_output(output.read_end.get(), "still here");
}

TEST_F(StdioBackendTest, EscapeKeysWorkOnATerminalAlthoughTheGuestTakesNoInput) {
  const UniqueFd screen(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_EQ(::grantpt(screen.get()), 0);
  ASSERT_EQ(::unlockpt(screen.get()), 0);
  std::array<char, 64> path{};
  ASSERT_EQ(::ptsname_r(screen.get(), path.data(), path.size()), 0);
  const UniqueFd terminal(::open(path.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  sink_.set_room(0);
  start(terminal.get(), terminal.get());
  send_all(screen.get(), "ls\r\x01x");
  run_until([&] { return quits_ != 0; });
  EXPECT_EQ(quits_, 1);
  sink_.set_room(100);
  backend_->resume_input();
  expect_input(sink_, "ls\r");
}

}  // namespace
}  // namespace tandem::devices
