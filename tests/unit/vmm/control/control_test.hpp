// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fakes/fake_controlled_machine.hpp"
#include "vmm/control/control_server.hpp"
#include "vmm/control/vm_registry.hpp"

namespace tandem::control {

/// A folder that goes with the test.
class RegistryTest : public testing::Test {
 protected:
  ~RegistryTest() override { std::filesystem::remove_all(folder_); }

  static std::string make_folder() {
    std::string name = testing::TempDir() + "vmsXXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    return name;
  }
  /// A client's connection to a socket.
  static UniqueFd connect_to(const std::string& path) {
    UniqueFd client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    EXPECT_EQ(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0) << path;
    return client;
  }

  const std::string folder_ = make_folder();
  const std::string directory_ = folder_ + "/tandem";
};

/// A control socket of a fake machine, served on the test's own thread.
class ControlServerTest : public RegistryTest {
 protected:
  void start(std::vector<ControlCommand> more = {}) {
    auto commands = machine_commands(machine_, *jobs_);
    commands.insert(commands.end(), more.begin(), more.end());
    place_ = std::make_unique<VmRegistration>(VmRegistration::claim(directory_, "vm1").value());
    server_ = ControlServer::create(*loop_, place_->listen().value(), *jobs_, std::move(commands)).value();
  }
  UniqueFd connect() { return connect_to(control_socket_path(directory_, "vm1")); }

  static void send_text(const UniqueFd& client, std::string_view text) {
    ASSERT_EQ(::send(client.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  /// What has come without waiting. @param ended  set once the other end has closed.
  static std::string read_ready(const UniqueFd& client, bool* ended = nullptr) {
    std::string text;
    std::array<char, 65536> piece{};
    while (true) {
      const ssize_t count = ::recv(client.get(), piece.data(), piece.size(), MSG_DONTWAIT);
      if (count <= 0) {
        if (ended != nullptr) {
          *ended = count == 0 || errno == ECONNRESET;
        }
        return text;
      }
      text.append(piece.data(), static_cast<size_t>(count));
    }
  }
  /// Lets the server work until `done`. What never comes is ended by the test's time limit.
  template <typename Condition>
  void run_until(Condition done) {
    while (!done()) {
      loop_->run_ready();
    }
  }
  /// The next line that the client gets.
  std::string read_line(const UniqueFd& client) {
    std::string line;
    run_until([&] {
      char byte = 0;
      while (::recv(client.get(), &byte, 1, MSG_DONTWAIT) == 1) {
        if (byte == '\n') {
          return true;
        }
        line += byte;
      }
      return false;
    });
    return line;
  }
  Json ask(const UniqueFd& client, std::string_view request) {
    send_text(client, std::string(request) + '\n');
    return Json::parse(read_line(client));
  }
  /// Lets the server work until it has closed the connection; what came before.
  std::string read_to_end(const UniqueFd& client) {
    std::string text;
    bool ended = false;
    run_until([&] {
      text += read_ready(client, &ended);
      return ended;
    });
    return text;
  }

  std::unique_ptr<EventLoop> loop_ = EventLoop::create().value();
  FakeControlledMachine machine_;
  std::unique_ptr<JobRunner> jobs_ = JobRunner::create(*loop_).value();
  std::unique_ptr<VmRegistration> place_;
  std::unique_ptr<ControlServer> server_;
};

}  // namespace tandem::control
