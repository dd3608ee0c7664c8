/* SPDX-License-Identifier: Apache-2.0 */
/* The BPF program's generated loader, which is C, behind functions that C++ can call. */
#ifndef TANDEM_BPF_PROGRAM_H
#define TANDEM_BPF_PROGRAM_H

#include "pv/bpf/vcpu_activity.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Close-on-exec descriptors of the programs and maps of vcpu_state.bpf.c. */
struct tandem_bpf_program {
  int on_switch;
  int tie_thread;
  int threads;
  int records;
  int activity;
  int owner;
};

/* Loads all into the kernel. Descriptor 0 must be taken: the loader reads it as "none". Returns 0 or -errno. */
int tandem_bpf_load(struct tandem_bpf_program* program);

/* Lets `on_switch` run from now on until the descriptor that this returns is closed. Returns that or -errno. */
int tandem_bpf_attach(int on_switch);

/* Runs `tie_thread` for the calling thread. Returns what it returned or -errno. */
int tandem_bpf_tie_thread(int tie_thread, struct tandem_thread_tie tie);

#ifdef __cplusplus
}
#endif

#endif /* TANDEM_BPF_PROGRAM_H */
