// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Kernel stacks: our own walk by the kernel's own tables (INV-11).
 *
 * objtool tells for each instruction of the kernel where its caller's frame is (ORC,
 * arch/x86/kernel/unwind_orc.c). The kernel's walk by these tables calls a dozen functions for each
 * frame, all of which can be traced: with all functions enabled, each stack dropped thousands of
 * firings. This walk calls none of them, and each CPU keeps the rules that it has found, a few
 * hundred, because most stacks are like the one before.
 *
 * The kernel's walk goes on where only it can: in BPF's code, and at return addresses that an
 * unknown tracer has replaced.
 *
 * Interrupts are off. A kept rule of the kernel proper is valid for ever, and one of a module until
 * a module comes or goes. No rule is trusted: words are read only from what the kernel says are its
 * stacks, each stack is entered once, and within a stack the stack pointer grows.
 */

#include <linux/ftrace.h>
#include <linux/hash.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/rethook.h>
#include <linux/sched/task_stack.h>
#include <asm/stacktrace.h>
#include <asm/unwind.h>

#include "orc.h"
#include "stacks.h"
#include "symbols.h"

#ifdef CONFIG_UNWINDER_ORC

#include <asm/orc_lookup.h>
#include <asm/orc_types.h>

#define DTRACE_ORC_BITS 8

struct dtrace_orc_rule {
	unsigned long at;
	struct orc_entry rule;
	/* Rule of a function that has called another one: see dtrace_orc_calls(). */
	bool is_plain : 1, by_bp : 1, has_bp : 1;
};

/*
 * Rules that were found, by instruction. `modules`: the value of dtrace_orc_modules for which they
 * are valid.
 */
struct dtrace_orc_cache {
	int modules;
	struct dtrace_orc_rule rules[1 << DTRACE_ORC_BITS];
};

static struct dtrace_orc_cache __percpu *dtrace_orc_caches;

/* How often modules have come or gone. */
static atomic_t dtrace_orc_modules = ATOMIC_INIT(0);

/* Addresses of the kernel's tables, and of what it does not export; 0: it does not exist. */
static struct {
	uintptr_t text, end;
	/* Init code, because the idle task of the first CPU still has it on its stack. */
	uintptr_t init, init_end;
	uintptr_t places, places_end, rules;
	uintptr_t blocks, blocks_end;
	uintptr_t modules;
	uintptr_t stack_info;
	/*
	 * Trampolines whose addresses replace return addresses, and the function that tells what
	 * the graph tracer has replaced, which cannot be traced.
	 */
	uintptr_t graph, graph_address, rethook;
	/*
	 * The list of tracers of functions, and the code that ftrace copies to make their
	 * trampolines.
	 */
	uintptr_t tracers, last_tracer, caller, regs_caller;
} dtrace_orc;

static const struct {
	const char *name;
	uintptr_t *at;
	bool may_be_missing;
} dtrace_orc_symbols[] = {
	{ "_stext", &dtrace_orc.text },
	{ "_etext", &dtrace_orc.end },
	{ "_sinittext", &dtrace_orc.init },
	{ "_einittext", &dtrace_orc.init_end },
	{ "__start_orc_unwind_ip", &dtrace_orc.places },
	{ "__stop_orc_unwind_ip", &dtrace_orc.places_end },
	{ "__start_orc_unwind", &dtrace_orc.rules },
	{ "orc_lookup", &dtrace_orc.blocks },
	{ "orc_lookup_end", &dtrace_orc.blocks_end },
	{ "modules", &dtrace_orc.modules },
	{ "get_stack_info_noinstr", &dtrace_orc.stack_info },
	{ "return_to_handler", &dtrace_orc.graph, true },
	{ "ftrace_graph_ret_addr", &dtrace_orc.graph_address, true },
	{ "arch_rethook_trampoline", &dtrace_orc.rethook, true },
	{ "ftrace_ops_list", &dtrace_orc.tracers, true },
	{ "ftrace_list_end", &dtrace_orc.last_tracer, true },
	{ "ftrace_caller", &dtrace_orc.caller, true },
	{ "ftrace_regs_caller", &dtrace_orc.regs_caller, true },
};

