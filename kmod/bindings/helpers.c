// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * The bodies of helpers.h. They contain no logic of DTrace's own: each function makes an inline
 * function or a macro of the kernel callable, or is a loop of such that must not be traced.
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

/* Defined in kmod/sys/vtime.rs. */
void dtrace_charge(struct dtrace_cpu *c, u64 now, u64 ns);

DEFINE_PER_CPU(struct dtrace_cpu, dtrace_cpus);

struct dtrace_cpu *dtrace_cpu_of(unsigned int cpu)
{
	return per_cpu_ptr(&dtrace_cpus, cpu);
}

/*
 * The interrupts and NMIs that the interrupted code is in. The kernel counts the handling of a
 * breakpoint as an NMI, but to the interrupted code it is not one.
 */
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
 * Why dtrace_cpu_enter() has just refused a firing. If probe context was entered below it,
 * interrupts are off.
 */
enum dtrace_loss dtrace_cpu_why(void)
{
	if (!dtrace_cpu_watched())
		return DTRACE_LOSS_UNWATCHED;
	return dtrace_in_nmi() ? DTRACE_LOSS_NMI : DTRACE_LOSS_RECURSION;
}

/*
 * Interrupts are off. Only an NMI can interrupt the increment, and it counts a loss of another
 * kind.
 */
static noinline void dtrace_cpu_lost_in(struct dtrace_cpu *c)
{
	c->lost[dtrace_cpu_why()]++;
}

#ifdef CONFIG_TRACE_IRQFLAGS
/*
 * dtrace_cpu_enter() does not notify lockdep that interrupts are off, but a fault does, and lockdep
 * is not notified of the opposite when the fault returns to code that has interrupts off. So
 * lockdep's view is saved and restored.
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

/* Whether the time of firings is measured (INV-7). */
static DEFINE_STATIC_KEY_FALSE(dtrace_measuring);

static void dtrace_measuring_begin(void *data)
{
	static_branch_enable(&dtrace_measuring);
}

static void dtrace_measuring_end(void *data)
{
	static_branch_disable(&dtrace_measuring);
}

/*
 * Begins to measure firings, for all consumers together. Calls of this and of
 * dtrace_measure_no_more() must not overlap. May sleep.
 */
void dtrace_measure(void)
{
	unsigned int cpu;

	/*
	 * A firing that was measured when it began but not when it ended has left its start time.
	 */
	for_each_possible_cpu(cpu)
		WRITE_ONCE(per_cpu_ptr(&dtrace_cpus, cpu)->since, 0);
	dtrace_patch(dtrace_measuring_begin, NULL);
}

void dtrace_measure_no_more(void)
{
	dtrace_patch(dtrace_measuring_end, NULL);
}

/*
 * The raw flavours of all helpers: the others call lockdep and the irqsoff tracer, which may be
 * traced themselves. What only a measured firing does is a separate function, called last, so that
 * the other firings need not save registers for it.
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
	/* Without RCU watching, nothing would keep the lists of ECBs alive. */
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
 * Charges the firing to the current task. With CONFIG_IRQ_TIME_ACCOUNTING the scheduler charges no
 * task with the time of interrupts, so firings there are not charged either.
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

/* The context of the interrupted code: 3: NMI; 2: interrupt; 1: softirq; 0: a task. */
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
 * The run time that the scheduler has charged to the current task, plus the time from its last
 * update to the firing. The run-queue lock that would make this exact may be held by the
 * interrupted code. The update sets exec_start first and then the sum; this reads them in the
 * reverse order, so during an update on another CPU the result is too small, never too large.
 */
u64 dtrace_gross_vtime(struct dtrace_cpu *c)
{
	struct sched_entity *se = &c->task->se;
	u64 at = c->since ?: local_clock();
	u64 sum = READ_ONCE(se->sum_exec_runtime);

	smp_rmb();
	return max_t(s64, sum + at - READ_ONCE(se->exec_start), 0);
}

/* Whether the current task has a fatal signal pending. */
bool dtrace_killed(void)
{
	return fatal_signal_pending(current);
}

/* The number of the current thread in the initial pid namespace. */
u32 dtrace_thread_number(void)
{
	return task_pid_nr(current);
}

/* Keeps the module from ever being unloaded, unless its removal has begun. */
void dtrace_stay(void)
{
	__module_get(THIS_MODULE);
}

/* Parks the current task for good. It can be frozen, so that the machine can sleep. */
void __noreturn dtrace_park(void)
{
	for (;;) {
		set_current_state(TASK_IDLE | TASK_FREEZABLE);
		schedule();
	}
}

/* Whether `pc` is in this module's text. */
bool dtrace_own_text(uintptr_t pc)
{
	return within_module_mem_type(pc, THIS_MODULE, MOD_TEXT);
}

/* Stores the task that holds the mutex at `addr`, 0 if none does. Returns 0 or a negative errno. */
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
	/* The low bits are flags, because task structures are aligned to more than 8 bytes. */
	*owner = word & ~7ULL;
	return 0;
}

/* Who holds the rwlock_t at `addr`, as bits of enum dtrace_holders, or a negative errno. */
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

/* Whether the current task has user addresses: it is a task of user space. */
bool dtrace_user_ok(void)
{
	return current->mm && !(current->flags & PF_KTHREAD);
}

/*
 * Whether user addresses can be stored to. Unlike the nofault load, the nofault store does not
 * check whether an NMI has interrupted a switch between two address spaces.
 */
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
	 * By aligned words, so that no load reaches into a page that the string does not reach.
	 * copy_from_user_nofault() checks whether the CPU is between two address spaces.
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

/*
 * How often in a row the clock may show the same time before it is taken to stand still, as it does
 * while the machine goes to sleep.
 */
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
 * Allocates zeroed memory for a consumer, which may request buffers of any size. Refuses at once
 * more than a quarter of the available memory, and what would leave the machine less than the
 * reserve that it needs to go on, because a tracer must not drive reclaim to its end (INV-29). The
 * measure is available memory, not all memory, because a machine may have promised nearly all of it
 * to one program. No process is killed for the allocation.
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

/* Queued on the long queue, because such work may wait for CPUs that come online. */
void dtrace_work_queue(struct work_struct *work)
{
	queue_work(system_long_wq, work);
}

/* A CPU that is offline may have no worker. */
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
 * Queued on the long queue, because periodic work waits for grace periods. After one jiffy at
 * least; otherwise work would follow work without a pause.
 */
void dtrace_periodic_queue(struct delayed_work *work, u64 ns)
{
	queue_delayed_work(system_dfl_long_wq, work, max(nsecs_to_jiffies(ns), 1UL));
}

/* Queues delayed work for `ns` from now, or moves it there if it is queued already. */
void dtrace_work_put_off(struct delayed_work *work, u64 ns)
{
	mod_delayed_work(system_dfl_long_wq, work, nsecs_to_jiffies(ns));
}

/*
 * Whether the current task has a capability in the initial user namespace. A task without it may
 * have the group's rights, so a refusal is not audited.
 */
bool dtrace_capable(int capability)
{
	return ns_capable_noaudit(&init_user_ns, capability);
}

/*
 * Whether the kernel is not locked down for confidentiality, so that its memory may be read;
 * dtrace_may_write(): not for integrity, so that programs may be written to.
 */
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

/* Calls f(arg) on each CPU that is online, with interrupts off, and waits for all calls. */
void dtrace_on_each_cpu(void (*f)(void *arg), void *arg)
{
	on_each_cpu(f, arg, true);
}

bool dtrace_cpu_online(unsigned int cpu)
{
	return cpu < nr_cpu_ids && cpu_online(cpu);
}
