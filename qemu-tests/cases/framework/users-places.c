// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * A program with instructions at which breakpoints are special: users-places WORD...
 * Words: calls (100 of each function), together (four threads at a time load from an unmapped
 * address), stepped (the same as calls while a debugger steps through it), fork (a child makes the
 * calls, and prints whether its probe is enabled), asked, where (addresses of functions),
 * mark FILE, await FILE.
 */
#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../providers/usdt-site.h"

#define FUNCTION(name, code) ".globl " name "\n.type " name ", @function\n" name ":\n" code "\nret\n.size " name ", . - " name "\n"

/* The last one loads from an unmapped address if its caller wants that. */
__asm__(".text\n"
	FUNCTION("nop_1", "nop")
	FUNCTION("nop_5", ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00")
	FUNCTION("nop_10", ".byte 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00")
	FUNCTION("locked", "lock incl (%rdi)")
	FUNCTION("computed", "imul $3, %rdi, %rax")
	FUNCTION("loaded", "mov (%rdi), %eax"));

void nop_1(int *), nop_5(int *), nop_10(int *), locked(int *), computed(int *), loaded(int *);

__attribute__((section(".probes"))) volatile unsigned short wanted;
static __thread sigjmp_buf back;

static void failed(int signal)
{
	siglongjmp(back, signal);
}

static void calls(void)
{
	int number = 0;

	for (volatile int n = 0; n < 100; n++) {
		nop_1(&number);
		nop_5(&number);
		nop_10(&number);
		locked(&number);
		computed(&number);
		if (n % 2)
			loaded(&number);
		else if (!sigsetjmp(back, 1))
			loaded(NULL);
		if (wanted)
			__asm__ volatile(SITE("places", "asked", "4@%0", "wanted") : : "r"(n));
	}
	if (number != 100)
		errx(1, "%d were locked", number);
}

static void *load(void *barrier)
{
	pthread_barrier_wait(barrier);
	for (volatile int n = 0; n < 100; n++)
		if (!sigsetjmp(back, 1))
			loaded(NULL);
	return NULL;
}

static void together(void)
{
	pthread_barrier_t barrier;
	pthread_t threads[4];

	pthread_barrier_init(&barrier, NULL, 4);
	for (int n = 0; n < 4; n++)
		if (pthread_create(&threads[n], NULL, load, &barrier))
			errx(1, "no thread");
	for (int n = 0; n < 4; n++)
		pthread_join(threads[n], NULL);
}

/* A child steps through this process, for as long as the child lives. */
static void stepped(void)
{
	pid_t child, parent = getpid();
	int ready[2], status;

	if (pipe(ready) || prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY))
		err(1, "pipe");
	child = fork();
	if (!child) {
		if (ptrace(PTRACE_SEIZE, parent, 0, 0) || ptrace(PTRACE_INTERRUPT, parent, 0, 0))
			_exit(1);
		if (write(ready[1], "x", 1) != 1)
			_exit(2);
		for (int n = 0; n < 3000; n++) {
			if (waitpid(parent, &status, __WALL) != parent || !WIFSTOPPED(status))
				_exit(3);
			int signal = WSTOPSIG(status) == SIGSEGV ? SIGSEGV : 0;
			if (ptrace(PTRACE_SINGLESTEP, parent, 0, signal))
				_exit(4);
		}
		waitpid(parent, &status, __WALL);
		_exit(ptrace(PTRACE_DETACH, parent, 0, WSTOPSIG(status) == SIGSEGV ? SIGSEGV : 0) ? 5 : 0);
	}
	char byte;
	if (read(ready[0], &byte, 1) != 1)
		errx(1, "the child has not begun");
	calls();
	if (waitpid(child, &status, 0) != child || status)
		errx(1, "the child ended with %#x", status);
}

static void with_child(void)
{
	int status;
	pid_t child = fork();

	if (!child) {
		calls();
		printf("child: %d\n", wanted);
		fflush(stdout);
		_exit(0);
	}
	waitpid(child, &status, 0);
	if (status)
		errx(1, "the child ended with %#x", status);
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = failed };

	sigaction(SIGSEGV, &action, NULL);
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "calls")) {
			calls();
		} else if (!strcmp(argv[i], "together")) {
			together();
		} else if (!strcmp(argv[i], "stepped")) {
			stepped();
		} else if (!strcmp(argv[i], "fork")) {
			with_child();
		} else if (!strcmp(argv[i], "asked")) {
			printf("asked %d\n", wanted);
		} else if (!strcmp(argv[i], "where")) {
			printf("%lx %lx %lx\n", (long)computed, (long)loaded, (long)locked);
		} else if (!strcmp(argv[i], "mark")) {
			close(open(argv[++i], O_CREAT | O_WRONLY, 0666));
		} else if (!strcmp(argv[i], "await")) {
			for (i++; access(argv[i], F_OK);)
				usleep(10000);
		}
		fflush(stdout);
	}
	return 0;
}
