// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/vsock_listener.hpp"

#include <sys/socket.h>
// After what defines sockaddr.
#include <linux/vm_sockets.h>

#include <cerrno>

namespace tandem::agent {

Result<VsockListener> VsockListener::create(uint32_t port) {
  constexpr int kBacklog = 1024;
  UniqueFd socket(::socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) {
    if (errno == EAFNOSUPPORT) {
      return fail(Errc::kUnsupported, "this kernel has no vsock, or its driver is not loaded");
    }
    return fail_errno("vsock");
  }
  sockaddr_vm address{};
  address.svm_family = AF_VSOCK;
  address.svm_cid = VMADDR_CID_ANY;
  address.svm_port = port;
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.get(), kBacklog) != 0) {
    return fail_errno("vsock port {}", port);
  }
  return VsockListener(std::move(socket));
}

Result<UniqueFd> VsockListener::accept() const {
  sockaddr_vm peer{};
  socklen_t length = sizeof peer;
  UniqueFd socket(::accept4(fd(), reinterpret_cast<sockaddr*>(&peer), &length, SOCK_CLOEXEC));
  if (!socket && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
    return fail(Errc::kBusy, "no room for another connection");
  }
  if (socket && peer.svm_cid != VMADDR_CID_HOST) {
    socket.reset();
  }
  return socket;
}

}  // namespace tandem::agent
