// SPDX-License-Identifier: Apache-2.0
#include "vmm/kvm/kvm.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>

#include "vmm/kvm/kvm_uapi.hpp"

namespace tandem {
namespace {

constexpr int kApiVersion = 12;
/// What a VM has when KVM_CAP_ARM_VM_IPA_SIZE is absent. (Documentation/virt/kvm/api.rst, KVM_CREATE_VM)
constexpr unsigned kDefaultIpaBits = 40;

}  // namespace

Result<int> kvm_ioctl(int fd, unsigned long request, std::string_view request_name, unsigned long argument) {
  const int result = ::ioctl(fd, request, argument);
  if (result < 0) {
    return fail_errno("{}", request_name);
  }
  return result;
}

Result<int> kvm_ioctl(int fd, unsigned long request, std::string_view request_name, const void* argument) {
  return kvm_ioctl(fd, request, request_name, reinterpret_cast<unsigned long>(argument));
}

Result<void> set_device_attr(int fd, uint32_t group, uint64_t attr, const void* value, std::string_view what) {
  kvm_device_attr request{};
  request.group = group;
  request.attr = attr;
  request.addr = reinterpret_cast<uint64_t>(value);
  if (::ioctl(fd, KVM_SET_DEVICE_ATTR, &request) != 0) {
    return fail_errno("KVM_SET_DEVICE_ATTR group {} {}", group, what);
  }
  return {};
}

bool has_device_attr(int fd, uint32_t group, uint64_t attr) {
  kvm_device_attr request{};
  request.group = group;
  request.attr = attr;
  return ::ioctl(fd, KVM_HAS_DEVICE_ATTR, &request) == 0;
}

Result<void> read_device_attr(int fd, uint32_t group, uint64_t attr, void* value, std::string_view what) {
  kvm_device_attr request{};
  request.group = group;
  request.attr = attr;
  request.addr = reinterpret_cast<uint64_t>(value);
  if (::ioctl(fd, KVM_GET_DEVICE_ATTR, &request) != 0) {
    return fail_errno("KVM_GET_DEVICE_ATTR group {} {}", group, what);
  }
  return {};
}

Result<Kvm> Kvm::open() {
  UniqueFd fd(::open("/dev/kvm", O_RDWR | O_CLOEXEC));
  if (!fd) {
    return fail_errno("open /dev/kvm");
  }
  const int version = TANDEM_TRY(kvm_ioctl(fd.get(), KVM_GET_API_VERSION, "KVM_GET_API_VERSION"));
  if (version != kApiVersion) {
    return fail(Errc::kUnsupported, "/dev/kvm has API version {}, not {}", version, kApiVersion);
  }
  const int size = TANDEM_TRY(kvm_ioctl(fd.get(), KVM_GET_VCPU_MMAP_SIZE, "KVM_GET_VCPU_MMAP_SIZE"));
  return Kvm(std::move(fd), static_cast<size_t>(size));
}

int Kvm::capability(long capability) const {
  const int value = ::ioctl(fd_.get(), KVM_CHECK_EXTENSION, capability);
  return value < 0 ? 0 : value;
}

unsigned Kvm::max_ipa_bits() const {
  const int bits = capability(KVM_CAP_ARM_VM_IPA_SIZE);
  return bits == 0 ? kDefaultIpaBits : static_cast<unsigned>(bits);
}

}  // namespace tandem
