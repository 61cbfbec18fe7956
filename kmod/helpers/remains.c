// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * The mappings of processes that have ended (INV-16).
 *
 * Addresses in records are looked up later, when their process may have ended. So a process is
 * marked when an address of it is recorded. When it ends or executes another program, its mappings
 * are noted, as long as a consumer wants that. If there are too many, the oldest are forgotten.
 *
 * For an executed file the path is held, which keeps the contents of the file. The files that the
 * process had open are not held, because their locks must end with the process. Putting a path may
 * sleep, so a work item does it.
 *
 * Marks are process ids in a table that can be written to in any context. Once a row is full, every
 * process is noted. A mark that is made after its process was noted stays until the last consumer
 * goes; its only effect is that a later process with that id is noted.
 */

#include <linux/atomic.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/hash.h>
#include <linux/hashtable.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "mappings.h"
#include "processes.h"
#include "remains.h"

#define DTRACE_MARKS_BITS 12
#define DTRACE_MARKS_WAYS 4

/* Most processes, most of one process id, and most mappings of all. */
#define DTRACE_REMAINS_MAX 4096
#define DTRACE_REMAINS_SAME 16
#define DTRACE_PARTS_MAX 131072

/* Most bytes of deleted files that only these paths keep. */
#define DTRACE_HELD_MAX (256ULL << 20)

/*
 * A process with more mappings than DTRACE_LOOKED_MAX is not noted, because a walk over them would
 * hold up the CPU. Of any other process at most DTRACE_NOTED_MAX are noted.
 */
#define DTRACE_LOOKED_MAX 32768
#define DTRACE_NOTED_MAX 4096

/* A process that has ended, or has executed another program. */
struct dtrace_remains {
	struct list_head all;
	struct hlist_node hash;
	/*
	 * Number of the first mapping, never 0. All mappings are numbered in the order in which
	 * they are noted.
	 */
	u64 first;
	/*
	 * The process's start time and its number of execve() calls: which program of which process
	 * it was.
	 */
	u64 born, executed;
	/* Size of its deleted executable files, in bytes. */
	u64 held;
	u32 pid;
	u32 count;
	struct dtrace_part parts[];
};

/* Number of consumers that want mappings noted. */
static atomic_t dtrace_keepers = ATOMIC_INIT(0);
static DEFINE_MUTEX(dtrace_keepers_lock);

static u32 dtrace_marks[1 << DTRACE_MARKS_BITS][DTRACE_MARKS_WAYS];
/* A process could not be marked, because its row was full. */
static bool dtrace_marks_full;

/* Protects what follows. Taken in task context only; dentry locks are taken under it. */
static DEFINE_SPINLOCK(dtrace_remains_lock);
static DEFINE_HASHTABLE(dtrace_remains, 8);
static LIST_HEAD(dtrace_remains_all);
static u64 dtrace_remains_last;
static unsigned long dtrace_remains_count, dtrace_parts_count;
static u64 dtrace_held_count;
/* Entries that were forgotten and are to be freed. */
static LIST_HEAD(dtrace_remains_old);

static void dtrace_remains_free_old(struct work_struct *work);
static DECLARE_WORK(dtrace_remains_work, dtrace_remains_free_old);

/* Marks the current process, because an address of it is being recorded. In any context. */
void dtrace_remains_mark(void)
{
	u32 pid = current->tgid, *row;
	size_t n;

	if (!atomic_read(&dtrace_keepers) || !current->mm || current->flags & PF_KTHREAD)
		return;
	row = dtrace_marks[hash_32(pid, DTRACE_MARKS_BITS)];
	for (n = 0; n < DTRACE_MARKS_WAYS; n++)
		if (READ_ONCE(row[n]) == pid)
			return;
	/* An interrupt in between may mark the process twice; both marks are removed together. */
	for (n = 0; n < DTRACE_MARKS_WAYS; n++)
		if (!READ_ONCE(row[n]) && !cmpxchg(&row[n], 0, pid))
			return;
	WRITE_ONCE(dtrace_marks_full, true);
}

/* Whether the process was marked; removes the mark. */
static bool dtrace_remains_unmark(u32 pid)
{
	u32 *row = dtrace_marks[hash_32(pid, DTRACE_MARKS_BITS)];
	bool marked = READ_ONCE(dtrace_marks_full);
	size_t n;

	for (n = 0; n < DTRACE_MARKS_WAYS; n++)
		if (READ_ONCE(row[n]) == pid) {
			WRITE_ONCE(row[n], 0);
			marked = true;
		}
	return marked;
}

