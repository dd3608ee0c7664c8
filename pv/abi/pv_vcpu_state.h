/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR Apache-2.0 */
/*
 * PV vCPU state: what a VMM and its guest agree on. Specification: docs/pv-vcpu-state.md.
 *
 * Self-contained C11, the same file for VMM, guest agent, test payloads and kernel.
 */
#ifndef PV_VCPU_STATE_H
#define PV_VCPU_STATE_H

#include <linux/types.h>

/*
 * SMC64 fast calls in the vendor-specific hypervisor service range, by HVC; the same by SMC is
 * NOT_SUPPORTED. The result is in x0, all other registers are preserved.
 *
 * FEATURES  w1: a function. SUCCESS if it is one of these three, else NOT_SUPPORTED.
 * INIT      Activates the calling vCPU's record, from 0 on; nothing if it is active. The address of
 *           the record.
 * RELEASE   Deactivates the calling vCPU's record, which becomes 0; nothing if it is not active.
 *           SUCCESS.
 */
#define PV_VCPU_STATE_FEATURES	0xC6000060U
#define PV_VCPU_STATE_INIT	0xC6000061U
#define PV_VCPU_STATE_RELEASE	0xC6000062U
#define PV_VCPU_STATE_CALLS	3

/* Return codes besides an address, as signed 64-bit values in x0. */
#define PV_VCPU_STATE_SUCCESS		0
#define PV_VCPU_STATE_NOT_SUPPORTED	(-1)

/*
 * Device tree: a node under the root whose reg is the region, with the distance between the records
 * of neighbouring vCPUs and the number of the first call. A vCPU's record is at the address that
 * its INIT returns.
 */
#define PV_VCPU_STATE_DT_NODE		"pv-vcpu-state"
#define PV_VCPU_STATE_DT_COMPATIBLE	"tandem,pv-vcpu-state-1.0"
#define PV_VCPU_STATE_DT_STRIDE		"tandem,record-stride"
#define PV_VCPU_STATE_DT_FUNCTION_BASE	"tandem,function-base"

/* One vCPU's record. Little-endian; each field is read with one access of its own size, aligned. */
struct pv_vcpu_state_record {
	__le32 revision;	/* 0 */
	__le32 attributes;	/* 0 */
	__le32 preempted;	/* 1: the vCPU wants to run, and is not on a CPU */
	__le32 reserved;	/* 0 */
	__le64 preempt_count;	/* changes of preempted from 0 to 1 */
	__u8 padding[40];	/* 0 */
};

#define PV_VCPU_STATE_RECORD_BYTES	64

/*
 * The layout, in a way that every C and C++ takes: there is no such array, but a compiler refuses
 * its length where a field is elsewhere.
 */
#define PV_VCPU_STATE_AT(field, offset) \
	(__builtin_offsetof(struct pv_vcpu_state_record, field) == (offset))
#define PV_VCPU_STATE_LAYOUT \
	(PV_VCPU_STATE_AT(revision, 0) && \
	 PV_VCPU_STATE_AT(attributes, 4) && \
	 PV_VCPU_STATE_AT(preempted, 8) && \
	 PV_VCPU_STATE_AT(reserved, 12) && \
	 PV_VCPU_STATE_AT(preempt_count, 16) && \
	 PV_VCPU_STATE_AT(padding, 24) && \
	 sizeof(struct pv_vcpu_state_record) == PV_VCPU_STATE_RECORD_BYTES)

extern char pv_vcpu_state_layout[PV_VCPU_STATE_LAYOUT ? 1 : -1];

#endif /* PV_VCPU_STATE_H */
