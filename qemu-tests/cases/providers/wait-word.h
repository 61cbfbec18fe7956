/* SPDX-FileCopyrightText: The DTrace for Linux authors */
/* SPDX-License-Identifier: GPL-2.0-only */

/* What programs of cases do for the word `wait`: they say that they are ready, and go on when they get SIGUSR1. */

#include <signal.h>
#include <stdio.h>

static void wait_for_signal(void)
{
	sigset_t set;
	int got;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	printf("ready\n");
	fflush(stdout);
	sigwait(&set, &got);
}