/* The state of a walk. */
struct dtrace_orc_walk {
	struct dtrace_orc_cache *cache;
	unsigned long ip, sp, bp;
	/*
	 * The registers that were saved last, if no call was made since; and those before, if the
	 * last ones are only a part (`is_whole`: they are all).
	 */
	const struct pt_regs *regs, *before;
	bool is_whole;
	/*
	 * The frame was interrupted at `ip`. Otherwise it has called another function, and the
	 * instruction before `ip` is looked up.
	 */
	bool is_exact;
	struct stack_info stack;
	unsigned long visited;
};

static int dtrace_orc_changed(struct notifier_block *block, unsigned long event, void *module)
{
	if (event == MODULE_STATE_COMING || event == MODULE_STATE_GOING)
		atomic_inc(&dtrace_orc_modules);
	return NOTIFY_DONE;
}

static struct notifier_block dtrace_orc_notifier = { .notifier_call = dtrace_orc_changed };

/*
 * The last of `count` sorted rules that begins at an instruction or before it; the first one if
 * none does.
 */
static struct orc_entry dtrace_orc_search(const int *places, const struct orc_entry *rules, unsigned int count, unsigned long at)
{
	unsigned int low = 0, high = count;

	while (high - low > 1) {
		unsigned int middle = low + (high - low) / 2;

		if ((unsigned long)&places[middle] + places[middle] <= at)
			low = middle;
		else
			high = middle;
	}
	return rules[low];
}

static bool dtrace_orc_kernel(unsigned long at, struct orc_entry *rule)
{
	const unsigned int *blocks = (const unsigned int *)dtrace_orc.blocks;
	const int *places = (const int *)dtrace_orc.places;
	unsigned int count = (dtrace_orc.places_end - dtrace_orc.places) / sizeof(*places);
	unsigned int start = 0, stop = count;

	if (at >= dtrace_orc.text && at < dtrace_orc.end) {
		unsigned long block = (at - dtrace_orc.text) / LOOKUP_BLOCK_SIZE;

		if (block + 1 >= (dtrace_orc.blocks_end - dtrace_orc.blocks) / sizeof(*blocks))
			return false;
		start = blocks[block];
		stop = blocks[block + 1] + 1;
	} else if (at < dtrace_orc.init || at >= dtrace_orc.init_end) {
		return false;
	}
	if (start >= stop || stop > count)
		return false;
	*rule = dtrace_orc_search(places + start, (const struct orc_entry *)dtrace_orc.rules + start, stop - start, at);
	return true;
}

static bool dtrace_orc_module(unsigned long at, struct orc_entry *rule)
{
	struct module *mod;

	/*
	 * A module that goes is freed only after every CPU has left the section with interrupts off
	 * that it was in.
	 */
	list_for_each_entry_rcu(mod, (struct list_head *)dtrace_orc.modules, list, true) {
		const int *places = READ_ONCE(mod->arch.orc_unwind_ip);

		if (mod->state == MODULE_STATE_UNFORMED || !within_module_mem_type(at, mod, MOD_TEXT))
			continue;
		if (!places || !mod->arch.orc_unwind || !mod->arch.num_orcs)
			return false;
		*rule = dtrace_orc_search(places, mod->arch.orc_unwind, mod->arch.num_orcs, at);
		return true;
	}
	return false;
}

/*
 * Finds the rule of an instruction in a trampoline: it is that of the code that was copied. A
 * trampoline is freed as modules are.
 */
static bool dtrace_orc_trampoline(unsigned long at, struct orc_entry *rule)
{
#ifdef CONFIG_DYNAMIC_FTRACE
	const struct ftrace_ops *ops = dtrace_orc.tracers ? READ_ONCE(*(struct ftrace_ops **)dtrace_orc.tracers) : NULL;

	for (; ops && ops != (void *)dtrace_orc.last_tracer; ops = READ_ONCE(ops->next)) {
		uintptr_t code = ops->flags & FTRACE_OPS_FL_SAVE_REGS ? dtrace_orc.regs_caller : dtrace_orc.caller;
		unsigned long offset = at - READ_ONCE(ops->trampoline);

		if (ops->trampoline && offset < ops->trampoline_size)
			return code && dtrace_orc_kernel(code + offset, rule);
	}
#endif
	return false;
}

static void dtrace_orc_keep(struct dtrace_orc_rule *known, unsigned long at, const struct orc_entry *rule)
{
	const bool by_sp = rule->sp_reg == ORC_REG_SP, by_bp = rule->sp_reg == ORC_REG_BP;
	const bool same_bp = rule->bp_reg == ORC_REG_UNDEFINED, has_bp = rule->bp_reg == ORC_REG_PREV_SP;

	known->at = at;
	known->rule = *rule;
	known->by_bp = by_bp;
	known->has_bp = has_bp;
	known->is_plain = rule->type == ORC_TYPE_CALL && !rule->signal && (by_sp || by_bp) && (same_bp || has_bp);
}

