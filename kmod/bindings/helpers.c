// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * The bodies of helpers.h. No logic of DTrace's own lives here: each function is one that the kernel offers as an
 * inline function or a macro, made callable, or a loop of such that must not be traced.
 */

#include <linux/context_tracking.h>
#include <linux/capability.h>
#include <linux/cpumask.h>
#include <linux/irqflags.h>
#include <linux/jump_label.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/security.h>
#include <linux/sched/clock.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>

#include "helpers.h"
#include "instruction.h"
#include "loads.h"
#include "patching.h"
#include "watched.h"

/* In kmod/sys/vtime.rs. */
void dtrace_charge(struct dtrace_cpu *c, u64 now, u64 ns);

DEFINE_PER_CPU(struct dtrace_cpu, dtrace_cpus);

struct dtrace_cpu *dtrace_cpu_of(unsigned int cpu)
{
	return per_cpu_ptr(&dtrace_cpus, cpu);
}

/* What interrupts and NMIs this is in. The kernel counts a breakpoint's handling as an NMI, which to who was stopped there is none. */
static unsigned long dtrace_preempt_count(void)
{
	unsigned long pc = preempt_count();

	return pc & NMI_MASK ? pc - dtrace_breakpoint_offset() : pc;
}

static bool dtrace_in_nmi(void)
{
	return dtrace_preempt_count() & NMI_MASK;
}

/*
 * How a firing that dtrace_cpu_enter() has just refused was lost. Where probe context is entered below it, interrupts are off.
 */
enum dtrace_loss dtrace_cpu_why(void)
{
	if (!dtrace_cpu_watched())
		return DTRACE_LOSS_UNWATCHED;
	return dtrace_in_nmi() ? DTRACE_LOSS_NMI : DTRACE_LOSS_RECURSION;
}

/* Interrupts are off, and only an NMI may come between: it adds one of another kind. */
static noinline void dtrace_cpu_lost_in(struct dtrace_cpu *c)
{
	c->lost[dtrace_cpu_why()]++;
}

#ifdef CONFIG_TRACE_IRQFLAGS
/*
 * lockdep is not told that interrupts go off here, but by a fault it is: and not told otherwise when the fault returns to code
 * that has them off indeed. So it gets back what it believed.
 */
static void dtrace_lockdep_keep(struct dtrace_cpu *c)
{
	c->believed_on = lockdep_hardirqs_enabled();
}

static void dtrace_lockdep_restore(struct dtrace_cpu *c)
{
	if (c->believed_on && !lockdep_hardirqs_enabled()) {
		lockdep_hardirqs_on_prepare();
		lockdep_hardirqs_on(_THIS_IP_);
	}
}
#else
static void dtrace_lockdep_keep(struct dtrace_cpu *c) { }
static void dtrace_lockdep_restore(struct dtrace_cpu *c) { }
#endif

/* Whether anybody wants to know how long firings take. */
static DEFINE_STATIC_KEY_FALSE(dtrace_measuring);

static void dtrace_measuring_begin(void *data)
{
	static_branch_enable(&dtrace_measuring);
}

static void dtrace_measuring_end(void *data)
{
	static_branch_disable(&dtrace_measuring);
}

/* From now on, for all who want to know: one call at a time. May sleep. */
void dtrace_measure(void)
{
	unsigned int cpu;

	/* A firing that nobody measured any more when it ended has left its beginning behind. */
	for_each_possible_cpu(cpu)
		WRITE_ONCE(per_cpu_ptr(&dtrace_cpus, cpu)->since, 0);
	dtrace_patch(dtrace_measuring_begin, NULL);
}

void dtrace_measure_no_more(void)
{
	dtrace_patch(dtrace_measuring_end, NULL);
}

/*
 * The raw flavours throughout: the others tell lockdep and the irqsoff tracer, which may be traced themselves. What only a measured
 * firing does is a function of its own, called last: the others then need no registers saved for it.
 */
static noinline struct dtrace_cpu *dtrace_cpu_measured(struct dtrace_cpu *c)
{
	c->since = local_clock();
	return c;
}

struct dtrace_cpu *dtrace_cpu_enter(void)
{
	struct dtrace_cpu *c;
	unsigned long flags;

	raw_local_irq_save(flags);
	c = raw_cpu_ptr(&dtrace_cpus);
	/* Out of RCU's sight nothing would keep the lists of ECBs alive. */
	if (unlikely(c->busy || !dtrace_cpu_watched())) {
		dtrace_cpu_lost_in(c);
		raw_local_irq_restore(flags);
		return NULL;
	}
	WRITE_ONCE(c->busy, 1);
	barrier();
	c->flags = flags;
	c->task = current;
	if (!c->stopped)
		c->firing++;
	dtrace_lockdep_keep(c);
	if (static_branch_unlikely(&dtrace_measuring))
		return dtrace_cpu_measured(c);
	return c;
}

