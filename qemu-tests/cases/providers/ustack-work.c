// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0
// @gcc: -O2 -fomit-frame-pointer -fno-optimize-sibling-calls

/*
 * Usage: ustack-work [WORD...]. Functions without frame pointers that call one another, also
 * through the C library. Each word names a chain of calls that ends in getppid().
 */

#define _GNU_SOURCE
#include <alloca.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ustack-deep.h"

KEPT void last(void)
{
	sink += syscall(SYS_getppid);
}

KEPT int compare(const void *one, const void *other)
{
	static int called;

	if (!called++)
		deep(2);
	return *(const int *)one - *(const int *)other;
}

KEPT void sorts(void)
{
	int numbers[] = { 3, 1, 2 };

	qsort(numbers, 3, sizeof(int), compare);
	sink += numbers[0];
}

KEPT void fills(size_t size)
{
	char *room = alloca(size);

	memset(room, size, size);
	last();
	sink += room[size / 2];
}

/* Its frame is aligned by way of another register. */
KEPT void aligns(int n)
{
	volatile char wide[64] __attribute__((aligned(64)));

	wide[n] = n;
	last();
	sink += wide[n];
}

KEPT void on_signal(int sig, siginfo_t *info, void *context)
{
	ucontext_t *interrupted = context;

	(void)info;
	last();
	/* Skips `ud2`. */
	interrupted->uc_mcontext.gregs[REG_RIP] += 2;
	sink += sig;
}

/* The signal interrupts an instruction at which the stack pointer differs from the one at the
 * entry. */
KEPT void interrupted(void)
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };

	sigaction(SIGILL, &action, NULL);
	__asm__ volatile("push %%rax\n.cfi_adjust_cfa_offset 8\nud2\npop %%rax\n.cfi_adjust_cfa_offset -8" ::: "memory");
	sink++;
}

KEPT void on_jump(int sig, siginfo_t *info, void *context)
{
	ucontext_t *interrupted = context;
	greg_t *at = interrupted->uc_mcontext.gregs;

	(void)info;
	last();
	/* An address that looks like a frame of interpreted code in a record. */
	at[REG_RIP] = 0x83ff000001000001;
	last();
	at[REG_RIP] = *(greg_t *)at[REG_RSP];
	at[REG_RSP] += sizeof(greg_t);
	sink += sig;
}

/* Calls an address at which there is no function. */
KEPT void jumps(void)
{
	struct sigaction action = { .sa_sigaction = on_jump, .sa_flags = SA_SIGINFO };
	void (*volatile nothing)(void) = NULL;

	sigaction(SIGSEGV, &action, NULL);
	nothing();
	sink++;
}

static volatile sig_atomic_t is_over;

KEPT void on_alarm(int sig)
{
	is_over = sig;
}

/* Runs for seconds without entering the kernel. */
KEPT void spins(int n)
{
	if (n) {
		spins(n - 1);
	} else {
		signal(SIGALRM, on_alarm);
		alarm(4);
		while (!is_over)
			sink++;
	}
	sink++;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "deep"))
			deep(3);
		else if (!strcmp(argv[i], "deepest"))
			deep(2000);
		else if (!strcmp(argv[i], "sorts"))
			sorts();
		else if (!strcmp(argv[i], "fills"))
			fills(argc * 1000);
		else if (!strcmp(argv[i], "aligns"))
			aligns(argc);
		else if (!strcmp(argv[i], "signal"))
			interrupted();
		else if (!strcmp(argv[i], "jumps"))
			jumps();
		else if (!strcmp(argv[i], "spins"))
			spins(2);
		else
			usleep(1000 * atoi(argv[i]));
	}
	return sink == 42;
}
