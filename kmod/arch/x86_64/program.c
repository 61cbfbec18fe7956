// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Properties of programs that depend on the processor: the number of their memory, their segments,
 * their stacks, and the system calls of 32-bit programs.
 */

#include <linux/array_size.h>
#include <linux/mm.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <asm/compat.h>
#include <asm/mmu_context.h>
#include <asm/msr.h>
#include <asm/prctl.h>
#include <asm/segment.h>
#include <asm/vsyscall.h>

#include "places.h"
#include "processes.h"
#include "syscalls.h"
#include "tasks.h"

/* Whether the memory is that of a 64-bit program. */
bool dtrace_mm_is_long(struct mm_struct *mm)
{
	return is_64bit_mm(mm);
}

/* The memory's number, which no other memory has or had since boot. */
u64 dtrace_memory_number(const struct mm_struct *mm)
{
	return mm->context.ctx_id;
}

/*
 * Registers of the current task's user code that are not in pt_regs, with the numbers that follow.
 * The kernel does not load these selectors for itself, so they are still the user's. Number 4
 * behind pt_regs is the task's last trap number.
 */
bool dtrace_user_segment(struct task_struct *task, u64 n, u64 *value)
{
	unsigned long selector;

	switch (n - sizeof(struct pt_regs) / sizeof(u64)) {
	case 0:
		savesegment(ds, selector);
		break;
	case 1:
		savesegment(es, selector);
		break;
	case 2:
		savesegment(fs, selector);
		break;
	case 3:
		savesegment(gs, selector);
		break;
	case 4:
		selector = task->thread.trap_nr;
		break;
	default:
		return false;
	}
	*value = selector;
	return true;
}

/* The base that the current program adds to addresses with %fs or %gs. */
u64 dtrace_segment_base(bool gs)
{
	u64 base;

	/*
	 * In the kernel, the program's base of %gs is in the other MSR, because the entry has
	 * swapped both.
	 */
	rdmsrq(gs ? MSR_KERNEL_GS_BASE : MSR_FS_BASE, base);
	return base;
}

/*
 * Whether an address is the kernel's, as its page-fault handler decides. The vsyscall page belongs
 * to programs, though it is far above theirs.
 */
bool dtrace_kernel_address(unsigned long addr)
{
	return addr >= TASK_SIZE_MAX && (addr & PAGE_MASK) != VSYSCALL_ADDR;
}

/* Whether the current thread has a shadow stack for calls and returns. */
bool dtrace_user_shadowed(void)
{
#ifdef CONFIG_X86_USER_SHADOW_STACK
	return current->thread.features & ARCH_SHSTK_SHSTK;
#else
	return false;
#endif
}

/*
 * Whether the current program's segments are the kernel's usual ones, which begin at 0 and have no
 * limit.
 */
bool dtrace_user_flat(const struct pt_regs *regs)
{
	u16 ds, es;

	if (regs->cs == __USER_CS)
		return true;
	savesegment(ds, ds);
	savesegment(es, es);
	return regs->cs == __USER32_CS && regs->ss == __USER_DS && ds == __USER_DS && es == __USER_DS;
}

/*
 * The functions of 32-bit programs' system calls, by number, from the table that the kernel makes
 * its own dispatch of.
 */
static const char *const dtrace_ia32[] = {
#if IS_ENABLED(CONFIG_IA32_EMULATION)
#define __SYSCALL(n, name) [n] = "__ia32_" #name,
#define __SYSCALL_WITH_COMPAT(n, native, compat) __SYSCALL(n, compat)
#define __SYSCALL_NORETURN __SYSCALL
#include <asm/syscalls_32.h>
#endif
};

unsigned int dtrace_compat_count(void)
{
	return ARRAY_SIZE(dtrace_ia32);
}

/* NULL: there is no such call. */
const char *dtrace_compat_at(unsigned int n)
{
	return dtrace_ia32[n];
}

/*
 * Whether the current task is in a system call of a 32-bit program, or of another program that
 * calls like one.
 */
bool dtrace_compat_current(void)
{
	return in_ia32_syscall();
}
