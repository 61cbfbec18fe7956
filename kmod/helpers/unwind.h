/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* Tables by which programs' stacks are walked (INV-12), found by file. */
#ifndef _DTRACE_UNWIND_H
#define _DTRACE_UNWIND_H

#include <linux/types.h>

/* The table of a file. */
struct dtrace_unwind;

/* What is known of the text in a range of addresses; the range is empty if nothing is mapped. */
struct dtrace_unwind_place {
	u64 start, end;
	/* Offset of the start in the file. */
	u64 offset;
	/* It is not text that the current program executes. */
	bool is_nowhere;
	/* It is text of no file. */
	bool is_made;
	/* The table's bytes; NULL: there is no table. Valid while interrupts are off. */
	const u8 *bytes;
	u32 size;
	/* Number of the table, never used for another one, and never 0. */
	u64 number;
};

int dtrace_unwind_init(void);
void dtrace_unwind_exit(void);
bool dtrace_unwind_any(void);
unsigned long dtrace_unwind_age(void);
void dtrace_unwind_look(u64 address, struct dtrace_unwind_place *place);
u64 dtrace_unwind_below(u64 address, u32 *left, struct dtrace_unwind_place *place);
u64 dtrace_unwind_newest(void);
struct dtrace_unwind *dtrace_unwind_alloc(u32 size, u8 **bytes);
void dtrace_unwind_free(struct dtrace_unwind *table);
int dtrace_unwind_add(struct dtrace_unwind *table, int fd, u64 changed);
void dtrace_unwind_serve(bool serves);
int dtrace_unwind_wanted(void);

#endif
