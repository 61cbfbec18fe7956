/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* Stacks of programs that are walked again: what each CPU keeps of the walks before. */
#ifndef _DTRACE_FOLLOW_H
#define _DTRACE_FOLLOW_H

#include <linux/types.h>

#include "unwind.h"

/* A rule that a CPU has found; kmod/unwind/src/cache.rs says what it means. */
struct dtrace_unwind_rule {
	u64 words[3];
};

#define DTRACE_UNWIND_RULES 256

/*
 * From an instruction to its caller, where that is plain: the CFA is a number of bytes from the stack pointer or the frame pointer, the return
 * address is the word below it, and the caller's frame pointer is the same or lies a number of bytes from the CFA. Or there is no caller; the
 * CFA of that is 0 bytes from the stack pointer.
 */
struct dtrace_unwind_step {
	u64 at;
	/* The time in which it is right; 0: never. */
	u64 epoch;
	s32 cfa;
	s16 saved;
	bool by_fp;
	bool is_saved;
	bool is_last;
};

/* A frame of a program of 64 bits whose frame pointer is known. */
struct dtrace_unwind_frame {
	u64 ip, sp, fp;
	/* It was interrupted at that instruction; else it has called. */
	bool is_exact;
	/* It certainly has no caller. */
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
