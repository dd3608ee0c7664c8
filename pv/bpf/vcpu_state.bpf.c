// SPDX-License-Identifier: GPL-2.0-only
// Writes the PV vCPU state records of one machine, from the host scheduler's own switches. docs/decisions/0003-….
//
// All runs for one thread are in one order: the scheduler does not switch a task in before its last switch-out is over,
// and the thread's own code runs between the two. Only the VMM's deactivation may run at the same time, on another CPU;
// the word in `activity` settles that (vcpu_activity.h).
#include <asm/errno.h>
#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "pv/abi/pv_vcpu_state.h"
#include "pv/bpf/task_state.h"
#include "pv/bpf/vcpu_activity.h"

#define RECORDS (0x10000 / PV_VCPU_STATE_RECORD_BYTES)
#define WRITE_ONCE(place, value) (*(volatile typeof(place)*)&(place) = (value))
#define READ_ONCE(place) (*(volatile typeof(place)*)&(place))

// The fields of the kernel's type that are used; their offsets are the running kernel's.
struct task_struct {
  int tgid;
  struct bpf_local_storage* bpf_storage;
} __attribute__((preserve_access_index));

// The pages of this map are the guest's region.
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, RECORDS);
  __type(key, __u32);
  __type(value, struct pv_vcpu_state_record);
} records SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, RECORDS);
  __type(key, __u32);
  __type(value, __u64);
} activity SEC(".maps");

// Which vCPU a thread is; goes away with the thread.
struct {
  __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, int);
  __type(value, __u32);
} threads SEC(".maps");

// The process whose threads have tied themselves, by its id in the first PID namespace.
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, int);
} owner SEC(".maps");

// The kernel's: the same pointer, of a type that may be read through and no more. Becomes a register's copy.
extern void* bpf_rdonly_cast(const void* object, __u32 type) __ksym;

// False for nearly every task, by a load and a branch; for vCPUs of other VMs without a search of their storage.
//
// `bpf_storage` is read through the cast, since the verifier asks of each pointer read through a trusted one whether it is
// trusted too, by four searches of all the kernel's types: seven eighths of what loading the program took.
static __always_inline int may_be_vcpu(const struct task_struct* task) {
  const struct task_struct* plain = bpf_rdonly_cast(task, bpf_core_type_id_kernel(struct task_struct));
  if (!plain->bpf_storage) {
    return 0;
  }
  __u32 only = 0;
  int* tgid = bpf_map_lookup_elem(&owner, &only);
  return tgid && *tgid == task->tgid;
}

static __always_inline void switched_out(struct task_struct* task, unsigned int state) {
  __u32* vcpu = bpf_task_storage_get(&threads, task, 0, 0);
  if (!vcpu || !tandem_task_wants_to_run(state)) {
    return;
  }
  __u64* word = bpf_map_lookup_elem(&activity, vcpu);
  struct pv_vcpu_state_record* record = bpf_map_lookup_elem(&records, vcpu);
  if (!word || !record ||
      __sync_val_compare_and_swap(word, TANDEM_VCPU_ACTIVE, TANDEM_VCPU_ACTIVE | TANDEM_VCPU_WRITING) !=
          TANDEM_VCPU_ACTIVE) {
    return;
  }
  // `preempted` was cleared at the thread's last switch-in: this is a change from 0 to 1.
  WRITE_ONCE(record->preempt_count, record->preempt_count + 1);
  WRITE_ONCE(record->preempted, 1);
  // If its result were not used, this would become an instruction that orders nothing.
  __u64 before = __sync_fetch_and_and(word, ~TANDEM_VCPU_WRITING);
  asm volatile("" : : "r"(before));
}

// Active or not: 0 is right for a thread that runs.
static __always_inline void switched_in(struct task_struct* task) {
  __u32* vcpu = bpf_task_storage_get(&threads, task, 0, 0);
  struct pv_vcpu_state_record* record = vcpu ? bpf_map_lookup_elem(&records, vcpu) : 0;
  if (record && READ_ONCE(record->preempted) != 0) {
    WRITE_ONCE(record->preempted, 0);
  }
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, _Bool preempt, struct task_struct* prev, struct task_struct* next, unsigned int prev_state) {
  if (may_be_vcpu(prev)) {
    switched_out(prev, prev_state);
  }
  if (may_be_vcpu(next)) {
    switched_in(next);
  }
  return 0;
}

// Run by a vCPU's thread for itself. Nobody needs to name a thread: no tid that is reused, none of another namespace.
// Returns 0 or a negative errno: EBUSY if the storage is in use on this CPU, or there is no memory, which looks the same.
SEC("syscall")
int tie_thread(struct tandem_thread_tie* tie) {
  struct task_struct* task = bpf_get_current_task_btf();
  __u32 vcpu = tie->vcpu;
  if (!tie->attach) {
    return bpf_task_storage_delete(&threads, task);
  }
  __u32* value = bpf_task_storage_get(&threads, task, &vcpu, BPF_LOCAL_STORAGE_GET_F_CREATE);
  if (!value) {
    return -EBUSY;
  }
  WRITE_ONCE(*value, vcpu);
  __u32 only = 0;
  int tgid = bpf_get_current_pid_tgid() >> 32;
  return bpf_map_update_elem(&owner, &only, &tgid, 0);
}

char LICENSE[] SEC("license") = "GPL";
