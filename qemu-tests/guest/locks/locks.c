// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

/*
 * Uses locks of each kind, with every event that can happen to them, a known number of times: for
 * the case that checks each probe of lockstat. A write to the parameter `run` takes each lock,
 * starts another thread that waits for it, and releases the lock once that thread is seen to wait,
 * however long that takes. The parameter `base` is the address of the first lock; each occupies 256
 * bytes.
 */

#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kallsyms.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/rtmutex.h>
#include <linux/rwlock.h>
#include <linux/rwsem.h>
#include <linux/sched/signal.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/stacktrace.h>
#include <linux/string.h>
#include <linux/ww_mutex.h>

#define ROOM __aligned(256)

static struct {
	struct mutex mutex ROOM;
	struct rt_mutex rt_mutex ROOM;
	struct rw_semaphore semaphore ROOM;
	spinlock_t spinlock ROOM;
	rwlock_t rwlock ROOM;
	struct ww_mutex ww_mutex ROOM;
} locks;

static DEFINE_WW_CLASS(locks_class);

/* The least time for which a sleeping thread waits. */
#define WAIT_MS 20

/* What the other thread does. */
struct other {
	void (*work)(void);
	/* Whether the lock for which it will wait is held. */
	bool held;
	/* Whether it has begun. */
	bool begun;
	struct completion done;
};

static int other_thread(void *data)
{
	struct other *other = data;

	while (!smp_load_acquire(&other->held))
		cond_resched();
	WRITE_ONCE(other->begun, true);
	other->work();
	complete(&other->done);
	return 0;
}

/*
 * Starts the thread, on the other of the first two processors; NULL if there is no memory. `held`:
 * the lock for which it will wait is held already; otherwise the thread waits until `other->held`
 * is set.
 */
static struct task_struct *other_start(struct other *other, void (*work)(void), bool held)
{
	struct task_struct *task = kthread_create(other_thread, other, "locks");

	if (IS_ERR(task))
		return NULL;
	other->work = work;
	other->held = held;
	other->begun = false;
	init_completion(&other->done);
	get_task_struct(task);
	kthread_bind(task, !raw_smp_processor_id());
	wake_up_process(task);
	return task;
}

static void other_end(struct other *other, struct task_struct *task)
{
	wait_for_completion(&other->done);
	put_task_struct(task);
}

/* Has `work` sleep until `give` releases what the caller has taken. */
static void blocks(void (*work)(void), void (*give)(void))
{
	struct other other;
	struct task_struct *task = other_start(&other, work, true);

	if (task) {
		while (!READ_ONCE(other.begun) || task_is_running(task))
			msleep(1);
		msleep(WAIT_MS);
	}
	give();
	if (task)
		other_end(&other, task);
}

/*
 * Has `work` spin for what `take` takes, until `waits` reports that it spins. The wait has a limit,
 * because `take` has disabled preemption.
 */
static void spins(void (*work)(void), void (*take)(void), void (*give)(void), bool (*waits)(void))
{
	struct other other;
	struct task_struct *task;
	unsigned long end;

	migrate_disable();
	task = other_start(&other, work, false);
	take();
	if (task) {
		end = jiffies + 5 * HZ;
		smp_store_release(&other.held, true);
		while (!waits() && time_before(jiffies, end))
			cpu_relax();
	}
	give();
	migrate_enable();
	if (task)
		other_end(&other, task);
}

static void take_mutex(void)
{
	mutex_lock(&locks.mutex);
	mutex_unlock(&locks.mutex);
}

static void give_mutex(void)
{
	mutex_unlock(&locks.mutex);
}

static void fail_mutex(void)
{
	allow_signal(SIGUSR1);
	send_sig(SIGUSR1, current, 1);
	if (!mutex_lock_interruptible(&locks.mutex))
		mutex_unlock(&locks.mutex);
}

static void mutexes(void)
{
	struct other other;
	struct task_struct *task;

	mutex_lock(&locks.mutex);
	blocks(take_mutex, give_mutex);
	if (mutex_trylock(&locks.mutex)) {
		if (mutex_trylock(&locks.mutex))
			pr_err("a mutex was taken twice\n");
		task = other_start(&other, fail_mutex, true);
		if (task)
			other_end(&other, task);
		mutex_unlock(&locks.mutex);
	}
}

