// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Tables of files, and files that have none yet (INV-12).
 *
 * A probe finds the table of an instruction by the file that is mapped there, whatever path the
 * file has or had, in whichever mount namespace. A file is known by its numbers and its last
 * change; no reference is held. If a file has no table, and a consumer makes tables, the probe
 * notes the thread and the address. The consumer gets a descriptor of the file and returns the
 * table.
 *
 * Tables are read with interrupts off, which RCU waits for, in NMIs too.
 */

#include <linux/dcache.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/maple_tree.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/pid.h>
#include <linux/rcupdate.h>
#include <linux/rhashtable.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>
#include <linux/slab.h>

#include "follow.h"
#include "mappings.h"
#include "processes.h"
#include "unwind.h"

struct dtrace_unwind {
	struct dtrace_file_id id;
	struct rhash_head node;
	struct list_head all;
	struct rcu_head rcu;
	/* When it was last used, in seconds (jiffies / HZ). */
	unsigned long used;
	u64 number;
	/* 0: the file has no unwind data. */
	u32 size;
	u8 bytes[];
};

/* Most tables, because each takes memory and time in addition to its bytes. */
#define DTRACE_UNWIND_MAX 4096

/* Most bytes of all tables. */
static unsigned long unwind_tables = 64UL << 20;
module_param(unwind_tables, ulong, 0644);
MODULE_PARM_DESC(unwind_tables, "Bytes that tables for user stacks may take (67108864)");

static const struct rhashtable_params dtrace_unwind_params = {
	.key_len = sizeof(struct dtrace_file_id),
	.key_offset = offsetof(struct dtrace_unwind, id),
	.head_offset = offsetof(struct dtrace_unwind, node),
	.automatic_shrinking = true,
};

static struct rhashtable dtrace_unwinds;
static DEFINE_MUTEX(dtrace_unwind_lock);
/* Serializes the tasks that empty entries of `dtrace_wanted`. */
static DEFINE_MUTEX(dtrace_wanted_lock);
static LIST_HEAD(dtrace_unwind_all);
static unsigned long dtrace_unwind_bytes, dtrace_unwind_count;
/* The last number that was given to a table. */
static u64 dtrace_unwind_last;
static unsigned long dtrace_unwind_generation;
/* Number of consumers that make tables. */
static atomic_t dtrace_unwind_servers = ATOMIC_INIT(0);

/* States of an entry for a wanted file: a probe takes and fills it, and a consumer empties it. */
enum {
	DTRACE_FREE,
	DTRACE_FILLING,
	DTRACE_FULL,
};

static struct dtrace_wanted {
	int state;
	struct pid *thread;
	u64 address;
	struct dtrace_file_id id;
} dtrace_wanted[32];

int dtrace_unwind_init(void)
{
	int error = dtrace_follow_init();

	if (error)
		return error;
	error = rhashtable_init(&dtrace_unwinds, &dtrace_unwind_params);
	if (error)
		dtrace_follow_exit();
	return error;
}

/* A number that changes when a table can no longer be found, before the table is freed. */
unsigned long dtrace_unwind_age(void)
{
	return smp_load_acquire(&dtrace_unwind_generation);
}

/*
 * Allocates a table that nobody can find yet; *bytes points to its zeroed bytes. NULL: there is no
 * memory.
 */
struct dtrace_unwind *dtrace_unwind_alloc(u32 size, u8 **bytes)
{
	struct dtrace_unwind *table = kvzalloc(struct_size(table, bytes, size), GFP_KERNEL_ACCOUNT);

	if (!table)
		return NULL;
	table->size = size;
	*bytes = table->bytes;
	return table;
}

void dtrace_unwind_free(struct dtrace_unwind *table)
{
	kvfree(table);
}

/*
 * Removes a table; readers may use it until a grace period has passed. dtrace_unwind_lock is held.
 */
static void dtrace_unwind_remove(struct dtrace_unwind *table)
{
	rhashtable_remove_fast(&dtrace_unwinds, &table->node, dtrace_unwind_params);
	list_del(&table->all);
	dtrace_unwind_bytes -= struct_size(table, bytes, table->size);
	dtrace_unwind_count--;
	smp_store_release(&dtrace_unwind_generation, dtrace_unwind_generation + 1);
	kvfree_rcu(table, rcu);
}

