/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* The mappings of processes that have ended (INV-16). */
#ifndef _DTRACE_REMAINS_H
#define _DTRACE_REMAINS_H

#include <linux/path.h>
#include <linux/types.h>

/* Kinds of mappings. */
enum {
	/* Anonymous memory, or a file that no consumer is given. */
	DTRACE_PART_NONE,
	DTRACE_PART_FILE,
	/* The vdso: the kernel's own code for processes. */
	DTRACE_PART_VDSO,
};

/* What was mapped at a range of addresses. */
struct dtrace_part {
	u64 start, end;
	/* Offset in the file of the start of the range. */
	u64 offset;
	/* If it is a file's; the owner of the part holds a reference. */
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
