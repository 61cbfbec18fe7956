/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* The exceptions of breakpoints and steps, and the registers that they leave. */
#ifndef _DTRACE_TRAP_H
#define _DTRACE_TRAP_H

#include <linux/kdebug.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <asm/debugreg.h>
#include <asm/processor-flags.h>
#include <asm/text-patching.h>
#include <asm/trapnr.h>

/* The one-byte instruction int3. */
#define DTRACE_BREAKPOINT 0xcc
/* What the kernel's notifiers of exceptions (register_die_notifier()) call that of a breakpoint. */
#define DTRACE_BREAKPOINT_EVENT DIE_INT3
/* Name of the kernel function of a system call, and of that for 32-bit programs. */
#define DTRACE_SYSCALL(name) "__x64_sys_" name
#define DTRACE_SYSCALL_32(name) "__ia32_sys_" name
/* Size of the first part of pt_regs: the registers that any program may write. */
#define DTRACE_GENERAL_REGISTERS offsetof(struct pt_regs, orig_ax)

/*
 * The instruction and stack pointers in regs. The kernel's own functions take regs without const.
 */
static inline u64 dtrace_pc(const struct pt_regs *regs)
{
	return regs->ip;
}

static inline u64 dtrace_sp(const struct pt_regs *regs)
{
	return regs->sp;
}

/* Address of the breakpoint that has just been hit. */
static inline u64 dtrace_trap_address(const struct pt_regs *regs)
{
	return dtrace_pc(regs) - 1;
}

/*
 * Sets the program's next instruction to what it was when the breakpoint at the address had been
 * hit.
 */
static inline void dtrace_trap_leave(struct pt_regs *regs, u64 address)
{
	instruction_pointer_set(regs, address + 1);
}

/*
 * Whether two bytes are `int $3`, which is nobody's breakpoint, though the processor reports it as
 * one.
 */
static inline bool dtrace_trap_is_interrupt(u8 opcode, u8 number)
{
	return opcode == 0xcd && number == 3;
}

/*
 * Whether the processor raises an exception after each instruction of the program, or after each
 * branch.
 */
static inline bool dtrace_trap_steps(const struct pt_regs *regs)
{
	return regs->flags & X86_EFLAGS_TF;
}

/* Whether it does so only after each branch. */
static inline bool dtrace_trap_steps_branches(void)
{
	return test_thread_flag(TIF_BLOCKSTEP);
}

/*
 * Whether uprobes may replace the instruction by others than a breakpoint: a nop of five bytes by a
 * call, and, from 7.2 on, one of ten bytes by two instructions.
 */
static inline bool dtrace_uprobes_replace(const u8 *code, unsigned int length)
{
	static const u8 nop[] = { 0x66, 0x2e, 0x0f, 0x1f, 0x84 };

	return length == CALL_INSN_SIZE || (length == 2 * CALL_INSN_SIZE && !memcmp(code, nop, sizeof(nop)));
}

/* Leaves in the current thread what the exception at the end of a step leaves. */
static inline void dtrace_trap_stepped(void)
{
	current->thread.virtual_dr6 = DR_STEP;
	current->thread.trap_nr = X86_TRAP_DB;
	current->thread.error_code = 0;
}

/* Leaves in the current thread what the exception of a breakpoint leaves. */
static inline void dtrace_trap_met(void)
{
	current->thread.trap_nr = X86_TRAP_BP;
	current->thread.error_code = 0;
}

/* The address of the current thread's last fault, which its signal reports. */
static inline unsigned long *dtrace_trap_faulted(void)
{
	return &current->thread.cr2;
}

#endif