/* Whether there is anything to look up. */
bool dtrace_unwind_any(void)
{
	return READ_ONCE(dtrace_unwind_count) || atomic_read(&dtrace_unwind_servers);
}

/* Notes that a file is wanted, if there is room for that. In any context. */
static void dtrace_wanted_add(const struct dtrace_file_id *id, u64 address)
{
	struct dtrace_wanted *place = NULL;
	size_t n;

	for (n = 0; n < ARRAY_SIZE(dtrace_wanted); n++) {
		struct dtrace_wanted *wanted = &dtrace_wanted[n];
		int state = smp_load_acquire(&wanted->state);

		if (state == DTRACE_FULL && !memcmp(&wanted->id, id, sizeof(*id)))
			return;
		if (state == DTRACE_FREE && !place)
			place = wanted;
	}
	if (!place || cmpxchg(&place->state, DTRACE_FREE, DTRACE_FILLING) != DTRACE_FREE)
		return;
	/* The thread, because the first thread of the process may have ended. */
	place->thread = get_pid(task_pid(current));
	place->address = address;
	place->id = *id;
	smp_store_release(&place->state, DTRACE_FULL);
}

/*
 * Finds the inode whose text the current program has at an address, and describes the mapping in
 * *place; NULL: there is none. Mapping, file and inode may be freed meanwhile, but their memory is
 * not used for objects of another type before interrupts are on again. So each field is read once,
 * and the mapping is looked up again.
 */
static const struct inode *dtrace_unwind_text(u64 address, struct dtrace_unwind_place *place)
{
	const vm_flags_t wanted = VM_EXEC, unwanted = VM_HUGETLB | VM_MAYSHARE | VM_WRITE;
	struct mm_struct *mm = current->mm;
	struct vm_area_struct *vma = mm ? vma_lookup(mm, address) : NULL;
	const struct vm_operations_struct *ops;
	const struct inode *inode;
	const struct file *file;
	vm_flags_t flags;
	u64 start, end, offset;

	*place = (struct dtrace_unwind_place){ .is_nowhere = true };
	if (!vma)
		return NULL;
	flags = READ_ONCE(vma->vm_flags);
	start = READ_ONCE(vma->vm_start);
	file = READ_ONCE(vma->vm_file);
	ops = READ_ONCE(vma->vm_ops);
	end = READ_ONCE(vma->vm_end);
	offset = (u64)READ_ONCE(vma->vm_pgoff) << PAGE_SHIFT;
	/* Pairs with nothing: it keeps the loads above from being made after those below. */
	smp_rmb();
	if (vma_lookup(mm, address) != vma || READ_ONCE(vma->vm_mm) != mm || address < start || address >= end)
		return NULL;
	place->start = start;
	place->end = end;
	place->offset = offset;
	place->is_nowhere = !(flags & VM_EXEC);
	/* The vdso has no file either, but it has vm_ops. */
	place->is_made = !place->is_nowhere && !file && !ops;
	if ((flags & (wanted | unwanted)) != wanted || !file)
		return NULL;
	inode = READ_ONCE(file->f_inode);
	return inode && S_ISREG(inode->i_mode) ? inode : NULL;
}

/* Describes text of the current program. Interrupts are off. */
void dtrace_unwind_look(u64 address, struct dtrace_unwind_place *place)
{
	const struct inode *inode = dtrace_unwind_text(address, place);
	struct dtrace_unwind *table;
	struct dtrace_file_id id;

	if (!inode)
		return;
	dtrace_inode_identify(inode, &id);
	guard(rcu)();
	table = rhashtable_lookup(&dtrace_unwinds, &id, dtrace_unwind_params);
	if (!table) {
		if (atomic_read(&dtrace_unwind_servers))
			dtrace_wanted_add(&id, address);
		return;
	}
	if (READ_ONCE(table->used) != jiffies / HZ)
		WRITE_ONCE(table->used, jiffies / HZ);
	if (!table->size)
		return;
	place->bytes = table->bytes;
	place->size = table->size;
	place->number = table->number;
}

