// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/kvm.h>

#include <cstddef>

/// KVM's user-space ABI: the system's header, and what newer kernels have added to it. Where the system's header has an
/// item of this list, it is held against the value here.

/// Linux 6.4: which calls of the guest come to us. Group and attribute of the VM's descriptor.
inline constexpr unsigned kKvmArmVmSmcccCtrl = 0;
inline constexpr unsigned kKvmArmVmSmcccFilter = 0;
/// struct kvm_smccc_filter
struct KvmSmcccFilter {
  __u32 base;
  __u32 nr_functions;
  __u8 action;
  __u8 pad[15];
};
inline constexpr __u8 kKvmSmcccFilterFwdToUser = 2;
/// Flags of KVM_EXIT_HYPERCALL, in the low half of what was `longmode` before.
inline constexpr __u32 kKvmHypercallExitSmc = 1U << 0;
static_assert(sizeof(KvmSmcccFilter) == 24);
#ifdef KVM_ARM_VM_SMCCC_CTRL
static_assert(KVM_ARM_VM_SMCCC_CTRL == kKvmArmVmSmcccCtrl && KVM_ARM_VM_SMCCC_FILTER == kKvmArmVmSmcccFilter);
static_assert(KVM_SMCCC_FILTER_FWD_TO_USER == kKvmSmcccFilterFwdToUser);
static_assert(sizeof(kvm_smccc_filter) == sizeof(KvmSmcccFilter));
static_assert(offsetof(kvm_smccc_filter, nr_functions) == offsetof(KvmSmcccFilter, nr_functions));
static_assert(offsetof(kvm_smccc_filter, action) == offsetof(KvmSmcccFilter, action));
static_assert(KVM_HYPERCALL_EXIT_SMC == kKvmHypercallExitSmc);
static_assert(offsetof(kvm_run, hypercall.flags) == offsetof(kvm_run, hypercall.longmode));
#endif

/// kernel-patches/pv-vcpu-state: KVM keeps the vCPU's record. Group and attributes of the vCPU's descriptor.
inline constexpr unsigned kKvmArmVcpuPvStateCtrl = 0x60;
inline constexpr unsigned kKvmArmVcpuPvStateIpa = 0;
inline constexpr unsigned kKvmArmVcpuPvStateEnabled = 1;
#ifdef KVM_ARM_VCPU_PV_STATE_CTRL
static_assert(KVM_ARM_VCPU_PV_STATE_CTRL == kKvmArmVcpuPvStateCtrl);
static_assert(KVM_ARM_VCPU_PV_STATE_IPA == kKvmArmVcpuPvStateIpa);
static_assert(KVM_ARM_VCPU_PV_STATE_ENABLED == kKvmArmVcpuPvStateEnabled);
#endif

/// Linux 6.8: KVM_RUN met memory that it can neither map nor emulate.
inline constexpr unsigned kKvmExitMemoryFault = 39;
#ifdef KVM_EXIT_MEMORY_FAULT
static_assert(KVM_EXIT_MEMORY_FAULT == kKvmExitMemoryFault);
#endif

/// Linux 6.4: one offset of the guest's counters, virtual and physical, against the host's. KVM_CAP_COUNTER_OFFSET.
inline constexpr int kKvmCapCounterOffset = 227;
/// struct kvm_arm_counter_offset
struct KvmArmCounterOffset {
  __u64 counter_offset;
  __u64 reserved;
};
inline constexpr unsigned long kKvmArmSetCounterOffset = _IOW(KVMIO, 0xb5, KvmArmCounterOffset);
static_assert(sizeof(KvmArmCounterOffset) == 16);
#ifdef KVM_CAP_COUNTER_OFFSET
static_assert(KVM_CAP_COUNTER_OFFSET == kKvmCapCounterOffset);
static_assert(KVM_ARM_SET_COUNTER_OFFSET == kKvmArmSetCounterOffset);
static_assert(offsetof(kvm_arm_counter_offset, counter_offset) == offsetof(KvmArmCounterOffset, counter_offset));
#endif
