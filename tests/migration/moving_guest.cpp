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
  auto receiver = start_receiver(next_options());
  CommandResult result = migrate(options);
  if (result.status == 0) {
    go_on_as(std::move(receiver));
  } else {
    result.errors += "\nreceiver: " + receiver->errors();
  }
  return result;
}

std::vector<std::string> MovingGuest::next_options() const {
  return joined({"--name", "guest" + std::to_string(moves_ + 1)}, options_(moves_ + 1));
}

void MovingGuest::go_on_as(std::unique_ptr<ChildProcess> process) {
  last_process_ = std::exchange(process_, std::move(process));
  ++moves_;
}

CommandResult MovingGuest::save(const std::vector<std::string>& options) {
  return run_on_host(joined({"tandem", "save", name(), snapshot(), "--replace", "--stop"}, options));
}

void MovingGuest::restore(const std::vector<std::string>& options) {
  go_on_as(std::make_unique<ChildProcess>(joined({"tandem", "restore", snapshot()}, joined(next_options(), options))));
}

CommandResult MovingGuest::save_and_restore(const std::vector<std::string>& options) {
  CommandResult saved = save(options);
  if (saved.status == 0) {
    EXPECT_EQ(process_->wait(kHangLimit), 0) << process_->errors();
    restore();
  }
  return saved;
}

}  // namespace tandem::tests
