// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * The bodies of instruction.h, by the kernel's kprobes. This object is built without ftrace,
 * because a hit is probe context.
 */

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
	/* How many of the hits that the kernel has skipped were reported. */
	atomic_long_t told;
};

/*
 * Returns the number of hits that the kernel has skipped since the last call: those during the
 * handling of another kprobe. In any context.
 */
u64 dtrace_breakpoint_lost(struct dtrace_breakpoint *breakpoint)
{
	long told = atomic_long_read(&breakpoint->told);
	unsigned long lost;

	do {
		lost = READ_ONCE(breakpoint->kprobe.nmissed) - told;
		/* Another CPU has reported more meanwhile. */
		if ((long)lost <= 0)
			return 0;
	} while (!atomic_long_try_cmpxchg(&breakpoint->told, &told, told + lost));
	return lost;
}
NOKPROBE_SYMBOL(dtrace_breakpoint_lost);

/* Whether the kernel has counted the breakpoint in progress on this CPU as an NMI. */
static DEFINE_PER_CPU(bool, dtrace_breakpoint_counted);

/*
 * What the handling of a breakpoint in progress has added to this CPU's preempt count. To the
 * interrupted code these are no interrupts.
 */
unsigned long dtrace_breakpoint_offset(void)
{
	return raw_cpu_read(dtrace_breakpoint_counted) ? NMI_OFFSET + HARDIRQ_OFFSET : 0;
}

static int dtrace_breakpoint_hit(struct kprobe *kprobe, struct pt_regs *regs)
{
	struct dtrace_breakpoint *breakpoint = container_of(kprobe, struct dtrace_breakpoint, kprobe);
	unsigned long ip = instruction_pointer(regs);
	struct dtrace_instruction *instruction;

	/*
	 * False if ftrace or a jump has led here. A jump in an NMI cannot be told from a
	 * breakpoint, so such a hit is taken for one in a thread.
	 */
	raw_cpu_write(dtrace_breakpoint_counted, in_nmi() && !kprobe_ftrace(kprobe));

	/*
	 * The instruction pointer may be behind the breakpoint by now; probes see the address of
	 * the instruction, and kprobes get back their own value.
	 */
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
 * Whether registration has failed without an error. Up to Linux 7.3 at least, register_kprobe()
 * returns 0 if ftrace could not be armed for want of memory, and unhashes the kprobe. The list
 * node's poison tells. The same poison is there if another kprobe has taken the place in the hash
 * list and this one has joined its list; the kernel does that before it poisons the node.
 */
static bool dtrace_breakpoint_forgotten(struct kprobe *kprobe)
{
	if (!kprobe_ftrace(kprobe) || READ_ONCE(kprobe->hlist.pprev) != LIST_POISON2)
		return false;
	smp_rmb();
	return list_empty(&kprobe->list);
}

/* Arguments and result of a registration or removal. */
struct dtrace_kprobes {
	struct kprobe **all;
	size_t count;
	int error;
};

/* A separate function, so that a test can make the allocations in it fail. */
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

	/* Our own code handles a hit. */
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
 * Whether a breakpoint can be set. The kernel knows where instructions begin, and which of its own
 * it needs to handle a breakpoint. The only way to ask it is to register a kprobe; a disabled one
 * does not change the code. May sleep.
 */
int dtrace_breakpoint_try(uintptr_t addr)
{
	struct kprobe kprobe = { .flags = KPROBE_FLAG_DISABLED }, *one = &kprobe;
	int error = dtrace_breakpoint_register(&kprobe, addr);

	if (!error)
		dtrace_breakpoints_unregister(&one, 1);
	return error;
}

/* Sets a breakpoint; an error pointer if it cannot be set. May sleep. */
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
 * Removes breakpoints. Afterwards no CPU is in hit() of any of them; one grace period serves all.
 * Works too if the instruction has gone with its module. If the kernel cannot remove one (for want
 * of memory, because ftrace's filter is copied), it keeps calling us; then hit() is never called
 * again, and this module's code stays.
 */
void dtrace_breakpoints_remove(struct dtrace_breakpoint **all, size_t count)
{
	bool any_stays = false;
	size_t n;

	/* Lets an array of breakpoints be passed as one of kprobes. */
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
