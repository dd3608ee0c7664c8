/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What the BPF program and the VMM share besides the records. */
#ifndef TANDEM_VCPU_ACTIVITY_H
#define TANDEM_VCPU_ACTIVITY_H

#include <linux/types.h>

/*
 * One word for each vCPU, in a map of its own that the guest does not see. The VMM sets and clears ACTIVE. The program
 * turns ACTIVE, and nothing else, into ACTIVE|WRITING in one atomic step before it makes a record non-zero, and takes
 * WRITING away after. So once the VMM has cleared ACTIVE and then seen no WRITING, the record is its own.
 */
#define TANDEM_VCPU_ACTIVE 1ULL
#define TANDEM_VCPU_WRITING 2ULL

/* Argument of the program that ties the calling thread to a vCPU, or unties it. */
struct tandem_thread_tie {
  __u32 vcpu;
  __u32 attach; /* 0: untie */
};

#endif /* TANDEM_VCPU_ACTIVITY_H */
