// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * A program for breakpoints that are written into one process: pid-own serve reads words from
 * its standard input and prints the result of each. pid-own debug PID ADDRESS [HOW] is a
 * debugger that sets a breakpoint in another process without asking anybody, and restores what
 * it has found on SIGUSR1. pid-own watch PID OFFSET has a perf uprobe in one process, and prints
 * on SIGUSR1 how often it was hit.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wait-word.h"

/* The counter of a uprobe with a reference counter. */
__attribute__((section(".data"))) volatile uint16_t counter = 0;

/* A function on another page. */
__attribute__((noinline)) long other(long n)
{
	__asm__ volatile("" : "+r"(n));
	return n + counter;
}

/* On a page of its own. All its instructions are emulated in the exception handler. */
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

/* A child and its own child, a child that executes this program, and one that shares this
 * memory. */
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

/* Moves the page, with what is written on it, and back; the file's page is mapped again. */
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

/* Moves the page to another address, or back to its place. */
static void move(bool away)
{
	static void *there;
	void *from = away ? (void *)work : there, *to = (void *)work;

	if (away)
		to = there = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	printf("%s %s\n", away ? "away" : "back",
	       mremap(from, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to ? "moved" : strerror(errno));
}

static volatile sig_atomic_t steps;

static void on_step(int sig)
{
	(void)sig;
	steps++;
}

/* One call, step by step, in text that is writable. */
static void writable(void)
{
	long result = 1;

	signal(SIGTRAP, on_step);
	mprotect((void *)work, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
	__asm__ volatile("pushf\n	orl $0x100, (%%rsp)\n	popf\n"
			 "	call work\n"
			 "	pushf\n	andl $~0x100, (%%rsp)\n	popf\n"
			 : "+D"(result) : : "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "cc", "memory");
	printf("writable %s %ld\n", steps >= 5 ? "stepped" : "not stepped", sum(100));
	mprotect((void *)work, 4096, PROT_READ | PROT_EXEC);
	signal(SIGTRAP, SIG_DFL);
}

/* Breakpoints of the program itself, of one byte and of two. */
static void traps(void)
{
	signal(SIGTRAP, on_step);
	steps = 0;
	__asm__ volatile(".byte 0xcc\n	.byte 0xcd, 0x03" : : : "memory");
	printf("traps %d\n", (int)steps);
	signal(SIGTRAP, SIG_DFL);
}

static long (*copied)(long n);

/* Moves the page to another address, and maps the same page of the file in its place. */
static void twice(unsigned long offset)
{
	int file = open("/proc/self/exe", O_RDONLY);
	void *to = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	copied = (long (*)(long))mremap((void *)work, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	mmap((void *)work, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file, offset);
	printf("twice %ld\n", sum(100));
}

/* A child that computes, and once a file exists computes again and prints the result. */
static void kid(void)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		work(1);
		while (access("/tmp/go", F_OK))
			usleep(10000);
		printf("kid %ld\n", sum(100));
		fflush(stdout);
		_exit(0);
	}
	printf("born %d\n", pid);
}

/* The number of memory descriptors (mm_struct) that the kernel keeps. */
static long memories(void)
{
	FILE *slabs = fopen("/proc/slabinfo", "r");
	char line[256];
	long active = 0;

	while (slabs && fgets(line, sizeof(line), slabs))
		sscanf(line, "mm_struct %ld", &active);
	if (slabs)
		fclose(slabs);
	return active;
}

/* Many short-lived children, and whether the kernel keeps many more memory descriptors than
 * before, meanwhile and some time later. */
static void storm(void)
{
	long before = memories(), most = 0, wrong = 0, now;

	for (int n = 0; n < 2000; n++) {
		wrong += child(good) != 1;
		now = n % 100 ? 0 : memories();
		most = now > most ? now : most;
	}
	sleep(3);
	printf("storm %ld %s %s\n", wrong, most - before < 1700 ? "few" : "many", memories() - before < 700 ? "few" : "many");
}

/* The offset in the program's file of an address. */
static unsigned long offset_of(const volatile void *address)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long at = (unsigned long)address, start, end, offset, found = 0;
	char line[512];

	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 && start <= at && at < end)
			found = at - start + offset;
	if (maps)
		fclose(maps);
	return found;
}

