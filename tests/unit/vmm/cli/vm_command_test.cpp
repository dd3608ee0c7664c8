// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/vm_command.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "vmm/control/vm_registry.hpp"

namespace tandem::cli {
namespace {

/// Puts another file in the place of one of the process's streams.
class Redirection {
 public:
  Redirection(int stream, int file) : stream_(stream), before_(::fcntl(stream, F_DUPFD_CLOEXEC, 10)) {
    ::dup2(file, stream_);
  }
  Redirection(const Redirection&) = delete;
  Redirection& operator=(const Redirection&) = delete;
  ~Redirection() { ::dup2(before_.get(), stream_); }

 private:
  int stream_;
  UniqueFd before_;
};

/// A terminal of 80 columns.
struct Terminal {
  Terminal() : master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    std::array<char, 64> name{};
    EXPECT_TRUE(::grantpt(master.get()) == 0 && ::unlockpt(master.get()) == 0 &&
                ::ptsname_r(master.get(), name.data(), name.size()) == 0);
    slave = UniqueFd(::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
    const winsize size{.ws_row = 25, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
    EXPECT_EQ(::ioctl(slave.get(), TIOCSWINSZ, &size), 0);
  }
  /// What was written so far.
  [[nodiscard]] std::string screen() const {
    std::string text;
    pollfd entry{.fd = master.get(), .events = POLLIN, .revents = 0};
    while (::poll(&entry, 1, 0) == 1 && (entry.revents & POLLIN) != 0) {
      std::array<char, 4096> piece{};
      text.append(piece.data(),
                  static_cast<size_t>(std::max<ssize_t>(::read(master.get(), piece.data(), piece.size()), 0)));
    }
    return text;
  }
  UniqueFd master;
  UniqueFd slave;
};

/// A VM that answers whatever it is asked with the same lines, and then is gone.
class VmCommandTest : public testing::Test {
 protected:
  VmCommandTest() { EXPECT_EQ(::setenv("TANDEM_RUNTIME_DIR", directory_.c_str(), 1), 0); }
  ~VmCommandTest() override {
    ::unsetenv("TANDEM_RUNTIME_DIR");
    std::filesystem::remove_all(folder_);
  }
  static std::string make_folder() {
    std::string name = testing::TempDir() + "vmsXXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    return name;
  }

  /// Runs the command, with `errors` as stderr. @return its status; what it printed is in `printed_`.
  int run_with(const VmRequest& request, int errors, const std::string& answers) {
    auto place = std::make_unique<control::VmRegistration>(control::VmRegistration::claim(directory_, "vm1").value());
    auto socket = std::make_unique<devices::ListeningSocket>(place->listen().value());
    std::thread vm([&] {
      pollfd entry{.fd = socket->fd(), .events = POLLIN, .revents = 0};
      ::poll(&entry, 1, -1);
      const UniqueFd client = socket->accept().value();
      entry.fd = client.get();
      ::poll(&entry, 1, -1);
      std::array<char, 1024> question{};
      ::recv(client.get(), question.data(), question.size(), 0);
      ::send(client.get(), answers.data(), answers.size(), MSG_NOSIGNAL);
      socket.reset();
      place.reset();
    });
    const UniqueFd output(::memfd_create("stdout", MFD_CLOEXEC));
    int status = -1;
    {
      std::fflush(stdout);
      const Redirection to_output(STDOUT_FILENO, output.get());
      const Redirection to_errors(STDERR_FILENO, errors);
      status = run(request);
    }
    vm.join();
    printed_.resize(4096);
    printed_.resize(static_cast<size_t>(std::max<ssize_t>(::pread(output.get(), printed_.data(), 4096, 0), 0)));
    return status;
  }

  static constexpr const char* kMigration =
      R"({"id":1,"progress":{"phase":"hello","done":0,"total":0}}
{"id":1,"progress":{"phase":"RAM, round 1","done":33554432,"total":134217728}}
{"id":1,"progress":{"phase":"RAM, round 2","done":4194304,"total":8388608,"details":"1 GiB/s, guest writes 2 MiB/s"}}
{"id":1,"result":{"rounds":2,"text":"rounds          2\n"}}
)";
  const VmRequest migrate_{.command = "migrate", .name = "vm1", .address = "unix:/nowhere"};
  const std::string folder_ = make_folder();
  const std::string directory_ = folder_ + "/tandem";
  std::string printed_;
};

TEST_F(VmCommandTest, AMigrationShowsABarOnATerminalAndTakesItAway) {
  const Terminal terminal;
  EXPECT_EQ(run_with(migrate_, terminal.slave.get(), kMigration), 0);
  EXPECT_EQ(printed_, "rounds          2\n");
  const std::string screen = terminal.screen();
  EXPECT_NE(screen.find("\r\x1b[Khello\r\x1b[K"), std::string::npos) << screen;
  EXPECT_NE(screen.find("RAM, round 1 [######..................]  25%"), std::string::npos) << screen;
  EXPECT_NE(screen.find("RAM, round 2 [############............]  50%"), std::string::npos) << screen;
  EXPECT_TRUE(screen.ends_with("\r\x1b[K")) << screen;
}

TEST_F(VmCommandTest, AMigrationShowsNothingButItsResultWherePiped) {
  const UniqueFd errors(::memfd_create("stderr", MFD_CLOEXEC));
  EXPECT_EQ(run_with(migrate_, errors.get(), kMigration), 0);
  EXPECT_EQ(printed_, "rounds          2\n");
  EXPECT_EQ(::lseek(errors.get(), 0, SEEK_END), 0);
}

TEST_F(VmCommandTest, AMigrationThatFailsTakesTheBarAwayBeforeItSaysWhy) {
  const Terminal terminal;
  EXPECT_EQ(run_with(migrate_, terminal.slave.get(),
                     R"({"id":1,"progress":{"phase":"RAM, round 1","done":1,"total":2}}
{"id":1,"error":{"kind":"failed","message":"the receiver is gone"}}
)"),
            1);
  EXPECT_EQ(printed_, "");
  const std::string screen = terminal.screen();
  EXPECT_TRUE(screen.ends_with("\r\x1b[Ktandem: migrate: vm1: the receiver is gone\r\n")) << screen;
}

TEST_F(VmCommandTest, WhatAVmCallsAPhaseCannotSteerTheTerminal) {
  const Terminal terminal;
  EXPECT_EQ(run_with(migrate_, terminal.slave.get(), R"({"id":1,"progress":{"phase":"a\u001bc","done":1,"total":2}}
{"id":1,"result":{}}
)"),
            0);
  EXPECT_EQ(terminal.screen().find("\x1b"
                                   "c"),
            std::string::npos);
}

TEST_F(VmCommandTest, TheStateOfAMigrationIsToldWithItsRates) {
  const VmRequest status{.command = "migrate", .name = "vm1", .of_migration = VmRequest::OfMigration::kStatus};
  const UniqueFd errors(::memfd_create("stderr", MFD_CLOEXEC));
  EXPECT_EQ(
      run_with(status, errors.get(),
               R"({"id":1,"result":{"job":{"command":"migrate","phase":"RAM, round 2","done":4194304,"total":8388608,)"
               R"("details":"1 GiB/s"}}}
)"),
      0);
  EXPECT_EQ(printed_, "RAM, round 2: 4 of 8 MiB, 1 GiB/s\n");
}

}  // namespace
}  // namespace tandem::cli
