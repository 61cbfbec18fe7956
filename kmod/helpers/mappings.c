// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/* The bodies of mappings.h. */

#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/sched.h>

#include "mappings.h"
#include "processes.h"

void dtrace_inode_identify(const struct inode *inode, struct dtrace_file_id *id)
{
	id->inode = inode->i_ino;
	id->changed = timespec64_to_ns(&(struct timespec64) {
		.tv_sec = inode_get_ctime_sec(inode),
		.tv_nsec = inode_get_ctime_nsec(inode),
	});
	id->device = inode->i_sb->s_dev;
	id->generation = inode->i_generation;
}

void dtrace_file_identify(const struct file *file, struct dtrace_file_id *id)
{
	dtrace_inode_identify(file_inode(file), id);
}

/*
 * Whether `vma` is a mapping of the current process whose text is a regular file's, private,
 * executable and not writable; stores the file's identity. The caller holds the mmap lock.
 */
bool dtrace_mapped_text(const struct vm_area_struct *vma, struct dtrace_file_id *id)
{
	const vm_flags_t wanted = VM_EXEC, unwanted = VM_HUGETLB | VM_MAYSHARE | VM_WRITE;

	if (vma->vm_mm != current->mm || current->flags & PF_KTHREAD || !vma->vm_file ||
	    (vma->vm_flags & (wanted | unwanted)) != wanted ||
	    !S_ISREG(file_inode(vma->vm_file)->i_mode))
		return false;
	dtrace_file_identify(vma->vm_file, id);
	return true;
}

/*
 * Opens a file that is mapped, with the rights of the current process. Waits for no program: files
 * that a program serves are refused. A file without a name in a file system (SB_NOUSER) could be
 * written to by any owner of a descriptor, so it is opened only for those with CAP_SYS_PTRACE, who
 * could write to it anyway.
 */
struct file *dtrace_file_reopen(const struct path *mapped)
{
	const struct super_block *sb = mapped->dentry->d_sb;
	struct file *file;
	int error;

	if (dtrace_fs_is_served(sb) || (sb->s_flags & SB_NOUSER && !capable(CAP_SYS_PTRACE)))
		return ERR_PTR(-EACCES);
	file = dentry_open(mapped, O_RDONLY | O_LARGEFILE | O_NONBLOCK, current_cred());
	if (IS_ERR(file))
		return file;
	error = file_permission(file, MAY_READ);
	if (!error)
		return file;
	fput(file);
	return ERR_PTR(error);
}
