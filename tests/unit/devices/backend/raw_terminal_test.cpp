// SPDX-License-Identifier: Apache-2.0
#include "devices/backend/raw_terminal.hpp"

#include <stdlib.h>
#include <sys/wait.h>
#include <termios.h>

#include <cstdlib>
#include <functional>

#include "devices/backend/stdio_backend.hpp"
#include "tests/unit/devices/backend/backend_test.hpp"

namespace tandem::devices {
namespace {

/// A pseudoterminal as it is found in an interactive session; the other end is the test's.
class RawTerminalTest : public BackendTest {
 protected:
  void SetUp() override {
    screen_.reset(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    ASSERT_EQ(::grantpt(screen_.get()), 0);
    ASSERT_EQ(::unlockpt(screen_.get()), 0);
    std::array<char, 64> path{};
    ASSERT_EQ(::ptsname_r(screen_.get(), path.data(), path.size()), 0);
    path_ = path.data();
    terminal_.reset(::open(path_.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC));
    ASSERT_TRUE(terminal_);
    ASSERT_TRUE(is_as_found());
  }
  [[nodiscard]] termios modes() const {
    termios modes{};
    EXPECT_EQ(::tcgetattr(terminal_.get(), &modes), 0);
    return modes;
  }
  [[nodiscard]] bool is_as_found() const {
    constexpr tcflag_t kLocal = ICANON | ECHO | ISIG;
    return (modes().c_lflag & kLocal) == kLocal && (modes().c_iflag & ICRNL) != 0;
  }
  [[nodiscard]] bool is_raw() const {
    return (modes().c_lflag & (ICANON | ECHO | ISIG)) == 0 && (modes().c_iflag & (ICRNL | IXON)) == 0;
  }
  /// Runs `body` in a child, which ends with `_exit(0)` unless the body ends it. @return its wait status.
  static int run_child(const std::function<void()>& body) {
    const pid_t child = ::fork();
    if (child == 0) {
      body();
      ::_exit(0);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, WUNTRACED), child);
    return status;
  }
  /// Enters raw mode as a child does that then ends in one way or another; exits with 9 if it cannot.
  void enter_raw_in_child() const {
    static RawTerminal* terminal = nullptr;  // not ended by the end of the process
    auto created = RawTerminal::create(terminal_.get());
    if (!created || !is_raw()) {
      ::_exit(9);
    }
    terminal = created->release();
    static_cast<void>(terminal);
  }

  UniqueFd screen_;
  UniqueFd terminal_;
  std::string path_;
};

TEST_F(RawTerminalTest, IsRawWhileItLivesAndAsFoundAfterwards) {
  auto terminal = RawTerminal::create(terminal_.get()).value();
  EXPECT_TRUE(is_raw());
  EXPECT_NE(modes().c_oflag & OPOST, 0U);
  terminal.reset();
  EXPECT_TRUE(is_as_found());
}

TEST_F(RawTerminalTest, SomethingElseThanATerminalIsRefused) {
  const Pipe pipe = make_pipe();
  EXPECT_FALSE(RawTerminal::create(pipe.read_end.get()));
}

TEST_F(RawTerminalTest, ExitGivesTheTerminalBack) {
  const int status = run_child([this] {
    enter_raw_in_child();
    std::exit(7);
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_TRUE(is_as_found());
}

class RawTerminalSignalTest : public RawTerminalTest, public ::testing::WithParamInterface<int> {};

TEST_P(RawTerminalSignalTest, GivesTheTerminalBackAndEndsTheProcess) {
  struct sigaction now{};
  ASSERT_EQ(::sigaction(GetParam(), nullptr, &now), 0);
  if (now.sa_handler == SIG_IGN) {
    GTEST_SKIP() << "whoever started this test has the signal ignored";
  }
  const int status = run_child([this] {
    enter_raw_in_child();
    ::raise(GetParam());
  });
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), GetParam());
  EXPECT_TRUE(is_as_found());
}

INSTANTIATE_TEST_SUITE_P(Signals, RawTerminalSignalTest,
                         ::testing::Values(SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGABRT, SIGUSR1, SIGALRM, SIGSYS),
                         [](const auto& row) { return std::string(::sigabbrev_np(row.param)); });

TEST_F(RawTerminalTest, StoppingGivesTheTerminalBackAndContinuingTakesItAgain) {
  const pid_t child = ::fork();
  if (child == 0) {
    enter_raw_in_child();
    ::raise(SIGTSTP);
    ::_exit(is_raw() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  EXPECT_TRUE(WIFSTOPPED(status));
  EXPECT_TRUE(is_as_found());
  ASSERT_EQ(::kill(child, SIGCONT), 0);
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(RawTerminalTest, ABackgroundProcessLeavesTheTerminalAloneAndIsNotStopped) {
  const int status = run_child([this] {
    ::setsid();
    const UniqueFd controlling(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
    const int inner = run_child([&] {
      ::setpgid(0, 0);
      {
        auto backend =
            StdioBackend::create(executor_, {.on_quit = [] {}, .input_fd = controlling.get(), .output_fd = 2});
        send_all(screen_.get(), "for the shell\n");
        for (int round = 0; round < 10; ++round) {
          loop_->run_ready();
        }
        if (!backend || !is_as_found()) {
          ::_exit(1);
        }
      }
      ::_exit(is_as_found() ? 0 : 2);
    });
    ::_exit(WIFEXITED(inner) ? WEXITSTATUS(inner) : 3);
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace tandem::devices
