// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * What debuggers see of a program's text, and what they write there (INV-45).
 *
 * A debugger that finds a breakpoint of ours in a program's text takes it for the program's own, or
 * saves it as the byte that it is to put back. gdb goes on behind a breakpoint of the program, so
 * the instruction beneath ours would not be executed. So a tracer that reads a program's memory by
 * ptrace() or /proc/PID/mem gets the text without our breakpoints, and what it writes there leaves
 * them in place: if it writes a breakpoint, it covers ours, the carrier notes whose that is, and
 * traps.c makes both take effect. If it makes another instruction, ours is lost, and its consumers
 * are notified, because nobody could execute the new instruction for us.
 *
 * Both ways lead through access_remote_vm(), which watch.c hooks. What is to be written is changed
 * before. What has been read is changed when the function returns, by a rethook: its trampoline is
 * the kernel's, so a reader may sleep while the module goes. A user has few hooks at a time; what
 * is read without one is shown as it is.
 *
 * process_vm_readv() copies straight to the reader, so nothing can be changed there. A process that
 * reads a memory by that call has seen our breakpoints, so what it writes later is left as it is,
 * until another process reads the memory that way.
 */

#include <linux/cred.h>
#include <linux/err.h>
#include <linux/irqflags.h>
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/ptrace.h>
#include <linux/rcupdate.h>
#include <linux/rethook.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/string.h>
#include <linux/uidgid.h>
#include <asm/syscall.h>

#include "own.h"
#include "pool.h"
#include "symbols.h"

/*
 * Number of accesses that users who share a count may have hooked at a time, and the number of such
 * counts.
 */
#define DTRACE_SHOWN_EACH 16
#define DTRACE_SHOWN_PAYERS 64

/* The length of the longest instruction, without its first byte. */
#define DTRACE_INSIDE (DTRACE_CODE_MAX - 1)

/* A debugger's access to a memory. */
struct dtrace_access {
	struct rethook_node node;
	struct mm_struct *mm;
	u64 address;
	u8 *bytes;
	int size;
	/*
	 * The current process has read the memory by process_vm_readv(), which shows our
	 * breakpoints.
	 */
	bool is_raw;
	bool writes;
	/* Number of carriers that the access had reached when the write began. */
	unsigned int count;
	atomic_t *payer;
};

static struct rethook *dtrace_shown_pool;
static uintptr_t dtrace_shown_hook;
/* Numbers of hooked accesses, by user id; the first is root's. */
static atomic_t dtrace_shown_payers[DTRACE_SHOWN_PAYERS];

static atomic_t *dtrace_shown_payer(void)
{
	uid_t user = from_kuid(&init_user_ns, current_uid());

	return &dtrace_shown_payers[user ? 1 + user % (DTRACE_SHOWN_PAYERS - 1) : 0];
}

/*
 * The carrier whose breakpoint is hidden at an address. The caller is in an RCU read-side critical
 * section.
 */
static struct dtrace_carrier *dtrace_hidden_at(struct mm_struct *mm, u64 address)
{
	struct dtrace_carrier *carrier = dtrace_trap_at(mm, address);

	if (!carrier)
		return NULL;
	/* If uprobes carry the breakpoint, the instruction is known only if it was ours before. */
	if (smp_load_acquire(&carrier->state) == DTRACE_CARRIED)
		return READ_ONCE(carrier->memory) ? carrier : NULL;
	return dtrace_is_own(carrier) ? carrier : NULL;
}

/*
 * Whether the write makes another instruction of a carrier's. A breakpoint as the first byte does
 * not, because the debugger puts the byte back.
 */
static bool dtrace_access_changes(const struct dtrace_access *access, const struct dtrace_carrier *carrier)
{
	u64 n;

	for (n = 0; n < carrier->length; n++) {
		u64 at = carrier->spot.address + n - access->address;

		if (at < access->size && access->bytes[at] != carrier->code[n] && (n || access->bytes[at] != DTRACE_BREAKPOINT))
			return true;
	}
	return false;
}

