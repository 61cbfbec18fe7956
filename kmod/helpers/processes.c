// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * The bodies of processes.h.
 *
 * A process is known by its memory, not by its number: another program, or another process that
 * gets the same number, has another memory. A reference keeps the structure of a memory (mmgrab()),
 * not the memory itself.
 *
 * Uprobes set a breakpoint in those memories that map the file and that a consumer's filter admits,
 * here one memory. A child that has inherited the breakpoint from its parent loses it at its first
 * hit.
 */

#include <linux/container_of.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/pid.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>

#include "own.h"
#include "percpu.h"
#include "processes.h"

/*
 * The memory of a process, with a user reference: that of any of its threads, because the first one
 * may have ended before the others. NULL for a kernel thread, and for a process that is exiting.
 */
static struct mm_struct *dtrace_mm_of(struct pid *process)
{
	struct task_struct *first, *thread;
	struct mm_struct *mm;

	guard(rcu)();
	first = pid_task(process, PIDTYPE_TGID);
	if (!first)
		return NULL;
	for_each_thread(first, thread) {
		mm = get_task_mm(thread);
		if (mm)
			return mm;
	}
	return NULL;
}

/*
 * Finds the process that has a number in the current process's pid namespace, and its memory; both
 * with a reference. -ESRCH: there is none.
 */
int dtrace_mm_find(int number, struct mm_struct **out, struct pid **process)
{
	struct pid *pid = find_get_pid(number);
	struct mm_struct *mm = dtrace_mm_of(pid);

	if (!mm) {
		put_pid(pid);
		return -ESRCH;
	}
	mmgrab(mm);
	mmput_async(mm);
	*out = mm;
	*process = pid;
	return 0;
}

void dtrace_mm_drop(struct mm_struct *mm)
{
	mmdrop(mm);
}

/*
 * The current thread's id in its own pid namespace; 0 if the thread has ended. Interrupts are off.
 * Calls no function that can be traced.
 */
u32 dtrace_own_tid(void)
{
	struct pid *pid = READ_ONCE(current->thread_pid);

	return pid ? pid->numbers[pid->level].nr : 0;
}

/* The first address behind those of programs. */
u64 dtrace_program_end(void)
{
	return TASK_SIZE_MAX;
}

/* Whether the text of a mapping can be read. Reading a device or a pipe would have effects. */
static bool dtrace_has_good_text(const struct vm_area_struct *vma)
{
	if (vma->vm_file)
		return S_ISREG(file_inode(vma->vm_file)->i_mode);
	return vma->vm_flags & VM_EXEC && dtrace_is_bare(vma);
}

/* The same, and the mapping cannot be written to. */
static bool dtrace_is_text(const struct vm_area_struct *vma)
{
	const vm_flags_t wanted = VM_MAYEXEC, unwanted = VM_HUGETLB | VM_MAYSHARE | VM_WRITE;

	return (vma->vm_flags & (wanted | unwanted)) == wanted && dtrace_has_good_text(vma);
}

/*
 * Whether a process has that text of the file at an address. If its mappings cannot be looked at in
 * time, the answer is yes. The framework's mutex is held.
 */
bool dtrace_text_is_at(struct mm_struct *mm, u64 addr, const struct file *file, u64 offset)
{
	struct dtrace_patience patience = dtrace_patience_for(NULL, 0);
	struct vm_area_struct *vma;
	bool is_there = true;

	if (!mmget_not_zero(mm))
		return false;
	if (dtrace_mappings_lock(mm, &patience)) {
		vma = vma_lookup(mm, addr);
		is_there = vma && dtrace_is_text(vma) && dtrace_has_text(vma, file) && dtrace_offset_of(vma, addr) == offset;
		mmap_read_unlock(mm);
	}
	mmput_async(mm);
	dtrace_patience_over(&patience);
	return is_there;
}

/*
 * Finds the text mapping that a process has at an address, as uprobes require it; the caller gets a
 * reference to the file. If it has no file, it is code that the program has generated, or the vdso.
 * -ESRCH: the process has ended; -ETIMEDOUT: it has held its mmap lock for too long; -EFAULT:
 * nothing is mapped there; -EACCES: it is no text, or can be written to. May sleep.
 */
int dtrace_text_at(struct mm_struct *mm, u64 addr, struct dtrace_mapping *mapping)
{
	struct dtrace_patience patience = dtrace_patience_asked();
	struct vm_area_struct *vma;
	int error = -EFAULT;

	if (!mmget_not_zero(mm))
		return -ESRCH;
	if (!dtrace_mappings_lock(mm, &patience)) {
		mmput_async(mm);
		return -ETIMEDOUT;
	}
	vma = find_vma(mm, addr);
	if (vma && vma->vm_start <= addr) {
		error = -EACCES;
		if (dtrace_is_text(vma)) {
			*mapping = (struct dtrace_mapping){
				.file = vma->vm_file ? get_file(vma->vm_file) : NULL,
				.start = vma->vm_start,
				.end = vma->vm_end,
				.offset = dtrace_offset_of(vma, vma->vm_start),
			};
			error = 0;
		}
	}
	mmap_read_unlock(mm);
	/*
	 * If this is the last reference, tearing down the memory may wait for a program that serves
	 * files.
	 */
	mmput_async(mm);
	return error;
}

/* Whether a program provides the contents of the files, and so may never answer. */
bool dtrace_fs_is_served(const struct super_block *sb)
{
	const char *type = sb->s_type->name;

	return !strcmp(type, "fuse") || !strcmp(type, "fuseblk");
}

bool dtrace_file_is_served(const struct file *file)
{
	return dtrace_fs_is_served(file_inode(file)->i_sb);
}

