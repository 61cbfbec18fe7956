/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* Stacks of programs that are walked again: what each CPU keeps of earlier walks (INV-13). */
#ifndef _DTRACE_FOLLOW_H
#define _DTRACE_FOLLOW_H

#include <linux/types.h>

#include "unwind.h"

/* A rule that a CPU has found; kmod/unwind/src/cache.rs defines its words. */
struct dtrace_unwind_rule {
	u64 words[3];
};

#define DTRACE_UNWIND_RULES 256

/*
 * A step from an instruction to its caller, where the rule is of the commonest kind: the CFA is a
 * number of bytes from the stack pointer or the frame pointer, the return address is the word below
 * the CFA, and the caller's frame pointer is the same or is saved a number of bytes from the CFA.
 * Or the frame has no caller; the CFA of such a step is 0 bytes from the stack pointer.
 */
struct dtrace_unwind_step {
	u64 at;
	/* Number of the epoch in which the step is valid; 0: never. */
	u64 epoch;
	s32 cfa;
	s16 saved;
	bool by_fp;
	bool is_saved;
	bool is_last;
};

/* A frame of a 64-bit program whose frame pointer is known. */
struct dtrace_unwind_frame {
	u64 ip, sp, fp;
	/* The frame was interrupted at `ip`; otherwise `ip` is a return address. */
	bool is_exact;
	/* The frame certainly has no caller. */
	bool is_last;
};

int dtrace_follow_init(void);
void dtrace_follow_exit(void);
struct dtrace_unwind_rule *dtrace_unwind_rules_here(void);
void dtrace_unwind_at(u64 address, struct dtrace_unwind_place *place);
bool dtrace_unwind_word(u64 address, u32 size, u64 *word);
u64 dtrace_unwind_epoch(void);
u64 dtrace_unwind_teller(void);
void dtrace_unwind_keep_teller(u64 teller);
void dtrace_unwind_keep(const struct dtrace_unwind_step *step);
u32 dtrace_unwind_follow(struct dtrace_unwind_frame *frame, u8 *pcs, u32 room);
u64 dtrace_unwind_again(u64 ip, u64 sp, u64 fp, u32 room);
void dtrace_unwind_record_anew(void);
u64 dtrace_unwind_recorded(void);

#endif
