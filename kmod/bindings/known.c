// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Places where breakpoints of ours are or were.
 *
 * A breakpoint may turn up where nobody wants it: a child has it from its parent, a text that is mapped elsewhere took it along, a
 * debugger has saved it and puts it back. So what stood in its place is known as long as there is any memory that breakpoints of ours
 * were in, by file and not by address; the bytes of a file are the same for all that map it. No file is held for that.
 *
 * Where somebody has a uprobe too only uprobes know whether a breakpoint is still wanted in a memory that is none of ours. A consumer
 * that soon wants it nowhere, a guard, makes them handle it in any case: they take it away then where nobody else wants it.
 */

#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/rhashtable.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "own.h"

struct dtrace_guard {
	struct uprobe_consumer consumer;
	struct uprobe *uprobe;
	struct file *file;
	/* Where it is wanted while it is registered: uprobes look at an instruction when they set the first breakpoint there, not before. */
	struct mm_struct *first;
};

static const struct rhashtable_params dtrace_known_params = {
	.key_len = sizeof(struct dtrace_file_place),
	.key_offset = offsetof(struct dtrace_known, place),
	.head_offset = offsetof(struct dtrace_known, node),
	.automatic_shrinking = true,
};

static struct rhashtable dtrace_known;

/* The caller keeps the mapping as it is. */
static struct dtrace_file_place dtrace_place_of(struct vm_area_struct *vma, u64 address)
{
	const struct inode *inode = file_inode(vma->vm_file);

	return (struct dtrace_file_place){
		.dev = inode->i_sb->s_dev,
		.ino = inode->i_ino,
		.generation = inode->i_generation,
		.offset = dtrace_offset_of(vma, address),
	};
}

/* What is known of where an address is; the caller keeps the mapping, and is seen by RCU or keeps the memory. Does not sleep. */
struct dtrace_known *dtrace_known_at(struct vm_area_struct *vma, u64 address)
{
	struct dtrace_file_place place;

	if (!vma->vm_file || !(vma->vm_flags & VM_MAYEXEC))
		return NULL;
	place = dtrace_place_of(vma, address);
	guard(rcu)();
	return rhashtable_lookup(&dtrace_known, &place, dtrace_known_params);
}

/* Has it known; NULL if there is no memory for that. */
struct dtrace_known *dtrace_known_make(struct vm_area_struct *vma, u64 address, u8 byte)
{
	struct dtrace_known *known, *other;

	known = kzalloc(sizeof(*known), GFP_KERNEL_ACCOUNT);
	if (!known)
		return NULL;
	known->place = dtrace_place_of(vma, address);
	known->byte = byte;
	other = rhashtable_lookup_get_insert_fast(&dtrace_known, &known->node, dtrace_known_params);
	if (!other)
		return known;
	kfree(known);
	if (IS_ERR(other))
		return NULL;
	/* The file has been written to. */
	WRITE_ONCE(other->byte, byte);
	return other;
}

static bool dtrace_guard_filter(struct uprobe_consumer *consumer, struct mm_struct *mm)
{
	return mm == READ_ONCE(container_of(consumer, struct dtrace_guard, consumer)->first);
}

static int dtrace_guard_hit(struct uprobe_consumer *consumer, struct pt_regs *regs, __u64 *data)
{
	return UPROBE_HANDLER_REMOVE;
}

static DEFINE_MUTEX(dtrace_guards_lock);

/* Has uprobes see to the place, which is in this file and has a breakpoint in the current memory. */
int dtrace_known_guard(struct dtrace_known *known, struct file *file)
{
	struct dtrace_guard *made;
	int error;

	guard(mutex)(&dtrace_guards_lock);
	if (known->guard)
		return 0;
	made = kzalloc(sizeof(*made), GFP_KERNEL);
	if (!made)
		return -ENOMEM;
	made->consumer.filter = dtrace_guard_filter;
	made->consumer.handler = dtrace_guard_hit;
	made->first = current->mm;
	made->uprobe = uprobe_register(file_inode(file), known->place.offset, 0, &made->consumer);
	if (IS_ERR(made->uprobe)) {
		error = PTR_ERR(made->uprobe);
		kfree(made);
		return error;
	}
	WRITE_ONCE(made->first, NULL);
	made->file = get_file(file);
	WRITE_ONCE(known->guard, made);
	return 0;
}

static void dtrace_known_free(void *object, void *data)
{
	struct dtrace_known *known = object;
	struct dtrace_guard *guard = known->guard;

	if (guard) {
		uprobe_unregister_nosync(guard->uprobe, &guard->consumer);
		uprobe_unregister_sync();
		fput(guard->file);
		kfree(guard);
	}
	kfree(known);
}

int dtrace_known_init(void)
{
	return rhashtable_init(&dtrace_known, &dtrace_known_params);
}

void dtrace_known_exit(void)
{
	rhashtable_free_and_destroy(&dtrace_known, dtrace_known_free, NULL);
}

/* Nothing is known any more, and nobody looks or makes anything known. */
void dtrace_known_forget(void)
{
	if (!atomic_read(&dtrace_known.nelems))
		return;
	dtrace_known_exit();
	/* Cannot fail: the kernel makes a smaller table where memory is short. */
	if (dtrace_known_init())
		pr_err("dtrace: no table of places\n");
}

/* Takes breakpoints out of a mapping. */
static void dtrace_known_heal_in(struct mm_struct *mm, struct vm_area_struct *vma)
{
	struct dtrace_file_place first = dtrace_place_of(vma, vma->vm_start);
	u64 end = first.offset + (vma->vm_end - vma->vm_start);
	struct rhashtable_iter iter;
	struct dtrace_known *known;

	rhashtable_walk_enter(&dtrace_known, &iter);
	rhashtable_walk_start(&iter);
	while ((known = rhashtable_walk_next(&iter))) {
		struct dtrace_file_place *place = &known->place;

		if (IS_ERR(known) || place->dev != first.dev || place->ino != first.ino ||
		    place->generation != first.generation || place->offset < first.offset || place->offset >= end)
			continue;
		rhashtable_walk_stop(&iter);
		dtrace_poke(mm, vma->vm_start + (place->offset - first.offset), DTRACE_INT3, known->byte);
		rhashtable_walk_start(&iter);
	}
	rhashtable_walk_stop(&iter);
	rhashtable_walk_exit(&iter);
}

/* Takes all breakpoints out that may be ours. Nobody has any more in it that is wanted. */
void dtrace_known_heal(struct dtrace_memory *memory)
{
	struct mm_struct *mm = memory->mm;
	struct vm_area_struct *vma;

	if (!mmget_not_zero(mm))
		return;
	mmap_read_lock(mm);
	VMA_ITERATOR(vmi, mm, 0);
	for_each_vma(vmi, vma) {
		if (vma->vm_file && vma->anon_vma && vma->vm_flags & VM_MAYEXEC)
			dtrace_known_heal_in(mm, vma);
		cond_resched();
	}
	mmap_read_unlock(mm);
	mmput(mm);
}
