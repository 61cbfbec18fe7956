// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * A program that does what it is told, for breakpoints that are written into one process: pid-own serve, which reads words from its
 * standard input and says what came of each. pid-own debug PID ADDRESS is a debugger that sets a breakpoint in another process
 * while it is told nothing, and puts back what it has found when it gets SIGUSR1.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* A page of its own. All instructions but none are done in the exception. */
long work(long n);
__asm__(".text\n.p2align 12\n.globl work\n.type work, @function\nwork:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	lea 1(%rdi), %rax\n"
	"	pop %rbp\n"
	"	ret\n"
	".size work, .-work\n.p2align 12\n");

static volatile sig_atomic_t alarms;

static void on_alarm(int sig)
{
	(void)sig;
	alarms++;
}

static long sum(long turns)
{
	long total = 0;

	for (long n = 1; n <= turns; n++)
		total += work(n);
	return total;
}

static void *thread(void *result)
{
	*(long *)result = sum(1000);
	return NULL;
}

/* 64 threads at one probe, and a timer that interrupts them as often as it can. */
static void threads(void)
{
	struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = { { 0, 0 }, { 0, 0 } };
	pthread_t ids[64];
	long results[64], wrong = 0;

	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < 64; i++)
		pthread_create(&ids[i], NULL, thread, &results[i]);
	for (int i = 0; i < 64; i++)
		pthread_join(ids[i], NULL);
	setitimer(ITIMER_REAL, &never, NULL);
	for (int i = 0; i < 64; i++)
		wrong += results[i] != 501500;
	printf("threads %ld %s\n", wrong, alarms ? "interrupted" : "not interrupted");
}

static int child(long (*body)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(body());
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static long good(void)
{
	return sum(100) == 5150;
}

static long good_and_child(void)
{
	return good() + child(good);
}

/* A child and its own child, a child that is this program anew, and one that has this memory. */
static void forks(void)
{
	int status;
	pid_t pid;
	int both = child(good_and_child);

	pid = vfork();
	if (!pid) {
		work(1);
		execlp("pid-own", "pid-own", "good", NULL);
		_exit(9);
	}
	waitpid(pid, &status, 0);
	printf("forks %d %d\n", both, WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
}

/* The page somewhere else, which takes what is written on it along; then the same page of the file anew. */
static void moves(void)
{
	void *to = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long (*moved)(long) = (long (*)(long))mremap((void *)work, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	long total = 0;

	if ((void *)moved == MAP_FAILED) {
		printf("moves %s\n", strerror(errno));
		return;
	}
	for (long n = 1; n <= 100; n++)
		total += moved(n);
	mremap((void *)moved, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)work);
	printf("moves %ld %ld\n", total, sum(100));
}

static void serve(void)
{
	char word[32];

	printf("ready %lx\n", (long)work);
	fflush(stdout);
	while (scanf("%31s", word) == 1) {
		if (!strcmp(word, "run"))
			printf("run %ld\n", sum(100));
		else if (!strcmp(word, "text"))
			printf("text %02x %02x\n", *(volatile uint8_t *)work, *(volatile uint8_t *)((char *)work + 9));
		else if (!strcmp(word, "threads"))
			threads();
		else if (!strcmp(word, "forks"))
			forks();
		else if (!strcmp(word, "moves"))
			moves();
		else if (!strcmp(word, "child")) {
			/* One that stays, and has not called anything. */
			if (!fork()) {
				pause();
				_exit(0);
			}
			printf("child\n");
		} else if (!strcmp(word, "busy")) {
			/* Until it is told something else; children as well. */
			while (1) {
				if (sum(1000) != 501500 || child(good) != 1) {
					printf("busy: wrong\n");
					break;
				}
				fd_set in;
				struct timeval none = { 0, 0 };

				FD_ZERO(&in);
				FD_SET(0, &in);
				if (select(1, &in, NULL, NULL, &none) == 1) {
					printf("busy\n");
					break;
				}
			}
		}
		fflush(stdout);
	}
}

static void on_user(int sig)
{
	(void)sig;
}

static int debug(pid_t pid, long address)
{
	long saved, rest;
	int status;

	signal(SIGUSR1, on_user);
	if (ptrace(PTRACE_ATTACH, pid, NULL, NULL))
		return 1;
	waitpid(pid, &status, 0);
	saved = ptrace(PTRACE_PEEKTEXT, pid, address, NULL);
	ptrace(PTRACE_POKETEXT, pid, address, (saved & ~0xffL) | 0xcc);
	ptrace(PTRACE_CONT, pid, NULL, NULL);
	printf("found %02lx\n", saved & 0xff);
	fflush(stdout);
	pause();
	kill(pid, SIGSTOP);
	waitpid(pid, &status, 0);
	rest = ptrace(PTRACE_PEEKTEXT, pid, address, NULL);
	ptrace(PTRACE_POKETEXT, pid, address, (rest & ~0xffL) | (saved & 0xff));
	ptrace(PTRACE_DETACH, pid, NULL, NULL);
	kill(pid, SIGCONT);
	printf("put back\n");
	return 0;
}

int main(int argc, char **argv)
{
	setvbuf(stdin, NULL, _IONBF, 0);
	if (argc > 3 && !strcmp(argv[1], "debug"))
		return debug(atoi(argv[2]), strtol(argv[3], NULL, 16));
	if (argc > 1 && !strcmp(argv[1], "good"))
		return good();
	serve();
	return 0;
}
