// SPDX-License-Identifier: Apache-2.0
#include "vmm/control/vm_registry.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "vmm/control/vsock_dialer.hpp"

namespace tandem::control {
namespace {

constexpr std::string_view kSocketSuffix = ".sock";
constexpr std::string_view kLockSuffix = ".lock";
/// Clients that wait to be accepted; the others wait in connect(2).
constexpr int kBacklog = 64;
constexpr mode_t kOwnerOnly = S_IRWXU;

std::string lock_path(const std::string& directory, std::string_view name) {
  return fmt::format("{}/{}{}", directory, name, kLockSuffix);
}

/// A value that is not empty, or nothing.
std::optional<std::string> variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
}

/// Whoever may write to the directory decides what a VM's name leads to.
Result<void> make_directory(const std::string& directory) {
  if (::mkdir(directory.c_str(), kOwnerOnly) != 0 && errno != EEXIST) {
    return fail_errno("{}", directory);
  }
  struct stat status{};
  if (::stat(directory.c_str(), &status) != 0) {
    return fail_errno("{}", directory);
  }
  if (!S_ISDIR(status.st_mode)) {
    return fail(Errc::kInvalidArgument, "{}: is no directory", directory);
  }
  if (status.st_uid != ::geteuid()) {
    return fail(Errc::kPermission, "{}: belongs to user {}", directory, status.st_uid);
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return fail(Errc::kPermission, "{}: others may write to it (mode {:o})", directory, status.st_mode & 07777);
  }
  return {};
}

/// A lock on the whole file, which goes with the description.
struct flock whole_file() {
  struct flock range{};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  return range;
}

/// The locked file at `path`; no descriptor if somebody else has it locked.
Result<UniqueFd> lock_file(const std::string& path) {
  while (true) {
    UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, S_IRUSR | S_IWUSR));
    if (!file) {
      return fail_errno("{}", path);
    }
    struct flock range = whole_file();
    if (::fcntl(file.get(), F_OFD_SETLK, &range) != 0) {
      return errno == EAGAIN || errno == EACCES ? Result<UniqueFd>(UniqueFd()) : fail_errno("{}: lock", path);
    }
    // Its last owner may have removed the file between our opening and locking it.
    struct stat ours{};
    struct stat there{};
    if (::fstat(file.get(), &ours) == 0 && ::stat(path.c_str(), &there) == 0 && ours.st_dev == there.st_dev &&
        ours.st_ino == there.st_ino) {
      return file;
    }
  }
}

}  // namespace

Result<void> check_vm_name(std::string_view name) {
  const auto is_letter_or_digit = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  const auto is_allowed = [&](char c) { return is_letter_or_digit(c) || c == '.' || c == '_' || c == '-'; };
  if (name.empty() || name.size() > kMaxNameBytes || !is_letter_or_digit(name.front()) ||
      !std::ranges::all_of(name, is_allowed)) {
    return fail(Errc::kInvalidArgument,
                "is not 1 to {} letters, digits, '.', '-' and '_', of which the first is a letter or digit",
                kMaxNameBytes);
  }
  return {};
}

std::string runtime_directory() {
  if (const auto directory = variable("TANDEM_RUNTIME_DIR")) {
    return *directory;
  }
  return variable("XDG_RUNTIME_DIR").value_or("/run") + "/tandem";
}

std::string control_socket_path(const std::string& directory, std::string_view name) {
  return fmt::format("{}/{}{}", directory, name, kSocketSuffix);
}

Result<VmRegistration> VmRegistration::claim(const std::string& directory, const std::string& name) {
  TANDEM_TRY(check_vm_name(name));
  std::string socket = control_socket_path(directory, name);
  if (socket.size() > kMaxSocketPathBytes) {
    return fail(Errc::kOutOfRange, "{}: the path of a socket has at most {} bytes, and this one {}", socket,
                kMaxSocketPathBytes, socket.size());
  }
  TANDEM_TRY(make_directory(directory));
  std::string path = lock_path(directory, name);
  UniqueFd lock = TANDEM_TRY(lock_file(path));
  if (!lock) {
    return fail(Errc::kBusy, "a virtual machine of the name '{}' is there already", name);
  }
  return VmRegistration(std::move(socket), std::move(path), std::move(lock));
}

VmRegistration::~VmRegistration() {
  if (lock_) {
    ::unlink(lock_path_.c_str());  // while it is locked: it is ours until then
  }
}

Result<devices::ListeningSocket> VmRegistration::listen() const {
  return devices::ListeningSocket::create(socket_path_, kBacklog);
}

bool is_registered(const std::string& directory, std::string_view name) {
  const UniqueFd file(::open(lock_path(directory, name).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct flock range = whole_file();
  return file && ::fcntl(file.get(), F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
}

Result<std::vector<std::string>> registered_vms(const std::string& directory) {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(directory.c_str()), &::closedir);
  if (!entries) {
    return errno == ENOENT ? Result<std::vector<std::string>>() : fail_errno("{}", directory);
  }
  std::vector<std::string> names;
  while (const dirent* const entry = ::readdir(entries.get())) {
    std::string_view name = entry->d_name;
    if (!name.ends_with(kSocketSuffix)) {
      continue;
    }
    name.remove_suffix(kSocketSuffix.size());
    if (check_vm_name(name) && is_registered(directory, name)) {
      names.emplace_back(name);
    }
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace tandem::control
