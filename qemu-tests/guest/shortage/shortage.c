// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

/*
 * A module that makes allocations fail, and with `calls` also registrations and other calls of the
 * kernel that can fail: those that are made while dtrace.ko is on the stack, including allocations
 * by functions that it calls. (The kernel's own fault injection affects everything that a process
 * does, where it is configured, which it is in no distribution.) Below, "allocation" means both.
 *
 * Parameters, in /sys/module/shortage/parameters: `task`, the process for which dtrace.ko works, 0
 * for none, -1 for any, including workers of the kernel; `nth`, which allocation fails; `onwards`,
 * whether all after it fail too; `only`, a part of the name of the function of dtrace.ko that
 * allocates, or empty; `seen`, the number of allocations up to that one, to be set to 0 before;
 * `where`, what failed last, and for whom.
 *
 * With `depth` another allocation fails each time, and `nth` and `onwards` are ignored: an
 * allocation is identified by its path, the calls that led to it from where dtrace.ko was entered,
 * which stays the same when the module is loaded again. In each `run`, which must be a new number,
 * the first allocation fails whose path has not failed before; or the second on a path, if the
 * first has failed in an earlier run, and so on up to `depth`. `seen` is then the number of
 * failures. With `every` only one path in that many is tested. `lost`: the number of allocations
 * whose path did not fit into the table.
 *
 * A kprobe at the entry of an allocator makes it return NULL; at the entry of another function,
 * -EIO, as an integer or as an error pointer. What must not fail does not.
 */

#include <linux/gfp.h>
#include <linux/hash.h>
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/linkage.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/objtool.h>
#include <linux/pgtable.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/stacktrace.h>
#include <linux/string.h>

static int task;
static unsigned long nth, seen;
static unsigned int run, depth, every = 1, lost;
static bool onwards, calling;
static char only[64], where[512];

module_param(task, int, 0600);
module_param(nth, ulong, 0600);
module_param(seen, ulong, 0600);
module_param(run, uint, 0600);
module_param(depth, uint, 0600);
module_param(every, uint, 0600);
module_param(lost, uint, 0400);
module_param(onwards, bool, 0600);
module_param_named(calls, calling, bool, 0400);
module_param_string(only, only, sizeof(only), 0600);
module_param_string(where, where, sizeof(where), 0400);

/* The return instruction with which a function is left before it has done anything. */
asmlinkage void shortage_return(void);
asm(".text\n"
    ".type shortage_return, @function\n"
    "shortage_return:\n" ANNOTATE_NOENDBR "\n"
    ASM_RET "\n"
    ".size shortage_return, . - shortage_return\n");

/* Protects all that follows. */
static DEFINE_RAW_SPINLOCK(lock);

/* Only instructions of modules need a symbol. */
static bool is_module(unsigned long addr)
{
	return addr >= MODULES_VADDR && addr < MODULES_END;
}

static unsigned long mixed(unsigned long hash, unsigned long word)
{
	return (hash ^ word) * 0x100000001b3UL;
}

/*
 * What is known of an instruction of a module: whether it is dtrace.ko's, its name, and a hash of
 * the name. When the module is loaded again, its address differs and the name is the same. Cached
 * until a module is loaded or unloaded, because symbol lookups are very slow.
 */
static struct symbol {
	unsigned long addr, hash;
	bool ours;
	char name[104];
} symbols[1 << 12];

static const struct symbol *symbol_of(unsigned long addr)
{
	struct symbol *symbol = &symbols[hash_long(addr, 12)];
	static char name[KSYM_SYMBOL_LEN];

	if (symbol->addr == addr)
		return symbol;
	sprint_symbol(name, addr);
	*symbol = (struct symbol){ .addr = addr, .hash = 1, .ours = strstr(name, "[dtrace]") };
	for (const char *c = name; *c; c++)
		symbol->hash = mixed(symbol->hash, *c);
	strscpy(symbol->name, name);
	return symbol;
}