/* The kind of a mapping. */
static u8 dtrace_part_kind(const struct vm_area_struct *vma)
{
	const struct file *file = vma->vm_file;

	/* The vdso of 32-bit programs is another one, which the consumer's task may not have. */
	if (!file)
		return vma->vm_ops && vma->vm_start == (unsigned long)vma->vm_mm->context.vdso && dtrace_mm_is_long(vma->vm_mm) ?
			DTRACE_PART_VDSO : DTRACE_PART_NONE;
	if (vma->vm_flags & (VM_HUGETLB | VM_MAYSHARE) || !S_ISREG(file_inode(file)->i_mode) || dtrace_file_is_served(file))
		return DTRACE_PART_NONE;
	return DTRACE_PART_FILE;
}

/*
 * Notes a mapping if it is code, or follows code of the same file, because the file's variables are
 * there.
 */
static void dtrace_remains_add(struct dtrace_remains *remains, const struct vm_area_struct *vma, const struct file **code)
{
	bool is_code = vma->vm_flags & VM_EXEC;
	u8 kind = dtrace_part_kind(vma);
	struct dtrace_part *part;

	if (is_code)
		*code = vma->vm_file;
	else if (kind != DTRACE_PART_FILE || vma->vm_file != *code)
		return;
	part = &remains->parts[remains->count++];
	*part = (struct dtrace_part){
		.start = vma->vm_start,
		.end = vma->vm_end,
		.offset = (u64)vma->vm_pgoff << PAGE_SHIFT,
		.kind = kind,
		.is_code = is_code,
	};
	if (kind != DTRACE_PART_FILE)
		return;
	part->path = vma->vm_file->f_path;
	path_get(&part->path);
	if (is_code && !file_inode(vma->vm_file)->i_nlink)
		remains->held += i_size_read(file_inode(vma->vm_file));
}

/*
 * Notes the mappings of a memory; NULL: that is not possible. The mmap lock is held. Does not
 * sleep.
 */
static struct dtrace_remains *dtrace_remains_of(struct mm_struct *mm)
{
	const struct file *code = NULL;
	struct dtrace_remains *remains, *exact;
	struct vm_area_struct *vma;
	size_t most = min(mm->map_count, DTRACE_NOTED_MAX);

	VMA_ITERATOR(vmi, mm, 0);
	if (mm->map_count > DTRACE_LOOKED_MAX)
		return NULL;
	remains = kmalloc(struct_size(remains, parts, most), GFP_NOWAIT | __GFP_NOWARN);
	if (!remains)
		return NULL;
	remains->pid = current->tgid;
	remains->born = current->group_leader->start_boottime;
	remains->executed = current->self_exec_id;
	remains->held = 0;
	remains->count = 0;
	for_each_vma(vmi, vma) {
		if (remains->count == most)
			break;
		dtrace_remains_add(remains, vma, &code);
	}
	/*
	 * The array was allocated for the largest number of mappings; a copy of the exact size
	 * saves memory.
	 */
	exact = kmemdup(remains, struct_size(remains, parts, remains->count), GFP_NOWAIT | __GFP_NOWARN);
	if (!exact)
		return remains;
	kfree(remains);
	return exact;
}

/* Frees the entries that were forgotten. */
static void dtrace_remains_free_old(struct work_struct *work)
{
	struct dtrace_remains *remains, *next;
	LIST_HEAD(old);
	u32 n;

	scoped_guard(spinlock, &dtrace_remains_lock)
		list_splice_init(&dtrace_remains_old, &old);
	list_for_each_entry_safe(remains, next, &old, all) {
		for (n = 0; n < remains->count; n++)
			if (remains->parts[n].kind == DTRACE_PART_FILE)
				path_put(&remains->parts[n].path);
		kfree(remains);
		cond_resched();
	}
}

/* dtrace_remains_lock is held. */
static void dtrace_remains_forget(struct dtrace_remains *remains)
{
	list_move_tail(&remains->all, &dtrace_remains_old);
	hash_del(&remains->hash);
	dtrace_remains_count--;
	dtrace_parts_count -= remains->count;
	dtrace_held_count -= remains->held;
}

/* Forgets the oldest entries until the rest is within the limits. dtrace_remains_lock is held. */
static void dtrace_remains_make_room(void)
{
	while (dtrace_remains_count > DTRACE_REMAINS_MAX || dtrace_parts_count > DTRACE_PARTS_MAX ||
	       dtrace_held_count > DTRACE_HELD_MAX)
		dtrace_remains_forget(list_first_entry(&dtrace_remains_all, struct dtrace_remains, all));
}