static __always_inline void dtrace_cpu_leave(struct dtrace_cpu *c)
{
	unsigned long flags = c->flags;

	barrier();
	WRITE_ONCE(c->busy, 0);
	raw_local_irq_restore(flags);
}

/*
 * Charges the current task with the firing. Where the scheduler counts the time of interrupts apart, it has not charged the task with
 * those of an interrupt.
 */
static noinline void dtrace_cpu_charge_and_leave(struct dtrace_cpu *c)
{
	unsigned int level = IS_ENABLED(CONFIG_IRQ_TIME_ACCOUNTING) ? dtrace_irq_level() : 0;
	u64 since = c->since, now;

	c->since = 0;
	if (since && level != 1 && level != 2) {
		now = local_clock();
		if (now > since)
			dtrace_charge(c, now, now - since);
	}
	dtrace_cpu_leave(c);
}

void dtrace_cpu_exit(struct dtrace_cpu *c)
{
	dtrace_lockdep_restore(c);
	if (static_branch_unlikely(&dtrace_measuring))
		dtrace_cpu_charge_and_leave(c);
	else
		dtrace_cpu_leave(c);
}

/* Counts an event that belongs to no firing in progress. */
void dtrace_cpu_lost(enum dtrace_loss which)
{
	this_cpu_inc(dtrace_cpus.lost[which]);
}

unsigned int dtrace_irq_level(void)
{
	unsigned long pc = dtrace_preempt_count();

	if (likely(!(pc & (NMI_MASK | HARDIRQ_MASK | SOFTIRQ_OFFSET))))
		return 0;
	if (pc & NMI_MASK)
		return 3;
	if (pc & HARDIRQ_MASK)
		return 2;
	return pc & SOFTIRQ_OFFSET ? 1 : 0;
}

/*
 * What the scheduler has accounted to the current task, less or more what lies between that and the firing. The run-queue
 * lock that would make it exact may be held by the code that the probe stopped. Another CPU that holds it sets the
 * start first, and then the sum: whoever reads them the other way round finds too little, never too much.
 */
u64 dtrace_gross_vtime(struct dtrace_cpu *c)
{
	struct sched_entity *se = &c->task->se;
	u64 at = c->since ?: local_clock();
	u64 sum = READ_ONCE(se->sum_exec_runtime);

	smp_rmb();
	return max_t(s64, sum + at - READ_ONCE(se->exec_start), 0);
}

/* Whether the current task is to die. */
bool dtrace_killed(void)
{
	return fatal_signal_pending(current);
}

/* The current thread, as the first namespace numbers it. */
u32 dtrace_thread_number(void)
{
	return task_pid_nr(current);
}

/* The module will never be unloaded, unless that has begun. */
void dtrace_stay(void)
{
	__module_get(THIS_MODULE);
}

/* The current task does nothing any more. The machine may sleep meanwhile. */
void __noreturn dtrace_park(void)
{
	for (;;) {
		set_current_state(TASK_IDLE | TASK_FREEZABLE);
		schedule();
	}
}

/* Whether code at pc is this module's. */
bool dtrace_own_text(uintptr_t pc)
{
	return within_module_mem_type(pc, THIS_MODULE, MOD_TEXT);
}

/* The task that holds the mutex at addr, 0 where none does. */
int dtrace_mutex_owner(u64 *owner, u64 addr)
{
	struct mutex *lock = (struct mutex *)addr;
	u64 word;
	int ret;

#ifdef CONFIG_PREEMPT_RT
	ret = dtrace_load_u64(&word, (u64)&lock->rtmutex.owner);
#else
	ret = dtrace_load_u64(&word, (u64)&lock->owner);
#endif
	if (ret)
		return ret;
	/* The low bits are flags: tasks are aligned to more. */
	*owner = word & ~7ULL;
	return 0;
}

/* Who holds the rwlock_t at addr, as bits of enum dtrace_holders, or a negative errno. */
int dtrace_rwlock(u64 addr)
{
#if defined(CONFIG_QUEUED_RWLOCKS) && !defined(CONFIG_PREEMPT_RT)
	rwlock_t *lock = (rwlock_t *)addr;
	u32 cnts;
	int state = 0;
	int ret = dtrace_load(&cnts, (u64)&lock->raw_lock.cnts, sizeof(cnts));

	if (ret)
		return ret;
	if (cnts >> _QR_SHIFT)
		state |= DTRACE_RWLOCK_READERS;
	if ((cnts & _QW_LOCKED) == _QW_LOCKED)
		state |= DTRACE_RWLOCK_WRITER;
	if (cnts & _QW_WAITING)
		state |= DTRACE_RWLOCK_WRITER_WAITS;
	return state;
#else
	return -EOPNOTSUPP;
#endif
}

void dtrace_settle(void)
{
	barrier_nospec();
}

