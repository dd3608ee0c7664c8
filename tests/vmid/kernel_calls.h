// SPDX-License-Identifier: Apache-2.0
// The kernel's allocator of ASIDs and VMIDs, for C++: its structures as they are laid out, and calls of what is inlined.
#pragma once

#include "tests/vmid/kernel_environment.h"

#ifdef __cplusplus
extern "C" {
#endif

struct asid_cpu;
struct asid_info;

/// An allocator for all CPUs there are, whose ids have `bits` bits. Those in `reserved_ids` are never given out.
struct asid_info* calls_new_allocator(u32 bits, u64 reserved_ids, bool broadcast);
void calls_delete_allocator(struct asid_info* info);

/// What kvm_arm_vmid_update() and kvm_arm_vmid_clear_active() do, and the slow parts of both.
void calls_activate(struct asid_info* info, atomic64_t* id);
void calls_activate_slow(struct asid_info* info, atomic64_t* id);
void calls_deactivate(struct asid_info* info);
void calls_deactivate_slow(struct asid_info* info);

/// What the lock protects.
struct calls_locked {
  u64 map;
  u32 cur_idx;
  u64 reserved[16];
  bool flush_pending[16];
};
void calls_get_locked(const struct asid_info* info, struct calls_locked* locked);
void calls_set_locked(struct asid_info* info, const struct calls_locked* locked);

atomic64_t* calls_generation(struct asid_info* info);
atomic64_t* calls_active(struct asid_info* info, int cpu);
u64 calls_rollovers(const struct asid_info* info);
u64 calls_local_flushes(const struct asid_info* info);
u64 calls_broadcast_flushes(const struct asid_info* info);

/// Of the program: the flushes that the allocator asks for.
void env_flush_cpu(void);
void env_flush_all(void);

#ifdef __cplusplus
}
#endif
