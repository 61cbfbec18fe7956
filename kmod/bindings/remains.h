/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* What processes that have ended had mapped. */
#ifndef _DTRACE_REMAINS_H
#define _DTRACE_REMAINS_H

#include <linux/path.h>
#include <linux/types.h>

/* Of what a part is. */
enum {
	/* Memory, or a file that nobody is given. */
	DTRACE_PART_NONE,
	DTRACE_PART_FILE,
	/* The kernel's own code for processes. */
	DTRACE_PART_VDSO,
};

/* What was mapped at a range of addresses. */
struct dtrace_part {
	u64 start, end;
	/* Where in the file the range begins. */
	u64 offset;
	/* Of a file. Who has the part keeps it. */
	struct path path;
	u8 kind;
	bool is_code;
};

void dtrace_remains_keep(bool keep);
void dtrace_remains_mark(void);
void dtrace_remains_note(void);
int dtrace_remains_next(u32 pid, u64 *after, struct dtrace_part *part);
int dtrace_part_open(struct dtrace_part *part);

#endif
