// SPDX-License-Identifier: Apache-2.0
#include "tests/migration/moving_guest.hpp"

#include <filesystem>

namespace tandem::tests {
namespace {

std::vector<std::string> joined(std::vector<std::string> first, const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

MovingGuest::MovingGuest(std::vector<std::string> run, std::string folder, Options options)
    : folder_(std::move(folder)),
      options_(std::move(options)),
      process_(std::make_unique<ChildProcess>(joined(std::move(run), {"--name", name()}))) {}

std::unique_ptr<ChildProcess> MovingGuest::start_receiver(const std::vector<std::string>& options) {
  ++receivers_;
  auto receiver = std::make_unique<ChildProcess>(joined({"tandem", "receive", address()}, options));
  const std::string socket = address().substr(std::string("unix:").size());
  while (!std::filesystem::is_socket(socket) && !receiver->wait(ChildProcess::Seconds(1))) {
  }
  return receiver;
}

CommandResult MovingGuest::migrate(const std::vector<std::string>& options) {
  return run_on_host(joined({"tandem", "migrate", name(), address()}, options));
}

CommandResult MovingGuest::move(const std::vector<std::string>& options) {
  auto receiver = start_receiver(joined({"--name", "guest" + std::to_string(moves_ + 1)}, options_(moves_ + 1)));
  CommandResult result = migrate(options);
  if (result.status == 0) {
    last_process_ = std::exchange(process_, std::move(receiver));
    ++moves_;
  } else {
    result.errors += "\nreceiver: " + receiver->errors();
  }
  return result;
}

}  // namespace tandem::tests
