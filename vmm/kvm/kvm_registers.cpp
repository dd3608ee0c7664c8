// SPDX-License-Identifier: Apache-2.0
#include "vmm/kvm/kvm_registers.hpp"

#include <sys/ioctl.h>

#include <cerrno>

#include "vmm/kvm/kvm.hpp"
#include "vmm/kvm/kvm_uapi.hpp"

namespace tandem {
namespace {

static_assert(register_id::kArm64 == KVM_REG_ARM64);
static_assert(register_id::system(3, 0, 12, 0, 0) == ARM64_SYS_REG(3, 0, 12, 0, 0));
static_assert(register_id::kVirtualCounter == KVM_REG_ARM_TIMER_CNT);
static_assert(register_id::kVirtualCompare == KVM_REG_ARM_TIMER_CVAL);
static_assert(register_id::kVirtualControl == KVM_REG_ARM_TIMER_CTL);
static_assert(register_id::kPhysicalCounter == KVM_REG_ARM_PTIMER_CNT);
static_assert(register_id::kPhysicalCompare == KVM_REG_ARM_PTIMER_CVAL);
static_assert(register_id::kPhysicalControl == KVM_REG_ARM_PTIMER_CTL);
static_assert(register_id::kSveVectorLengths == KVM_REG_ARM64_SVE_VLS);
static_assert(offsetof(kvm_regs, regs.pc) / sizeof(uint32_t) == 64 &&
              offsetof(kvm_regs, sp_el1) / sizeof(uint32_t) == 68);
static_assert(offsetof(kvm_regs, fp_regs.vregs) / sizeof(uint32_t) == 84);
static_assert(offsetof(kvm_regs, fp_regs.fpsr) / sizeof(uint32_t) == 212);

/// KVM_{GET,SET}_ONE_REG with the value at `value`.
Result<void> one_register(int fd, unsigned long request, const char* name, RegisterId id, const void* value) {
  const kvm_one_reg argument{.id = id, .addr = reinterpret_cast<uint64_t>(value)};
  if (::ioctl(fd, request, &argument) != 0) {
    return fail_errno("{} {:#x}", name, id);
  }
  return {};
}

}  // namespace

Result<std::vector<RegisterId>> KvmRegisters::list() const {
  // A list without room makes KVM say how long it is.
  kvm_reg_list length{};
  if (::ioctl(vcpu_fd_, KVM_GET_REG_LIST, &length) == 0 || errno != E2BIG) {
    return fail_errno("KVM_GET_REG_LIST");
  }
  static_assert(sizeof(kvm_reg_list) == sizeof(uint64_t));
  std::vector<uint64_t> words(length.n + 1);
  words[0] = length.n;
  TANDEM_TRY(kvm_ioctl(vcpu_fd_, KVM_GET_REG_LIST, "KVM_GET_REG_LIST", words.data()));
  words.resize(words[0] + 1);
  words.erase(words.begin());
  return words;
}

Result<void> KvmRegisters::read(RegisterId id, std::span<std::byte> out) const {
  TANDEM_ASSERT(out.size() == size_bytes_of(id), "KVM writes as many bytes as the register has");
  return one_register(vcpu_fd_, KVM_GET_ONE_REG, "KVM_GET_ONE_REG", id, out.data());
}

Result<void> KvmRegisters::write(RegisterId id, std::span<const std::byte> value) {
  TANDEM_ASSERT(value.size() == size_bytes_of(id), "KVM reads as many bytes as the register has");
  return one_register(vcpu_fd_, KVM_SET_ONE_REG, "KVM_SET_ONE_REG", id, value.data());
}

Result<uint64_t> KvmRegisters::read_u64(RegisterId id) const {
  uint64_t value = 0;
  TANDEM_TRY(read(id, std::as_writable_bytes(std::span(&value, 1))));
  return value;
}

Result<void> KvmRegisters::write_u64(RegisterId id, uint64_t value) const {
  return one_register(vcpu_fd_, KVM_SET_ONE_REG, "KVM_SET_ONE_REG", id, &value);
}

}  // namespace tandem
