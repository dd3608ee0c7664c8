// SPDX-License-Identifier: Apache-2.0
#include "devices/backend/pty_backend.hpp"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <termios.h>

#include <array>

#include "vmm/lib/log/log.hpp"

namespace tandem::devices {
namespace {

/// How often we look whether someone has opened the other side: a closed one reports a hang-up all the time.
constexpr uint64_t kReaderPollNs = 100'000'000;

Result<UniqueFd> open_master() {
  UniqueFd master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  if (!master || ::grantpt(master.get()) != 0 || ::unlockpt(master.get()) != 0) {
    return fail_errno("new pseudoterminal");
  }
  return master;
}

Result<std::string> slave_path_of(int master) {
  std::array<char, 64> path{};
  if (const int os_error = ::ptsname_r(master, path.data(), path.size()); os_error != 0) {
    return std::unexpected(Error::from_errno("name of the pseudoterminal", os_error));
  }
  return std::string(path.data());
}

/// The modes stay with the pseudoterminal when it is closed again.
Result<void> make_raw(const std::string& slave_path) {
  const UniqueFd slave(::open(slave_path.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  termios modes{};
  if (!slave || ::tcgetattr(slave.get(), &modes) != 0) {
    return fail_errno("{}", slave_path);
  }
  ::cfmakeraw(&modes);
  if (::tcsetattr(slave.get(), TCSANOW, &modes) != 0) {
    return fail_errno("{}: raw mode", slave_path);
  }
  return {};
}

Result<CharDescriptor> duplicate(int master) {
  UniqueFd copy(::fcntl(master, F_DUPFD_CLOEXEC, 0));
  if (!copy) {
    return fail_errno("duplicate descriptor");
  }
  return CharDescriptor::own_pty_master(std::move(copy));
}

}  // namespace

Result<std::unique_ptr<PtyBackend>> PtyBackend::create(DeviceExecutor& executor) {
  UniqueFd master = TANDEM_TRY(open_master());
  std::string slave_path = TANDEM_TRY(slave_path_of(master.get()));
  TANDEM_TRY(make_raw(slave_path));
  std::unique_ptr<PtyBackend> backend(new PtyBackend(std::move(master), std::move(slave_path)));
  backend->output_ = TANDEM_TRY(CharOutput::create(executor, CharOutput::Unattached::kKeep));
  backend->input_ = TANDEM_TRY(CharInput::create(executor));
  backend->reader_poll_ = TANDEM_TRY(
      LoopTimer::create(executor, LoopTimer::Base::kMonotonic, [pty = backend.get()] { pty->look_for_reader(); }));
  backend->reader_poll_->arm_after_ns(kReaderPollNs);
  log::info("console on {}", backend->slave_path_);  // no one could know the name otherwise
  return backend;
}

void PtyBackend::look_for_reader() {
  pollfd master{.fd = master_.get(), .events = POLLIN, .revents = 0};
  if (::poll(&master, 1, 0) > 0 && (master.revents & POLLHUP) != 0) {
    reader_poll_->arm_after_ns(kReaderPollNs);
    return;
  }
  if (const auto done = attach(); !done) {
    log::warn("console {}: {}", slave_path_, done.error().message());
    detach();
  }
}

Result<void> PtyBackend::attach() {
  TANDEM_TRY(output_->attach(TANDEM_TRY(duplicate(master_.get())), [this] { detach(); }));
  TANDEM_TRY(input_->attach(TANDEM_TRY(duplicate(master_.get())), [this](IoStatus) { detach(); }));
  return {};
}

void PtyBackend::detach() {
  output_->detach();
  input_->detach();
  reader_poll_->arm_after_ns(kReaderPollNs);
}

}  // namespace tandem::devices
