// SPDX-License-Identifier: Apache-2.0
#include "tests/vmid/kernel_calls.h"

#include <asm/asid_alloc.h>

#include "tests/vmid/kernel_environment.h"

struct asid_info* calls_new_allocator(u32 bits, u64 reserved_ids, bool broadcast) {
  struct asid_info* info = env_allocate_zeroed(sizeof *info);
  info->cpu = env_allocate_zeroed((size_t)env_cpus() * sizeof *info->cpu);
  info->flush_cpu = env_flush_cpu;
  info->flush_all = broadcast ? env_flush_all : NULL;
  if (asid_info_init(info, bits) != 0) return NULL;
  info->map[0] |= reserved_ids;
  info->template[0] |= reserved_ids;
  return info;
}

void calls_delete_allocator(struct asid_info* info) {
  asid_info_free(info);
  env_free(info->cpu);
  env_free(info);
}

void calls_activate(struct asid_info* info, atomic64_t* id) {
  asid_activate(info, &this_cpu_ptr(info->cpu)->active, id, NULL);
}

void calls_activate_slow(struct asid_info* info, atomic64_t* id) { asid_activate_slow(info, id, NULL); }

void calls_deactivate(struct asid_info* info) { asid_deactivate(info, &this_cpu_ptr(info->cpu)->active); }

void calls_deactivate_slow(struct asid_info* info) { asid_deactivate_slow(info); }

void calls_get_locked(const struct asid_info* info, struct calls_locked* locked) {
  locked->map = info->map[0];
  locked->cur_idx = info->cur_idx;
  for (int cpu = 0; cpu < env_cpus(); cpu++) {
    locked->reserved[cpu] = info->cpu[cpu].reserved;
    locked->flush_pending[cpu] = info->cpu[cpu].flush_pending;
  }
}

void calls_set_locked(struct asid_info* info, const struct calls_locked* locked) {
  info->map[0] = locked->map;
  info->cur_idx = locked->cur_idx;
  for (int cpu = 0; cpu < env_cpus(); cpu++) {
    info->cpu[cpu].reserved = locked->reserved[cpu];
    info->cpu[cpu].flush_pending = locked->flush_pending[cpu];
  }
}

atomic64_t* calls_generation(struct asid_info* info) { return &info->generation; }
atomic64_t* calls_active(struct asid_info* info, int cpu) { return &info->cpu[cpu].active; }
u64 calls_rollovers(const struct asid_info* info) { return info->stats.rollovers; }
u64 calls_local_flushes(const struct asid_info* info) { return info->stats.flush_cpu; }
u64 calls_broadcast_flushes(const struct asid_info* info) { return info->stats.flush_all; }