/*
 * Something was noted in a carrier; makes the next hit look at it. Pairs with the barrier in
 * dtrace_trap_look().
 */
static void dtrace_carrier_noted(struct dtrace_carrier *carrier)
{
	smp_mb();
	WRITE_ONCE(carrier->seq, DTRACE_SEQ_NONE);
}

/*
 * Whether another instruction has been written, or is about to be; notes that if the breakpoint is
 * ours. If uprobes carry it, the write removes it, as it removes any of theirs.
 */
static bool dtrace_carrier_changes(const struct dtrace_access *access, struct dtrace_carrier *carrier)
{
	if (!dtrace_access_changes(access, carrier))
		return false;
	if (dtrace_is_own(carrier)) {
		WRITE_ONCE(carrier->changed, true);
		dtrace_carrier_noted(carrier);
	}
	return true;
}

/*
 * Takes note of what a debugger is about to write at a carrier's instruction, and keeps our
 * breakpoint in place.
 */
static void dtrace_shown_write(const struct dtrace_access *access, struct dtrace_carrier *carrier)
{
	u64 at = carrier->spot.address - access->address;
	bool changed = dtrace_carrier_changes(access, carrier) || READ_ONCE(carrier->changed);

	if (at >= access->size || (changed && !dtrace_is_own(carrier)))
		return;
	WRITE_ONCE(carrier->coverer, access->bytes[at] == DTRACE_BREAKPOINT ? current->tgid : 0);
	/* With a change our breakpoint goes with the code that was there. */
	if (!changed) {
		/* The breakpoint may be taken out before this write puts it back. */
		WRITE_ONCE(carrier->rewritten, true);
		access->bytes[at] = DTRACE_BREAKPOINT;
	}
	dtrace_carrier_noted(carrier);
}

/*
 * Calls what(), if given, for each carrier whose instruction an access reaches; returns their
 * number. The caller is in an RCU read-side critical section.
 */
static unsigned int dtrace_access_each(const struct dtrace_access *access, const struct dtrace_memory *memory,
				       void (*what)(const struct dtrace_access *access, struct dtrace_carrier *carrier))
{
	u64 at = max(access->address - DTRACE_INSIDE, READ_ONCE(memory->lowest));
	u64 last = min(access->address + access->size - 1, READ_ONCE(memory->highest));
	unsigned int count = 0;

	for (; at <= last; at++) {
		struct dtrace_carrier *carrier = dtrace_hidden_at(access->mm, at);

		if (!carrier)
			continue;
		count++;
		if (what)
			what(access, carrier);
	}
	return count;
}

/*
 * If a debugger is about to write a breakpoint where we have none, that is not one that we have
 * left there. The caller is in an RCU read-side critical section.
 */
static void dtrace_shown_trust(const struct dtrace_access *access, struct dtrace_memory *memory)
{
	u8 *at = access->bytes, *end = at + access->size;

	for (; at < end && (at = memchr(at, DTRACE_BREAKPOINT, end - at)); at++) {
		u64 address = access->address + (at - access->bytes);
		struct vm_area_struct *vma = dtrace_hidden_at(access->mm, address) ? NULL : lock_vma_under_rcu(access->mm, address);
		struct dtrace_known *known;

		if (!vma)
			continue;
		known = dtrace_known_at(vma, address);
		if (known)
			xa_erase(&memory->suspects, (unsigned long)known);
		vma_end_read(vma);
	}
}

/* A debugger is about to write to a memory. The caller is in an RCU read-side critical section. */
static void dtrace_shown_write_all(struct dtrace_access *access, struct dtrace_memory *memory)
{
	/* A process that sees our breakpoints has its writes left unchanged. */
	access->count = dtrace_access_each(access, memory, access->is_raw ? NULL : dtrace_shown_write);
	if (READ_ONCE(memory->suspected) && !access->is_raw)
		dtrace_shown_trust(access, memory);
}

