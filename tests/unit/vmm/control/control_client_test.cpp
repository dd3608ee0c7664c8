// SPDX-License-Identifier: Apache-2.0
#include "vmm/control/control_client.hpp"

#include <functional>
#include <thread>

#include "tests/unit/vmm/control/control_test.hpp"

namespace tandem::control {
namespace {

/// A server on a thread of its own, or something that only looks like one.
class ControlClientTest : public ControlServerTest {
 protected:
  ~ControlClientTest() override { stop(); }

  void serve() {
    start();
    thread_ = std::thread([this] { loop_->run(); });
  }
  void stop() {
    loop_->stop();
    if (thread_.joinable()) {
      thread_.join();
    }
  }
  /// Answers whatever one client sends with `words`, and closes the connection.
  void pretend(const std::string& words) {
    place_ = std::make_unique<VmRegistration>(VmRegistration::claim(directory_, "vm1").value());
    false_socket_.emplace(place_->listen().value());
    thread_ = std::thread([this, words] {
      pollfd entry{.fd = false_socket_->fd(), .events = POLLIN, .revents = 0};
      ::poll(&entry, 1, -1);
      const UniqueFd client = false_socket_->accept().value();
      entry.fd = client.get();
      ::poll(&entry, 1, -1);
      std::array<char, 256> request{};
      ::recv(client.get(), request.data(), request.size(), 0);
      send_text(client, words);
    });
  }
  Result<ControlClient> client() { return ControlClient::connect(directory_, "vm1"); }
  std::string failure() {
    auto made = client();
    const auto answer = made ? made->ask("status", Json::object()) : Result<Json>(std::unexpected(made.error()));
    return answer ? "" : answer.error().message();
  }

  std::optional<devices::ListeningSocket> false_socket_;
  std::thread thread_;
};

TEST_F(ControlClientTest, AsksAndGetsResultsAndErrors) {
  serve();
  ControlClient vm = client().value();
  EXPECT_EQ(vm.ask("status", Json::object()).value()["name"], "vm1");
  const auto refused = vm.ask("balloon", {{"target_bytes", "much"}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::kInvalidArgument);
  EXPECT_EQ(refused.error().message(), "'target_bytes' is not a number from 0 on");
  EXPECT_TRUE(vm.ask("pause", Json::object()));
}

TEST_F(ControlClientTest, AVmThatIsNotThereIsSaidSo) {
  const auto nobody = client();
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().code(), Errc::kNotFound);
  EXPECT_EQ(nobody.error().message(), "no virtual machine of that name is there (in " + directory_ + ")");
}

TEST_F(ControlClientTest, TheEndOfTheVmIsSeen) {
  serve();
  ControlClient vm = client().value();
  EXPECT_TRUE(vm.ask("status", Json::object()));
  EXPECT_EQ(vm.wait_for_end(Deadline(std::chrono::seconds(0))).value(), false);
  stop();
  server_.reset();
  EXPECT_EQ(vm.wait_for_end(Deadline()).value(), true);
  EXPECT_EQ(vm.ask("status", Json::object()).error().code(), Errc::kClosed);
}

TEST_F(ControlClientTest, ProgressIsHeard) {
  pretend(R"({"id":1,"progress":{"phase":"memory","done":1,"total":2}}
{"id":1,"result":{"bytes":2}}
)");
  std::vector<JobProgress> heard;
  const auto answer = client().value().ask("save", Json::object(), Deadline(),
                                           [&](const JobProgress& progress) { heard.push_back(progress); });
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ((*answer)["bytes"], 2);
  EXPECT_EQ(heard, (std::vector<JobProgress>{{.phase = "memory", .done = 1, .total = 2}}));
}

TEST_F(ControlClientTest, WhatFollowsTheResultIsKept) {
  pretend("{\"id\":1,\"result\":{}}\nlogin: ");
  ControlClient vm = client().value();
  ASSERT_TRUE(vm.ask("console", Json::object()));
  std::string shown = vm.take_rest();
  const UniqueFd console = std::move(vm).take_socket();
  thread_.join();
  shown += read_ready(console);
  EXPECT_EQ(shown, "login: ");
}

TEST_F(ControlClientTest, AnAnswerThatIsNoneIsSaidSo) {
  pretend("SSH-2.0-OpenSSH\n");
  EXPECT_EQ(failure(), "this is no virtual machine's control socket");
}

TEST_F(ControlClientTest, AnAnswerOfTheWrongFormIsSaidSo) {
  pretend("{\"id\":1,\"error\":{\"kind\":5}}\n");
  EXPECT_EQ(failure(), "'kind' is not a string");
}

TEST_F(ControlClientTest, AVmThatClosesWithoutAnAnswerHasEnded) {
  pretend("{\"id\":1,");
  EXPECT_EQ(failure(), "the virtual machine has ended");
}

TEST_F(ControlClientTest, NoAnswerInTimeIsSaidSo) {
  place_ = std::make_unique<VmRegistration>(VmRegistration::claim(directory_, "vm1").value());
  false_socket_.emplace(place_->listen().value());
  const auto answer = client().value().ask("status", Json::object(), Deadline(std::chrono::seconds(0)));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message(), "no answer in time");
}

}  // namespace
}  // namespace tandem::control
