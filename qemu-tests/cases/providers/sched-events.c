// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Causes the events of the provider sched: on CPU 0 it sleeps, yields while it is alone, works
 * beside another process, lowers the priority of other processes that run on CPU 1, and changes
 * its own priority and scheduling policy.
 */

#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void work(int ms)
{
	struct timespec start, now;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < ms);
}

/* Lowers the priority of whichever of two competing processes runs on the other CPU, so that the
 * kernel makes that CPU reschedule. */
static void demote(void)
{
	pid_t busy[2];
	int n, nice;

	for (n = 0; n < 2; n++) {
		busy[n] = fork();
		if (!busy[n]) {
			pin(1);
			for (;;)
				work(1000);
		}
	}
	for (nice = 1; nice < 20; nice++) {
		work(20);
		for (n = 0; n < 2; n++)
			setpriority(PRIO_PROCESS, busy[n], nice);
	}
	for (n = 0; n < 2; n++) {
		kill(busy[n], SIGKILL);
		waitpid(busy[n], NULL, 0);
	}
}

int main(void)
{
	struct timespec ms = { .tv_nsec = 1000000 };
	struct sched_param fifo = { .sched_priority = 10 };
	pid_t other;
	int i;

	pin(0);
	for (i = 0; i < 100; i++)
		nanosleep(&ms, NULL);
	other = fork();
	if (!other) {
		for (;;)
			work(1000);
	}
	work(1000);
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	for (i = 0; i < 1000; i++)
		sched_yield();
	demote();
	setpriority(PRIO_PROCESS, 0, 7);
	sched_setscheduler(0, SCHED_FIFO, &fifo);
	return 0;
}