/*
 * Whether this program of this process is not noted yet. If there are too many of its process id,
 * forgets the oldest. dtrace_remains_lock is held.
 */
static bool dtrace_remains_admit(const struct dtrace_remains *new)
{
	struct dtrace_remains *remains, *oldest = NULL;
	u32 count = 0;

	hash_for_each_possible(dtrace_remains, remains, hash, new->pid) {
		if (remains->pid != new->pid)
			continue;
		if (remains->born == new->born && remains->executed == new->executed)
			return false;
		count++;
		if (!oldest || remains->first < oldest->first)
			oldest = remains;
	}
	if (count >= DTRACE_REMAINS_SAME)
		dtrace_remains_forget(oldest);
	return true;
}

/* dtrace_remains_lock is held. */
static void dtrace_remains_insert(struct dtrace_remains *remains)
{
	/* If all processes are noted, each consumer's hooks report the same process. */
	if (!dtrace_remains_admit(remains)) {
		list_add(&remains->all, &dtrace_remains_old);
		return;
	}
	remains->first = dtrace_remains_last + 1;
	dtrace_remains_last += remains->count;
	list_add_tail(&remains->all, &dtrace_remains_all);
	hash_add(dtrace_remains, &remains->hash, remains->pid);
	dtrace_remains_count++;
	dtrace_parts_count += remains->count;
	dtrace_held_count += remains->held;
	dtrace_remains_make_room();
}

/* Notes the mappings of the current process, which is about to lose its memory. Does not sleep. */
void dtrace_remains_note(void)
{
	struct mm_struct *mm = current->mm;
	struct dtrace_remains *remains;
	bool is_old;

	if (!mm || !dtrace_remains_unmark(current->tgid))
		return;
	/*
	 * No other thread of the process changes its mappings now. Another process may, rarely;
	 * then nothing is noted.
	 */
	if (!mmap_read_trylock(mm))
		return;
	remains = dtrace_remains_of(mm);
	mmap_read_unlock(mm);
	if (!remains)
		return;
	scoped_guard(spinlock, &dtrace_remains_lock) {
		dtrace_remains_insert(remains);
		is_old = !list_empty(&dtrace_remains_old);
	}
	if (is_old)
		schedule_work(&dtrace_remains_work);
}

/*
 * Counts one more consumer that wants mappings noted, or one less, whose hooks report no processes
 * any more. May sleep.
 */
void dtrace_remains_keep(bool keep)
{
	struct dtrace_remains *remains, *next;

	guard(mutex)(&dtrace_keepers_lock);
	if (atomic_add_return(keep ? 1 : -1, &dtrace_keepers))
		return;
	scoped_guard(spinlock, &dtrace_remains_lock)
		list_for_each_entry_safe(remains, next, &dtrace_remains_all, all)
			dtrace_remains_forget(remains);
	memset(dtrace_marks, 0, sizeof(dtrace_marks));
	WRITE_ONCE(dtrace_marks_full, false);
	schedule_work(&dtrace_remains_work);
	/* The module may go next. */
	flush_work(&dtrace_remains_work);
}

/*
 * Returns the next mapping of ended processes with this id: the first one whose number is greater
 * than *after, which becomes its number. The caller must put the path. -ENOENT: there is none.
 */
int dtrace_remains_next(u32 pid, u64 *after, struct dtrace_part *part)
{
	struct dtrace_remains *remains, *next = NULL;
	u64 at;

	guard(spinlock)(&dtrace_remains_lock);
	hash_for_each_possible(dtrace_remains, remains, hash, pid)
		if (remains->pid == pid && remains->count && remains->first + remains->count - 1 > *after &&
		    (!next || remains->first < next->first))
			next = remains;
	if (!next)
		return -ENOENT;
	at = max(*after + 1, next->first);
	*part = next->parts[at - next->first];
	if (part->kind == DTRACE_PART_FILE)
		path_get(&part->path);
	*after = at;
	return 0;
}

/*
 * Opens a part's file in the current process, and puts the part's path. Returns the descriptor or a
 * negative errno.
 */
int dtrace_part_open(struct dtrace_part *part)
{
	int fd = get_unused_fd_flags(O_CLOEXEC);
	struct file *file = fd < 0 ? ERR_PTR(fd) : dtrace_file_reopen(&part->path);

	path_put(&part->path);
	if (!IS_ERR(file)) {
		fd_install(fd, file);
		return fd;
	}
	if (fd >= 0)
		put_unused_fd(fd);
	return PTR_ERR(file);
}
