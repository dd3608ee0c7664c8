// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "vmm/lib/result/result.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem::devices {

/// Whom a VsockHost tells of connections.
class VsockClient {
 public:
  virtual ~VsockClient() = default;
  /// A program of the host wants to be connected to a port of the guest. To drop the socket is to refuse.
  /// @param socket  a stream socket with O_NONBLOCK. When the guest accepts, the program is to get "OK <port>\n" first.
  virtual void vsock_connected(UniqueFd socket, uint32_t guest_port) = 0;
};

/// The programs of the host that a guest's streams lead to. Called with the device's mutex held.
class VsockHost {
 public:
  virtual ~VsockHost() = default;
  virtual void set_client(VsockClient* client) = 0;
  /// Whether connections are taken, which they are at first. Until they are again, programs wait.
  virtual void set_accepting(bool accepting) = 0;
  /// Connects to the program that serves `port`. @return a stream socket with O_NONBLOCK.
  /// @errors  whatever keeps it from being reached now: Errc::kNotFound and others.
  virtual Result<UniqueFd> connect(uint32_t port) = 0;
};

}  // namespace tandem::devices
