/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Per intercepted function: MPI_X and PMPI_X (a jump through the function's slot) and a lazy entry for each, which is
 * what the slot holds until the first call. Arguments pass through untouched; MPI functions have no floating-point
 * arguments, so the lazy path saves the integer argument registers only.
 */
#include "mpi/doorway/doorway.h"

        .set    slot_number, 0

#if defined(__x86_64__)

.macro OFFPATH_ENTRY symbol
        .text
        .globl  \symbol
        .type   \symbol, @function
        .p2align 4
\symbol:
        endbr64
        jmp     *(offpath_doorway_slots + slot_number * OFFPATH_SLOT_BYTES)(%rip)
        .size   \symbol, . - \symbol
        .p2align 4
lazy_\symbol:
        endbr64
        movl    $slot_number, %r11d
        jmp     resolve_and_jump
        .section .data.offpath_slots, "aw", @progbits
        .quad   lazy_\symbol
        .set    slot_number, slot_number + 1
.endm

        .text
        .type   resolve_and_jump, @function
resolve_and_jump:
        .cfi_startproc
        pushq   %rdi
        pushq   %rsi
        pushq   %rdx
        pushq   %rcx
        pushq   %r8
        pushq   %r9
        pushq   %rax
        .cfi_adjust_cfa_offset 56
        movq    %r11, %rdi
        call    offpath_doorway_resolve
        movq    %rax, %r11
        popq    %rax
        popq    %r9
        popq    %r8
        popq    %rcx
        popq    %rdx
        popq    %rsi
        popq    %rdi
        .cfi_adjust_cfa_offset -56
        jmp     *%r11
        .cfi_endproc
        .size   resolve_and_jump, . - resolve_and_jump

#elif defined(__aarch64__)

.macro OFFPATH_ENTRY symbol
        .text
        .globl  \symbol
        .type   \symbol, %function
        .p2align 4
\symbol:
        hint    #34 /* bti c */
        adrp    x16, offpath_doorway_slots + slot_number * OFFPATH_SLOT_BYTES
        ldr     x16, [x16, #:lo12:(offpath_doorway_slots + slot_number * OFFPATH_SLOT_BYTES)]
        br      x16
        .size   \symbol, . - \symbol
        .p2align 4
lazy_\symbol:
        hint    #34
        mov     x17, #slot_number
        b       resolve_and_jump
        .section .data.offpath_slots, "aw", %progbits
        .quad   lazy_\symbol
        .set    slot_number, slot_number + 1
.endm

        .text
        .type   resolve_and_jump, %function
resolve_and_jump:
        .cfi_startproc
        stp     x29, x30, [sp, #-96]!
        .cfi_adjust_cfa_offset 96
        .cfi_rel_offset x29, 0
        .cfi_rel_offset x30, 8
        mov     x29, sp
        stp     x0, x1, [sp, #16]
        stp     x2, x3, [sp, #32]
        stp     x4, x5, [sp, #48]
        stp     x6, x7, [sp, #64]
        str     x8, [sp, #80]
        mov     x0, x17
        bl      offpath_doorway_resolve
        mov     x16, x0
        ldp     x0, x1, [sp, #16]
        ldp     x2, x3, [sp, #32]
        ldp     x4, x5, [sp, #48]
        ldp     x6, x7, [sp, #64]
        ldr     x8, [sp, #80]
        ldp     x29, x30, [sp], #96
        .cfi_adjust_cfa_offset -96
        br      x16
        .cfi_endproc
        .size   resolve_and_jump, . - resolve_and_jump

#else
#error "no trampolines for this processor: add a block to trampolines.S"
#endif

        .section .data.offpath_slots, "aw"
        .p2align 3
        .globl  offpath_doorway_slots
        .hidden offpath_doorway_slots
offpath_doorway_slots:

#define OFFPATH_MPI_FUNCTION(name, waits, seen) OFFPATH_ENTRY MPI_##name ; OFFPATH_ENTRY PMPI_##name ;
#define OFFPATH_MPI_PERSISTENT(name, waits, seen) \
  OFFPATH_MPI_FUNCTION(name, waits, seen) OFFPATH_ENTRY MPIX_##name ; OFFPATH_ENTRY PMPIX_##name ;
#define OFFPATH_MPI_EXTENSION(name, waits, seen) OFFPATH_MPI_PERSISTENT(name, waits, seen)
#include <offpath/words/mpi_functions.def>

        .section .note.GNU-stack, "", %progbits
