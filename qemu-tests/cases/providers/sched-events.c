// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Causes events of the provider sched: on CPU 0 it sleeps, yields while it is alone, works beside another, and changes its
 * priority and its policy.
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
	setpriority(PRIO_PROCESS, 0, 7);
	sched_setscheduler(0, SCHED_FIFO, &fifo);
	return 0;
}
