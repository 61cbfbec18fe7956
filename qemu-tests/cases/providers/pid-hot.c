// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * pid-hot [MICROSECONDS]: functions of some 2,000 instructions that four threads call again and
 * again, with a pause of that length (10,000). Prints `ready`, and on SIGUSR2 how many results
 * differed from those of the first calls, how many breakpoints were not handled, and whether the
 * text is unchanged. On SIGUSR1 it prints that the threads go on.
 *
 * QEMU's emulation may execute a breakpoint that memory does not contain any more, again and
 * again until that page is written to. A thread that hits a breakpoint which is not in memory,
 * and then hits it a second time, has hit one of those. It writes to the page, and the hits do
 * not count.
 */

#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define FUNCTION __attribute__((noipa, noinline))
#define THREADS 4

/* Loads, stores, calls, jumps, and instructions that need a slot. */
FUNCTION long twist(long n)
{
	return (n << 3 ^ n) + 1;
}

#define HOT(n)                                                   \
	FUNCTION long hot##n(long x)                             \
	{                                                        \
		volatile long kept = x;                          \
		double half = (double)x / 2;                     \
								 \
		for (int i = 0; i < n % 3 + 1; i++)              \
			kept = kept % 1001 + twist(kept + n);    \
		if (kept & 1)                                    \
			return kept * 31 + (long)half;           \
		return __builtin_popcountl(kept) - (long)half;   \
	}
#define TEN(t) HOT(t##0) HOT(t##1) HOT(t##2) HOT(t##3) HOT(t##4) HOT(t##5) HOT(t##6) HOT(t##7) HOT(t##8) HOT(t##9)
TEN(1) TEN(2) TEN(3) TEN(4)

#define NAME(n) hot##n,
#define NAMES(t) NAME(t##0) NAME(t##1) NAME(t##2) NAME(t##3) NAME(t##4) NAME(t##5) NAME(t##6) NAME(t##7) NAME(t##8) NAME(t##9)
static long (*const hot[])(long) = { NAMES(1) NAMES(2) NAMES(3) NAMES(4) };
#define COUNT (sizeof(hot) / sizeof(*hot))

static long right[COUNT];
static useconds_t pause_us = 10000;
static atomic_long wrong, rounds;
static atomic_int stop;

static void *call(void *unused)
{
	(void)unused;
	while (!stop) {
		for (unsigned long i = 0; i < COUNT; i++)
			wrong += hot[i](i * 1000) != right[i];
		rounds++;
		/* Other processes need the processors too. */
		if (pause_us)
			usleep(pause_us);
	}
	return NULL;
}

static atomic_long unanswered, stale;

static void trapped(int signal, siginfo_t *info, void *context)
{
	static _Thread_local volatile unsigned char *last;
	greg_t *ip = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	volatile unsigned char *at = (volatile unsigned char *)(uintptr_t)--*ip;
	void *page = (void *)((uintptr_t)at & -4096L);

	(void)signal;
	(void)info;
	unanswered++;
	if (*at == 0xcc) {
		dprintf(1, "a breakpoint is left\n");
		_exit(1);
	}
	if (last == at) {
		mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
		*at = *at;
		mprotect(page, 4096, PROT_READ | PROT_EXEC);
		unanswered -= 2;
		stale++;
		last = NULL;
	} else {
		last = at;
	}
}

/* All functions are between these two. */
static const unsigned char *text(void)
{
	return (const unsigned char *)(void *)twist;
}

static unsigned long length(void)
{
	return (const unsigned char *)(void *)hot[COUNT - 1] - text();
}

int main(int argc, char **argv)
{
	static unsigned char before[1 << 16];
	struct sigaction trap = { .sa_sigaction = trapped, .sa_flags = SA_SIGINFO };
	pthread_t threads[THREADS];
	sigset_t signals;
	int got;

	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigaddset(&signals, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	if (argc > 1)
		pause_us = atoi(argv[1]);
	sigaction(SIGTRAP, &trap, NULL);
	if (length() > sizeof(before))
		return 1;
	memcpy(before, text(), length());
	for (unsigned long i = 0; i < COUNT; i++)
		right[i] = hot[i](i * 1000);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, call, NULL);
	printf("ready\n");
	fflush(stdout);
	while (!sigwait(&signals, &got) && got == SIGUSR1) {
		long seen = rounds;

		while (rounds < seen + 2 * THREADS)
			usleep(1000);
		printf("goes on\n");
		fflush(stdout);
	}
	stop = 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	fprintf(stderr, "%ld breakpoints that memory did not hold\n", (long)stale);
	printf("wrong %ld, unanswered %ld, text %s\n", (long)wrong, (long)unanswered, memcmp(before, text(), length()) ? "changed" : "as before");
	return 0;
}
