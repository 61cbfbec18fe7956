/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/*
 * Slots: where programs execute the instructions that breakpoints of ours cover (INV-42); slots.c
 * and areas.c hold the bodies.
 */
#ifndef _DTRACE_SLOTS_H
#define _DTRACE_SLOTS_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/mm_types.h>
#include <linux/ptrace.h>
#include <linux/types.h>

#include "code.h"

struct dtrace_carrier;
struct dtrace_memory;
struct dtrace_patience;

/*
 * Bytes of a mapping that slots are in. It counts in the program's resource limits; its pages are
 * allocated when they are needed.
 */
#define DTRACE_AREA_SIZE (1UL << 18)
#define DTRACE_SLOTS_PER_PAGE (PAGE_SIZE / DTRACE_SLOT_SIZE)

/* The instruction that a slot stands for. */
struct dtrace_slot {
	u64 address;
	u8 code[DTRACE_CODE_MAX];
	u8 length;
};

struct dtrace_area {
	struct list_head all, gone;
	/* The file that is mapped there, and the address. */
	struct file *file;
	u64 start;
	/* Number of slots in use; slots are used one after the other. */
	u32 taken;
	/* The slots, page by page. */
	struct dtrace_slot *pages[DTRACE_AREA_SIZE / PAGE_SIZE];
	/* Bytes of `pages` that are charged to no control group. */
	atomic_long_t uncharged;
};

/*
 * Of areas.c. All but the last three are called with the memory's lock held, and with a user
 * reference (mmget()).
 */
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
 * Called in the program that has hit the breakpoint of this slot. Whether the thread was
 * interrupted in the slot before it could execute the instruction, and has come again: then its
 * probes have fired already.
 */
bool dtrace_slot_resumes(u64 slot, const struct pt_regs *regs);
/*
 * Whether the kernel would restart what the current program does at an address if it interrupted
 * the program there (rseq(2)). -EFAULT: *missing is the address of a word that is needed to tell
 * and is not in memory.
 */
int dtrace_user_restarts(u64 address, u64 *missing);
/*
 * The program's address for an address in a slot of the current program; any other address is
 * returned unchanged. In any context.
 */
u64 dtrace_program_address(u64 address);

#endif
