/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/*
 * uintptr_t dtrace_call(fn, a0, a1, a2, a3, a4): calls fn(a0 .. a4).
 *
 * fn is a kernel function whose address came from kallsyms. Where nobody in the kernel takes its address, its ENDBR
 * was sealed at boot, and an indirect call would fault on a CPU that enforces branch targets. A return is no indirect
 * branch in that sense: the address is pushed and returned to, with the caller's return address left below it.
 */

#include <linux/linkage.h>
#include <linux/objtool.h>
#include <asm/nospec-branch.h>
#include <asm/unwind_hints.h>

	.text
SYM_FUNC_START(dtrace_call)
	pushq	%rdi
	movq	%rsi, %rdi
	movq	%rdx, %rsi
	movq	%rcx, %rdx
	movq	%r8, %rcx
	movq	%r9, %r8
	UNWIND_HINT_FUNC
	RET
SYM_FUNC_END(dtrace_call)

/*
 * The function of a system call begins here, by way of ftrace, which has put into registers that such a function is not given anything in
 * what dtrace_detoured() is to know: where the function goes on (rax), and its other arguments. What it is given, in rdi, it has afterwards.
 */
SYM_FUNC_START(dtrace_detour)
	/* It is returned to. */
	ANNOTATE_NOENDBR
	pushq	%rbp
	movq	%rsp, %rbp
	pushq	%rdi
	pushq	%rdi
	movq	%rax, %rdi
	call	dtrace_detoured
	popq	%rdi
	popq	%rdi
	popq	%rbp
	pushq	%rax
	UNWIND_HINT_FUNC
	RET
SYM_FUNC_END(dtrace_detour)