/*
 * Finds the rule of an instruction of the kernel, of a module or of a trampoline; false: it is none
 * of these.
 */
static __always_inline bool dtrace_orc_find(struct dtrace_orc_cache *cache, unsigned long at, struct orc_entry *rule)
{
	struct dtrace_orc_rule *known = &cache->rules[hash_long(at, DTRACE_ORC_BITS)];

	if (likely(known->at == at)) {
		*rule = known->rule;
		return true;
	}
	if (!dtrace_orc_kernel(at, rule) && !dtrace_orc_module(at, rule))
		return dtrace_orc_trampoline(at, rule);
	dtrace_orc_keep(known, at, rule);
	return true;
}

/* Whether the bytes lie on a stack that the walk has not entered before; enters that. */
static bool dtrace_orc_enter(struct dtrace_orc_walk *walk, unsigned long address, size_t size)
{
	struct stack_info found = {};

	/* The function returns a bool, so only the low byte of the register is defined. */
	if (!(u8)dtrace_call(dtrace_orc.stack_info, address, (uintptr_t)current, (uintptr_t)&found, 0, 0))
		return false;
	if (walk->visited & BIT(found.type))
		return false;
	walk->visited |= BIT(found.type);
	walk->stack = found;
	return on_stack(&walk->stack, (void *)address, size);
}

/*
 * In a context switch the processor is on the next task's stack already while `current` is still
 * the previous one. Enters that stack.
 */
static bool dtrace_orc_enter_next(struct dtrace_orc_walk *walk)
{
	/*
	 * A stack begins at a multiple of its size. Registers may contain any stack pointer, so it
	 * must be on the stack that this code runs on.
	 */
	unsigned long begin = round_down(walk->sp, THREAD_SIZE);

	if (!IS_ENABLED(CONFIG_VMAP_STACK) || begin != round_down(current_stack_pointer, THREAD_SIZE))
		return false;
	walk->visited |= BIT(STACK_TYPE_TASK);
	walk->stack = (struct stack_info){ STACK_TYPE_TASK, (void *)begin, (void *)(begin + THREAD_SIZE) };
	return true;
}

static __always_inline bool dtrace_orc_may_read(struct dtrace_orc_walk *walk, unsigned long address, size_t size)
{
	return likely(on_stack(&walk->stack, (void *)address, size)) || dtrace_orc_enter(walk, address, size);
}

static __always_inline bool dtrace_orc_word(struct dtrace_orc_walk *walk, unsigned long address, unsigned long *word)
{
	if (!dtrace_orc_may_read(walk, address, sizeof(*word)))
		return false;
	*word = READ_ONCE_NOCHECK(*(unsigned long *)address);
	return true;
}

static bool dtrace_orc_register(const struct dtrace_orc_walk *walk, size_t offset, unsigned long *value)
{
	const struct pt_regs *regs = walk->is_whole ? walk->regs : walk->before;

	if (!walk->regs || !regs)
		return false;
	*value = READ_ONCE_NOCHECK(*(const unsigned long *)((const char *)regs + offset));
	return true;
}

/*
 * Computes the stack pointer before the call, or the address of the saved registers; false: the
 * rule or the memory does not allow it.
 */
static __always_inline bool dtrace_orc_base(struct dtrace_orc_walk *walk, const struct orc_entry *rule, unsigned long *base)
{
	switch (rule->sp_reg) {
	case ORC_REG_SP:
		*base = walk->sp + rule->sp_offset;
		return true;
	case ORC_REG_BP:
		*base = walk->bp + rule->sp_offset;
		return true;
	case ORC_REG_SP_INDIRECT:
		if (!dtrace_orc_word(walk, walk->sp, base))
			return false;
		*base += rule->sp_offset;
		return true;
	case ORC_REG_BP_INDIRECT:
		return dtrace_orc_word(walk, walk->bp + rule->sp_offset, base);
	case ORC_REG_AX:
		return dtrace_orc_register(walk, offsetof(struct pt_regs, ax), base);
	case ORC_REG_DX:
		return dtrace_orc_register(walk, offsetof(struct pt_regs, dx), base);
	case ORC_REG_DI:
		return dtrace_orc_register(walk, offsetof(struct pt_regs, di), base);
	case ORC_REG_R10:
		return dtrace_orc_register(walk, offsetof(struct pt_regs, r10), base);
	case ORC_REG_R13:
		return dtrace_orc_register(walk, offsetof(struct pt_regs, r13), base);
	default:
		return false;
	}
}

