// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * Instructions of each kind that a probe's breakpoint may cover: pid-traps [WORD...]. Each word
 * is a piece of work; results are printed.
 */

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Stores, loads, flags, calls: 13 instructions, of which all but `popq` into memory are executed
 * without uprobes; that one enters uprobes twice. */
long common(long n, long *at);
__asm__(".text\n.globl common\n.type common, @function\ncommon:\n"
	"	endbr64\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	mov %rdi, (%rsi)\n"
	"	add %edi, 4(%rsi)\n"
	"	pushq (%rsi)\n"
	"	popq 8(%rsi)\n"
	"	xchg %rax, %rdi\n"
	"	call 1f\n"
	"	leave\n"
	"	ret\n"
	"1:	lea 1(%rax), %rax\n"
	"	ret\n"
	".size common, .-common\n");

/* With an unaligned stack: pushes and pops across words and pages. */
long crooked(long n, char *stack);
__asm__(".text\n.globl crooked\n.type crooked, @function\ncrooked:\n"
	"	mov %rsp, %rdx\n"
	"	mov %rsi, %rsp\n"
	"	push %rdi\n"
	"	pop %rax\n"
	"	mov %rdx, %rsp\n"
	"	ret\n"
	".size crooked, .-crooked\n");

/* On a page of its own. */
long lone(long n);
__asm__(".text\n.p2align 12\n.globl lone\n.type lone, @function\nlone:\n"
	"	lea 1(%rdi), %rax\n"
	"	ret\n"
	".size lone, .-lone\n.p2align 12\n");

/* Descends the stack into pages that have never been touched. */
long deep(long n);
__asm__(".text\n.globl deep\n.type deep, @function\ndeep:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	sub $3000, %rsp\n"
	"	lea 1(%rdi), %rax\n"
	"	dec %rdi\n"
	"	jle 1f\n"
	"	call deep\n"
	"	inc %rax\n"
	"1:	leave\n"
	"	ret\n"
	".size deep, .-deep\n");

/* An instruction that uprobes refuse, and one with which they would store a flag of their own. */
long table(long n);
__asm__(".text\n.globl table\n.type table, @function\ntable:\n"
	"	lea 1f(%rip), %rax\n"
	"	notrack jmp *%rax\n"
	"	ud2\n"
	"1:	pushfq\n"
	"	pop %rax\n"
	"	and $0x100, %eax\n"
	"	lea 1(%rax, %rdi), %rax\n"
	"	ret\n"
	".size table, .-table\n");

/* A function that is left by such a jump. */
long leap(long n);
__asm__(".text\n.globl leap\n.type leap, @function\nleap:\n"
	"	lea lone(%rip), %rax\n"
	"	notrack jmp *%rax\n"
	".size leap, .-leap\n");

/* How many steps a debugger makes through a child, from here to its end. */
static long steps(void)
{
	long count = 0;
	int status;
	pid_t child = fork();

	if (!child) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		_exit(lone(1) + lone(2) + lone(3));
	}
	waitpid(child, &status, 0);
	while (WIFSTOPPED(status)) {
		if (WSTOPSIG(status) != SIGSTOP && WSTOPSIG(status) != SIGTRAP)
			return -WSTOPSIG(status);
		count++;
		ptrace(PTRACE_SINGLESTEP, child, NULL, NULL);
		waitpid(child, &status, 0);
	}
	return WEXITSTATUS(status) == 9 ? count : -1;
}

/* The same in this process, which has the probes, with its own trap flag. */
static volatile sig_atomic_t traps;

static void on_trap(int sig)
{
	(void)sig;
	traps++;
}

static long own_steps(long (*body)(long))
{
	long n = 0;

	signal(SIGTRAP, on_trap);
	traps = 0;
	__asm__ volatile("pushf\n	orl $0x100, (%%rsp)\n	popf\n"
			 "	mov $1, %%edi\n	call *%%rbx\n"
			 "	pushf\n	andl $~0x100, (%%rsp)\n	popf\n"
			 : "=a"(n)
			 : "b"(body)
			 : "rdi", "memory", "cc");
	return n * 100 + traps;
}

/* Other code where lone() was: a breakpoint of the program's own, and a return. */
static long instead(void)
{
	uint8_t *page = mmap((void *)lone, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	if (page == MAP_FAILED)
		return -1;
	memcpy(page, "\xcc\x48\x8d\x47\x05\xc3", 6);
	mprotect(page, 4096, PROT_READ | PROT_EXEC);
	signal(SIGTRAP, on_trap);
	traps = 0;
	return lone(1) * 100 + traps;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];

		if (!strcmp(word, "common")) {
			long at[2] = { 0, 0 }, sum = 0;

			for (long n = 1; n <= 100; n++)
				sum += common(n, at) + at[0] + at[1];
			printf("common %ld\n", sum);
		} else if (!strcmp(word, "crooked")) {
			char *stack = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			long sum = 0;

			for (long n = 0; n < 16; n++)
				sum += crooked(n, stack + 4096 + n);
			printf("crooked %ld\n", sum);
		} else if (!strcmp(word, "lone")) {
			printf("lone %ld\n", lone(1) + lone(2) + lone(3));
		} else if (!strcmp(word, "deep")) {
			printf("deep %ld\n", deep(500));
		} else if (!strcmp(word, "steps")) {
			printf("steps %ld\n", steps());
		} else if (!strcmp(word, "own")) {
			printf("own steps %ld\n", own_steps(lone));
		} else if (!strcmp(word, "table")) {
			printf("table %ld %ld\n", table(1) + table(2), leap(1) + leap(2));
		} else if (!strcmp(word, "fork")) {
			/* The child continues with the remaining words. */
			pid_t child = fork();
			int status = 0;

			if (child)
				return waitpid(child, &status, 0) != child || status;
		} else if (!strcmp(word, "table-own")) {
			printf("table steps %ld\n", own_steps(table));
		} else if (!strcmp(word, "instead")) {
			printf("instead %ld\n", instead());
		} else if (!strcmp(word, "full")) {
			/* No stack page is left: the program dies where it would have without
			 * probes. */
			struct rlimit limit = { 1 << 20, 1 << 20 };

			setrlimit(RLIMIT_STACK, &limit);
			fflush(stdout);
			printf("full %ld\n", deep(5000));
		}
		fflush(stdout);
	}
	return 0;
}
