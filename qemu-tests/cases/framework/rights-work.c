// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * A program that may become one that its user may not trace: rights-work WORD...
 * Words: steps (ten calls of step()), mark FILE, await FILE, spin MS, undumpable, dumpable,
 * ptracer any|none, namespace, sandbox, groups, user NUMBER (for all threads),
 * exec PROGRAM ARGUMENT...
 * Stacks are walked by frame pointers for who has no tables. @gcc: -fno-omit-frame-pointer
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/landlock.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../providers/usdt-site.h"

/* Instructions of one byte each, for as many probes. They are never executed. */
__asm__(".text\n.globl sled\n.type sled, @function\nsled:\n	.fill 2048, 1, 0x90\n	ret\n.size sled, .-sled\n");

/* System calls that no other program makes show how many steps were taken. */
__attribute__((noipa)) void step(long n)
{
	__asm__ volatile(SITE("rights", "step", "8@%0", "0") : : "r"(n));
	syscall(SYS_sched_get_priority_max, n);
}

static void await(const char *file)
{
	struct timespec a_little = { .tv_nsec = 20 * 1000 * 1000 };

	for (int n = 0; n < 15000 && access(file, F_OK); n++)
		nanosleep(&a_little, NULL);
}

static long ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int sandbox(void)
{
	struct landlock_ruleset_attr attr = { .handled_access_fs = LANDLOCK_ACCESS_FS_MAKE_BLOCK };
	int rules = syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);

	if (rules < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return syscall(SYS_landlock_restrict_self, rules, 0) ? -1 : close(rules);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i], *next = argv[i + 1];
		int failed = 0;

		if (!strcmp(word, "steps")) {
			for (long n = 0; n < 10; n++)
				step(n);
		} else if (!strcmp(word, "mark") && next) {
			i++;
			failed = close(open(next, O_CREAT | O_WRONLY, 0644));
		} else if (!strcmp(word, "await") && next) {
			i++;
			await(next);
		} else if (!strcmp(word, "spin") && next) {
			long until = ms() + atol(next);

			i++;
			while (ms() < until)
				for (volatile int n = 0; n < 100000; n++)
					;
		} else if (!strcmp(word, "undumpable")) {
			failed = prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
		} else if (!strcmp(word, "dumpable")) {
			failed = prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
		} else if (!strcmp(word, "ptracer") && next) {
			i++;
			failed = prctl(PR_SET_PTRACER, strcmp(next, "any") ? 0 : PR_SET_PTRACER_ANY, 0, 0, 0);
		} else if (!strcmp(word, "namespace")) {
			failed = unshare(CLONE_NEWUSER);
		} else if (!strcmp(word, "sandbox")) {
			failed = sandbox();
		} else if (!strcmp(word, "groups")) {
			failed = setgroups(0, NULL);
		} else if (!strcmp(word, "user") && next) {
			i++;
			failed = setresuid(atoi(next), atoi(next), atoi(next));
		} else if (!strcmp(word, "exec") && next) {
			execv(next, argv + i + 1);
			failed = -1;
		} else {
			errno = EINVAL;
			failed = -1;
		}
		if (failed) {
			fprintf(stderr, "rights-work: %s: %s\n", word, strerror(errno));
			return 1;
		}
	}
	return 0;
}