enum dtrace_orc_next {
	DTRACE_ORC_FRAME,
	DTRACE_ORC_END,
	/* The kernel's walk must go on. */
	DTRACE_ORC_KERNEL,
};

/*
 * The original of a return address that rethook has replaced at this place of the stack; 0:
 * unknown.
 */
static unsigned long dtrace_orc_hooked(unsigned long at)
{
#ifdef CONFIG_RETHOOK
	const struct llist_node *node = READ_ONCE(current->rethooks.first);
	bool is_there = false;

	/*
	 * If the address was replaced more than once, the latest node is first, and the oldest has
	 * the original.
	 */
	for (; node; node = READ_ONCE(node->next)) {
		const struct rethook_node *hook = container_of(node, struct rethook_node, llist);

		is_there |= hook->frame == at;
		if (is_there && hook->ret_addr != dtrace_orc.rethook)
			return hook->ret_addr;
	}
#endif
	return 0;
}

/*
 * Finds the original of a return address at its place of the stack. False: only the kernel may know
 * it.
 */
static bool dtrace_orc_recover(unsigned long *ip, unsigned long at)
{
	unsigned long original = 0;
	int index = 0;

	if (*ip == dtrace_orc.rethook)
		original = dtrace_orc_hooked(at);
	else if (dtrace_orc.graph_address)
		original = dtrace_call(dtrace_orc.graph_address, (uintptr_t)current, (uintptr_t)&index, *ip, at, 0);
	if (!original || original == *ip)
		return false;
	*ip = original;
	return true;
}

static __always_inline bool dtrace_orc_original(unsigned long *ip, unsigned long at)
{
	return likely(*ip != dtrace_orc.rethook && *ip != dtrace_orc.graph) || dtrace_orc_recover(ip, at);
}

/*
 * Goes to the frame that was interrupted: its registers lie on the stack, all of them, or only
 * those that the processor saves.
 */
static enum dtrace_orc_next dtrace_orc_interrupted(struct dtrace_orc_walk *walk, unsigned long at, bool is_whole)
{
	const size_t saved = offsetof(struct pt_regs, ip);
	const struct pt_regs *regs = (void *)(is_whole ? at : at - saved);
	unsigned long ip, sp;

	if (!dtrace_orc_may_read(walk, at, is_whole ? sizeof(*regs) : sizeof(*regs) - saved))
		return DTRACE_ORC_END;
	ip = READ_ONCE_NOCHECK(regs->ip);
	sp = READ_ONCE_NOCHECK(regs->sp);
	if (user_mode((struct pt_regs *)regs))
		return DTRACE_ORC_END;
	/*
	 * The interrupted code may just have returned to a trampoline whose address had replaced
	 * another one.
	 */
	if (!dtrace_orc_original(&ip, sp - sizeof(long)))
		return DTRACE_ORC_KERNEL;
	if (is_whole)
		walk->before = NULL;
	else if (walk->is_whole)
		walk->before = walk->regs;
	walk->ip = ip;
	walk->sp = sp;
	walk->regs = regs;
	walk->is_whole = is_whole;
	return DTRACE_ORC_FRAME;
}

