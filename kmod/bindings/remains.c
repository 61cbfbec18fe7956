// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * What processes that have ended had mapped.
 *
 * What an address in a record means is asked for later, when the process may be gone. So a process is marked when an address of it is
 * recorded, and when it ends, or goes over to another program, its mappings are noted and their files kept open: while some consumer wants
 * that. The oldest are forgotten where there are too many.
 *
 * Marks are the processes' numbers in a table that any context may write to. Where its row is full all processes are noted from then on.
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

#include "mappings.h"
#include "processes.h"
#include "remains.h"

#define DTRACE_MARKS_BITS 10
#define DTRACE_MARKS_WAYS 4

/* Most processes, and most mappings of all of them. */
#define DTRACE_REMAINS_MAX 4096
#define DTRACE_PARTS_MAX 131072

/* A memory with more mappings is not looked through, which would hold up the processor. */
#define DTRACE_LOOKED_MAX 32768

/* A process that has ended. */
struct dtrace_remains {
	struct list_head all;
	struct hlist_node hash;
	/* Mappings are numbered in the order in which they are noted: that of the first, which is never 0. */
	u64 first;
	u32 pid;
	u32 count;
	struct dtrace_part parts[];
};

/* How many consumers want this. */
static atomic_t dtrace_keepers = ATOMIC_INIT(0);
static DEFINE_MUTEX(dtrace_keepers_lock);

static u32 dtrace_marks[1 << DTRACE_MARKS_BITS][DTRACE_MARKS_WAYS];
/* A mark had no room. */
static bool dtrace_marks_full;

/* Of what follows. */
static DEFINE_RAW_SPINLOCK(dtrace_remains_lock);
static DEFINE_HASHTABLE(dtrace_remains, 8);
static LIST_HEAD(dtrace_remains_all);
static u64 dtrace_remains_last;
static unsigned long dtrace_remains_count, dtrace_parts_count;

/* An address of the current process is being recorded. In any context. */
void dtrace_remains_mark(void)
{
	u32 pid = current->tgid, *row;
	size_t n;

	if (!atomic_read(&dtrace_keepers) || !current->mm)
		return;
	row = dtrace_marks[hash_32(pid, DTRACE_MARKS_BITS)];
	for (n = 0; n < DTRACE_MARKS_WAYS; n++)
		if (READ_ONCE(row[n]) == pid)
			return;
	/* An interrupt in between may mark it twice; both are taken away together. */
	for (n = 0; n < DTRACE_MARKS_WAYS; n++)
		if (!READ_ONCE(row[n]) && !cmpxchg(&row[n], 0, pid))
			return;
	WRITE_ONCE(dtrace_marks_full, true);
}

/* Whether the process was marked; it is not any more. */
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

/* Whether addresses there have names, or are in the kernel's own code. */
static bool dtrace_is_named(const struct vm_area_struct *vma)
{
	/* That of programs of 32 bits is another one, which who asks may not have. */
	if (!vma->vm_file)
		return vma->vm_ops && vma->vm_start == (unsigned long)vma->vm_mm->context.vdso && dtrace_mm_is_long(vma->vm_mm);
	return !(vma->vm_flags & VM_HUGETLB) && S_ISREG(file_inode(vma->vm_file)->i_mode);
}

/* What a memory has mapped, the files held. Its lock is held. Does not sleep. */
static struct dtrace_remains *dtrace_remains_of(struct mm_struct *mm)
{
	struct dtrace_remains *remains;
	struct vm_area_struct *vma;
	u32 count = 0;

	VMA_ITERATOR(counting, mm, 0);
	VMA_ITERATOR(noting, mm, 0);
	if (mm->map_count > DTRACE_LOOKED_MAX)
		return NULL;
	for_each_vma(counting, vma)
		count += dtrace_is_named(vma);
	remains = kmalloc(struct_size(remains, parts, count), GFP_NOWAIT | __GFP_NOWARN);
	if (!remains)
		return NULL;
	remains->pid = current->tgid;
	remains->count = 0;
	for_each_vma(noting, vma) {
		if (!dtrace_is_named(vma) || remains->count == count)
			continue;
		remains->parts[remains->count++] = (struct dtrace_part){
			.start = vma->vm_start,
			.end = vma->vm_end,
			.offset = (u64)vma->vm_pgoff << PAGE_SHIFT,
			.file = vma->vm_file ? get_file(vma->vm_file) : NULL,
			.is_code = vma->vm_flags & VM_EXEC,
		};
	}
	return remains;
}

