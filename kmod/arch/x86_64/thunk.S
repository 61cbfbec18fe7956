/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/*
 * uintptr_t dtrace_call(fn, a0, a1, a2, a3, a4): calls fn(a0 .. a4).
 *
 * fn is a kernel function whose address came from kallsyms. If nothing in the kernel takes its
 * address, its ENDBR was sealed at boot, and an indirect call would fault on a CPU that enforces
 * indirect branch tracking (IBT). A return is not subject to that: the address is pushed and
 * returned to, with the return address of this function's caller left below it.
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
 * A system call's function begins here, sent by ftrace (dtrace_detour_take()). Registers in which
 * such a function gets no arguments hold those of dtrace_detoured(): the address where the function
 * goes on (rax), and the others (rsi, rdx, rcx). The function's own argument, in rdi, is restored.
 */
SYM_FUNC_START(dtrace_detour)
	/* It is reached by a return. */
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
