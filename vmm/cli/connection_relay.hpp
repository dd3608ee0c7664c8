// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "devices/backend/listening_socket.hpp"
#include "vmm/lib/result/result.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem::cli {

/// Lets another process of the user use a connection that only this one has: passes bytes on between the connection and
/// whoever connects to a socket at a path, on a thread of its own, until both sides have ended.
class ConnectionRelay {
 public:
  /// @param path  of the socket; only the user may connect to it. It goes with the object.
  static Result<std::unique_ptr<ConnectionRelay>> create(UniqueFd connection, std::string path);
  ConnectionRelay(const ConnectionRelay&) = delete;
  ConnectionRelay& operator=(const ConnectionRelay&) = delete;
  /// Ends what still passes.
  ~ConnectionRelay();

  [[nodiscard]] const std::string& path() const { return listener_.path(); }

 private:
  ConnectionRelay(UniqueFd connection, devices::ListeningSocket listener, UniqueFd end)
      : connection_(std::move(connection)), listener_(std::move(listener)), end_(std::move(end)) {}
  void main();

  UniqueFd connection_;
  devices::ListeningSocket listener_;
  UniqueFd end_;  // eventfd
  std::thread thread_;
};

}  // namespace tandem::cli