static bool is_dtrace(unsigned long addr)
{
	return is_module(addr) && symbol_of(addr)->ours;
}

static int changes(struct notifier_block *block, unsigned long event, void *module)
{
	guard(raw_spinlock_irqsave)(&lock);
	memset(symbols, 0, sizeof(symbols));
	return NOTIFY_DONE;
}

static struct notifier_block modules = { .notifier_call = changes };

/* How an allocation is reached. */
static struct calls {
	unsigned long entries[64];
	/* A hash of the calls up to the outermost one of dtrace.ko; and the name of its
	 * innermost function. */
	unsigned long hash;
	char name[sizeof_field(struct symbol, name)];
} calls;

static bool look_at(struct calls *calls)
{
	unsigned int n = stack_trace_save(calls->entries, ARRAY_SIZE(calls->entries), 0);
	unsigned long hash = 1;
	bool found = false;

	for (unsigned int i = 0; i < n; i++) {
		const struct symbol *symbol = is_module(calls->entries[i]) ? symbol_of(calls->entries[i]) : NULL;

		hash = mixed(hash, symbol ? symbol->hash : calls->entries[i]);
		if (!symbol || !symbol->ours)
			continue;
		if (!found)
			strscpy(calls->name, symbol->name);
		calls->hash = hash;
		found = true;
	}
	return found;
}

/* A path, the run in which it was last seen, how often in that run, and how often it has failed. */
struct route {
	unsigned long hash;
	unsigned int run, times, failed;
};

static struct route routes[8192];
static unsigned int known;

/* Returns NULL if there is no room for another path. */
static struct route *route_of(const struct calls *calls)
{
	unsigned long hash = calls->hash ?: 1;
	struct route *route;
	unsigned int n;

	for (n = 0; n < ARRAY_SIZE(routes); n++) {
		route = &routes[(hash + n) % ARRAY_SIZE(routes)];
		if (route->hash == hash)
			return route;
		if (!route->hash) {
			route->hash = hash;
			route->failed = known++ % (every ?: 1) ? depth : 0;
			return route;
		}
	}
	lost++;
	return NULL;
}

/* Whether the allocation is the one that fails in this run. */
static bool is_fresh(const struct calls *calls)
{
	struct route *route = route_of(calls);

	if (!route)
		return false;
	if (route->run != run) {
		route->run = run;
		route->times = 0;
	}
	route->times++;
	if (seen || route->failed >= depth || route->times <= route->failed)
		return false;
	route->failed = route->times;
	seen = 1;
	return true;
}

static bool is_nth(void)
{
	return (seen < nth || onwards) && ++seen >= nth;
}

/*
 * A function that returns memory or NULL; if its caller can demand that it does not fail, `flags`
 * is the register with the GFP flags. Or a function that returns `error` on failure, which fails
 * only if dtrace.ko calls it directly.
 */
struct allocator {
	const char *name;
	size_t flags;
	long error;
};