/*
 * Describes the nearest mapping of a file's text below an address of the current program. Returns
 * its start; 0: there is none among the next *left mappings. Takes the number of mappings that were
 * looked at from *left. Interrupts are off.
 */
u64 dtrace_unwind_below(u64 address, u32 *left, struct dtrace_unwind_place *place)
{
	struct mm_struct *mm = current->mm;
	struct vm_area_struct *vma;
	u64 start = 0;

	if (!mm || !address)
		return 0;
	scoped_guard(rcu) {
		MA_STATE(mas, &mm->mm_mt, address - 1, address - 1);

		while (!start && *left) {
			vma = mas_find_rev(&mas, 0);
			if (!vma)
				break;
			--*left;
			start = READ_ONCE(vma->vm_start);
			/* The vma may have been freed and be another program's by now, anywhere. */
			if (start >= address || !(READ_ONCE(vma->vm_flags) & VM_EXEC) || !READ_ONCE(vma->vm_file))
				start = 0;
		}
	}
	if (start)
		dtrace_unwind_look(start, place);
	return start;
}

/* The last number that was given to a table. A table with a greater number has been added since. */
u64 dtrace_unwind_newest(void)
{
	return READ_ONCE(dtrace_unwind_last);
}

static bool dtrace_unwind_has(const struct dtrace_file_id *id)
{
	guard(rcu)();
	return rhashtable_lookup(&dtrace_unwinds, id, dtrace_unwind_params);
}

/*
 * Removes tables, the least recently used first, until there is room for one more of this size.
 * -ENOSPC: there can be none. dtrace_unwind_lock is held.
 */
static int dtrace_unwind_make_room(size_t size)
{
	unsigned long most = READ_ONCE(unwind_tables);

	if (size > most)
		return -ENOSPC;
	while (dtrace_unwind_bytes + size > most || dtrace_unwind_count >= DTRACE_UNWIND_MAX) {
		struct dtrace_unwind *table, *oldest = NULL;

		list_for_each_entry(table, &dtrace_unwind_all, all)
			if (!oldest || time_before(table->used, oldest->used))
				oldest = table;
		if (!oldest)
			return -ENOSPC;
		dtrace_unwind_remove(oldest);
		cond_resched();
	}
	return 0;
}

/* Makes a table findable. If it returns 0, the table is not the caller's any more. */
static int dtrace_unwind_insert(struct dtrace_unwind *table)
{
	size_t size = struct_size(table, bytes, table->size);
	int error;

	table->used = jiffies / HZ;
	guard(mutex)(&dtrace_unwind_lock);
	table->number = dtrace_unwind_last + 1;
	WRITE_ONCE(dtrace_unwind_last, table->number);
	if (dtrace_unwind_has(&table->id))
		return -EEXIST;
	error = dtrace_unwind_make_room(size);
	if (!error)
		error = rhashtable_lookup_insert_fast(&dtrace_unwinds, &table->node, dtrace_unwind_params);
	if (error)
		return error;
	list_add(&table->all, &dtrace_unwind_all);
	dtrace_unwind_bytes += size;
	WRITE_ONCE(dtrace_unwind_count, dtrace_unwind_count + 1);
	return 0;
}

/*
 * Makes `table` the table of a file that the current process has open, as dtrace_unwind_insert().
 * -EEXIST: the file has one; -ESTALE: the file has changed since the time `changed`, in ns; -EBADF,
 * -EINVAL: there is no such file, or it is not a regular one.
 */
int dtrace_unwind_add(struct dtrace_unwind *table, int fd, u64 changed)
{
	struct file *file = fget(fd);
	int error = -EINVAL;

	if (!file)
		return -EBADF;
	if (S_ISREG(file_inode(file)->i_mode)) {
		/* In a stacked file system the lower file is the one that is mapped. */
		dtrace_inode_identify(d_real_inode(file->f_path.dentry), &table->id);
		error = table->id.changed == changed ? dtrace_unwind_insert(table) : -ESTALE;
	}
	fput(file);
	return error;
}

