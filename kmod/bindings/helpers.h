/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/*
 * What the kernel's Rust bindings lack because a C header has it only as an inline function or a
 * macro. bindgen reads this file; helpers.c, tasks.c, signals.c and arch/ hold the bodies. ftrace
 * can trace nothing of it, because most of it runs in probe context.
 */
#ifndef _DTRACE_HELPERS_H
#define _DTRACE_HELPERS_H

#include <linux/types.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/workqueue.h>

/*
 * Events that are counted for all consumers together: why a firing was dropped before any consumer
 * saw it, and what made one slow.
 */
enum dtrace_loss {
	/* Probe context itself called a traced function. */
	DTRACE_LOSS_RECURSION,
	/* An NMI interrupted probe context. */
	DTRACE_LOSS_NMI,
	/* RCU was not watching. */
	DTRACE_LOSS_UNWATCHED,
	/* The return of a call could not be hooked. */
	DTRACE_LOSS_RETURN,
	/* A program waited for memory that a clause or an instruction needs; and waited in vain. */
	DTRACE_LOSS_WAIT,
	DTRACE_LOSS_WAIT_IN_VAIN,
	/* An instruction was left to uprobes, because its program has no room for a slot. */
	DTRACE_LOSS_ROOM,
	DTRACE_LOSSES
};

/* The identity of a task, as far as it decides who may trace the task. */
struct dtrace_identity {
	u32 uid;
	u32 gid;
	/* The number of its user namespace, which no other one ever gets. */
	u64 user_ns;
	/* Its permitted capabilities in that namespace. */
	u64 permitted;
};

/* One CPU's part of the framework. Only that CPU writes to it, with interrupts off. */
struct dtrace_cpu {
	/* Probe context is entered. */
	u32 busy;
	u32 cpu;
	/* Interrupt flags of the interrupted code. */
	unsigned long flags;
	/* The interrupted task. */
	struct task_struct *task;
	/* Number of this firing on this CPU. */
	u64 firing;
	/* Number of firings that some consumer has enabled. */
	u64 fired;
	/* All firings count as one, because the CPU is stopped once for them (INV-28). */
	bool stopped;
	/*
	 * Work of the clauses of members, and of those of all other consumers, in the firing
	 * `firing`, in units; and when the clock was last read in it, in ns.
	 */
	struct {
		u64 firing;
		u64 users;
		u64 others;
		u64 looked;
	} toil;
	/* When the firing began, in ns of local_clock(); 0 if that is not measured. */
	u64 since;
#ifdef CONFIG_TRACE_IRQFLAGS
	/* Whether interrupts were on in lockdep's view when probe context was entered. */
	bool believed_on;
#endif
	/* Numbers of events, by enum dtrace_loss. */
	u64 lost[DTRACE_LOSSES];
	/* Room for the raw frames of a kernel stack. */
	unsigned long *frames;
	unsigned int nr_frames;
};

DECLARE_PER_CPU(struct dtrace_cpu, dtrace_cpus);

/*
 * All firings until dtrace_cpu_goes_on() count as one, because the CPU is stopped once for them.
 * Interrupts are off.
 */
static inline void dtrace_cpu_stops(void)
{
	raw_cpu_inc(dtrace_cpus.firing);
	raw_cpu_write(dtrace_cpus.stopped, true);
}

static inline void dtrace_cpu_goes_on(void)
{
	raw_cpu_write(dtrace_cpus.stopped, false);
}

struct dtrace_cpu *dtrace_cpu_of(unsigned int cpu);
struct dtrace_cpu *dtrace_cpu_enter(void);
enum dtrace_loss dtrace_cpu_why(void);
void dtrace_cpu_exit(struct dtrace_cpu *c);
void dtrace_cpu_lost(enum dtrace_loss which);

struct task_struct *dtrace_current(void);
struct pt_regs *dtrace_user_regs(struct task_struct *task);
bool dtrace_user_segment(struct task_struct *task, u64 n, u64 *value);
unsigned int dtrace_ppid(struct task_struct *task);
unsigned int dtrace_uid(struct task_struct *task);
unsigned int dtrace_gid(struct task_struct *task);
bool dtrace_is_dumpable(struct task_struct *task);
bool dtrace_belongs_to(struct task_struct *task, const struct dtrace_identity *user);
unsigned int dtrace_irq_level(void);
u64 dtrace_gross_vtime(struct dtrace_cpu *c);
void dtrace_measure(void);
void dtrace_measure_no_more(void);
bool dtrace_progenyof(struct task_struct *task, u64 pid, u32 *hops);
bool dtrace_killed(void);
bool dtrace_capable(int capability);
u32 dtrace_thread_number(void);
void dtrace_stay(void);
void __noreturn dtrace_park(void);

/* Bits of dtrace_rwlock()'s result. */
enum dtrace_holders {
	DTRACE_RWLOCK_READERS = 1,
	DTRACE_RWLOCK_WRITER = 2,
	DTRACE_RWLOCK_WRITER_WAITS = 4,
};

bool dtrace_own_text(uintptr_t pc);
int dtrace_mutex_owner(u64 *owner, u64 addr);
int dtrace_rwlock(u64 addr);
void dtrace_settle(void);
bool dtrace_user_ok(void);
bool dtrace_user_store_ok(void);
long dtrace_user_load_str(char *out, u64 addr, size_t size);
void dtrace_chill(u64 ns);
void *dtrace_mem_alloc(size_t size);
unsigned int dtrace_machine_mib(void);
void dtrace_work_init(struct work_struct *work, work_func_t func);
void dtrace_work_queue(struct work_struct *work);
void dtrace_work_queue_on(struct work_struct *work, unsigned int cpu);
void dtrace_periodic_init(struct delayed_work *work, work_func_t func);
void dtrace_periodic_queue(struct delayed_work *work, u64 ns);
void dtrace_work_put_off(struct delayed_work *work, u64 ns);

bool dtrace_signal_current(int sig);
void dtrace_signal_sync(void);

bool dtrace_in_group(unsigned int gid);
void dtrace_current_identity(struct dtrace_identity *user);
bool dtrace_may_read_kernel(void);
bool dtrace_may_write(void);

unsigned int dtrace_nr_cpus(void);
void dtrace_on_each_cpu(void (*f)(void *arg), void *arg);
bool dtrace_cpu_possible(unsigned int cpu);
bool dtrace_cpu_online(unsigned int cpu);

#endif