/* Goes from a frame to its caller. If it returns DTRACE_ORC_KERNEL, the walk has not moved. */
static __always_inline enum dtrace_orc_next dtrace_orc_step(struct dtrace_orc_walk *walk, const struct orc_entry *rule)
{
	const unsigned long before = walk->sp;
	const enum stack_type type = walk->stack.type;
	enum dtrace_orc_next next;
	unsigned long base, ip;

	if (!dtrace_orc_base(walk, rule, &base))
		return DTRACE_ORC_END;
	switch (rule->type) {
	case ORC_TYPE_CALL:
		if (!dtrace_orc_word(walk, base - sizeof(long), &ip))
			return DTRACE_ORC_END;
		if (!dtrace_orc_original(&ip, base - sizeof(long)))
			return DTRACE_ORC_KERNEL;
		walk->ip = ip;
		walk->sp = base;
		walk->regs = NULL;
		walk->before = NULL;
		break;
	case ORC_TYPE_REGS:
	case ORC_TYPE_REGS_PARTIAL:
		next = dtrace_orc_interrupted(walk, base, rule->type == ORC_TYPE_REGS);
		if (next != DTRACE_ORC_FRAME)
			return next;
		break;
	default:
		return DTRACE_ORC_END;
	}
	walk->is_exact = rule->signal;
	switch (rule->bp_reg) {
	case ORC_REG_UNDEFINED:
		dtrace_orc_register(walk, offsetof(struct pt_regs, bp), &walk->bp);
		break;
	case ORC_REG_PREV_SP:
		if (!dtrace_orc_word(walk, base + rule->bp_offset, &walk->bp))
			return DTRACE_ORC_END;
		break;
	case ORC_REG_BP:
		if (!dtrace_orc_word(walk, walk->bp + rule->bp_offset, &walk->bp))
			return DTRACE_ORC_END;
		break;
	default:
		return DTRACE_ORC_END;
	}
	return walk->stack.type == type && walk->sp <= before && on_stack(&walk->stack, (void *)walk->sp, sizeof(long)) ?
		DTRACE_ORC_END : DTRACE_ORC_FRAME;
}

/*
 * Walks on from a frame by the kernel's walk. `is_given`: the frame itself is in `frames` already.
 * Returns the number of frames that were added.
 */
static noinline unsigned int dtrace_orc_go_on(const struct dtrace_orc_walk *walk, unsigned long *frames, unsigned int room, bool is_given)
{
	/* If the frame has called another function, the instruction before is looked up. */
	struct pt_regs regs = { .ip = walk->is_exact ? walk->ip : walk->ip - 1, .sp = walk->sp, .bp = walk->bp, .cs = __KERNEL_CS };
	struct unwind_state here = { .ip = walk->ip, .stack_info = walk->stack };

	if (is_given)
		return dtrace_stack_callers(frames, room, &regs);
	/* The address may not be one of code. */
	if (!room || !unwind_get_return_address(&here))
		return 0;
	frames[0] = walk->ip;
	return 1 + dtrace_stack_callers(frames + 1, room - 1, &regs);
}

/*
 * Most frames are of functions that have called another one, on the same stack, and their rules are
 * kept. Walks these in few instructions for each frame, and stops at the first frame that is not of
 * that kind; the caller goes on there. Returns the number of frames so far.
 */
static unsigned int dtrace_orc_calls(struct dtrace_orc_walk *walk, unsigned long *frames, unsigned int n, unsigned int room)
{
	const unsigned long end = (unsigned long)walk->stack.end - sizeof(long);
	const unsigned long rethook = dtrace_orc.rethook, graph = dtrace_orc.graph;
	const struct dtrace_orc_rule *rules = walk->cache->rules;
	unsigned long ip = walk->ip, sp = walk->sp, bp = walk->bp;

	if (!on_stack(&walk->stack, (void *)sp, sizeof(long)))
		return n;
	while (n < room) {
		const struct dtrace_orc_rule *known = &rules[hash_long(ip - 1, DTRACE_ORC_BITS)];
		unsigned long base, caller, saved = bp;

		if (known->at != ip - 1 || !known->is_plain)
			break;
		base = (known->by_bp ? bp : sp) + known->rule.sp_offset;
		/*
		 * The words of a frame lie between its stack pointer and `base`, which is on the
		 * stack.
		 */
		if (base < sp + sizeof(long) || base > end)
			break;
		caller = READ_ONCE_NOCHECK(*(unsigned long *)(base - sizeof(long)));
		if (caller == rethook || caller == graph)
			break;
		if (known->has_bp) {
			unsigned long at = base + known->rule.bp_offset;

			if (at < sp || at > end)
				break;
			saved = READ_ONCE_NOCHECK(*(unsigned long *)at);
		}
		frames[n++] = ip;
		ip = caller;
		sp = base;
		bp = saved;
	}
	if (sp != walk->sp) {
		walk->ip = ip;
		walk->sp = sp;
		walk->bp = bp;
		walk->regs = NULL;
		walk->before = NULL;
	}
	return n;
}

