/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* Processes that probes are made in: their memory, the files that they run code of, and breakpoints there. */
#ifndef _DTRACE_PROCESSES_H
#define _DTRACE_PROCESSES_H

#include <linux/fs.h>
#include <linux/list.h>
#include <linux/mm_types.h>
#include <linux/ptrace.h>
#include <linux/rhashtable-types.h>
#include <linux/types.h>
#include <linux/uprobes.h>

struct dtrace_known;
struct dtrace_memory;

/* A mapping of text, and which offset its beginning has. */
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

/* What a breakpoint is found by: a memory, and an address in it. */
struct dtrace_spot {
	struct mm_struct *mm;
	u64 address;
};

/* Who has a breakpoint. */
enum {
	/* Nobody yet. */
	DTRACE_UNSET,
	/* We have written it. */
	DTRACE_OWN,
	/* The same, and somebody else has a uprobe there. */
	DTRACE_SHARED,
	/* The same, and uprobes are taking theirs out. */
	DTRACE_LENT,
	/* The kernel's uprobes. */
	DTRACE_CARRIED,
	/* Nobody any more. */
	DTRACE_GONE,
};

/* A breakpoint in the text of one process, and what is called where it is hit. */
struct dtrace_carrier {
	struct uprobe_consumer consumer;
	struct uprobe *uprobe;
	struct dtrace_spot spot;
	/* The file that it is in, and where there; the caller keeps it. None: see dtrace_is_bare(). */
	struct file *file;
	u64 offset;
	/* Where in the file the program has a counter of breakpoints, for uprobes to count in, or us; 0 for none. */
	u64 counter;
	/* The instruction, if a breakpoint of our own may be there; otherwise of no length. */
	u8 code[15];
	u8 length;
	/* trap can do it as a rule. */
	bool does;
	/* It can be executed somewhere else. */
	bool moves;
	/* Uprobes cannot have it, or would execute it as something else. */
	bool uncarried;
	/* It is a user's: uprobes get it only where somebody else has one at the place. */
	bool kept;
	/* Somebody else seems to. */
	bool joins;
	/* Whether uprobes carry it because there is no room for it elsewhere. */
	bool crowded;
	/* They never have one there. */
	bool barred;
	/* Called in the process, which may sleep. regs are what the instruction finds; what it leaves there is what the process goes on with. */
	void (*hit)(struct dtrace_carrier *carrier, struct pt_regs *regs);
	/*
	 * Called first, with interrupts off: whether it has done everything, the instruction included, or has the program come again. Then
	 * hit is not called. Otherwise regs are as they were. None: hit alone is called. rest: who can do what this cannot.
	 */
	bool (*trap)(struct dtrace_carrier *carrier, struct pt_regs *regs, u64 rest);
	/* The same where a debugger has a breakpoint too: whether all is done but for the instruction, or the program is to come again. */
	bool (*meet)(struct dtrace_carrier *carrier, struct pt_regs *regs);
	/* Makes of the instruction what is executed at a slot in its stead, as many bytes as a slot has; false: that cannot be. */
	bool (*move)(struct dtrace_carrier *carrier, u64 slot, u8 *bytes);
	/* Called where the breakpoint had to be taken away: nobody can do what trap could not, or another instruction was written there. */
	void (*lose)(struct dtrace_carrier *carrier);
	/* Frees it: it was left behind, and has gone now. */
	void (*free)(struct dtrace_carrier *carrier);
	/* Why it could not be set; as long as that was not tried, for want of memory. */
	int error;
	/* Its memory could not be had in time, so it has not been taken away. */
	bool stays;
	/* Its page is not in memory, or it is to be found out where its counter is. */
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
	/* We have counted it. Where the counter is in the memory, if somebody has looked for it; 0 for nowhere. */
	bool counted, sought;
	/* Of shown.c: what debuggers see in its place. Whether one has written that byte, and whether one was about to make another instruction there. */
	u8 shown;
	bool rewritten, changed;
	u64 counter_at;
	/* Of slots.c: where the instruction is executed if trap cannot do it; 0 for nowhere. */
	struct dtrace_area *area;
	u64 slot;
};

/* Who can do what trap cannot: nobody, uprobes, or the program itself in a slot, whose address this is otherwise. */
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

/* Memory of the current task, which a breakpoint has stopped: 1, 2, 4 or 8 bytes in one piece. -EFAULT where it is not there at once. */
int dtrace_user_get(u64 addr, u32 size, u64 *value);
int dtrace_user_put(u64 addr, u32 size, u64 value);
/* The same of 8 bytes. */
int dtrace_user_get_word(u64 addr, u64 *value);
int dtrace_user_put_word(u64 addr, u64 value);
/* Stores, in one step for all processors, if the old value is still there: 1, or 0 if it is not. It lies on one cache line. */
int dtrace_user_swap(u64 addr, u32 size, u64 old, u64 value);
/* Whether the page can be written at once. */
bool dtrace_user_writable(u64 addr);
/* Whether it can be written. May sleep. */
bool dtrace_user_touch(u64 addr);
bool dtrace_user_shadowed(void);
bool dtrace_user_flat(const struct pt_regs *regs);

#endif
