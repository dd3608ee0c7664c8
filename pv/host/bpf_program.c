// SPDX-License-Identifier: Apache-2.0
#include "pv/host/bpf_program.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <vcpu_state.lskel.h>

int tandem_bpf_load(struct tandem_bpf_program* program) {
  struct vcpu_state_bpf skeleton = {.ctx = {.sz = offsetof(struct vcpu_state_bpf, links)}};
  int status = vcpu_state_bpf__load(&skeleton);
  if (status < 0) {
    return status;
  }
  *program = (struct tandem_bpf_program){.on_switch = skeleton.progs.on_switch.prog_fd,
                                         .tie_thread = skeleton.progs.tie_thread.prog_fd,
                                         .threads = skeleton.maps.threads.map_fd,
                                         .records = skeleton.maps.records.map_fd,
                                         .activity = skeleton.maps.activity.map_fd,
                                         .owner = skeleton.maps.owner.map_fd};
  _Static_assert(sizeof(skeleton.maps) == 4 * sizeof(struct bpf_map_desc), "every map's descriptor is handed on");
  _Static_assert(sizeof(skeleton.progs) == 2 * sizeof(struct bpf_prog_desc), "every program's descriptor is handed on");
  return 0;
}

int tandem_bpf_attach(int on_switch) {
  int link = skel_raw_tracepoint_open(NULL, on_switch);
  return link < 0 ? -errno : link;
}

int tandem_bpf_tie_thread(int tie_thread, struct tandem_thread_tie tie) {
  union bpf_attr attributes;
  memset(&attributes, 0, sizeof(attributes));
  attributes.test.prog_fd = (__u32)tie_thread;
  attributes.test.ctx_in = (uintptr_t)&tie;
  attributes.test.ctx_size_in = sizeof(tie);
  return skel_sys_bpf(BPF_PROG_RUN, &attributes, sizeof(attributes)) < 0 ? -errno : (int)attributes.test.retval;
}
