// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * Calls functions with known arguments and results, a known number of times: pid-work [WORD...].
 * Each word is a piece of work; the results are printed.
 */

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wait-word.h"

extern char __executable_start;

#define FUNCTION __attribute__((noipa, noinline))

FUNCTION long sum8(long a, long b, long c, long d, long e, long f, long g, long h)
{
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h;
}

FUNCTION long fib(long n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

FUNCTION long twice(long n)
{
	return 2 * n;
}

/* Leaves by a conditional jump to another function, by a jump through a register, and by a
 * return. */
long leave(long n);
__asm__(".text\n.globl leave\n.type leave, @function\nleave:\n"
	"	cmp $1, %rdi\n"
	"	je twice\n"
	"	cmp $2, %rdi\n"
	"	jne 1f\n"
	"	lea twice(%rip), %rax\n"
	"	jmp *%rax\n"
	"1:	cmp $3, %rdi\n"
	"	lea 2f(%rip), %rax\n"
	"	jmp *%rax\n"
	"2:	mov %rdi, %rax\n"
	"	ret\n"
	".size leave, .-leave\n");

/* Instructions that the kernel's own probes refuse, or execute as something else. None of them is
 * executed, because they follow the `ret`. */
long odd(long n);
__asm__(".text\n.globl odd\n.type odd, @function\nodd:\n"
	"	mov %rdi, %rax\n"
	"	ret\n"
	"	hlt\n"
	"	vmovdqu %ymm0, (%rdi)\n"
	"	lock incl (%rdi)\n"
	"	syscall\n"
	".size odd, .-odd\n");

FUNCTION long grow(long n)
{
	return n + 1;
}

static void *count(void *times)
{
	long n = 0;

	for (long i = 0; i < (long)times; i++)
		n = grow(n);
	return (void *)n;
}

static volatile sig_atomic_t stop;

static void on_stop(int sig)
{
	stop = sig;
}

/* Calls grow() until SIGUSR2; returns how often the result was wrong. */
static long busy(void)
{
	long wrong = 0;

	signal(SIGUSR2, on_stop);
	for (long n = 0; !stop; n++)
		wrong += grow(n) != n + 1;
	return wrong;
}

/* Bytes of a function that a breakpoint would change. */
FUNCTION unsigned int text(void)
{
	const unsigned char *code = (const unsigned char *)(void *)grow;
	unsigned int sum = 0;

	for (int i = 0; i < 4; i++)
		sum = sum * 257 + code[i];
	return sum;
}

FUNCTION int borrow(void)
{
	int status;

	if (!vfork()) {
		grow(0);
		_exit(0);
	}
	wait(&status);
	return status;
}

int main(int argc, char **argv)
{
	unsigned int before = text();

	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];

		if (!strcmp(word, "sum")) {
			printf("sum %ld\n", sum8(1, 2, 3, 4, 5, 6, 7, -8));
		} else if (!strcmp(word, "fib")) {
			printf("fib %ld\n", fib(10));
		} else if (!strcmp(word, "leave")) {
			printf("leave %ld %ld %ld\n", leave(1), leave(2), leave(30));
		} else if (!strcmp(word, "odd")) {
			printf("odd %ld\n", odd(7));
		} else if (!strcmp(word, "grow")) {
			printf("grow %ld\n", (long)count((void *)1000L));
		} else if (!strcmp(word, "threads")) {
			pthread_t threads[4];
			long all = 0;
			void *n;

			for (int t = 0; t < 4; t++)
				pthread_create(&threads[t], NULL, count, (void *)1000L);
			for (int t = 0; t < 4; t++) {
				pthread_join(threads[t], &n);
				all += (long)n;
			}
			printf("threads %ld\n", all);
		} else if (!strcmp(word, "fork")) {
			int status;

			fflush(stdout);
			if (!fork())
				_exit(count((void *)100L) != (void *)100L);
			wait(&status);
			printf("fork %d\n", status);
		} else if (!strcmp(word, "vfork")) {
			fflush(stdout);
			printf("vfork %d\n", borrow());
		} else if (!strcmp(word, "exec")) {
			fflush(stdout);
			execlp("pid-work", "pid-work", "grow", NULL);
		} else if (!strcmp(word, "wait")) {
			wait_for_signal();
		} else if (!strcmp(word, "where")) {
			/* The offset of grow() in the program's file. */
			printf("%#lx\n", (long)((char *)(void *)grow - &__executable_start));
		} else if (!strcmp(word, "long")) {
			printf("long %ld\n", (long)count((void *)200000L));
		} else if (!strcmp(word, "busy")) {
			printf("wrong %ld\n", busy());
		} else if (!strcmp(word, "text")) {
			printf("text %s\n", text() == before ? "as before" : "changed");
		}
	}
	return 0;
}