static unsigned int dtrace_orc_frames(struct dtrace_orc_walk *walk, unsigned long *frames, unsigned int room)
{
	const int modules = atomic_read(&dtrace_orc_modules);
	/* The instruction in the registers is returned whatever it is. */
	const bool has_first = walk->regs;
	bool is_given;
	unsigned int n = 0;

	walk->cache = this_cpu_ptr(dtrace_orc_caches);
	if (unlikely(walk->cache->modules != modules)) {
		memset(walk->cache->rules, 0, sizeof(walk->cache->rules));
		walk->cache->modules = modules;
	}
	if (has_first && room)
		frames[n++] = walk->ip;
	if (!dtrace_orc_enter(walk, walk->sp, sizeof(long)) && !dtrace_orc_enter_next(walk))
		return n;
	for (is_given = has_first;; is_given = false) {
		struct orc_entry rule;
		unsigned long at;

		if (!is_given && !walk->is_exact)
			n = dtrace_orc_calls(walk, frames, n, room);
		if (n >= room || walk->ip < TASK_SIZE_MAX)
			return n;
		at = walk->is_exact ? walk->ip : walk->ip - 1;
		if (unlikely(!dtrace_orc_find(walk->cache, at, &rule)))
			return n + dtrace_orc_go_on(walk, frames + n, room - n, is_given);
		if (!is_given)
			frames[n++] = walk->ip;
		switch (dtrace_orc_step(walk, &rule)) {
		case DTRACE_ORC_FRAME:
			break;
		case DTRACE_ORC_KERNEL:
			return n + dtrace_orc_go_on(walk, frames + n, room - n, true);
		default:
			return n;
		}
	}
}

/*
 * The current task's stack from these registers on, which are of kernel mode; *n: the number of
 * frames. Interrupts are off. False: this walk is not available.
 */
bool dtrace_orc_from(unsigned long *frames, unsigned int room, const struct pt_regs *regs, unsigned int *n)
{
	struct dtrace_orc_walk walk = {
		.ip = regs->ip, .sp = regs->sp, .bp = regs->bp, .regs = regs, .is_whole = true, .is_exact = true,
	};

	if (!dtrace_orc_caches)
		return false;
	*n = user_mode((struct pt_regs *)regs) ? 0 : dtrace_orc_frames(&walk, frames, room);
	return true;
}

/* The same from this function on. */
bool dtrace_orc_here(unsigned long *frames, unsigned int room, unsigned int *n)
{
	struct dtrace_orc_walk walk = {};

	if (!dtrace_orc_caches)
		return false;
	/*
	 * The frame pointer is read first, because the compiler may use its register for one of the
	 * other outputs.
	 */
	asm volatile("mov %%rbp, %0\n\tmov %%rsp, %1\n\tlea (%%rip), %2" : "=r" (walk.bp), "=r" (walk.sp), "=r" (walk.ip));
	*n = dtrace_orc_frames(&walk, frames, room);
	return true;
}

/*
 * Prepares the walk. If the kernel lacks a symbol that the walk needs, returns 0 and leaves stacks
 * to the kernel's walk. May sleep.
 */
int dtrace_stacks_init(void)
{
	size_t i;
	int error;

	for (i = 0; i < ARRAY_SIZE(dtrace_orc_symbols); i++) {
		uintptr_t *at = dtrace_orc_symbols[i].at;

		if (!dtrace_symbol(dtrace_orc_symbols[i].name, at) || (!*at && !dtrace_orc_symbols[i].may_be_missing)) {
			pr_warn("dtrace: the kernel has no symbol %s: its own walk is used for its stacks\n", dtrace_orc_symbols[i].name);
			return 0;
		}
	}
	error = register_module_notifier(&dtrace_orc_notifier);
	if (error)
		return error;
	dtrace_orc_caches = alloc_percpu(struct dtrace_orc_cache);
	if (!dtrace_orc_caches) {
		unregister_module_notifier(&dtrace_orc_notifier);
		return -ENOMEM;
	}
	return 0;
}

/* The caller ensures that no CPU walks a stack any more. */
void dtrace_stacks_exit(void)
{
	if (!dtrace_orc_caches)
		return;
	unregister_module_notifier(&dtrace_orc_notifier);
	free_percpu(dtrace_orc_caches);
	dtrace_orc_caches = NULL;
}

#else

bool dtrace_orc_from(unsigned long *frames, unsigned int room, const struct pt_regs *regs, unsigned int *n)
{
	return false;
}

bool dtrace_orc_here(unsigned long *frames, unsigned int room, unsigned int *n)
{
	return false;
}

int dtrace_stacks_init(void)
{
	return 0;
}

void dtrace_stacks_exit(void)
{
}

#endif
