// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Kernel stacks by the kernel's own tables, with a walk of our own.
 *
 * objtool tells for each instruction of the kernel where its caller's frame is (ORC, arch/x86/kernel/unwind_orc.c). The kernel's walk by that
 * calls a dozen functions a frame, all of which can be traced: with all of them enabled each stack lost thousands of firings. Ours calls none,
 * and keeps the rules that it has found, a few hundred a CPU: most stacks are like the one before.
 *
 * What the kernel knows better is left to it, from that frame on: BPF's code, and return addresses that somebody has replaced whom we do not know.
 *
 * Interrupts are off. A rule of the kernel proper stays for ever, and one of a module until modules change. No rule is trusted: words are read
 * from what the kernel says are its stacks, each of which is entered once, and in each the stack pointer grows.
 */

#include <linux/ftrace.h>
#include <linux/hash.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/rethook.h>
#include <linux/sched/task_stack.h>
#include <asm/stacktrace.h>
#include <asm/unwind.h>

#include "providers.h"
#include "stacks.h"

#ifdef CONFIG_UNWINDER_ORC

#include <asm/orc_lookup.h>
#include <asm/orc_types.h>

#define DTRACE_ORC_BITS 8

struct dtrace_orc_rule {
	unsigned long at;
	struct orc_entry rule;
	/* Of a function that has only called: see dtrace_orc_calls(). */
	bool is_plain : 1, by_bp : 1, has_bp : 1;
};

/* Rules that were found, by the instruction. */
struct dtrace_orc_cache {
	int modules;
	struct dtrace_orc_rule rules[1 << DTRACE_ORC_BITS];
};

static struct dtrace_orc_cache __percpu *dtrace_orc_caches;

/* How often modules have come or gone. */
static atomic_t dtrace_orc_modules = ATOMIC_INIT(0);

/* Where the kernel has its tables, and what it does not export. */
static struct {
	uintptr_t text, end;
	/* Of the boot, whose stack the idle task of the first CPU still has. */
	uintptr_t init, init_end;
	uintptr_t places, places_end, rules;
	uintptr_t blocks, blocks_end;
	uintptr_t modules;
	uintptr_t stack_info;
	/* Return addresses that stand for others, and who tells what for, which cannot be traced. */
	uintptr_t graph, graph_address, rethook;
	/* Who traces functions, and the code that ftrace copies for each. */
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

/* A walk. */
struct dtrace_orc_walk {
	struct dtrace_orc_cache *cache;
	unsigned long ip, sp, bp;
	/* The registers that were saved last, if no call was made since; those before, if the last ones are a part. */
	const struct pt_regs *regs, *before;
	bool is_whole;
	/* It was interrupted at that instruction; otherwise it has called, and the instruction is the one before. */
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

/* The last of these rules, which are in order, that begins at an instruction or before it; the first if none does. */
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

	/* A module that goes is freed when no CPU has interrupts off that had them off before. */
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

/* The rule of an instruction of a trampoline: that of the code that it is a copy of. Such code is freed as modules are. */
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

/* The rule of an instruction, if it is one of the kernel, of a module or of a trampoline. */
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

/* Whether some bytes are of a stack: of the one that the walk is in, or of one that it has not been in. */
static bool dtrace_orc_enter(struct dtrace_orc_walk *walk, unsigned long address, size_t size)
{
	struct stack_info found = {};

	/* A bool is one byte. */
	if (!(u8)dtrace_call(dtrace_orc.stack_info, address, (uintptr_t)current, (uintptr_t)&found, 0, 0))
		return false;
	if (walk->visited & BIT(found.type))
		return false;
	walk->visited |= BIT(found.type);
	walk->stack = found;
	return on_stack(&walk->stack, (void *)address, size);
}

/* Between two tasks the processor is on the stack of the next one already, and `current` is the one before. */
static bool dtrace_orc_enter_next(struct dtrace_orc_walk *walk)
{
	/* It begins at a multiple of its size. Registers may say that it is anywhere: it has to be the one that we are on. */
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

/* Where the stack pointer was before the call, or where the registers lie. */
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
	/* The kernel goes on. */
	DTRACE_ORC_KERNEL,
};

/* What an address stands for that kretprobes have put in its place of the stack; 0: nobody knows. */
static unsigned long dtrace_orc_hooked(unsigned long at)
{
#ifdef CONFIG_RETHOOK
	const struct llist_node *node = READ_ONCE(current->rethooks.first);
	bool is_there = false;

	/* The last one who has replaced it is the first; who did before him has the address. */
	for (; node; node = READ_ONCE(node->next)) {
		const struct rethook_node *hook = container_of(node, struct rethook_node, llist);

		is_there |= hook->frame == at;
		if (is_there && hook->ret_addr != dtrace_orc.rethook)
			return hook->ret_addr;
	}
#endif
	return 0;
}

/* What a return address, at its place of the stack, stands for. False: the kernel may know. */
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

/* Registers that lie on the stack, all of them or those that the processor saves. */
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
	/* It may just have returned to where the address led that was put in place of another. */
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

/* From a frame to its caller. If the kernel is to go on the walk has not moved. */
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

/* The kernel's walk from a frame on, whose address is given too unless it was. */
static noinline unsigned int dtrace_orc_go_on(const struct dtrace_orc_walk *walk, unsigned long *frames, unsigned int room, bool is_given)
{
	/* Of a frame that has called the instruction before is looked up. */
	struct pt_regs regs = { .ip = walk->is_exact ? walk->ip : walk->ip - 1, .sp = walk->sp, .bp = walk->bp, .cs = __KERNEL_CS };
	struct unwind_state here = { .ip = walk->ip, .stack_info = walk->stack };

	if (is_given)
		return dtrace_stack_callers(frames, room, &regs);
	/* Not every address is of code. */
	if (!room || !unwind_get_return_address(&here))
		return 0;
	frames[0] = walk->ip;
	return 1 + dtrace_stack_callers(frames + 1, room - 1, &regs);
}

/*
 * Most frames are of functions that have called another, on the same stack, and their rules are kept. Walks those, in few instructions a frame, and stops
 * at the first frame that is none of them: the caller goes on there. Returns how many frames there are then.
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
		/* The words of a frame lie from its stack pointer on, which is on the stack. */
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
	/* The instruction that registers say is given whatever it is. */
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

/* The current task's stack from these registers on, of kernel mode. False: it is not known how to walk it. */
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

/* The same from here on. */
bool dtrace_orc_here(unsigned long *frames, unsigned int room, unsigned int *n)
{
	struct dtrace_orc_walk walk = {};

	if (!dtrace_orc_caches)
		return false;
	/* The frame pointer first: the compiler may use its register for one of the others. */
	asm volatile("mov %%rbp, %0\n\tmov %%rsp, %1\n\tlea (%%rip), %2" : "=r" (walk.bp), "=r" (walk.sp), "=r" (walk.ip));
	*n = dtrace_orc_frames(&walk, frames, room);
	return true;
}

/* Where the kernel does not have all that it takes, its own walk does it. */
int dtrace_orc_init(void)
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

/* Nobody walks any more. */
void dtrace_orc_exit(void)
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

int dtrace_orc_init(void)
{
	return 0;
}

void dtrace_orc_exit(void)
{
}

#endif
