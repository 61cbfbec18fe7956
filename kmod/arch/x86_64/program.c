// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/* What the processor knows of programs: their memory's number, their segments, their stacks, and the system calls of those of 32 bits. */

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

#include "helpers.h"
#include "places.h"
#include "processes.h"
#include "providers.h"

/* Whether its programs are of 64 bits. */
bool dtrace_mm_is_long(struct mm_struct *mm)
{
	return is_64bit_mm(mm);
}

/* A memory's own number, which no other one has or had. */
u64 dtrace_memory_number(const struct mm_struct *mm)
{
	return mm->context.ctx_id;
}

/*
 * Registers of the current task's user code that are not saved, numbered on from those that are. The kernel does not load
 * these selectors for itself, so they are still the user's.
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

/* What the current program adds to addresses with %fs or %gs. */
u64 dtrace_segment_base(bool gs)
{
	u64 base;

	/* In the kernel its own %gs is exchanged with the program's. */
	rdmsrq(gs ? MSR_KERNEL_GS_BASE : MSR_FS_BASE, base);
	return base;
}

/* As the kernel tells them apart when such an address faults. Programs have the page of vsyscalls, though it is far above. */
bool dtrace_kernel_address(unsigned long addr)
{
	return addr >= TASK_SIZE_MAX && (addr & PAGE_MASK) != VSYSCALL_ADDR;
}

/* Whether calls and returns of the current thread have a second stack. */
bool dtrace_user_shadowed(void)
{
#ifdef CONFIG_X86_USER_SHADOW_STACK
	return current->thread.features & ARCH_SHSTK_SHSTK;
#else
	return false;
#endif
}

/* Whether the current program's segments are the kernel's for all programs, which begin at 0 and reach everywhere. */
bool dtrace_user_flat(const struct pt_regs *regs)
{
	u16 ds, es;

	if (regs->cs == __USER_CS)
		return true;
	savesegment(ds, ds);
	savesegment(es, es);
	return regs->cs == __USER32_CS && regs->ss == __USER_DS && ds == __USER_DS && es == __USER_DS;
}

/* The functions of 32-bit programs' system calls, by number: what the kernel makes its own dispatch of. */
static const char *const dtrace_ia32[] = {
#if IS_ENABLED(CONFIG_IA32_EMULATION)
#define __SYSCALL(n, name) [n] = "__ia32_" #name,
#define __SYSCALL_WITH_COMPAT(n, native, compat) __SYSCALL(n, compat)
#define __SYSCALL_NORETURN __SYSCALL
#include <asm/syscalls_32.h>
#endif
};

unsigned int dtrace_ia32_count(void)
{
	return ARRAY_SIZE(dtrace_ia32);
}

/* NULL: there is no such call. */
const char *dtrace_ia32_at(unsigned int n)
{
	return dtrace_ia32[n];
}

/* Whether the current task is in a system call of a 32-bit program, or of another that calls like one. */
bool dtrace_ia32_current(void)
{
	return in_ia32_syscall();
}