/* With a context, which refuses to take the lock twice, and without one. */
static void ww_mutexes(void)
{
	struct ww_acquire_ctx context;

	ww_acquire_init(&context, &locks_class);
	if (!ww_mutex_lock(&locks.ww_mutex, &context)) {
		if (ww_mutex_lock_interruptible(&locks.ww_mutex, &context) != -EALREADY)
			pr_err("a w/w mutex was taken twice\n");
		ww_mutex_unlock(&locks.ww_mutex);
	}
	ww_acquire_fini(&context);
	if (!ww_mutex_lock_interruptible(&locks.ww_mutex, NULL))
		ww_mutex_unlock(&locks.ww_mutex);
}

static void take_rt_mutex(void)
{
	rt_mutex_lock(&locks.rt_mutex);
	rt_mutex_unlock(&locks.rt_mutex);
}

static void give_rt_mutex(void)
{
	rt_mutex_unlock(&locks.rt_mutex);
}

static void rt_mutexes(void)
{
	rt_mutex_lock(&locks.rt_mutex);
	blocks(take_rt_mutex, give_rt_mutex);
	if (rt_mutex_trylock(&locks.rt_mutex))
		rt_mutex_unlock(&locks.rt_mutex);
}

static void take_read(void)
{
	down_read(&locks.semaphore);
	up_read(&locks.semaphore);
}

static void give_write(void)
{
	up_write(&locks.semaphore);
}

static void take_write(void)
{
	down_write(&locks.semaphore);
	up_write(&locks.semaphore);
}

static void give_read(void)
{
	up_read(&locks.semaphore);
}

static void semaphores(void)
{
	down_write(&locks.semaphore);
	blocks(take_read, give_write);
	down_write(&locks.semaphore);
	downgrade_write(&locks.semaphore);
	blocks(take_write, give_read);
}

static void take_spinlock(void)
{
	spin_lock(&locks.spinlock);
}

static void give_spinlock(void)
{
	spin_unlock(&locks.spinlock);
}

static void use_spinlock(void)
{
	take_spinlock();
	give_spinlock();
}

/* On the other processor: whether the interrupted code waits for a spinlock, with any of the
 * kernel's implementations. */
static void look(void *waits)
{
	unsigned long frames[16];
	char name[KSYM_SYMBOL_LEN];
	unsigned int count = stack_trace_save(frames, ARRAY_SIZE(frames), 0);

	while (count--) {
		sprint_symbol_no_offset(name, frames[count]);
		if (strstr(name, "spin_lock_slowpath"))
			*(bool *)waits = true;
	}
}

static bool spinlock_waits(void)
{
	bool waits = false;

	smp_call_function_single(!smp_processor_id(), look, &waits, true);
	return waits;
}

static void take_reader(void)
{
	read_lock(&locks.rwlock);
}

static void give_reader(void)
{
	read_unlock(&locks.rwlock);
}

static void use_reader(void)
{
	take_reader();
	give_reader();
}

static void take_writer(void)
{
	write_lock(&locks.rwlock);
}

static void give_writer(void)
{
	write_unlock(&locks.rwlock);
}

static void use_writer(void)
{
	take_writer();
	give_writer();
}

static bool rwlock_waits(void)
{
	return rwlock_is_contended(&locks.rwlock);
}

static int locks_run(const char *value, const struct kernel_param *param)
{
	if (num_online_cpus() < 2)
		return -ENODEV;
	mutexes();
	ww_mutexes();
	rt_mutexes();
	semaphores();
	spins(use_spinlock, take_spinlock, give_spinlock, spinlock_waits);
	spins(use_reader, take_writer, give_writer, rwlock_waits);
	spins(use_writer, take_reader, give_reader, rwlock_waits);
	return 0;
}

static const struct kernel_param_ops locks_ops = { .set = locks_run };
module_param_cb(run, &locks_ops, NULL, 0200);
static unsigned long base;
module_param(base, ulong, 0400);

static int __init locks_init(void)
{
	mutex_init(&locks.mutex);
	rt_mutex_init(&locks.rt_mutex);
	init_rwsem(&locks.semaphore);
	spin_lock_init(&locks.spinlock);
	rwlock_init(&locks.rwlock);
	ww_mutex_init(&locks.ww_mutex, &locks_class);
	base = (unsigned long)&locks;
	return 0;
}

static void __exit locks_exit(void)
{
}

module_init(locks_init);
module_exit(locks_exit);
MODULE_DESCRIPTION("Takes locks of each kind");
MODULE_LICENSE("GPL");
