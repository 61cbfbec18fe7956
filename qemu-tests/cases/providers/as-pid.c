// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * as-pid NUMBER PROGRAM [WORD...]: executes a program as a process with that ID, and waits for it.
 * Exits with its status, or with 128 plus the signal that killed it.
 */

#define _GNU_SOURCE
#include <err.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	pid_t number = argc > 2 ? atoi(argv[1]) : 0;
	struct clone_args args = { .exit_signal = SIGCHLD, .set_tid = (uintptr_t)&number, .set_tid_size = 1 };
	int status;
	long pid;

	if (number <= 0)
		errx(2, "usage: as-pid NUMBER PROGRAM [WORD...]");
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid < 0)
		err(1, "%d", number);
	if (!pid) {
		execvp(argv[2], argv + 2);
		err(1, "%s", argv[2]);
	}
	if (waitpid(pid, &status, 0) != pid)
		err(1, "wait");
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