static void dtrace_shown_written_at(const struct dtrace_access *access, struct dtrace_carrier *carrier)
{
	if (dtrace_carrier_changes(access, carrier))
		dtrace_memory_is_stale(access->mm);
}

/*
 * A debugger has written to a memory. If a breakpoint was set meanwhile, the write has removed it;
 * if one was taken out, the write has put it back.
 */
static void dtrace_shown_written(const struct dtrace_access *access)
{
	struct dtrace_memory *memory;
	unsigned int count;

	guard(rcu)();
	memory = dtrace_memory_find(access->mm);
	if (!memory)
		return;
	count = dtrace_access_each(access, memory, dtrace_shown_written_at);
	if (count && (count != access->count || access->is_raw))
		dtrace_memory_is_stale(access->mm);
	if (count < access->count && !access->is_raw)
		WRITE_ONCE(memory->inherited, true);
}

/*
 * The byte to show in place of a breakpoint at which no carrier is: the program's own byte if the
 * breakpoint may be one of ours that is left over. The caller is in an RCU read-side critical
 * section.
 */
static u8 dtrace_shown_left(struct mm_struct *mm, u64 address)
{
	struct dtrace_memory *memory = dtrace_memory_find(mm);
	u8 byte = DTRACE_BREAKPOINT;
	struct vm_area_struct *vma;
	struct dtrace_known *known;

	if (!memory || !(READ_ONCE(memory->inherited) || READ_ONCE(memory->suspected)))
		return byte;
	vma = lock_vma_under_rcu(mm, address);
	if (!vma)
		return byte;
	known = dtrace_known_at(vma, address);
	if (known && (READ_ONCE(memory->inherited) || xa_load(&memory->suspects, (unsigned long)known)))
		byte = known->code[0];
	vma_end_read(vma);
	return byte;
}

/* A debugger has read `count` bytes, or got a negative errno. */
static void dtrace_shown_read(const struct dtrace_access *access, long count)
{
	u8 *at = access->bytes, *end = at + clamp_t(long, count, 0, access->size);

	guard(rcu)();
	for (; at < end && (at = memchr(at, DTRACE_BREAKPOINT, end - at)); at++) {
		u64 address = access->address + (at - access->bytes);
		struct dtrace_carrier *carrier = dtrace_hidden_at(access->mm, address);

		if (!carrier)
			*at = dtrace_shown_left(access->mm, address);
		else if (!dtrace_own_is_covered(carrier))
			*at = carrier->code[0];
	}
}

/* Preemption is off. */
static void dtrace_shown_leave(struct rethook_node *node, void *data, unsigned long caller, struct pt_regs *regs)
{
	struct dtrace_access *access = container_of(node, struct dtrace_access, node);

	atomic_dec(access->payer);
	if (access->writes)
		dtrace_shown_written(access);
	else
		dtrace_shown_read(access, (int)regs_return_value(regs));
}

/*
 * Has dtrace_shown_leave() called when the function returns. Without a free node it is not called.
 */
static void dtrace_shown_await(const struct dtrace_access *access, struct ftrace_regs *fregs)
{
	struct pt_regs *regs = &arch_ftrace_regs(fregs)->regs;
	atomic_t *payer = dtrace_shown_payer();
	struct dtrace_access *kept = NULL;
	unsigned long flags;

	if (atomic_inc_return(payer) > DTRACE_SHOWN_EACH) {
		atomic_dec(payer);
		return;
	}
	/* See dtrace_returns_hook(). */
	raw_local_irq_save(flags);
	kept = dtrace_pool_pop(&dtrace_shown_pool->pool);
	if (kept) {
		kept->mm = access->mm;
		kept->address = access->address;
		kept->bytes = access->bytes;
		kept->size = access->size;
		kept->is_raw = access->is_raw;
		kept->writes = access->writes;
		kept->count = access->count;
		kept->payer = payer;
		dtrace_call(dtrace_shown_hook, (uintptr_t)&kept->node, (uintptr_t)regs, true, 0, 0);
	}
	raw_local_irq_restore(flags);
	if (!kept)
		atomic_dec(payer);
}

