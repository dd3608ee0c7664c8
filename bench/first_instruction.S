// SPDX-License-Identifier: Apache-2.0
// A payload that says when it began: its first instruction after the Image header's branch reads the physical counter,
// which KVM does not offset, so that programs on the host see the same clock. It prints `first-instruction N` on the
// PL011 (in hexadecimal) and powers the machine off. It needs neither a stack nor memory of its own.

#define UART_HIGH 0x900             // PL011 at 0x0900_0000, here and on QEMU's virt board; UARTDR is its first register
#define PSCI_SYSTEM_OFF 0x84000008  // DEN 0022F

    .section .head, "ax"
    mrs x19, cntpct_el0
    movz x20, #UART_HIGH, lsl #16
    adr x21, text
1:  ldrb w0, [x21], #1
    cbz w0, 2f
    str w0, [x20]
    b 1b

2:  mov x22, #16                    // digits
3:  ror x19, x19, #60               // the next one is now the lowest
    and w0, w19, #0xf
    add w1, w0, #'0'
    add w2, w0, #('a' - 10)
    cmp w0, #10
    csel w0, w1, w2, lo
    str w0, [x20]
    subs x22, x22, #1
    b.ne 3b
    mov w0, #'\n'
    str w0, [x20]

    mov w0, #(PSCI_SYSTEM_OFF & 0xffff)
    movk w0, #(PSCI_SYSTEM_OFF >> 16), lsl #16
    hvc #0
4:  wfi
    b 4b

text:
    .asciz "first-instruction "
