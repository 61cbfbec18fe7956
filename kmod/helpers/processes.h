/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/*
 * Processes in which probes are made: their memories, the files whose code they execute, and the
 * breakpoints there.
 */
#ifndef _DTRACE_PROCESSES_H
#define _DTRACE_PROCESSES_H

#include <linux/fs.h>
#include <linux/list.h>
#include <linux/mm_types.h>
#include <linux/ptrace.h>
#include <linux/rhashtable-types.h>
#include <linux/types.h>
#include <linux/uprobes.h>

#include "code.h"

struct dtrace_known;
struct dtrace_memory;

/* A mapping of text; `offset` is that of its start (dtrace_offset_of()). */
struct dtrace_mapping {
	struct file *file;
	u64 start, end, offset;
};

int dtrace_mm_find(int number, struct mm_struct **out, struct pid **process);
void dtrace_mm_drop(struct mm_struct *mm);
int dtrace_text_at(struct mm_struct *mm, u64 addr, struct dtrace_mapping *mapping);
bool dtrace_text_is_at(struct mm_struct *mm, u64 addr, const struct file *file, u64 offset);
bool dtrace_fs_is_served(const struct super_block *sb);
bool dtrace_file_is_served(const struct file *file);
u32 dtrace_own_tid(void);
bool dtrace_mm_is_long(struct mm_struct *mm);
u64 dtrace_memory_number(const struct mm_struct *mm);
u64 dtrace_segment_base(bool gs);
u64 dtrace_program_end(void);
long dtrace_text_read(struct file *file, u64 offset, void *out, size_t size);
long dtrace_bare_read(struct mm_struct *mm, u64 address, u8 *out, size_t size);

/* The key of a breakpoint: a memory, and an address in it. */
struct dtrace_spot {
	struct mm_struct *mm;
	u64 address;
};

/* Who has the breakpoint: the states of a carrier. */
enum {
	/* Nobody yet. */
	DTRACE_UNSET,
	/* The module has written it. */
	DTRACE_OWN,
	/* The module has written it, and another tracer has a uprobe there. */
	DTRACE_SHARED,
	/* The module has written it, and uprobes are taking theirs out. */
	DTRACE_LENT,
	/* The kernel's uprobes carry it. */
	DTRACE_CARRIED,
	/* Nobody any more. */
	DTRACE_GONE,
};

/* A breakpoint in the text of one process, and the callbacks for it. */
struct dtrace_carrier {
	struct uprobe_consumer consumer;
	struct uprobe *uprobe;
	struct dtrace_spot spot;
	/*
	 * File that it is in, and its offset there. The caller keeps a reference to the file. NULL:
	 * see dtrace_is_bare().
	 */
	struct file *file;
	u64 offset;
	/*
	 * Offset in the file of the program's counter of listeners, in which uprobes or the module
	 * count; 0: none.
	 */
	u64 counter;
	/* The instruction, if a breakpoint of our own may be there; otherwise `length` is 0. */
	u8 code[DTRACE_CODE_MAX];
	u8 length;
	/* trap() can emulate the instruction as a rule. */
	bool does;
	/* The instruction can be executed in a slot. */
	bool moves;
	/* Uprobes refuse the instruction, or would execute it as another one. */
	bool uncarried;
	/*
	 * A member's: it is kept from uprobes unless another tracer has one at the place (INV-43).
	 */
	bool kept;
	/* Another tracer seems to have a uprobe there. */
	bool joins;
	/* Uprobes carry it because there is no room for its slot. */
	bool crowded;
	/* Uprobes never have a breakpoint there. */
	bool barred;
	/*
	 * Called in the process, and may sleep. `regs` are the registers that the instruction would
	 * find; the process goes on with what hit() leaves there.
	 */
	void (*hit)(struct dtrace_carrier *carrier, struct pt_regs *regs);
	/*
	 * Called first, with interrupts off. Returns true if it has done everything, the
	 * instruction included, or has sent the program to come again; then hit() is not called.
	 * Otherwise it leaves `regs` unchanged. NULL: hit() alone is called. `rest`: who can do
	 * what trap() cannot (DTRACE_REST_*, or the address of a slot).
	 */
	bool (*trap)(struct dtrace_carrier *carrier, struct pt_regs *regs, u64 rest);
	/*
	 * Called instead of trap() if a debugger has a breakpoint there too. Returns true if all is
	 * done but the instruction; false: the program is to come again.
	 */
	bool (*meet)(struct dtrace_carrier *carrier, struct pt_regs *regs);
	/*
	 * Makes the code that is executed at the slot in place of the instruction, DTRACE_SLOT_SIZE
	 * bytes; false: that is impossible.
	 */
	bool (*move)(struct dtrace_carrier *carrier, u64 slot, u8 *bytes);
	/*
	 * Called if the breakpoint had to be taken away, because nobody could do what trap() could
	 * not, or because another instruction was written there.
	 */
	void (*lose)(struct dtrace_carrier *carrier);
	/* Frees the carrier: its breakpoint was left behind, and has now been taken away. */
	void (*free)(struct dtrace_carrier *carrier);
	/* Why it could not be set; -ENOMEM before it was tried. */
	int error;
	/*
	 * It was not taken away, because its memory could not be locked in time, or its page was
	 * not in memory.
	 */
	bool stays;
	/* Its page is not in memory, or the address of its counter must be found first. */
	bool missing;
	/* It could not be set, and may have been hit meanwhile. */
	bool failed;
	/* Of traps.c. */
	struct rhash_head node;
	unsigned int seq;
	bool answered;
	/* Of own.c. */
	u8 state;
	struct dtrace_memory *memory;
	struct list_head peer;
	/* Of patience.c. */
	struct list_head left;
	struct dtrace_known *known;
	/*
	 * The module has counted in the program's counter for it. `sought`: `counter_at` is the
	 * counter's address in the memory, or 0 if there is none.
	 */
	bool counted, sought;
	/*
	 * Of shown.c: the process whose breakpoint covers ours (its number in the first pid
	 * namespace; 0: none); whether a debugger has written the byte; and whether one was about
	 * to make another instruction of the code.
	 */
	pid_t coverer;
	bool rewritten, changed;
	u64 counter_at;
	/* Of slots.c: where the instruction is executed if trap() cannot emulate it; 0: nowhere. */
	struct dtrace_area *area;
	u64 slot;
};

/*
 * Who can do what trap() cannot: nobody, or uprobes. Any other value is the address of a slot, in
 * which the program itself can.
 */
enum {
	DTRACE_REST_NOBODY,
	DTRACE_REST_UPROBES,
};

void dtrace_carriers_set(struct dtrace_carrier **all, size_t count);
void dtrace_carrier_settle(struct dtrace_carrier *carrier);
bool dtrace_carriers_clear(struct dtrace_carrier **all, size_t count);
bool dtrace_uncharged_add(size_t size);
void dtrace_uncharged_sub(size_t size);
void dtrace_carrier_leave(struct dtrace_carrier *carrier);
void dtrace_carriers_sync(bool uprobes);
bool dtrace_carrier_is_lost(const struct dtrace_carrier *carrier);

int dtrace_trap_add(struct dtrace_carrier *carrier);
void dtrace_trap_remove(struct dtrace_carrier *carrier);
int dtrace_traps_init(void);
void dtrace_traps_exit(void);

bool dtrace_user_shadowed(void);
bool dtrace_user_flat(const struct pt_regs *regs);

#endif
