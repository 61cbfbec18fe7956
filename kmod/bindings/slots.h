/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* Slots: where programs execute instructions that breakpoints of ours cover; slots.c and areas.c hold the bodies. */
#ifndef _DTRACE_SLOTS_H
#define _DTRACE_SLOTS_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/mm_types.h>
#include <linux/ptrace.h>
#include <linux/sizes.h>
#include <linux/types.h>

struct dtrace_carrier;
struct dtrace_memory;
struct dtrace_patience;

/* Bytes of a slot: an instruction, and a jump behind the one that it stands for. */
#define DTRACE_SLOT_SIZE 32

/* Memory of a program that slots are in. It counts among what the program may have; its pages come when they are needed. */
#define DTRACE_AREA_SIZE (1UL << 18)
/* How far an area may be from what it is for: text reaches data by 2 GiB, and the data is somewhere behind it. */
#define DTRACE_AREA_REACH SZ_1G
#define DTRACE_SLOTS_PER_PAGE (PAGE_SIZE / DTRACE_SLOT_SIZE)

/* The instruction that a slot stands for. */
struct dtrace_slot {
	u64 address;
	u8 code[15];
	u8 length;
};

struct dtrace_area {
	struct list_head all, gone;
	/* What is mapped there, and where. */
	struct file *file;
	u64 start;
	/* How many slots are taken; they are taken one after the other. */
	u32 taken;
	/* Those, page by page. */
	struct dtrace_slot *pages[DTRACE_AREA_SIZE / PAGE_SIZE];
	/* Bytes of these that are charged to nobody. */
	atomic_long_t uncharged;
};

/* Of areas.c. All but the last three are called with the memory locked, whose users do not come to an end meanwhile. */
struct dtrace_area *dtrace_area_make(struct dtrace_memory *memory, u64 address, struct dtrace_patience *patience);
int dtrace_area_write(struct dtrace_area *area, u64 slot, const u8 *bytes, size_t size, bool is_kept);
bool dtrace_area_unmap(struct dtrace_area *area, struct mm_struct *mm, struct dtrace_patience *patience);
bool dtrace_area_is_in(const struct dtrace_area *area, struct vm_area_struct *vma, u64 address);
bool dtrace_area_has(const struct dtrace_area *area, struct mm_struct *mm, u64 address);
void dtrace_area_free(struct dtrace_area *area);

/* Of slots.c. */
int dtrace_slot_make(struct dtrace_memory *memory, struct dtrace_carrier *carrier, struct dtrace_patience *patience);
bool dtrace_slot_is_there(const struct dtrace_carrier *carrier);
void dtrace_slots_fix(struct pt_regs *regs);
bool dtrace_slots_retire(struct dtrace_memory *memory, struct dtrace_patience *patience);
void dtrace_slots_free(struct dtrace_memory *memory);
bool dtrace_slots_any(void);

/*
 * Called in the program that has met the breakpoint which this slot is for. Whether it was interrupted there before it could execute
 * the instruction, and has come again: its probes have fired.
 */
bool dtrace_slot_resumes(u64 slot, const struct pt_regs *regs);
/*
 * Whether the kernel would restart what the current program does at an address if it were interrupted there: rseq(2). -EFAULT: memory is
 * missing that tells, a word at an address.
 */
int dtrace_user_restarts(u64 address, u64 *missing);
/* The address that stands for one in a slot of the current program; others stand for themselves. In any context. */
u64 dtrace_program_address(u64 address);

#endif