static void serve(void)
{
	unsigned long offset = offset_of((void *)work);
	char word[32];

	printf("ready %lx %lx %lx\n", (long)work, offset, offset_of(&counter));
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
		else if (!strcmp(word, "away") || !strcmp(word, "back"))
			move(!strcmp(word, "away"));
		else if (!strcmp(word, "storm"))
			storm();
		else if (!strcmp(word, "writable"))
			writable();
		else if (!strcmp(word, "traps"))
			traps();
		else if (!strcmp(word, "twice"))
			twice(offset);
		else if (!strcmp(word, "copied"))
			printf("copied %ld\n", copied(1));
		else if (!strcmp(word, "kid"))
			kid();
		else if (!strcmp(word, "other"))
			printf("other %ld\n", other(1));
		else if (!strcmp(word, "child")) {
			/* A child that stays, and has not called anything. */
			if (!fork()) {
				pause();
				_exit(0);
			}
			printf("child\n");
		} else if (!strcmp(word, "busy")) {
			/* Until the next word comes; children as well. */
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

/* Replaces the first byte at an address; returns the old one. */
static long poke(pid_t pid, long address, long byte)
{
	long word = ptrace(PTRACE_PEEKTEXT, pid, address, NULL);

	ptrace(PTRACE_POKETEXT, pid, address, (word & ~0xffL) | byte);
	return word & 0xff;
}

/* Reads the text without ptrace(), and writes a breakpoint and then what was read. Returns the
 * first byte. */
static long poke_what_is_there(pid_t pid, long address)
{
	long word = 0;
	struct iovec here = { &word, sizeof(word) }, there = { (void *)address, sizeof(word) };

	if (process_vm_readv(pid, &here, 1, &there, 1, 0) != sizeof(word))
		perror("process_vm_readv");
	ptrace(PTRACE_POKETEXT, pid, address, (word & ~0xffL) | 0xcc);
	ptrace(PTRACE_POKETEXT, pid, address, word);
	return word & 0xff;
}

/* Whether the process has stopped after its breakpoint at an address; sets it back to the
 * address. */
static int goes_back(pid_t pid, int status, long address)
{
	struct user_regs_struct regs;

	if (WSTOPSIG(status) != SIGTRAP || ptrace(PTRACE_GETREGS, pid, NULL, &regs) || (long)regs.rip != address + 1)
		return 0;
	regs.rip = address;
	ptrace(PTRACE_SETREGS, pid, NULL, &regs);
	return 1;
}

/* Steps over the breakpoint at an address, with the byte restored, each time that the process
 * stops there, until SIGUSR1. Returns how often. */
static int step_over(pid_t pid, long address, long saved)
{
	sigset_t pending;
	int status, met = 0;

	while (!sigpending(&pending) && !sigismember(&pending, SIGUSR1)) {
		if (waitpid(pid, &status, WNOHANG) != pid) {
			usleep(1000);
			continue;
		}
		if (goes_back(pid, status, address)) {
			met++;
			poke(pid, address, saved);
			ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL);
			waitpid(pid, &status, 0);
			if (WSTOPSIG(status) != SIGTRAP)
				printf("a step ends with signal %d\n", WSTOPSIG(status));
			poke(pid, address, 0xcc);
		} else {
			printf("signal %d\n", WSTOPSIG(status));
		}
		ptrace(PTRACE_CONT, pid, NULL, NULL);
	}
	return met;
}

/* Replaces the second and the third instruction: by a nop, and by one that adds 2 instead of 1. */
static void replace(pid_t pid, long address)
{
	poke(pid, address + 1, 0x0f);
	poke(pid, address + 2, 0x1f);
	poke(pid, address + 3, 0x00);
	poke(pid, address + 7, 2);
}

static int debug(pid_t pid, long address, const char *how)
{
	long saved;
	int status;

	block_signal();
	if (ptrace(PTRACE_ATTACH, pid, NULL, NULL))
		return 1;
	waitpid(pid, &status, 0);
	if (!strcmp(how, "copies")) {
		printf("found %02lx\n", poke_what_is_there(pid, address));
		return 0;
	}
	saved = poke(pid, address, 0xcc);
	if (!strcmp(how, "replaces")) {
		poke(pid, address, saved);
		replace(pid, address);
		/* Then the debugger sets a breakpoint at one of them. */
		address++;
		saved = poke(pid, address, 0xcc);
	}
	ptrace(PTRACE_CONT, pid, NULL, NULL);
	printf("found %02lx\n", saved);
	fflush(stdout);
	if (*how)
		printf("met %d\n", step_over(pid, address, saved));
	await_signal();
	kill(pid, SIGSTOP);
	waitpid(pid, &status, 0);
	if (WSTOPSIG(status) == SIGTRAP)
		printf("stopped behind %s\n", goes_back(pid, status, address) ? "the breakpoint" : "something else");
	poke(pid, address, saved);
	ptrace(PTRACE_DETACH, pid, NULL, NULL);
	kill(pid, SIGCONT);
	printf("put back\n");
	return 0;
}

static int watch(pid_t pid, long offset)
{
	struct perf_event_attr attr = { .size = sizeof(attr), .uprobe_path = (uintptr_t)"/proc/self/exe", .probe_offset = offset };
	FILE *type = fopen("/sys/bus/event_source/devices/uprobe/type", "r");
	uint64_t count = 0;
	int event;

	block_signal();
	if (!type || fscanf(type, "%u", &attr.type) != 1)
		return 1;
	event = syscall(SYS_perf_event_open, &attr, pid, -1, -1, 0);
	if (event < 0) {
		perror("perf_event_open");
		return 1;
	}
	printf("watching\n");
	fflush(stdout);
	await_signal();
	if (read(event, &count, sizeof(count)) != sizeof(count))
		return 1;
	printf("seen %lu\n", (unsigned long)count);
	return 0;
}

int main(int argc, char **argv)
{
	setvbuf(stdin, NULL, _IONBF, 0);
	if (argc > 3 && !strcmp(argv[1], "debug"))
		return debug(atoi(argv[2]), strtol(argv[3], NULL, 16), argc > 4 ? argv[4] : "");
	if (argc > 3 && !strcmp(argv[1], "watch"))
		return watch(atoi(argv[2]), strtol(argv[3], NULL, 16));
	if (argc > 1 && !strcmp(argv[1], "good"))
		return good();
	serve();
	return 0;
}
