/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* Files that processes map for execution. */
#ifndef _DTRACE_MAPPINGS_H
#define _DTRACE_MAPPINGS_H

#include <linux/mm_types.h>
#include <linux/path.h>
#include <linux/types.h>

/*
 * Identity of a file and of its content. Another file that gets the same inode number differs in
 * the generation; a file that was written to differs in the time of change (ns).
 */
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
