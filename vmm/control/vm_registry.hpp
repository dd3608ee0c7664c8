// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "devices/backend/listening_socket.hpp"
#include "vmm/lib/result/result.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"

/// Where the virtual machines of this host are found by name: a directory with a lock and a control socket for each.
namespace tandem::control {

/// Longest name of a VM [bytes].
inline constexpr size_t kMaxNameBytes = 64;

/// Checks a name, which becomes part of paths.
/// @errors  Errc::kInvalidArgument, or kOutOfRange; the text does not repeat the name.
Result<void> check_vm_name(std::string_view name);

/// The directory: $TANDEM_RUNTIME_DIR, or else "tandem" in $XDG_RUNTIME_DIR or /run.
std::string runtime_directory();

/// The control socket of a VM. @pre the name is a good one.
std::string control_socket_path(const std::string& directory, std::string_view name);

/// A VM's place in the directory, held by the process that runs it. What another process left in the place when it died
/// is replaced; what a living one has is not.
class VmRegistration {
 public:
  /// Takes the place. Makes the directory if it is not there, for the user alone.
  /// @errors  Errc::kBusy: a VM of that name runs. Errc::kOutOfRange: the socket's path would be too long.
  ///          Errc::kPermission: the directory belongs to somebody else, or others may write to it.
  static Result<VmRegistration> claim(const std::string& directory, const std::string& name);
  VmRegistration(VmRegistration&& other) noexcept = default;
  VmRegistration& operator=(VmRegistration&&) = delete;
  ~VmRegistration();

  /// The control socket: only the user may connect to it. It goes when the object goes, which does so before this.
  [[nodiscard]] Result<devices::ListeningSocket> listen() const;

 private:
  VmRegistration(std::string socket_path, std::string lock_path, UniqueFd lock)
      : socket_path_(std::move(socket_path)), lock_path_(std::move(lock_path)), lock_(std::move(lock)) {}

  std::string socket_path_;
  std::string lock_path_;
  UniqueFd lock_;
};

/// The names of the VMs whose processes live, sorted. None if there is no directory.
/// @errors  as the directory can be read.
Result<std::vector<std::string>> registered_vms(const std::string& directory);

/// Whether a living process holds the place of `name`.
bool is_registered(const std::string& directory, std::string_view name);

}  // namespace tandem::control
