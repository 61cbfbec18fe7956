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
