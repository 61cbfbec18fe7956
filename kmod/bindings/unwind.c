// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Tables of files, and files that have none yet.
 *
 * A probe finds the table of an instruction by the file that is mapped there, whatever path that has or had, in whichever mount namespace.
 * A file is known by its numbers and its last change, and is not kept. Of one that has no table the probe notes the thread and the address,
 * while some consumer makes tables; the consumer gets the file by a descriptor, and gives back its table.
 *
 * Tables are read with interrupts off, which is what RCU waits for, in NMIs too.
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
	/* When it was last used, in seconds. */
	unsigned long used;
	u64 number;
	/* None: the file has nothing to be walked by. */
	u32 size;
	u8 bytes[];
};

/* Most tables: each takes memory and time besides its bytes. */
#define DTRACE_UNWIND_MAX 4096

/* Bytes of all tables. */
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
/* Of those who empty places of files that are wanted. */
static DEFINE_MUTEX(dtrace_wanted_lock);
static LIST_HEAD(dtrace_unwind_all);
static unsigned long dtrace_unwind_bytes, dtrace_unwind_count;
/* The number of the last one. */
static u64 dtrace_unwind_last;
static unsigned long dtrace_unwind_generation;
/* How many consumers make tables. */
static atomic_t dtrace_unwind_servers = ATOMIC_INIT(0);

/* Files that are wanted: a place is taken, filled, and emptied by a consumer. */
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

/* Changes when a table can be found no more, and before its memory is freed. */
unsigned long dtrace_unwind_age(void)
{
	return smp_load_acquire(&dtrace_unwind_generation);
}

/* A table that is nobody's yet, and where its bytes are, which are 0. */
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

/* Takes a table away; those who read it go on for a grace period. */
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

/* Notes that a file is wanted, if there is a place for that. In any context. */
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
	/* The process' first thread may have ended. */
	place->thread = get_pid(task_pid(current));
	place->address = address;
	place->id = *id;
	smp_store_release(&place->state, DTRACE_FULL);
}

/*
 * The inode whose text the current program has at an address, and where in it, if there is one. Mapping, file and inode may be freed meanwhile,
 * but become nothing else than others of their kind before interrupts are on; so each is read once, and the mapping looked at again.
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
	/* Pairs with nothing: it keeps what was read above from being read below. */
	smp_rmb();
	if (vma_lookup(mm, address) != vma || READ_ONCE(vma->vm_mm) != mm || address < start || address >= end)
		return NULL;
	place->start = start;
	place->end = end;
	place->offset = offset;
	place->is_nowhere = !(flags & VM_EXEC);
	/* The vdso has no file, but operations. */
	place->is_made = !place->is_nowhere && !file && !ops;
	if ((flags & (wanted | unwanted)) != wanted || !file)
		return NULL;
	inode = READ_ONCE(file->f_inode);
	return inode && S_ISREG(inode->i_mode) ? inode : NULL;
}

/* What is known of text of the current program. Interrupts are off. */
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
 * The same of the text of a file that the current program has below an address, and above all others there. Returns where that begins; 0: there is
 * none among the next *left mappings, which are as many fewer then as were looked at.
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
			/* One that was given to another program may be anywhere. */
			if (start >= address || !(READ_ONCE(vma->vm_flags) & VM_EXEC) || !READ_ONCE(vma->vm_file))
				start = 0;
		}
	}
	if (start)
		dtrace_unwind_look(start, place);
	return start;
}

/* The number of the table that was added last. */
u64 dtrace_unwind_newest(void)
{
	return READ_ONCE(dtrace_unwind_last);
}

static bool dtrace_unwind_has(const struct dtrace_file_id *id)
{
	guard(rcu)();
	return rhashtable_lookup(&dtrace_unwinds, id, dtrace_unwind_params);
}

/* Takes tables away, those first that were not used for longest, until there is room for one more. */
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

/* Has a table found. If there is no error it is not the caller's any more. */
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
 * Makes a table that of a file which the current process has open, as above. EEXIST: the file has one; ESTALE: it has changed since then, in
 * nanoseconds.
 */
int dtrace_unwind_add(struct dtrace_unwind *table, int fd, u64 changed)
{
	struct file *file = fget(fd);
	int error = -EINVAL;

	if (!file)
		return -EBADF;
	if (S_ISREG(file_inode(file)->i_mode)) {
		/* What is mapped is the file below, where one lies over another. */
		dtrace_inode_identify(d_real_inode(file->f_path.dentry), &table->id);
		error = table->id.changed == changed ? dtrace_unwind_insert(table) : -ESTALE;
	}
	fput(file);
	return error;
}

/* Of a file that cannot be had there is no table: it is not asked for again. */
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

/* The next file that is wanted is not any more; the caller owns the thread. */
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

/* One consumer more makes tables, or one less. */
void dtrace_unwind_serve(bool serves)
{
	if (!atomic_add_return(serves ? 1 : -1, &dtrace_unwind_servers))
		dtrace_wanted_forget();
}

/* Nobody reads tables any more. */
void dtrace_unwind_exit(void)
{
	struct dtrace_unwind *table, *next;

	list_for_each_entry_safe(table, next, &dtrace_unwind_all, all)
		dtrace_unwind_remove(table);
	dtrace_wanted_forget();
	rhashtable_destroy(&dtrace_unwinds);
	dtrace_follow_exit();
}

/* The file that a thread executes at an address, if it is still the one. */
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

/* A descriptor of the next file that is wanted. ENOENT: none is. */
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
		/* The next ones the next time. */
		if (PTR_ERR(file) == -ETIMEDOUT)
			break;
	}
	put_unused_fd(fd);
	return -ENOENT;
}