/* Adds an empty table for a file that cannot be opened, so that the file is not requested again. */
static void dtrace_unwind_refuse(const struct dtrace_file_id *id)
{
	u8 *bytes;
	struct dtrace_unwind *table = dtrace_unwind_alloc(0, &bytes);

	if (!table)
		return;
	table->id = *id;
	if (dtrace_unwind_insert(table))
		dtrace_unwind_free(table);
}

/*
 * Takes the next wanted file out of the table; the caller gets the reference to the thread. False:
 * there is none.
 */
static bool dtrace_wanted_take(struct dtrace_wanted *taken)
{
	size_t n;

	guard(mutex)(&dtrace_wanted_lock);
	for (n = 0; n < ARRAY_SIZE(dtrace_wanted); n++) {
		struct dtrace_wanted *wanted = &dtrace_wanted[n];

		if (smp_load_acquire(&wanted->state) != DTRACE_FULL)
			continue;
		*taken = *wanted;
		wanted->thread = NULL;
		smp_store_release(&wanted->state, DTRACE_FREE);
		return true;
	}
	return false;
}

static void dtrace_wanted_forget(void)
{
	struct dtrace_wanted wanted;

	while (dtrace_wanted_take(&wanted))
		put_pid(wanted.thread);
}

/* Counts one more consumer that makes tables, or one less. */
void dtrace_unwind_serve(bool serves)
{
	if (!atomic_add_return(serves ? 1 : -1, &dtrace_unwind_servers))
		dtrace_wanted_forget();
}

/* Called when nobody reads tables any more. */
void dtrace_unwind_exit(void)
{
	struct dtrace_unwind *table, *next;

	list_for_each_entry_safe(table, next, &dtrace_unwind_all, all)
		dtrace_unwind_remove(table);
	dtrace_wanted_forget();
	rhashtable_destroy(&dtrace_unwinds);
	dtrace_follow_exit();
}

/*
 * Opens the file that a thread executes at the address, if it is still the wanted one. Returns an
 * error pointer otherwise. May sleep.
 */
static struct file *dtrace_wanted_open(const struct dtrace_wanted *wanted)
{
	struct task_struct *task = get_pid_task(wanted->thread, PIDTYPE_PID);
	struct mm_struct *mm = task ? get_task_mm(task) : NULL;
	struct dtrace_mapping mapping;
	struct dtrace_file_id id;
	struct file *file;
	int error;

	if (task)
		put_task_struct(task);
	if (!mm)
		return ERR_PTR(-ESRCH);
	error = dtrace_text_at(mm, wanted->address, &mapping);
	mmput_async(mm);
	if (error || !mapping.file)
		return ERR_PTR(error ?: -ENOENT);
	dtrace_file_identify(mapping.file, &id);
	if (memcmp(&id, &wanted->id, sizeof(id)))
		file = ERR_PTR(-ESTALE);
	else
		file = dtrace_file_reopen(&mapping.file->f_path);
	fput(mapping.file);
	return file;
}

/* A descriptor of the next wanted file, or a negative errno. -ENOENT: there is none. */
int dtrace_unwind_wanted(void)
{
	int fd = get_unused_fd_flags(O_CLOEXEC);
	struct dtrace_wanted wanted;

	if (fd < 0)
		return fd;
	while (dtrace_wanted_take(&wanted)) {
		struct file *file = ERR_PTR(-EEXIST);

		if (!dtrace_unwind_has(&wanted.id))
			file = dtrace_wanted_open(&wanted);
		put_pid(wanted.thread);
		if (!IS_ERR(file)) {
			fd_install(fd, file);
			return fd;
		}
		if (PTR_ERR(file) == -EACCES || PTR_ERR(file) == -EPERM || PTR_ERR(file) == -EWOULDBLOCK)
			dtrace_unwind_refuse(&wanted.id);
		/* The program holds its mmap lock; the other files are left for the next call. */
		if (PTR_ERR(file) == -ETIMEDOUT)
			break;
	}
	put_unused_fd(fd);
	return -ENOENT;
}
