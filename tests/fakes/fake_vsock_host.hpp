// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <set>
#include <utility>

#include "devices/backend/vsock_host.hpp"

namespace tandem::devices {

/// Programs of the host under a test's control: it holds their ends of the sockets.
class FakeVsockHost final : public VsockHost {
 public:
  void set_client(VsockClient* client) override { client_ = client; }
  void set_accepting(bool accepting) override { accepting_ = accepting; }
  Result<UniqueFd> connect(uint32_t port) override {
    if (!served_.contains(port)) {
      return fail(Errc::kNotFound, "port {}: nobody is there", port);
    }
    auto [program, device] = make_pair();
    accepted_.push_back(std::move(program));
    return std::move(device);
  }

  /// A program that waits for connections to `port`.
  void serve(uint32_t port) { served_.insert(port); }
  /// The oldest connection that the guest has made. @pre there is one.
  UniqueFd take_accepted() {
    UniqueFd socket = std::move(accepted_.front());
    accepted_.pop_front();
    return socket;
  }
  [[nodiscard]] size_t accepted_count() const { return accepted_.size(); }

  /// A program connects to a port of the guest. @return its end.
  UniqueFd dial(uint32_t guest_port) {
    auto [program, device] = make_pair();
    client_->vsock_connected(std::move(device), guest_port);
    return std::move(program);
  }

  [[nodiscard]] VsockClient* client() const { return client_; }
  [[nodiscard]] bool is_accepting() const { return accepting_; }

 private:
  static std::pair<UniqueFd, UniqueFd> make_pair() {
    std::array<int, 2> fds{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds.data()) != 0) {
      std::abort();  // a test that gets no descriptors cannot go on
    }
    return {UniqueFd(fds[0]), UniqueFd(fds[1])};
  }

  VsockClient* client_ = nullptr;
  bool accepting_ = true;
  std::set<uint32_t> served_;
  std::deque<UniqueFd> accepted_;
};

}  // namespace tandem::devices