/* Reads text. Returns the number of bytes that could be read, or a negative errno. */
long dtrace_text_read(struct file *file, u64 offset, void *out, size_t size)
{
	loff_t at = offset;

	return kernel_read(file, out, size, &at);
}

static bool dtrace_carrier_meant(struct uprobe_consumer *consumer, struct mm_struct *mm)
{
	return container_of(consumer, struct dtrace_carrier, consumer)->spot.mm == mm;
}

static int dtrace_carrier_hit(struct uprobe_consumer *consumer, struct pt_regs *regs, __u64 *data)
{
	struct dtrace_carrier *carrier = container_of(consumer, struct dtrace_carrier, consumer);

	if (current->mm != carrier->spot.mm)
		return UPROBE_HANDLER_REMOVE;
	carrier->hit(carrier, regs);
	return 0;
}

static void dtrace_carrier_register(struct dtrace_carrier *carrier)
{
	/* A member's counter would keep others from the instruction. */
	if (carrier->uncarried || (carrier->kept && (!carrier->joins || carrier->counter))) {
		carrier->error = -EOPNOTSUPP;
		return;
	}
	carrier->uprobe = uprobe_register(file_inode(carrier->file), carrier->offset, carrier->counter, &carrier->consumer);
	if (IS_ERR(carrier->uprobe)) {
		carrier->error = PTR_ERR(carrier->uprobe);
		return;
	}
	smp_store_release(&carrier->state, DTRACE_CARRIED);
	if (carrier->crowded)
		dtrace_cpu_lost(DTRACE_LOSS_ROOM);
}

/*
 * Carriers that could not be set may still be in use: none of their firings was waited for yet.
 * Protected by the framework's mutex.
 */
static bool dtrace_carriers_failed;

/*
 * Sets breakpoints of one process, in the order of their addresses; the error of each carrier says
 * how that went. -ETIMEDOUT: the program has held its mmap lock for too long, or its pages could
 * not be had in time. The caller keeps the files until dtrace_carriers_sync() after
 * dtrace_carriers_clear(). The framework's mutex is held. May sleep.
 */
void dtrace_carriers_set(struct dtrace_carrier **all, size_t count)
{
	struct dtrace_patience patience;
	size_t n;

	for (n = 0; n < count; n++) {
		struct dtrace_carrier *carrier = all[n];

		/* The carrier may have been tried before. */
		carrier->sought = false;
		carrier->rewritten = false;
		carrier->changed = false;
		carrier->consumer.handler = dtrace_carrier_hit;
		carrier->consumer.filter = dtrace_carrier_meant;
		carrier->error = carrier->trap ? dtrace_trap_add(carrier) : 0;
		/* One that was left behind is still there. */
		if (carrier->error == -EEXIST)
			carrier->error = -ETIMEDOUT;
	}
	patience = dtrace_patience_for(all, count);
	dtrace_own_set(all, count, &patience);
	for (n = 0; n < count; n++) {
		struct dtrace_carrier *carrier = all[n];

		if (!carrier->error && carrier->state == DTRACE_UNSET)
			dtrace_carrier_register(carrier);
		if (!carrier->error)
			continue;
		/* It may have been hit meanwhile. */
		carrier->failed |= carrier->answered;
		dtrace_carriers_failed |= carrier->failed;
		dtrace_trap_remove(carrier);
	}
	dtrace_patience_over(&patience);
}

/* Must be called before a carrier is freed that could not be set. May sleep. */
void dtrace_carrier_settle(struct dtrace_carrier *carrier)
{
	/* One wait serves all of them. */
	if (carrier->failed && dtrace_carriers_failed) {
		dtrace_carriers_failed = false;
		dtrace_carriers_sync(true);
	}
}

/* Takes breakpoints away, as long as patience.c allows. Returns whether uprobes carried any. */
bool dtrace_carriers_take(struct dtrace_carrier **all, size_t count, struct dtrace_patience *patience)
{
	bool uprobes = false;
	size_t n;

	dtrace_own_clear(all, count, patience);
	for (n = 0; n < count; n++) {
		struct dtrace_carrier *carrier = all[n];

		if (carrier->stays)
			continue;
		/*
		 * Before dtrace_trap_remove(), because dtrace_watch_keeps() looks the carrier up to
		 * tell whether a debugger's breakpoint stays.
		 */
		if (carrier->state == DTRACE_CARRIED) {
			uprobe_unregister_nosync(carrier->uprobe, &carrier->consumer);
			uprobes = true;
		}
		dtrace_trap_remove(carrier);
		dtrace_own_forget(carrier);
	}
	return uprobes;
}

/*
 * Takes breakpoints away. They may be hit until dtrace_carriers_sync(), which must wait for uprobes
 * if this returns true. Those that stay must be given to dtrace_carrier_leave() after that. The
 * framework's mutex is held. May sleep.
 */
bool dtrace_carriers_clear(struct dtrace_carrier **all, size_t count)
{
	struct dtrace_patience patience = dtrace_patience_for(all, count);
	bool uprobes = dtrace_carriers_take(all, count, &patience);

	dtrace_patience_over(&patience);
	return uprobes;
}

/* Whether the breakpoint was set, and nobody has it any more. */
bool dtrace_carrier_is_lost(const struct dtrace_carrier *carrier)
{
	return READ_ONCE(carrier->state) == DTRACE_GONE;
}

void dtrace_carriers_sync(bool uprobes)
{
	/* Traps are answered with interrupts off. */
	synchronize_rcu();
	if (uprobes)
		uprobe_unregister_sync();
}
