// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * The bodies of paths.h. They run in probe context. Interrupts are off, which is an RCU read-side
 * critical section, so what the kernel's own pointers lead to is not freed meanwhile. A pointer
 * that comes from a D program may lead anywhere.
 */

#include <linux/container_of.h>
#include <linux/dcache.h>
#include <linux/fdtable.h>
#include <linux/fs.h>
#include <linux/fs_struct.h>
#include <linux/kobject.h>
#include <linux/mount.h>
#include <linux/nospec.h>
#include <linux/path.h>
#include <linux/sched.h>

#include "loads.h"
#include "paths.h"

#define ADDR(ptr) ((u64)(uintptr_t)(ptr))

/*
 * The first members of the kernel's struct mount, which only fs/mount.h declares. They have come
 * first since the kernel has walked paths under RCU, because such a walk wants them in one cache
 * line.
 */
struct mount_head {
	struct hlist_node hash;
	struct mount_head *parent;
	struct dentry *mountpoint;
	struct vfsmount mnt;
};

void dtrace_place_of(struct dtrace_place *out, const void *path)
{
	const struct path *p = path;

	out->mount = ADDR(p->mnt);
	out->dentry = ADDR(p->dentry);
}

/* The root directory of the current process. */
int dtrace_root(struct dtrace_place *out)
{
	struct fs_struct *fs = READ_ONCE(current->fs);
	struct path root;

	if (!fs || LOAD(root, &fs->root))
		return -EFAULT;
	dtrace_place_of(out, &root);
	return 0;
}

int dtrace_dentry(struct dtrace_dentry *out, u64 addr)
{
	const struct dentry *dentry = (const struct dentry *)addr;
	struct hlist_bl_node **pprev;
	struct dentry *parent;
	struct qstr name;

	if (LOAD(parent, &dentry->d_parent) || LOAD(name, &dentry->d_name) || LOAD(pprev, &dentry->d_hash.pprev))
		return -EFAULT;
	out->parent = ADDR(parent);
	out->name = ADDR(name.name);
	out->len = name.len;
	out->removed = !pprev;
	return 0;
}

int dtrace_mount(struct dtrace_mount *out, u64 addr)
{
	const struct mount_head *mount = container_of((const struct vfsmount *)addr, struct mount_head, mnt);
	struct mount_head *parent;
	struct dentry *mountpoint, *root;

	if (LOAD(parent, &mount->parent) || LOAD(mountpoint, &mount->mountpoint) || LOAD(root, &mount->mnt.mnt_root))
		return -EFAULT;
	out->root = ADDR(root);
	out->above.mount = ADDR(&parent->mnt);
	out->above.dentry = ADDR(mountpoint);
	return 0;
}

int dtrace_unplaced(struct dtrace_unplaced *out, u64 addr)
{
	const struct dentry *dentry = (const struct dentry *)addr;
	struct file_system_type *type;
	struct super_block *sb;
	struct inode *inode;
	const char *name;
	typeof(inode->i_ino) ino;

	if (LOAD(sb, &dentry->d_sb) || LOAD(type, &sb->s_type) || LOAD(name, &type->name))
		return -EFAULT;
	if (LOAD(inode, &dentry->d_inode) || LOAD(ino, &inode->i_ino))
		return -EFAULT;
	out->fs = ADDR(name);
	out->inode = ino;
	return 0;
}

int dtrace_kobject(struct dtrace_kobject *out, u64 addr)
{
	const struct kobject *kobj = (const struct kobject *)addr;
	struct kobject *parent;
	const char *name;

	if (LOAD(name, &kobj->name) || LOAD(parent, &kobj->parent))
		return -EFAULT;
	out->name = ADDR(name);
	out->parent = ADDR(parent);
	return 0;
}

/* Address of the current process's open file with this descriptor; 0: there is none. */
u64 dtrace_file(u32 fd)
{
	struct files_struct *files = READ_ONCE(current->files);
	struct fdtable *fdt;
	struct file **fds, *file;
	unsigned int max;

	if (!files || LOAD(fdt, &files->fdt) || LOAD(max, &fdt->max_fds) || fd >= max)
		return 0;
	/* The table only grows, and an old one is freed after a grace period. */
	if (LOAD(fds, &fdt->fd) || LOAD(file, fds + array_index_nospec(fd, max)))
		return 0;
	return ADDR(file);
}

/* Where the current process's memory holds its arguments; false for a kernel thread. */
bool dtrace_user_args(u64 *begin, u64 *end)
{
	struct mm_struct *mm = current->mm;

	if (!mm || (current->flags & (PF_KTHREAD | PF_USER_WORKER)))
		return false;
	*begin = READ_ONCE(mm->arg_start);
	*end = READ_ONCE(mm->arg_end);
	return true;
}
