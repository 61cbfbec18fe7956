// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * A thread that outlives its parent process unseen: it has left all lists, as every thread does
 * that is not its process' first, but not its CPU, when its process exits, the parent of that
 * exits, and the kernel has freed the parent's task.
 *
 * The thread, "last-thread", has the lowest priority on CPU 1. A real-time process preempts it
 * once the thread is on no list: the case holds the CPU (chill()) at the first function after
 * that, so that there is time for it. When the parent is gone for good,
 * sched_get_priority_max(77) tells the case, and the thread continues.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile struct {
	pid_t process, thread;
	int held, gone;
} *shared;

static void pin(int cpu)
{
	cpu_set_t here;

	CPU_ZERO(&here);
	CPU_SET(cpu, &here);
	sched_setaffinity(0, sizeof(here), &here);
}

static void pause_ms(long ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

static void *last_thread(void *arg)
{
	struct sched_param none = { 0 };

	pin(1);
	prctl(PR_SET_NAME, "last-thread");
	sched_setscheduler(0, SCHED_IDLE, &none);
	shared->process = getpid();
	shared->thread = gettid();
	return arg;
}

static void process(void)
{
	pthread_t thread;

	pin(0);
	pthread_create(&thread, NULL, last_thread, NULL);
	while (!shared->held)
		pause_ms(1);
	_exit(0);
}

/* Occupies CPU 1 from when the thread is on no list until its process' parent has been freed. */
static void hold(void)
{
	struct sched_param fifo = { .sched_priority = 10 };

	pin(1);
	if (sched_setscheduler(0, SCHED_FIFO, &fifo)) {
		perror("reaped: SCHED_FIFO");
		_exit(1);
	}
	while (!shared->thread || !syscall(SYS_tgkill, shared->process, shared->thread, 0))
		pause_ms(1);
	shared->held = 1;
	while (!shared->gone)
		;
	_exit(0);
}

int main(void)
{
	pid_t parent, holder;
	int i;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	pin(0);
	holder = fork();
	if (!holder)
		hold();
	parent = fork();
	if (!parent) {
		if (!fork())
			process();
		wait(NULL);
		_exit(0);
	}
	waitpid(parent, NULL, 0);
	/* One RCU grace period each; memory may be freed some time after one. */
	for (i = 0; i < 4; i++) {
		syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
		pause_ms(50);
	}
	syscall(SYS_sched_get_priority_max, 77);
	shared->gone = 1;
	waitpid(holder, NULL, 0);
	pause_ms(100);
	return 0;
}