static void dtrace_remains_free(struct dtrace_remains *remains)
{
	u32 n;

	for (n = 0; n < remains->count; n++)
		if (remains->parts[n].file)
			fput(remains->parts[n].file);
	kfree(remains);
}

/* Takes out the oldest, if there are too many or if all shall go. Under the lock. */
static struct dtrace_remains *dtrace_remains_take(bool all)
{
	struct dtrace_remains *oldest = list_first_entry_or_null(&dtrace_remains_all, struct dtrace_remains, all);

	if (!oldest || !(all || dtrace_remains_count > DTRACE_REMAINS_MAX || dtrace_parts_count > DTRACE_PARTS_MAX))
		return NULL;
	list_del(&oldest->all);
	hash_del(&oldest->hash);
	dtrace_remains_count--;
	dtrace_parts_count -= oldest->count;
	return oldest;
}

/* Forgets the oldest. */
static void dtrace_remains_trim(bool all)
{
	struct dtrace_remains *oldest;

	do {
		scoped_guard(raw_spinlock_irqsave, &dtrace_remains_lock)
			oldest = dtrace_remains_take(all);
		if (oldest)
			dtrace_remains_free(oldest);
	} while (oldest);
}

/* The current process is about to lose its memory. Does not sleep. */
void dtrace_remains_note(void)
{
	struct mm_struct *mm = current->mm;
	struct dtrace_remains *remains;

	if (!mm || !dtrace_remains_unmark(current->tgid))
		return;
	/* None of its threads changes the memory now; somebody else may, who is rare. */
	if (!mmap_read_trylock(mm))
		return;
	remains = dtrace_remains_of(mm);
	mmap_read_unlock(mm);
	if (!remains)
		return;
	scoped_guard(raw_spinlock_irqsave, &dtrace_remains_lock) {
		remains->first = dtrace_remains_last + 1;
		dtrace_remains_last += remains->count;
		list_add_tail(&remains->all, &dtrace_remains_all);
		hash_add(dtrace_remains, &remains->hash, remains->pid);
		dtrace_remains_count++;
		dtrace_parts_count += remains->count;
	}
	dtrace_remains_trim(false);
}

/* One consumer more wants this, or one less. */
int dtrace_remains_keep(bool keep)
{
	guard(mutex)(&dtrace_keepers_lock);
	if (atomic_add_return(keep ? 1 : -1, &dtrace_keepers))
		return 0;
	dtrace_remains_trim(true);
	memset(dtrace_marks, 0, sizeof(dtrace_marks));
	WRITE_ONCE(dtrace_marks_full, false);
	return 0;
}

/*
 * What the process of that number had mapped, or those one after another: the next after the mapping that is numbered so, whose number it is
 * then. The caller owns the file. ENOENT: there is nothing more.
 */
int dtrace_remains_next(u32 pid, u64 *after, struct dtrace_part *part)
{
	struct dtrace_remains *remains, *next = NULL;
	u64 at;

	guard(raw_spinlock_irqsave)(&dtrace_remains_lock);
	hash_for_each_possible(dtrace_remains, remains, hash, pid)
		if (remains->pid == pid && remains->count && remains->first + remains->count - 1 > *after &&
		    (!next || remains->first < next->first))
			next = remains;
	if (!next)
		return -ENOENT;
	at = max(*after + 1, next->first);
	*part = next->parts[at - next->first];
	if (part->file)
		get_file(part->file);
	*after = at;
	return 0;
}

/* A descriptor of a part's file, which is the caller's no more. */
int dtrace_part_open(const struct dtrace_part *part)
{
	int fd = get_unused_fd_flags(O_CLOEXEC);
	struct file *file = fd < 0 ? ERR_PTR(fd) : dtrace_file_reopen(part->file);

	fput(part->file);
	if (!IS_ERR(file)) {
		fd_install(fd, file);
		return fd;
	}
	if (fd >= 0)
		put_unused_fd(fd);
	return PTR_ERR(file);
}
