/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* Files that processes map to execute them. */
#ifndef _DTRACE_MAPPINGS_H
#define _DTRACE_MAPPINGS_H

#include <linux/mm_types.h>
#include <linux/path.h>
#include <linux/types.h>

/* What a file is known by, and what it held when it was: another file of the same number, and one that was written to, differ. */
struct dtrace_file_id {
	u64 inode;
	u64 changed;
	u32 device;
	u32 generation;
};

void dtrace_inode_identify(const struct inode *inode, struct dtrace_file_id *id);
void dtrace_file_identify(const struct file *file, struct dtrace_file_id *id);
bool dtrace_mapped_text(const struct vm_area_struct *vma, struct dtrace_file_id *id);
struct file *dtrace_file_reopen(const struct path *mapped);

#endif
