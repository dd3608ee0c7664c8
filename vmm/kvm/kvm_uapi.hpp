// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/kvm.h>

/// KVM's user-space ABI: the system's header, and what newer kernels have added to it. Where the system's header has an
/// item of this list, it is held against the value here.

/// Linux 6.8: KVM_RUN met memory that it can neither map nor emulate.
inline constexpr unsigned kKvmExitMemoryFault = 39;
#ifdef KVM_EXIT_MEMORY_FAULT
static_assert(KVM_EXIT_MEMORY_FAULT == kKvmExitMemoryFault);
#endif