/* Whether user addresses mean anything here: a task of user space. */
bool dtrace_user_ok(void)
{
	return current->mm && !(current->flags & PF_KTHREAD);
}

/* Whether they can be stored to: the nofault store, unlike the load, does not ask whether an NMI has come between two address spaces. */
bool dtrace_user_store_ok(void)
{
	return !dtrace_in_nmi() && dtrace_user_ok();
}

long dtrace_user_load_str(char *out, u64 addr, size_t size)
{
	size_t done = 0;

	if (!dtrace_user_ok())
		return -EFAULT;
	/*
	 * By aligned words, so that no load reaches into a page that the string does not. The nofault copy is the one
	 * that knows when the CPU is between two address spaces.
	 */
	while (done < size) {
		size_t word = sizeof(u64) - ((addr + done) & (sizeof(u64) - 1));
		size_t n = min(word, size - done);
		char *end;

		if (copy_from_user_nofault(out + done, (const void __user *)(addr + done), n))
			return -EFAULT;
		end = memchr(out + done, 0, n);
		if (end)
			return end - out;
		done += n;
	}
	return done;
}

/* How often a clock may show the same time before it is taken to stand still, as it does while the machine goes to sleep. */
#define DTRACE_CHILL_STILL 100000

void dtrace_chill(u64 ns)
{
	u64 from = ktime_get_mono_fast_ns(), now = from, last;
	unsigned int still = 0;

	while (now - from < ns && still < DTRACE_CHILL_STILL) {
		cpu_relax();
		last = now;
		now = ktime_get_mono_fast_ns();
		still = now == last ? still + 1 : 0;
	}
}

/*
 * A consumer asks for buffers of any size. One that is a quarter of the memory there is to have is refused at once, and so is
 * what would leave the rest of the machine less than it needs to go on: reclaim must not be driven to its end by a tracer.
 * (Not a part of all memory: machines may have promised nearly all of it to one program.) What is not there is not worth
 * killing a process for.
 */
void *dtrace_mem_alloc(size_t size)
{
	long reserve = min_t(long, totalram_pages() / 16, SZ_64M >> PAGE_SHIFT);
	long available = si_mem_available();
	size_t pages = size >> PAGE_SHIFT;

	if (pages > max(available, 0L) / 4 || available - (long)pages < reserve)
		return NULL;
	return kvzalloc(size, GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
}

unsigned int dtrace_machine_mib(void)
{
	return totalram_pages() >> (20 - PAGE_SHIFT);
}

void dtrace_work_init(struct work_struct *work, work_func_t func)
{
	INIT_WORK(work, func);
}

/* On the long queue, since what is done there may wait for CPUs that come. */
void dtrace_work_queue(struct work_struct *work)
{
	queue_work(system_long_wq, work);
}

/* A CPU that has never been online has nobody who would do it. */
void dtrace_work_queue_on(struct work_struct *work, unsigned int cpu)
{
	if (dtrace_cpu_online(cpu))
		queue_work_on(cpu, system_long_wq, work);
	else
		queue_work(system_long_wq, work);
}

void dtrace_periodic_init(struct delayed_work *work, work_func_t func)
{
	INIT_DELAYED_WORK(work, func);
}

/*
 * On the long queue, since what is done periodically here waits for grace periods. After a jiffy at least, or work would
 * follow work without a pause.
 */
void dtrace_periodic_queue(struct delayed_work *work, u64 ns)
{
	queue_delayed_work(system_dfl_long_wq, work, max(nsecs_to_jiffies(ns), 1UL));
}

/* Queues a work of that kind for so much later, also where it is queued already. */
void dtrace_work_put_off(struct delayed_work *work, u64 ns)
{
	mod_delayed_work(system_dfl_long_wq, work, nsecs_to_jiffies(ns));
}

/* Whether the current task has a capability over the system. Who has none may have a group's rights, so nobody is told of a refusal. */
bool dtrace_capable(int capability)
{
	return ns_capable_noaudit(&init_user_ns, capability);
}

/* Whether the kernel keeps nothing secret from, or nothing safe from, those who have all rights. */
bool dtrace_may_read_kernel(void)
{
	return !security_locked_down(LOCKDOWN_BPF_READ_KERNEL);
}

bool dtrace_may_write(void)
{
	return !security_locked_down(LOCKDOWN_BPF_WRITE_USER);
}

unsigned int dtrace_nr_cpus(void)
{
	return nr_cpu_ids;
}

bool dtrace_cpu_possible(unsigned int cpu)
{
	return cpu < nr_cpu_ids && cpu_possible(cpu);
}

/* Calls f(arg) on each CPU that is online, with interrupts off, and waits for all. */
void dtrace_on_each_cpu(void (*f)(void *arg), void *arg)
{
	on_each_cpu(f, arg, true);
}

bool dtrace_cpu_online(unsigned int cpu)
{
	return cpu < nr_cpu_ids && cpu_online(cpu);
}
