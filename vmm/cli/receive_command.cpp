// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/receive_command.hpp"

#include <sys/signalfd.h>

#include <array>
#include <csignal>
#include <memory>
#include <utility>

#include "devices/backend/stdio_backend.hpp"
#include "vmm/cli/arriving_machine.hpp"
#include "vmm/cli/vm_process.hpp"
#include "vmm/migration/migration_receiver.hpp"
#include "vmm/migration/socket_channel.hpp"

namespace tandem::cli {
namespace {

using migration::MigrationListener;
using migration::MigrationReceiver;

/// Readable once a signal asks the process to end; until a machine is there nobody else reads them, and afterwards it does.
Result<UniqueFd> watch_ending_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : std::array{SIGTERM, SIGINT, SIGHUP}) {
    struct sigaction now{};
    if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) {
      sigaddset(&set, signal);
    }
  }
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  UniqueFd signals(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals) {
    return fail_errno("signalfd");
  }
  return signals;
}

/// Waits for a machine; who only asks whether one could come is answered.
Result<std::unique_ptr<ArrivingMachine>> receive(const ReceiveRequest& request, int interrupt_fd) {
  MigrationListener listener = TANDEM_TRY(MigrationListener::create(request.address));
  while (true) {
    UniqueFd socket = TANDEM_TRY(listener.accept(interrupt_fd));
    auto channel = TANDEM_TRY(migration::SocketChannel::create(std::move(socket), interrupt_fd));
    auto arriving = std::make_unique<ArrivingMachine>(request.names);
    if (TANDEM_TRY(MigrationReceiver(channel, *arriving).run()) == MigrationReceiver::End::kArrived) {
      return arriving;
    }
    if (!listener.may_have_another()) {
      return nullptr;
    }
  }
}

/// All that the machine held is given back on return, the terminal included.
Result<MachineEnd> receive_and_run(const ReceiveRequest& request) {
  devices::fill_standard_descriptors();  // before anything is opened
  const UniqueFd signals = TANDEM_TRY(watch_ending_signals());
  const auto arrived = TANDEM_TRY(receive(request, signals.get()));
  return arrived ? arrived->run() : MachineEnd{MachineEnd::Kind::kHandedOver, {}};
}

}  // namespace

int run(const ReceiveRequest& request) {
  become_vm_process(request.log_level);
  return report_end("receive", receive_and_run(request));
}

}  // namespace tandem::cli
