// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

/*
 * A module that lets allocations fail: those that one process makes while dtrace.ko is at work for it, directly or through what it
 * calls. (The kernel's own fault injection does so to everything a process does, where it is configured; no distribution does.)
 *
 * Parameters, in /sys/module/shortage/parameters: `task`, the process, 0 for none; `nth`, which of its allocations fails;
 * `onwards`, whether all after it fail too; `only`, a part of the name of the function of dtrace.ko that they are for, or nothing; `seen`,
 * how many there were up to it, to be set to 0; `where`, what failed last.
 *
 * An allocator's function is left at its entry, by a kprobe, with NULL as its result. One thread of the process may allocate
 * at a time.
 */

#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/linkage.h>
#include <linux/module.h>
#include <linux/objtool.h>
#include <linux/pgtable.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/stacktrace.h>
#include <linux/string.h>

static int task;
static unsigned long nth, seen;
static bool onwards;
static char only[64], where[512];

module_param(task, int, 0600);
module_param(nth, ulong, 0600);
module_param(seen, ulong, 0600);
module_param(onwards, bool, 0600);
module_param_string(only, only, sizeof(only), 0600);
module_param_string(where, where, sizeof(where), 0400);

/* Where a function is left before it has done anything. */
asmlinkage void shortage_return(void);
asm(".text\n"
    ".type shortage_return, @function\n"
    "shortage_return:\n" ANNOTATE_NOENDBR "\n"
    ASM_RET "\n"
    ".size shortage_return, . - shortage_return\n");

/* The function of dtrace.ko that is at work, in `name`. */
static bool of_dtrace(char name[KSYM_SYMBOL_LEN])
{
	unsigned long entries[40];
	unsigned int n = stack_trace_save(entries, ARRAY_SIZE(entries), 0);

	for (unsigned int i = 0; i < n; i++) {
		/* Symbols are slow to find: those of the kernel itself need not be. */
		if (entries[i] < MODULES_VADDR || entries[i] >= MODULES_END)
			continue;
		sprint_symbol(name, entries[i]);
		if (strstr(name, "[dtrace]"))
			return true;
	}
	return false;
}

static int __kprobes allocates(struct kprobe *probe, struct pt_regs *regs)
{
	static char name[KSYM_SYMBOL_LEN];

	if (!in_task() || task_tgid_nr(current) != READ_ONCE(task))
		return 0;
	/* Rust frees memory by making it smaller than a byte, which does not fail. */
	if (strstr(probe->symbol_name, "realloc") && !regs->si)
		return 0;
	if ((seen >= nth && !onwards) || !of_dtrace(name) || !strstr(name, only) || ++seen < nth)
		return 0;
	scnprintf(where, sizeof(where), "%s for %s", probe->symbol_name, name);
	regs->ax = 0;
	regs->ip = (unsigned long)shortage_return;
	return 1;
}

/* What gives memory or NULL. Those that are not there in this kernel are left out. */
static const char *const names[] = {
	"kmem_cache_alloc_noprof",
	"kmem_cache_alloc_node_noprof",
	"__kmalloc_noprof",
	"__kmalloc_node_noprof",
	"__kmalloc_cache_noprof",
	"__kmalloc_cache_node_noprof",
	"__kmalloc_node_track_caller_noprof",
	"krealloc_node_align_noprof",
	"__kvmalloc_node_noprof",
	"kvrealloc_node_align_noprof",
	"vrealloc_node_align_noprof",
	"__vmalloc_noprof",
	"vmalloc_noprof",
	"vzalloc_noprof",
	"pcpu_alloc_noprof",
};

static struct kprobe probes[ARRAY_SIZE(names)];

static void leave(void)
{
	for (int i = 0; i < ARRAY_SIZE(probes); i++)
		if (probes[i].pre_handler)
			unregister_kprobe(&probes[i]);
}

static int __init shortage_init(void)
{
	for (int i = 0; i < ARRAY_SIZE(probes); i++) {
		int error;

		probes[i].symbol_name = names[i];
		probes[i].pre_handler = allocates;
		error = register_kprobe(&probes[i]);
		if (!error)
			continue;
		probes[i].pre_handler = NULL;
		if (error != -ENOENT) {
			leave();
			return error;
		}
		pr_info("no %s in this kernel\n", names[i]);
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
