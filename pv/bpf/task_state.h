/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What the state of a task that leaves a CPU says about its wish to run. Compiled into the BPF program and into its tests. */
#ifndef TANDEM_TASK_STATE_H
#define TANDEM_TASK_STATE_H

/* Bits of task_struct's __state, as include/linux/sched.h has them since Linux 5.16; also in the format of the
 * sched_switch trace event. Only those that decide. */
#define TANDEM_TASK_UNINTERRUPTIBLE 0x0002U
#define TANDEM_TASK_NOLOAD 0x0400U
#define TANDEM_TASK_RTLOCK_WAIT 0x1000U

/*
 * 1 if a task that is switched out in `state` goes on as soon as the host lets it, 0 if it waits for somebody to want it.
 *
 * Runnable: it lost its CPU. Uninterruptible, killable or freezable or not: it sleeps on the host's account, on a page
 * fault mostly. RTLOCK_WAIT: the same, on a PREEMPT_RT host's sleeping spin lock. Not so: interruptible (WFI, a futex),
 * stopped, traced, frozen, parked, dead; NOLOAD marks an uninterruptible sleep that is idleness.
 *
 * The tracepoint's `preempt` is no part of this: a task that is preempted on its way into an interruptible sleep has that
 * sleep's state already, and waits.
 */
static inline int tandem_task_wants_to_run(unsigned int state) {
  if (state == 0 || (state & TANDEM_TASK_RTLOCK_WAIT) != 0) {
    return 1;
  }
  return (state & TANDEM_TASK_UNINTERRUPTIBLE) != 0 && (state & TANDEM_TASK_NOLOAD) == 0;
}

#endif /* TANDEM_TASK_STATE_H */