/* Functions that this kernel does not have are skipped. */
static const struct allocator allocators[] = {
	{ "kmem_cache_alloc_noprof", offsetof(struct pt_regs, si) },
	{ "kmem_cache_alloc_node_noprof", offsetof(struct pt_regs, si) },
	{ "kmem_cache_alloc_lru_noprof", offsetof(struct pt_regs, dx) },
	{ "__kmalloc_noprof", offsetof(struct pt_regs, si) },
	{ "__kmalloc_node_noprof" },
	{ "__kmalloc_cache_noprof", offsetof(struct pt_regs, si) },
	{ "__kmalloc_cache_node_noprof", offsetof(struct pt_regs, si) },
	{ "__kmalloc_node_track_caller_noprof" },
	{ "krealloc_node_align_noprof" },
	{ "__kvmalloc_node_noprof" },
	{ "kvrealloc_node_align_noprof" },
	{ "vrealloc_node_align_noprof" },
	{ "__vmalloc_noprof" },
	{ "vmalloc_noprof" },
	{ "vzalloc_noprof" },
	{ "pcpu_alloc_noprof" },
	{ "__alloc_frozen_pages_noprof", offsetof(struct pt_regs, di) },
	{ "register_ftrace_function", 0, -EIO },
	{ "ftrace_set_filter_ips", 0, -EIO },
	{ "rethook_alloc", 0, -EIO },
	{ "tracepoint_probe_register_prio", 0, -EIO },
	{ "register_kprobe", 0, -EIO },
	{ "perf_event_create_kernel_counter", 0, -EIO },
	{ "uprobe_register", 0, -EIO },
	{ "__cpuhp_setup_state", 0, -EIO },
	{ "__cpuhp_state_add_instance", 0, -EIO },
	{ "register_module_notifier", 0, -EIO },
	{ "register_die_notifier", 0, -EIO },
	{ "register_blocking_lsm_notifier", 0, -EIO },
	{ "misc_register", 0, -EIO },
	{ "smp_call_function_single", 0, -EIO },
	{ "task_work_add", 0, -EIO },
	{ "dentry_open", 0, -EIO },
	{ "kernel_read", 0, -EIO },
	{ "shmem_file_setup", 0, -EIO },
	{ "get_unused_fd_flags", 0, -EIO },
	{ "get_user_pages", 0, -EIO },
	{ "get_user_pages_remote", 0, -EIO },
	{ "vm_mmap", 0, -EIO },
};

static struct kprobe probes[ARRAY_SIZE(allocators)];

static bool may_not_fail(const struct kprobe *probe, const struct pt_regs *regs)
{
	size_t flags = allocators[probe - probes].flags;

	return flags && *(const unsigned long *)((const char *)regs + flags) & __GFP_NOFAIL;
}

static int __kprobes allocates(struct kprobe *probe, struct pt_regs *regs)
{
	long error = allocators[probe - probes].error;
	int whose = READ_ONCE(task);

	if (!whose || in_nmi() || (whose > 0 && (!in_task() || task_tgid_nr(current) != whose)))
		return 0;
	/* Rust frees memory by reallocating it with size 0, which does not fail. */
	if ((strstr(probe->symbol_name, "realloc") && !regs->si) || may_not_fail(probe, regs))
		return 0;
	guard(raw_spinlock_irqsave)(&lock);
	if (error && !is_dtrace(*(unsigned long *)kernel_stack_pointer(regs)))
		return 0;
	if ((depth ? seen : seen >= nth && !onwards) || !look_at(&calls) || !strstr(calls.name, only))
		return 0;
	if (!(depth ? is_fresh(&calls) : is_nth()))
		return 0;
	scnprintf(where, sizeof(where), "%s for %s, %s", probe->symbol_name, calls.name, current->comm);
	regs->ax = error;
	regs->ip = (unsigned long)shortage_return;
	return 1;
}

static void leave(void)
{
	unregister_module_notifier(&modules);
	for (int i = 0; i < ARRAY_SIZE(probes); i++)
		if (probes[i].pre_handler)
			unregister_kprobe(&probes[i]);
}

static int __init shortage_init(void)
{
	/* Registered before calls of this function are watched. */
	if (register_module_notifier(&modules))
		return -ENOMEM;
	for (int i = 0; i < ARRAY_SIZE(probes); i++) {
		int error;

		/* Watching these functions slows down everybody's registrations, so it is
		 * optional. */
		if (allocators[i].error && !calling)
			continue;
		probes[i].symbol_name = allocators[i].name;
		probes[i].pre_handler = allocates;
		error = register_kprobe(&probes[i]);
		if (!error)
			continue;
		probes[i].pre_handler = NULL;
		if (error != -ENOENT) {
			leave();
			return error;
		}
		pr_info("no %s in this kernel\n", allocators[i].name);
	}
	return 0;
}

static void __exit shortage_exit(void)
{
	leave();
}

module_init(shortage_init);
module_exit(shortage_exit);
MODULE_DESCRIPTION("Lets allocations fail");
MODULE_LICENSE("GPL");
