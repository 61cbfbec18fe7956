/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* What processes that have ended had mapped. */
#ifndef _DTRACE_REMAINS_H
#define _DTRACE_REMAINS_H

#include <linux/types.h>

struct file;

/* What was mapped at a range of addresses. */
struct dtrace_part {
	u64 start, end;
	/* Where in the file the range begins. */
	u64 offset;
	/* None: the kernel's own code for processes. The one who has the part keeps it. */
	struct file *file;
	bool is_code;
};

int dtrace_remains_keep(bool keep);
void dtrace_remains_mark(void);
void dtrace_remains_note(void);
int dtrace_remains_next(u32 pid, u64 *after, struct dtrace_part *part);
int dtrace_part_open(const struct dtrace_part *part);

#endif