/* Called where access_remote_vm() is entered. Does not sleep. */
void dtrace_shown_access(struct ftrace_regs *fregs)
{
	struct dtrace_access access = {
		.mm = (struct mm_struct *)ftrace_regs_get_argument(fregs, 0),
		.address = ftrace_regs_get_argument(fregs, 1),
		.bytes = (u8 *)ftrace_regs_get_argument(fregs, 2),
		.size = ftrace_regs_get_argument(fregs, 3),
		.writes = ftrace_regs_get_argument(fregs, 4) & FOLL_WRITE,
	};
	struct dtrace_memory *memory;
	bool has_places;

	guard(rcu)();
	memory = dtrace_memory_find(access.mm);
	if (!memory || access.size <= 0)
		return;
	access.is_raw = READ_ONCE(memory->raw_reader) == current->tgid;
	has_places = dtrace_memory_has_places(access.mm, access.address - DTRACE_INSIDE, access.address + access.size);
	if (access.writes)
		dtrace_shown_write_all(&access, memory);
	if (access.writes ? has_places : !access.is_raw && (has_places || READ_ONCE(memory->inherited) || READ_ONCE(memory->suspected)))
		dtrace_shown_await(&access, fregs);
}

/*
 * Called where process_vm_readv() is entered. Only a process's debugger is noted, because nobody
 * else writes to the process's text. Does not sleep.
 */
void dtrace_shown_raw(struct ftrace_regs *fregs)
{
	struct pt_regs *regs = (struct pt_regs *)ftrace_regs_get_argument(fregs, 0);
	struct dtrace_memory *memory;
	struct task_struct *task;
	unsigned long args[6];

	syscall_get_arguments(current, regs, args);
	guard(rcu)();
	task = pid_task(find_vpid(args[0]), PIDTYPE_PID);
	if (!task || !READ_ONCE(task->ptrace) || !same_thread_group(rcu_dereference(task->parent), current))
		return;
	memory = dtrace_memory_find(READ_ONCE(task->mm));
	if (memory)
		WRITE_ONCE(memory->raw_reader, current->tgid);
}

/*
 * Makes the pool of hooks, before any function is watched. Returns 0 or a negative errno. May
 * sleep.
 */
int dtrace_shown_begin(void)
{
	struct rethook *pool;
	uintptr_t alloc;

	if (dtrace_shown_pool)
		return 0;
	if (!dtrace_symbol("rethook_alloc", &alloc) || !dtrace_symbol("rethook_hook", &dtrace_shown_hook))
		return -ENOENT;
	pool = (struct rethook *)dtrace_call(alloc, 0, (uintptr_t)dtrace_shown_leave, sizeof(struct dtrace_access),
					      DTRACE_SHOWN_EACH * DTRACE_SHOWN_PAYERS, 0);
	if (IS_ERR(pool))
		return PTR_ERR(pool);
	smp_store_release(&dtrace_shown_pool, pool);
	return 0;
}

/*
 * Ends hooking. No function is watched any more. An access that still sleeps returns without
 * calling the module.
 */
void dtrace_shown_end(void)
{
	uintptr_t stop, free;

	if (!dtrace_shown_pool || !dtrace_symbol("rethook_stop", &stop) || !dtrace_symbol("rethook_free", &free))
		return;
	dtrace_call(stop, (uintptr_t)dtrace_shown_pool, 0, 0, 0, 0);
	synchronize_rcu();
	dtrace_call(free, (uintptr_t)dtrace_shown_pool, 0, 0, 0, 0);
	dtrace_shown_pool = NULL;
}
