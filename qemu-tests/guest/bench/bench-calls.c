// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * The program in which `bench` has tracers trace: bench-calls [PROCESSES].
 *
 * Reads lines `FUNCTION TURNS`, calls the function that often, and prints how many nanoseconds all
 * calls took. PROCESSES more processes, which sleep, run the same program. Compilers begin most
 * functions with one of two instructions, which tracers treat differently.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "../../cases/providers/usdt-site.h"

long marked(long n);
__asm__(".text\n.globl marked\n.type marked, @function\nmarked:\n"
	"	endbr64\n"
	"	lea 1(%rdi), %rax\n"
	"	ret\n"
	".size marked, .-marked\n");

long pushing(long n);
__asm__(".text\n.globl pushing\n.type pushing, @function\npushing:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	lea 1(%rdi), %rax\n"
	"	pop %rbp\n"
	"	ret\n"
	".size pushing, .-pushing\n");

/* Contains a USDT probe, whose argument is 0 or 1. */
long telling(long n);
__asm__(".text\n.globl telling\n.type telling, @function\ntelling:\n"
	"	mov %rdi, %rax\n"
	"	and $1, %eax\n"
	SITE("bench", "told", "8@%rax", "0")
	"	ret\n"
	".size telling, .-telling\n");

/* Calls inner() at the end of six more calls. None of these functions has a frame pointer. */
long nested(long n);
long inner(long n);
__asm__(".text\n.altmacro\n"
	".macro frame name, next\n"
	".globl \\name\n.type \\name, @function\n\\name:\n"
	"	.cfi_startproc\n	endbr64\n	sub $24, %rsp\n	.cfi_adjust_cfa_offset 24\n"
	"	call \\next\n	add $24, %rsp\n	.cfi_adjust_cfa_offset -24\n	ret\n	.cfi_endproc\n"
	".size \\name, .-\\name\n"
	".endm\n"
	"frame nested, nest_1\nframe nest_1, nest_2\nframe nest_2, nest_3\nframe nest_3, nest_4\nframe nest_4, nest_5\nframe nest_5, inner\n"
	".globl inner\n.type inner, @function\ninner:\n"
	"	.cfi_startproc\n	endbr64\n	lea 1(%rdi), %rax\n	ret\n	.cfi_endproc\n"
	".size inner, .-inner\n");

/* The same with frame pointers, as compilers emit them; framed_inner() has one as well. */
long framed(long n);
long framed_inner(long n);
__asm__(".text\n.macro begin name\n"
	".globl \\name\n.type \\name, @function\n\\name:\n"
	"	.cfi_startproc\n	endbr64\n	push %rbp\n	.cfi_def_cfa_offset 16\n	.cfi_offset 6, -16\n"
	"	mov %rsp, %rbp\n	.cfi_def_cfa_register 6\n"
	".endm\n"
	".macro end name\n"
	"	pop %rbp\n	.cfi_def_cfa 7, 8\n	ret\n	.cfi_endproc\n"
	".size \\name, .-\\name\n"
	".endm\n"
	".macro framed name, next\n	begin \\name\n	call \\next\n	end \\name\n.endm\n"
	"framed framed, framed_1\nframed framed_1, framed_2\nframed framed_2, framed_3\nframed framed_3, framed_4\n"
	"framed framed_4, framed_5\nframed framed_5, framed_inner\n"
	"begin framed_inner\n	lea 1(%rdi), %rax\n	end framed_inner\n");

/* A thousand functions, many_000 to many_999, which are never called. */
__asm__(".text\n.altmacro\n"
	".macro function a b c\n"
	".globl many_\\a\\b\\c\n.type many_\\a\\b\\c, @function\nmany_\\a\\b\\c:\n"
	"	endbr64\n	ret\n"
	".size many_\\a\\b\\c, .-many_\\a\\b\\c\n"
	".endm\n"
	".irp a,0,1,2,3,4,5,6,7,8,9\n"
	".irp b,0,1,2,3,4,5,6,7,8,9\n"
	".irp c,0,1,2,3,4,5,6,7,8,9\n"
	"function \\a \\b \\c\n"
	".endr\n.endr\n.endr\n");

static const struct {
	const char *name;
	long (*function)(long n);
} functions[] = { { "marked", marked }, { "pushing", pushing }, { "telling", telling },
		{ "nested", nested }, { "framed", framed } };

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv)
{
	int others = argc > 1 ? atoi(argv[1]) : 0;
	char name[32];
	long turns;

	while (others-- > 0) {
		if (fork())
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	while (scanf("%31s %ld", name, &turns) == 2) {
		long (*function)(long) = NULL;
		long long start;

		for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
			if (!strcmp(functions[i].name, name))
				function = functions[i].function;
		if (!function)
			return 1;
		start = now();
		for (long n = 0; n < turns; n++)
			function(n);
		printf("%lld\n", now() - start);
		fflush(stdout);
	}
	return 0;
}
