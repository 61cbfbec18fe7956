/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* Processes that probes are made in: their memory, the files that they run code of, and breakpoints there. */
#ifndef _DTRACE_PROCESSES_H
#define _DTRACE_PROCESSES_H

#include <linux/fs.h>
#include <linux/mm_types.h>
#include <linux/ptrace.h>
#include <linux/types.h>
#include <linux/uprobes.h>

int dtrace_mm_find(int pid, struct mm_struct **out);
void dtrace_mm_drop(struct mm_struct *mm);
int dtrace_text_at(struct mm_struct *mm, u64 addr, struct file **file, u64 *offset);
bool dtrace_mm_is_long(struct mm_struct *mm);
u64 dtrace_segment_base(bool gs);
u64 dtrace_program_end(void);
long dtrace_text_read(struct file *file, u64 offset, void *out, size_t size);

/* A breakpoint in the text of one process, and what is called where it is hit. */
struct dtrace_carrier {
	struct uprobe_consumer consumer;
	struct uprobe *uprobe;
	struct mm_struct *mm;
	/* Called in the process, which may sleep. regs are what the instruction finds; what it leaves there is what the process goes on with. */
	void (*hit)(struct dtrace_carrier *carrier, struct pt_regs *regs);
};

int dtrace_carrier_set(struct dtrace_carrier *carrier, struct file *file, u64 offset);
void dtrace_carrier_clear(struct dtrace_carrier *carrier);
void dtrace_carriers_sync(void);

#endif
