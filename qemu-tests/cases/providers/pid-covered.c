// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * A debugger of a program with threads, all of which execute one breakpoint: pid-covered all|one.
 *
 * The program's threads start when /tmp/go exists. By then the debugger has set its breakpoint,
 * and it steps each thread that stops there over the instruction. With `all` the other threads
 * are stopped meanwhile, so none passes while the instruction is back in place. With `one` they
 * run, so some pass unseen by the debugger. One more thread changes the mappings all the time,
 * because the module cannot tell meanwhile what is mapped at the breakpoint.
 */

#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 8
#define CALLS 50
/* With the one that changes mappings, and the first. */
#define ALL (THREADS + 2)
#define AREA (4 << 20)

/* On a page of its own. */
long work(long n);
__asm__(".text\n.p2align 12\n.globl work\n.type work, @function\nwork:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	lea 1(%rdi), %rax\n"
	"	pop %rbp\n"
	"	ret\n"
	".size work, .-work\n.p2align 12\n");

static void *thread(void *result)
{
	for (long n = 0; n < CALLS; n++)
		*(long *)result += work(n);
	return NULL;
}

static atomic_bool is_over;

/* In small pages. A kernel without huge pages does not know the advice. */
static void *populated(void)
{
	char *area = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (area == MAP_FAILED || (madvise(area, AREA, MADV_NOHUGEPAGE) && errno != EINVAL))
		err(1, "area");
	memset(area, 1, AREA);
	return area;
}

/* The kernel holds the lock of the mappings while it goes through all pages of the area. */
static void *changes_mappings(void *area)
{
	for (int n = 0; !is_over; n++)
		mprotect(area, AREA, n % 2 ? PROT_READ | PROT_WRITE : PROT_READ);
	return NULL;
}

static int program(void)
{
	pthread_t ids[THREADS], changes;
	long results[THREADS] = { 0 }, wrong = 0;
	void *area = populated();

	while (access("/tmp/go", F_OK))
		usleep(10000);
	pthread_create(&changes, NULL, changes_mappings, area);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&ids[i], NULL, thread, &results[i]);
	for (int i = 0; i < THREADS; i++)
		pthread_join(ids[i], NULL);
	is_over = true;
	pthread_join(changes, NULL);
	for (int i = 0; i < THREADS; i++)
		wrong += results[i] != CALLS * (CALLS + 1) / 2;
	printf("wrong %ld\n", wrong);
	return 0;
}

/* The program's threads that the debugger has seen and that have not exited. */
static struct {
	pid_t id;
	/* It is at the breakpoint, and has not been stepped over it yet. */
	bool met;
} threads[ALL];

static bool all;
static long saved, count;

static void poke(pid_t id, long byte)
{
	long word = ptrace(PTRACE_PEEKTEXT, id, work, NULL);

	ptrace(PTRACE_POKETEXT, id, work, (word & ~0xffL) | byte);
}

static int known(pid_t id)
{
	int free = -1;

	for (int i = 0; i < ALL; i++) {
		if (threads[i].id == id)
			return i;
		if (!threads[i].id)
			free = i;
	}
	threads[free].id = id;
	return free;
}

/* Whether a thread has stopped after the breakpoint. If so, its next instruction becomes the one
 * below the breakpoint. */
static bool goes_back(pid_t id, int status)
{
	struct user_regs_struct regs;

	if (status >> 8 != SIGTRAP || ptrace(PTRACE_GETREGS, id, NULL, &regs) || (long)regs.rip != (long)work + 1)
		return false;
	regs.rip = (long)work;
	ptrace(PTRACE_SETREGS, id, NULL, &regs);
	return true;
}

/* Whether a stop is one that the debugger has requested, or a notification. */
static bool is_event(int status)
{
	return status >> 16;
}

static void step(pid_t id)
{
	int status;

	poke(id, saved);
	do {
		ptrace(PTRACE_SINGLESTEP, id, NULL, NULL);
		waitpid(id, &status, __WALL);
	} while (is_event(status));
	if (status >> 8 != SIGTRAP)
		printf("a step ends with %x\n", status);
	poke(id, 0xcc);
	count++;
}

/* Stops all threads but one; those that hit the breakpoint meanwhile are marked. */
static void stop_others(pid_t id)
{
	int status;

	for (int i = 0; i < ALL; i++) {
		if (!threads[i].id || threads[i].id == id)
			continue;
		ptrace(PTRACE_INTERRUPT, threads[i].id, NULL, NULL);
		if (waitpid(threads[i].id, &status, __WALL) != threads[i].id || !WIFSTOPPED(status))
			threads[i].id = 0;
		else
			threads[i].met = goes_back(threads[i].id, status);
	}
}

static void meet(int thread)
{
	threads[thread].met = true;
	if (all)
		stop_others(threads[thread].id);
	for (int i = 0; i < ALL; i++) {
		if (threads[i].id && threads[i].met)
			step(threads[i].id);
		threads[i].met = false;
	}
	for (int i = 0; all && i < ALL; i++)
		if (threads[i].id && i != thread)
			ptrace(PTRACE_CONT, threads[i].id, NULL, NULL);
}

static int debug(pid_t pid)
{
	int status;
	pid_t id;

	ptrace(PTRACE_SEIZE, pid, NULL, PTRACE_O_TRACECLONE);
	printf("program %d\n", pid);
	fflush(stdout);
	while (access("/tmp/cover", F_OK))
		usleep(10000);
	ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
	waitpid(pid, &status, __WALL);
	saved = ptrace(PTRACE_PEEKTEXT, pid, work, NULL) & 0xff;
	printf("found %02lx\n", saved);
	fflush(stdout);
	poke(pid, 0xcc);
	ptrace(PTRACE_CONT, pid, NULL, NULL);
	while ((id = waitpid(-1, &status, __WALL)) > 0) {
		int thread = known(id);

		if (!WIFSTOPPED(status)) {
			threads[thread].id = 0;
			if (id == pid && WIFSIGNALED(status))
				printf("the program has got signal %d\n", WTERMSIG(status));
			continue;
		}
		if (goes_back(id, status))
			meet(thread);
		else if (!is_event(status))
			printf("a thread stops with %x\n", status);
		ptrace(PTRACE_CONT, id, NULL, NULL);
	}
	if (all)
		printf("met %ld\n", count);
	else
		printf("met %s\n", count > 0 && count <= THREADS * CALLS ? "some" : "none or too many");
	return 0;
}

int main(int argc, char **argv)
{
	pid_t pid;

	all = argc > 1 && !strcmp(argv[1], "all");
	pid = fork();
	if (!pid)
		return program();
	return debug(pid);
}
