// SPDX-License-Identifier: Apache-2.0
// First instructions of a payload, of a secondary CPU, and the exception vectors. EL1, MMU off at entry.

// Offsets in struct Cpu (payload.h).
#define CPU_STACK_TOP 0
#define FRAME_SIZE 272

    .section .head, "ax"
    mov x19, x0                     // DTB
    mrs x21, sctlr_el1
    mrs x22, daif
    orr x23, x1, x2
    orr x23, x23, x3                // must be 0 at entry
    adrp x20, _start

    adrp x1, _rela_start            // all relocations are R_AARCH64_RELATIVE: the linker script leaves no others
    add x1, x1, :lo12:_rela_start
    adrp x2, _rela_end
    add x2, x2, :lo12:_rela_end
1:  cmp x1, x2
    b.hs 2f
    ldp x3, x4, [x1], #16
    ldr x5, [x1], #8
    add x5, x5, x20
    str x5, [x20, x3]
    b 1b

2:  adrp x1, _bss_start
    add x1, x1, :lo12:_bss_start
    adrp x2, _bss_end
    add x2, x2, :lo12:_bss_end
3:  cmp x1, x2
    b.hs 4f
    stp xzr, xzr, [x1], #16
    b 3b

4:  adrp x0, boot_cpu
    ldr x0, [x0, :lo12:boot_cpu]
    bl set_up_cpu
    mov x0, x19
    mov x1, x21
    mov x2, x22
    mov x3, x23
    bl payload_start
5:  wfi
    b 5b

// Where PSCI CPU_ON enters: x0 is the struct Cpu.
    .text
    .global secondary_entry
secondary_entry:
    mov x19, x0
    bl set_up_cpu
    bl mmu_enable
    mov x0, x19
    bl secondary_start
1:  wfi
    b 1b

// set_up_cpu(x0: struct Cpu): stack, vectors, FP; clobbers x1.
set_up_cpu:
    msr tpidr_el1, x0
    ldr x1, [x0, #CPU_STACK_TOP]
    mov sp, x1
    adrp x1, vectors
    add x1, x1, :lo12:vectors
    msr vbar_el1, x1
    mov x1, #(3 << 20)              // CPACR_EL1.FPEN: FP and SIMD do not trap
    msr cpacr_el1, x1
    isb
    ret

    .macro vector kind
    .balign 128
    sub sp, sp, #FRAME_SIZE
    stp x0, x1, [sp]
    mov x1, #\kind
    b save_and_handle
    .endm

    .balign 2048
vectors:
    .irp kind, 16, 16, 16, 16       // current EL with SP0: never used
    vector \kind
    .endr
    .irp kind, 0, 1, 2, 3           // current EL with SPx: synchronous, IRQ, FIQ, SError
    vector \kind
    .endr
    .irp kind, 16, 16, 16, 16, 16, 16, 16, 16   // lower EL: never used
    vector \kind
    .endr

// The frame is struct Frame: x0..x30, ELR, SPSR.
save_and_handle:
    stp x2, x3, [sp, #16]
    stp x4, x5, [sp, #32]
    stp x6, x7, [sp, #48]
    stp x8, x9, [sp, #64]
    stp x10, x11, [sp, #80]
    stp x12, x13, [sp, #96]
    stp x14, x15, [sp, #112]
    stp x16, x17, [sp, #128]
    stp x18, x19, [sp, #144]
    stp x20, x21, [sp, #160]
    stp x22, x23, [sp, #176]
    stp x24, x25, [sp, #192]
    stp x26, x27, [sp, #208]
    stp x28, x29, [sp, #224]
    mrs x2, elr_el1
    stp x30, x2, [sp, #240]
    mrs x2, spsr_el1
    str x2, [sp, #256]
    mov x0, sp
    bl handle_exception
    ldr x2, [sp, #256]
    msr spsr_el1, x2
    ldp x30, x2, [sp, #240]
    msr elr_el1, x2
    ldp x2, x3, [sp, #16]
    ldp x4, x5, [sp, #32]
    ldp x6, x7, [sp, #48]
    ldp x8, x9, [sp, #64]
    ldp x10, x11, [sp, #80]
    ldp x12, x13, [sp, #96]
    ldp x14, x15, [sp, #112]
    ldp x16, x17, [sp, #128]
    ldp x18, x19, [sp, #144]
    ldp x20, x21, [sp, #160]
    ldp x22, x23, [sp, #176]
    ldp x24, x25, [sp, #192]
    ldp x26, x27, [sp, #208]
    ldp x28, x29, [sp, #224]
    ldp x0, x1, [sp], #FRAME_SIZE
    eret
