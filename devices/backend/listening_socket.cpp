// SPDX-License-Identifier: Apache-2.0
#include "devices/backend/listening_socket.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>

namespace tandem::devices {
namespace {

using Address = sockaddr_un;

Result<Address> address_of(const std::string& path) {
  Address address{};
  constexpr size_t kMostBytes = sizeof address.sun_path - 1;
  if (path.empty() || path.size() > kMostBytes) {
    return fail(Errc::kOutOfRange, "socket path of {} bytes; from 1 to {} are possible: {}", path.size(), kMostBytes,
                path);
  }
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

Result<UniqueFd> open_socket() {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) {
    return fail_errno("socket");
  }
  return fd;
}

const sockaddr* generic(const Address& address) { return reinterpret_cast<const sockaddr*>(&address); }

/// Removes a socket that no one listens at.
Result<void> remove_stale(const Address& address) {
  struct stat status{};
  if (::lstat(address.sun_path, &status) == 0 && !S_ISSOCK(status.st_mode)) {
    return fail(Errc::kExists, "{}: exists, and is no socket", address.sun_path);
  }
  const UniqueFd probe = TANDEM_TRY(open_socket());
  if (::connect(probe.get(), generic(address), sizeof address) == 0 || errno == EAGAIN) {
    return fail(Errc::kBusy, "{}: another process listens there", address.sun_path);
  }
  if (errno != ECONNREFUSED && errno != ENOENT) {
    return fail_errno("{}", address.sun_path);
  }
  if (::unlink(address.sun_path) != 0 && errno != ENOENT) {
    return fail_errno("{}: remove the stale socket", address.sun_path);
  }
  return {};
}

/// Keeps others of us from starting to listen in the directory of `path` until it is closed: between bind(2) and listen(2), and
/// while a stale socket is replaced, a socket looks to them as if nobody had it. None where the directory cannot be read: then
/// the window stays open.
/// @errors  Errc::kBusy: somebody else holds on to the directory.
Result<UniqueFd> lock_directory(const std::string& path) {
  constexpr std::chrono::milliseconds kPause(1);
  constexpr int kTries = 5000;
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  UniqueFd directory(::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) {
    return directory;
  }
  for (int tries = 0; ::flock(directory.get(), LOCK_EX | LOCK_NB) != 0; ++tries) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return UniqueFd();
    }
    if (tries == kTries) {
      return fail(Errc::kBusy, "{}: another process keeps its directory locked", path);
    }
    std::this_thread::sleep_for(kPause);
  }
  return directory;
}

}  // namespace

Result<ListeningSocket> ListeningSocket::create(std::string path, int backlog) {
  const Address address = TANDEM_TRY(address_of(path));
  UniqueFd fd = TANDEM_TRY(open_socket());
  const UniqueFd directory = TANDEM_TRY(lock_directory(path));
  ::fchmod(fd.get(), S_IRUSR | S_IWUSR);  // the path is made with the mode of the socket
  int bound = ::bind(fd.get(), generic(address), sizeof address);
  if (bound != 0 && errno == EADDRINUSE) {
    TANDEM_TRY(remove_stale(address));
    bound = ::bind(fd.get(), generic(address), sizeof address);
  }
  if (bound != 0) {
    return fail_errno("{}: listen", path);
  }
  ListeningSocket socket(std::move(fd), std::move(path));
  TANDEM_TRY(socket.remember_inode());
  if (::listen(socket.fd(), backlog) != 0) {
    return fail_errno("{}: listen", socket.path());
  }
  return socket;
}

ListeningSocket::~ListeningSocket() {
  struct stat status{};
  if (fd_ && ::lstat(path_.c_str(), &status) == 0 && status.st_dev == device_ && status.st_ino == inode_) {
    ::unlink(path_.c_str());
  }
}

Result<void> ListeningSocket::remember_inode() {
  struct stat status{};
  if (::lstat(path_.c_str(), &status) != 0) {
    return fail_errno("{}", path_);
  }
  device_ = status.st_dev;
  inode_ = status.st_ino;
  return {};
}

Result<UniqueFd> ListeningSocket::accept() const {
  UniqueFd client(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  const bool gone = errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
  if (!client && !gone) {
    return fail_errno("{}: accept", path_);
  }
  return client;
}

}  // namespace tandem::devices
