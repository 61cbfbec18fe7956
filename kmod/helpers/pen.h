/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* Writing to a program's text; pen.c holds the bodies. */
#ifndef _DTRACE_PEN_H
#define _DTRACE_PEN_H

#include <linux/mm_types.h>
#include <linux/types.h>

struct dtrace_carrier;

/* The page that bytes are read from and written to. The mmap lock of its memory is held. */
struct dtrace_pen {
	struct mm_struct *mm;
	/* Missing pages are brought. Then the framework's mutex must not be held. */
	bool brings;
	u64 at;
	struct page *page;
	bool writes, written;
	/* Address of the last page that was not in memory, plus 1. */
	u64 missing;
	/* The debugger that traces the program, if that was found out already. */
	bool asked;
	pid_t debugger;
};

int dtrace_pen_move(struct dtrace_pen *pen, u64 address, bool writes);
void dtrace_pen_lift(struct dtrace_pen *pen);
bool dtrace_pen_sees(struct dtrace_pen *pen, u64 address, const u8 *bytes, size_t size);
void dtrace_pen_write(struct dtrace_pen *pen, u64 address, u8 byte);
int dtrace_pen_replace(struct dtrace_pen *pen, u64 address, u8 old, u8 new);
void dtrace_pen_affirm(u64 address);
pid_t dtrace_pen_debugger(struct dtrace_pen *pen);
bool dtrace_pen_sees_rest(struct dtrace_pen *pen, const struct dtrace_carrier *carrier);
int dtrace_pen_put(struct dtrace_pen *pen, const struct dtrace_carrier *carrier, u8 old, u8 new);

#endif
