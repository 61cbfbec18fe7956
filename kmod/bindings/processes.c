// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * The bodies of processes.h.
 *
 * A process is known by its memory, not by its number: another program, or another process of the same number, has another. The
 * structure of a memory is kept as long as somebody here refers to it; the memory itself is not.
 *
 * The kernel's uprobes plant the breakpoint wherever a file is mapped, and only then ask for which memories that is meant. A process
 * that has inherited one from its parent loses it at its first hit.
 */

#include <linux/container_of.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/pid.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>

#include "helpers.h"
#include "own.h"
#include "processes.h"

/* A process that the current one knows by this number, and its memory. */
int dtrace_mm_find(int number, struct mm_struct **out, struct pid **process)
{
	struct pid *pid = find_get_pid(number);
	struct task_struct *task = get_pid_task(pid, PIDTYPE_TGID);
	/* None of a kernel thread, nor of who ends. */
	struct mm_struct *mm = task ? get_task_mm(task) : NULL;

	if (task)
		put_task_struct(task);
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

/* The current thread's id as the process itself sees it; 0 of one that has ended. Interrupts are off. Calls nothing that has a probe. */
u32 dtrace_own_tid(void)
{
	struct pid *pid = READ_ONCE(current->thread_pid);

	return pid ? pid->numbers[pid->level].nr : 0;
}

/* The first address that is no program's. */
u64 dtrace_program_end(void)
{
	return TASK_SIZE_MAX;
}

/* Whether the text of a mapping can be read. To read a device or a pipe would do something to it. */
static bool dtrace_has_good_text(const struct vm_area_struct *vma)
{
	if (vma->vm_file)
		return S_ISREG(file_inode(vma->vm_file)->i_mode);
	return vma->vm_flags & VM_EXEC && dtrace_is_bare(vma);
}

/* The same of a mapping whose text nobody may write to. */
static bool dtrace_is_text(const struct vm_area_struct *vma)
{
	const vm_flags_t wanted = VM_MAYEXEC, unwanted = VM_HUGETLB | VM_MAYSHARE | VM_WRITE;

	return (vma->vm_flags & (wanted | unwanted)) == wanted && dtrace_has_good_text(vma);
}

/* Whether a process has such text at an address; if its mappings cannot be seen in time, that it has. The framework's lock is held. */
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
 * The mapping whose text a process has at an address, as the kernel's uprobes can have it; its file is counted for the caller. No file: it is
 * code that the program has made, or the vdso, and nothing that may be written to.
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
	/* Where it is the last one, to end the memory may wait for whoever serves its requests. */
	mmput_async(mm);
	return error;
}

/* Whether a program answers for what the files hold, which may never do so. */
bool dtrace_fs_is_served(const struct super_block *sb)
{
	const char *type = sb->s_type->name;

	return !strcmp(type, "fuse") || !strcmp(type, "fuseblk");
}

bool dtrace_file_is_served(const struct file *file)
{
	return dtrace_fs_is_served(file_inode(file)->i_sb);
}

/* Reads text; the number of bytes that there are, or a negative errno. */
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
	if (carrier->uncarried || (carrier->kept && !carrier->joins)) {
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

/* Some could not be set that nobody has waited for since. Kept by who sets and frees them, who holds the framework's lock. */
static bool dtrace_carriers_failed;

/*
 * Sets breakpoints of one process, in the order of their addresses; each one's error tells of it. ETIMEDOUT: the program has kept its
 * memory for itself, or its pages could not be had in time. The caller keeps the files until dtrace_carriers_sync() after dtrace_carriers_clear().
 */
void dtrace_carriers_set(struct dtrace_carrier **all, size_t count)
{
	struct dtrace_patience patience;
	size_t n;

	for (n = 0; n < count; n++) {
		struct dtrace_carrier *carrier = all[n];

		/* It may have been tried before. */
		carrier->sought = false;
		carrier->rewritten = false;
		carrier->changed = false;
		carrier->consumer.handler = dtrace_carrier_hit;
		carrier->consumer.filter = dtrace_carrier_meant;
		carrier->error = carrier->trap ? dtrace_trap_add(carrier) : 0;
		/* One is left behind there. */
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
		/* It may have been hit in the meantime. */
		carrier->failed |= carrier->answered;
		dtrace_carriers_failed |= carrier->failed;
		dtrace_trap_remove(carrier);
	}
	dtrace_patience_over(&patience);
}

/* To be called before one that has failed to be set is freed. */
void dtrace_carrier_settle(struct dtrace_carrier *carrier)
{
	/* One wait is for all of them. */
	if (carrier->failed && dtrace_carriers_failed) {
		dtrace_carriers_failed = false;
		dtrace_carriers_sync(true);
	}
}

/* Takes breakpoints away until some time, as patience.c has it; whether uprobes had any. */
bool dtrace_carriers_take(struct dtrace_carrier **all, size_t count, struct dtrace_patience *patience)
{
	bool uprobes = false;
	size_t n;

	dtrace_own_clear(all, count, patience);
	for (n = 0; n < count; n++) {
		struct dtrace_carrier *carrier = all[n];

		if (carrier->stays)
			continue;
		/* What is looked up for uprobes says whether a debugger's breakpoint stays: dtrace_watch_keeps(). */
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
 * They may be hit until dtrace_carriers_sync(), which is to wait for uprobes where this says so. Those that stay are to be given to
 * dtrace_carrier_leave() after that.
 */
bool dtrace_carriers_clear(struct dtrace_carrier **all, size_t count)
{
	struct dtrace_patience patience = dtrace_patience_for(all, count);
	bool uprobes = dtrace_carriers_take(all, count, &patience);

	dtrace_patience_over(&patience);
	return uprobes;
}

/* Whether it was set and nobody has it any more. */
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
