// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * Code that is in no file: pid-bare [WORD...]. Creates some, prints its address, and does a
 * piece of work for each word; `wait` waits for SIGUSR1.
 */

#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SIZE 8192
#define TURNS 100

/* The code that is created, which is position-independent. Its addition is at 8; it converts at
 * 12 and at 17, which cannot be emulated in the exception handler. */
extern const char template[], template_end[];
__asm__(".section .rodata\n"
	"template:\n"
	"	endbr64\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	lea 1(%rdi), %rax\n"
	"	cvtsi2sd %rax, %xmm0\n"
	"	cvttsd2si %xmm0, %rax\n"
	"	pop %rbp\n"
	"	ret\n"
	"template_end:\n"
	".text\n");

static char *made;

/* Writes the code, which adds a number, and makes it executable. */
static void make(char number)
{
	mprotect(made, SIZE, PROT_READ | PROT_WRITE);
	memcpy(made, template, template_end - template);
	made[11] = number;
	mprotect(made, SIZE, PROT_READ | PROT_EXEC);
}

static long sum(void)
{
	long (*function)(long) = (long (*)(long))made;
	long sum = 0;

	for (long n = 0; n < TURNS; n++)
		sum += function(n);
	return sum;
}

static void child(void)
{
	pid_t pid = fork();
	int status = 0;

	if (!pid)
		_exit(sum() == TURNS * (TURNS + 1) / 2);
	waitpid(pid, &status, 0);
	printf("child %s\n", status == 0x100 ? "right" : "wrong");
}

static void move(void)
{
	char *room = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	made = mremap(made, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, room);
	printf("moved %ld\n", sum());
}

/* Other code at the same address, with a breakpoint of its own. */
static volatile sig_atomic_t traps;

static void on_trap(int sig)
{
	(void)sig;
	traps++;
}

static void replace(void)
{
	long (*function)(long) = (long (*)(long))made;
	long result;

	signal(SIGTRAP, on_trap);
	munmap(made, SIZE);
	made = mmap(made, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	memset(made, 0x90, 64);
	memcpy(made + 8, "\xcc\x48\x8d\x47\x05\xc3", 6);
	mprotect(made, SIZE, PROT_READ | PROT_EXEC);
	result = function(1);
	printf("replaced %ld, %d trap\n", result, (int)traps);
}

static void clocks(void)
{
	struct timespec now, last = { 0 };
	long back = 0;

	for (int n = 0; n < TURNS; n++) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		back += now.tv_sec < last.tv_sec || (now.tv_sec == last.tv_sec && now.tv_nsec < last.tv_nsec);
		last = now;
	}
	printf("clock %ld back\n", back);
}

int main(int argc, char **argv)
{
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	made = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	make(1);
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];

		if (!strcmp(word, "wait")) {
			printf("at %lx\n", (unsigned long)made);
			fflush(stdout);
			sigwait(&set, &sig);
		} else if (!strcmp(word, "run")) {
			printf("run %ld\n", sum());
		} else if (!strcmp(word, "child")) {
			child();
		} else if (!strcmp(word, "move")) {
			move();
		} else if (!strcmp(word, "other")) {
			make(2);
			printf("other %ld\n", sum());
		} else if (!strcmp(word, "replace")) {
			replace();
		} else if (!strcmp(word, "open")) {
			mprotect(made, SIZE, PROT_READ | PROT_WRITE | PROT_EXEC);
		} else if (!strcmp(word, "clock")) {
			clocks();
		}
		fflush(stdout);
	}
	return 0;
}
