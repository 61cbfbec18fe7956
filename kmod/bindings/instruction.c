// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/* The bodies of instruction.h, by the kernel's kprobes. This object is built without ftrace: a hit is probe context. */

#include <linux/err.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/poison.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>

#include "instruction.h"
#include "patching.h"

struct dtrace_breakpoint {
	struct kprobe kprobe;
	struct dtrace_instruction *instruction;
	/* How many of those that the kernel passed over have been told of. */
	atomic_long_t told;
};

/* How many hits the kernel has passed over since this was last asked: those in the midst of another's handling. */
u64 dtrace_breakpoint_lost(struct dtrace_breakpoint *breakpoint)
{
	long told = atomic_long_read(&breakpoint->told);
	unsigned long lost;

	do {
		lost = READ_ONCE(breakpoint->kprobe.nmissed) - told;
		/* Another CPU has told of more meanwhile. */
		if ((long)lost <= 0)
			return 0;
	} while (!atomic_long_try_cmpxchg(&breakpoint->told, &told, told + lost));
	return lost;
}
NOKPROBE_SYMBOL(dtrace_breakpoint_lost);

/* On each processor, whether the kernel has counted the breakpoint that is handled as an NMI. */
static DEFINE_PER_CPU(bool, dtrace_breakpoint_counted);

/* What the handling of a breakpoint has added to the count of interrupts here, which are none to who was stopped. */
unsigned long dtrace_breakpoint_offset(void)
{
	return raw_cpu_read(dtrace_breakpoint_counted) ? NMI_OFFSET + HARDIRQ_OFFSET : 0;
}

static int dtrace_breakpoint_hit(struct kprobe *kprobe, struct pt_regs *regs)
{
	struct dtrace_breakpoint *breakpoint = container_of(kprobe, struct dtrace_breakpoint, kprobe);
	unsigned long ip = instruction_pointer(regs);
	struct dtrace_instruction *instruction;

	/* Not where ftrace or a jump has brought us here; a jump's in an NMI cannot be told apart, and is taken for one of a thread. */
	raw_cpu_write(dtrace_breakpoint_counted, in_nmi() && !kprobe_ftrace(kprobe));

	/* It may be behind the breakpoint by now; kprobes expect it back where they had it. */
	instruction_pointer_set(regs, (unsigned long)kprobe->addr);
	instruction = READ_ONCE(breakpoint->instruction);
	if (likely(instruction))
		instruction->hit(instruction, regs, dtrace_breakpoint_lost(breakpoint));
	instruction_pointer_set(regs, ip);
	raw_cpu_write(dtrace_breakpoint_counted, false);
	return 0;
}
NOKPROBE_SYMBOL(dtrace_breakpoint_hit);

/*
 * Up to 7.3 at least, register_kprobe() says that all is well where ftrace could not be told of it (for want of memory), and forgets
 * it: what it leaves in the list's node tells. The same stands there where another kprobe has taken the place in that list and this one
 * has joined its own; that is done first.
 */
static bool dtrace_breakpoint_forgotten(struct kprobe *kprobe)
{
	if (!kprobe_ftrace(kprobe) || READ_ONCE(kprobe->hlist.pprev) != LIST_POISON2)
		return false;
	smp_rmb();
	return list_empty(&kprobe->list);
}

/* What is done to some kprobes, and what came of it. */
struct dtrace_kprobes {
	struct kprobe **all;
	size_t count;
	int error;
};

/* A function of its own, so that a test can let the allocations fail that are made in it. */
static noinline void dtrace_kprobe_add(void *data)
{
	struct dtrace_kprobes *kprobes = data;

	kprobes->error = register_kprobe(*kprobes->all);
}

static void dtrace_kprobes_drop(void *data)
{
	struct dtrace_kprobes *kprobes = data;

	unregister_kprobes(kprobes->all, kprobes->count);
}

static int dtrace_breakpoint_register(struct kprobe *kprobe, uintptr_t addr)
{
	struct dtrace_kprobes one = { .all = &kprobe, .count = 1 };

	/* A hit is handled by code of ours. */
	if (within_module(addr, THIS_MODULE))
		return -EINVAL;
	kprobe->addr = (kprobe_opcode_t *)addr;
	kprobe->pre_handler = dtrace_breakpoint_hit;
	dtrace_patch(dtrace_kprobe_add, &one);
	return !one.error && dtrace_breakpoint_forgotten(kprobe) ? -ENOMEM : one.error;
}

static void dtrace_breakpoints_unregister(struct kprobe **all, size_t count)
{
	struct dtrace_kprobes kprobes = { .all = all, .count = count };

	dtrace_patch(dtrace_kprobes_drop, &kprobes);
}

/*
 * Whether there can be one: the kernel knows where instructions begin and which of its own it needs to handle one. The only way to
 * ask is to begin, here without touching the code.
 */
int dtrace_breakpoint_try(uintptr_t addr)
{
	struct kprobe kprobe = { .flags = KPROBE_FLAG_DISABLED }, *one = &kprobe;
	int error = dtrace_breakpoint_register(&kprobe, addr);

	if (!error)
		dtrace_breakpoints_unregister(&one, 1);
	return error;
}

/* An error pointer if there can be none. */
struct dtrace_breakpoint *dtrace_breakpoint_set(uintptr_t addr, struct dtrace_instruction *instruction)
{
	struct dtrace_breakpoint *breakpoint = kzalloc(sizeof(*breakpoint), GFP_KERNEL);
	int error;

	if (!breakpoint)
		return ERR_PTR(-ENOMEM);
	breakpoint->instruction = instruction;
	error = dtrace_breakpoint_register(&breakpoint->kprobe, addr);
	if (error) {
		kfree(breakpoint);
		return ERR_PTR(error);
	}
	return breakpoint;
}

/*
 * No CPU is in hit() of any of them any more, after one wait for all. Well also if the instruction has gone with its module. Where the kernel
 * cannot take one away (for want of memory, as ftrace's filter is copied) it keeps calling us: then it leads to nothing, and our code stays.
 */
void dtrace_breakpoints_remove(struct dtrace_breakpoint **all, size_t count)
{
	bool any_stays = false;
	size_t n;

	/* So a list of them is one of kprobes. */
	BUILD_BUG_ON(offsetof(struct dtrace_breakpoint, kprobe));
	dtrace_breakpoints_unregister((struct kprobe **)all, count);
	for (n = 0; n < count; n++) {
		if (all[n]->kprobe.addr) {
			kfree(all[n]);
			continue;
		}
		pr_err("dtrace: a breakpoint could not be removed\n");
		__module_get(THIS_MODULE);
		WRITE_ONCE(all[n]->instruction, NULL);
		any_stays = true;
	}
	if (any_stays)
		synchronize_rcu();
}
