/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/*
 * The kernel's structures for files and devices. Addresses may be anything, so each word is loaded
 * by a load that may fail. Functions that return an int return 0, or -EFAULT if a word could not be
 * loaded.
 */
#ifndef _DTRACE_PATHS_H
#define _DTRACE_PATHS_H

#include <linux/types.h>

/* A struct path: the addresses of a struct vfsmount and of a struct dentry. */
struct dtrace_place {
	u64 mount;
	u64 dentry;
};

struct dtrace_dentry {
	/* For a root, its own address. */
	u64 parent;
	u64 name;
	u32 len;
	/* No lookup finds the dentry: it is unhashed. */
	bool removed;
};

struct dtrace_mount {
	/* A struct dentry. */
	u64 root;
	/* If the mount is mounted nowhere, `mount` is the mount itself. */
	struct dtrace_place above;
};

struct dtrace_unplaced {
	/* Address of the name of the file system's type. */
	u64 fs;
	u64 inode;
};

struct dtrace_kobject {
	u64 name;
	u64 parent;
};

void dtrace_place_of(struct dtrace_place *out, const void *path);
int dtrace_root(struct dtrace_place *out);
int dtrace_dentry(struct dtrace_dentry *out, u64 addr);
int dtrace_mount(struct dtrace_mount *out, u64 addr);
int dtrace_unplaced(struct dtrace_unplaced *out, u64 addr);
int dtrace_kobject(struct dtrace_kobject *out, u64 addr);
u64 dtrace_file(u32 fd);
bool dtrace_user_args(u64 *begin, u64 *end);

#endif
