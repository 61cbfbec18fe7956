/* SPDX-FileCopyrightText: The DTrace for Linux authors */
/* SPDX-License-Identifier: MIT OR Apache-2.0 */

/*
 * Functions with which the programs of cases wait for SIGUSR1, which may arrive before they
 * wait. For the word `wait` a program prints that it is ready, and continues when it gets the
 * signal.
 */

#include <signal.h>
#include <stdio.h>

static inline sigset_t the_signal(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	return set;
}

static inline void block_signal(void)
{
	sigset_t set = the_signal();

	sigprocmask(SIG_BLOCK, &set, NULL);
}

static inline void await_signal(void)
{
	sigset_t set = the_signal();
	int got;

	sigwait(&set, &got);
}

static inline void wait_for_signal(void)
{
	block_signal();
	printf("ready\n");
	fflush(stdout);
	await_signal();
}
