// SPDX-License-Identifier: Apache-2.0
// The header comes first and alone: what it needs, it includes. Its assertions hold in C11.
#include "pv/abi/pv_vcpu_state.h"

#if __STDC_VERSION__ != 201112L
#error "this file is to show that C11 is enough"
#endif

unsigned long pv_vcpu_state_record_bytes_in_c(void);
unsigned long pv_vcpu_state_record_bytes_in_c(void) { return sizeof(struct pv_vcpu_state_record); }
