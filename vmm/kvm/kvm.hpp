// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "vmm/lib/result/result.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem {

/// ioctl(2) whose error names it. @return the call's non-negative result.
Result<int> kvm_ioctl(int fd, unsigned long request, std::string_view request_name, const void* argument);
/// As above, for an ioctl that takes a number.
Result<int> kvm_ioctl(int fd, unsigned long request, std::string_view request_name, unsigned long argument = 0);

/// Writes the value at `value` to a device attribute of `fd`: a KVM device, a vCPU or a VM.
/// @param what  names the attribute in the error.
Result<void> set_device_attr(int fd, uint32_t group, uint64_t attr, const void* value, std::string_view what);

/// Whether `fd` has a device attribute.
[[nodiscard]] bool has_device_attr(int fd, uint32_t group, uint64_t attr);

/// Reads a device attribute into `value`.
Result<void> read_device_attr(int fd, uint32_t group, uint64_t attr, void* value, std::string_view what);

/// The host's KVM: /dev/kvm.
class Kvm {
 public:
  /// @errors  Errc::kNotFound, kPermission: as /dev/kvm is. Errc::kUnsupported: another API version than 12.
  static Result<Kvm> open();

  [[nodiscard]] int fd() const { return fd_.get(); }
  /// The value of KVM_CHECK_EXTENSION: 0 when the host lacks the capability.
  [[nodiscard]] int capability(long capability) const;
  /// Size of a vCPU's shared run structure [bytes].
  [[nodiscard]] size_t vcpu_mmap_size() const { return vcpu_mmap_size_; }
  /// Largest size of the guest-physical address space [bits].
  [[nodiscard]] unsigned max_ipa_bits() const;

 private:
  Kvm(UniqueFd fd, size_t vcpu_mmap_size) : fd_(std::move(fd)), vcpu_mmap_size_(vcpu_mmap_size) {}
  UniqueFd fd_;
  size_t vcpu_mmap_size_;
};

}  // namespace tandem
