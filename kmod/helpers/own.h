/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/*
 * Our own breakpoints in programs, and what is known of those that existed (INV-43, INV-44). own.c,
 * bring.c, counters.c, errands.c, known.c, guards.c, lift.c, memories.c, patience.c, shown.c and
 * watch.c hold the bodies.
 */
#ifndef _DTRACE_OWN_H
#define _DTRACE_OWN_H

#include <linux/atomic.h>
#include <linux/compiler_types.h>
#include <linux/completion.h>
#include <linux/fs.h>
#include <linux/ftrace.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/rhashtable-types.h>
#include <linux/types.h>
#include <linux/uprobes.h>
#include <linux/workqueue_types.h>
#include <linux/xarray.h>

#include "code.h"
#include "processes.h"
#include "trap.h"

/*
 * Number of entries of `passes`. Tasks share them by their ids: so many tasks of one memory are
 * likely to pass other tracers' breakpoints at the same time.
 */
#define DTRACE_LET_ON 8

/* A place in a file, wherever the file is mapped. */
struct dtrace_file_place {
	u64 dev;
	u64 ino;
	u64 generation;
	u64 offset;
};

/* A place where a breakpoint of ours is or was, in some memory. */
struct dtrace_known {
	struct rhash_head node;
	struct rb_node sorted;
	struct dtrace_file_place place;
	/* The first byte that the file has there. For code in no file: the whole instruction. */
	u8 code[DTRACE_CODE_MAX];
	u8 length;
	/* Uprobes cannot have the place. */
	bool barred;
	/*
	 * Offset in the file of the counter that a breakpoint of ours there has counted in; 0:
	 * none.
	 */
	u64 counter;
	/*
	 * Until this time (jiffies) another tracer is assumed to have a uprobe there that admits no
	 * other consumer; 0: none.
	 */
	unsigned long theirs;
	/* Makes uprobes know the place; NULL until that is needed. */
	struct dtrace_guard *guard;
};

/* A memory that breakpoints of ours are or were in. */
struct dtrace_memory {
	struct hlist_node hash;
	struct list_head all;
	struct mm_struct *mm;
	refcount_t count;
	/* Held by a task that changes our breakpoints in the memory. Taken before the mmap lock. */
	struct mutex lock;
	/* Number of carriers that have had a breakpoint here and are still answered. */
	atomic_t places;
	/*
	 * Carriers whose breakpoints are written (protected by `lock`), and those that were left
	 * behind (patience.c).
	 */
	struct list_head carriers, left;
	/*
	 * The work of its worker: takes away what was left behind, writes breakpoints anew, unmaps
	 * areas.
	 */
	struct work_struct work;
	/* A job maps an area; a job brings pages. */
	bool maps, brings;
	/*
	 * Areas in which the program executes what the exception cannot do, read under RCU; and the
	 * address of the slot by the address of its instruction.
	 */
	struct list_head areas;
	struct xarray slots;
	/*
	 * A breakpoint at any known place may be one of ours, because the memory was copied from
	 * another one.
	 */
	bool inherited;
	/*
	 * The known places, by the addresses of their structures, where a removed breakpoint of
	 * ours may still stand; and whether there were ever any.
	 */
	struct xarray suspects;
	bool suspected;
	/* Bytes of entries in `slots` and in `suspects` that are charged to no control group. */
	atomic_long_t uncharged_slots, uncharged_suspects;
	/*
	 * Something was mapped, and it was not checked yet whether breakpoints belong there; or the
	 * breakpoints have gone, and areas are left.
	 */
	bool stale;
	/* None of ours is left in the memory, and none will be written. */
	bool healed;
	/*
	 * Addresses at which the exception ignores the next breakpoint that the task hits; 0: none.
	 * Tasks share the entries.
	 */
	unsigned long passes[DTRACE_LET_ON];
	/* Lowest and highest address at which the memory ever had a breakpoint of ours. */
	u64 lowest, highest;
	/* The process that last read the memory by process_vm_readv(); 0: none. */
	pid_t raw_reader;
	/*
	 * The breakpoint that is being given to uprobes, the task that gives it, and whether
	 * uprobes have accepted it in this memory.
	 */
	struct dtrace_carrier *yielded;
	struct task_struct *yielder;
	bool yields;
};

int dtrace_known_init(void);
void *dtrace_alloc_for(const struct dtrace_carrier *carrier, atomic_long_t *noted, size_t size);
void dtrace_uncharged_gone(atomic_long_t *bytes);
bool dtrace_note_for(const struct dtrace_carrier *carrier, atomic_long_t *noted, struct xarray *all, unsigned long at, unsigned long value);
void dtrace_known_exit(void);
struct dtrace_known *dtrace_known_at(struct vm_area_struct *vma, u64 address);
struct dtrace_known *dtrace_known_make(struct vm_area_struct *vma, const struct dtrace_carrier *carrier);
bool dtrace_known_continues(struct mm_struct *mm, const struct dtrace_known *known, u64 address);
unsigned long dtrace_known_heal(struct mm_struct *mm, struct xarray *suspects, bool killable, bool *healed);
void dtrace_known_forget(void);
int dtrace_known_guard(struct dtrace_known *known, struct file *file, struct mm_struct *mm, bool killable);
void dtrace_guards_dismiss(void);
void dtrace_guards_relieve(void);
bool dtrace_guards_keep(void);

/* Whether another tracer has a uprobe at a place. */
enum dtrace_others {
	/* There is no guard. */
	DTRACE_OTHERS_UNKNOWN,
	DTRACE_OTHERS_NONE,
	DTRACE_OTHERS_SOME,
};

enum dtrace_others dtrace_known_others(const struct dtrace_known *known);

struct dtrace_memory *dtrace_memory_find(struct mm_struct *mm);
struct dtrace_memory *dtrace_memory_get(struct mm_struct *mm);
struct dtrace_memory *dtrace_memory_make(struct mm_struct *mm);
void dtrace_memory_put(struct dtrace_memory *memory);
void dtrace_memory_passes_none(struct dtrace_memory *memory);
void dtrace_memory_passes(struct dtrace_memory *memory, u64 address);
bool dtrace_memory_has_places(struct mm_struct *mm, u64 start, u64 end);
void dtrace_memory_is_stale(struct mm_struct *mm);
bool dtrace_memory_yields(struct vm_area_struct *vma, u64 address);
bool dtrace_memories_lost(void);

/* What a breakpoint in the current memory is taken for if no carrier of ours is known at it. */
enum dtrace_stray {
	/* None of ours was ever there, or the task passes this time. */
	DTRACE_UNKNOWN,
	/* Not one of ours, unless ours has just been taken out. */
	DTRACE_FOREIGN,
	/* May be one of ours: the memory has some, or a copy of a memory could not be noted. */
	DTRACE_STRAY,
	/* May be one of ours that is left over, unless another tracer has a uprobe there. */
	DTRACE_LEFT,
};

enum dtrace_stray dtrace_memory_strays(u64 address);
void dtrace_memories_exit(void);

/* How long the caller waits for programs (INV-46). */
struct dtrace_patience {
	/* Members alone wait; a caller that is killed stops waiting. */
	bool users, killable;
	/*
	 * The caller holds no lock that others need but the memory's own, so it may bring pages
	 * with that held.
	 */
	bool alone;
	/* When the wait ends, and for how long the caller has waited, in jiffies. */
	unsigned long until, waited;
	/*
	 * Jiffies that are left to wait for jobs after `until`; and the number of jobs that were
	 * waited for with nothing left.
	 */
	long spare;
	unsigned int late;
	/* Region (dtrace_area_region()) in which the last area found no room; 0: none. */
	u64 full;
};

/* Of patience.c. */
struct dtrace_patience dtrace_patience_for(struct dtrace_carrier **all, size_t count);
struct dtrace_patience dtrace_patience_own(void);
struct dtrace_patience dtrace_patience_asked(void);
bool dtrace_patience_tick(struct dtrace_patience *patience);
bool dtrace_patience_ends(struct dtrace_patience *patience);
unsigned long dtrace_patience_left(const struct dtrace_patience *patience);
bool dtrace_patience_await(struct dtrace_patience *patience, struct completion *done);
bool dtrace_patience_is_spent(const struct dtrace_patience *patience);
void dtrace_patience_over(const struct dtrace_patience *patience);
bool dtrace_mappings_are_free(struct mm_struct *mm, struct dtrace_patience *patience);
void dtrace_left_wait(void);
bool dtrace_memory_lock(struct dtrace_memory *memory, struct dtrace_patience *patience);
bool dtrace_mappings_lock(struct mm_struct *mm, struct dtrace_patience *patience);
void dtrace_memory_see(struct dtrace_memory *memory);
void dtrace_left_clear(struct dtrace_memory *memory);
void dtrace_job_begin(struct work_struct *work);
void dtrace_job_over(void);
int dtrace_programs_init(void);
void dtrace_programs_wait(void);
void dtrace_programs_exit(void);

int dtrace_bring(struct dtrace_memory *memory, struct dtrace_carrier **all, size_t count, struct dtrace_patience *patience);
int dtrace_own_bring(struct dtrace_memory *memory, struct dtrace_carrier **all, size_t count,
		     bool (*which)(const struct dtrace_carrier *carrier), struct dtrace_patience *patience);

u64 dtrace_counter_at(struct mm_struct *mm, const struct file *file, u64 offset);
bool dtrace_counter_is_in(const struct dtrace_carrier *carrier, struct mm_struct *mm);
int dtrace_count(struct dtrace_carrier *carrier, struct mm_struct *mm, struct dtrace_known *known, bool inherits);
void dtrace_count_no_more(struct dtrace_carrier *carrier, struct mm_struct *mm, bool brings);
void dtrace_count_inherited(struct vm_area_struct *vma, const struct dtrace_known *known);

int dtrace_poke(struct mm_struct *mm, u64 address, u8 old, u8 new);
int dtrace_peek(struct mm_struct *mm, u64 address);

pid_t dtrace_debugger_of(struct mm_struct *mm);
bool dtrace_is_debugged(struct mm_struct *mm);
bool dtrace_coverer_lives(const struct dtrace_carrier *carrier);
int dtrace_own_any_at(struct dtrace_memory *memory, bool (*is_there)(struct dtrace_memory *memory, u64 address));
bool dtrace_own_is_there(const struct dtrace_carrier *carrier, struct vm_area_struct *vma);
bool dtrace_carriers_take(struct dtrace_carrier **all, size_t count, struct dtrace_patience *patience);
void dtrace_own_set(struct dtrace_carrier **all, size_t count, struct dtrace_patience *patience);
void dtrace_own_clear(struct dtrace_carrier **all, size_t count, struct dtrace_patience *patience);
void dtrace_own_forget(struct dtrace_carrier *carrier);
void dtrace_own_lose(struct dtrace_carrier *carrier);
struct dtrace_carrier *dtrace_own_at(struct vm_area_struct *vma, u64 address);
struct dtrace_carrier *dtrace_own_covered_at(struct vm_area_struct *vma, u64 address, u8 state);
void dtrace_own_lend(struct vm_area_struct *vma, u64 address);
void dtrace_own_take_back(struct vm_area_struct *vma, u64 address);
bool dtrace_own_is_covered(const struct dtrace_carrier *carrier);
bool dtrace_own_renew(struct dtrace_memory *memory, u64 start, u64 end, struct dtrace_patience *patience);

/* What the current program does before it comes to a breakpoint again. */
enum dtrace_errand_kind {
	/* Waits until nobody changes the mappings. */
	DTRACE_ERRAND_WAIT,
	/* Gives the breakpoint to uprobes. */
	DTRACE_ERRAND_YIELD,
	/* Takes the breakpoint away, because its instruction cannot be executed anywhere else. */
	DTRACE_ERRAND_DROP,
	/* Makes the processor notice that the breakpoint has gone. */
	DTRACE_ERRAND_AFFIRM,
	/* Finds out whose breakpoint it is, and takes it out if nobody wants it. */
	DTRACE_ERRAND_LOOK,
	/* Writes breakpoints anew that belong into what was mapped. */
	DTRACE_ERRAND_RENEW,
	/*
	 * Stops behind the instruction: the program is being stepped through, and the module has
	 * executed one step.
	 */
	DTRACE_ERRAND_STEP,
	/* Sends the signal for the breakpoint, because a debugger has its own there too. */
	DTRACE_ERRAND_SIGNAL,
};

void dtrace_own_errand(u64 address, enum dtrace_errand_kind kind);
struct dtrace_errand *dtrace_errand_ahead(enum dtrace_errand_kind kind);
void dtrace_errand_send(struct dtrace_errand *errand, u64 address);
void dtrace_errand_cancel(struct dtrace_errand *errand);

/* Of traps.c. Never the sequence count of a memory that nobody changes, because those are even. */
#define DTRACE_SEQ_NONE 1

struct dtrace_carrier *dtrace_trap_at(struct mm_struct *mm, u64 address);
bool dtrace_trap_holds(struct dtrace_carrier *carrier);
void dtrace_traps_attend(void);
void dtrace_traps_ignore(void);

/* Of shown.c; watch.c calls dtrace_shown_access() and dtrace_shown_raw(). */
int dtrace_shown_begin(void);
void dtrace_shown_access(struct ftrace_regs *fregs);
void dtrace_shown_raw(struct ftrace_regs *fregs);
void dtrace_shown_end(void);

int dtrace_watch_begin(void);
int dtrace_watch_signals(void);
void dtrace_watch_no_signals(void);
bool dtrace_watch_rests(void);
bool dtrace_watch_rest(void);
bool dtrace_watch_end(void);
void dtrace_watch_force(int signal, int code, u64 address);
/*
 * Called by watch.c when the kernel is about to copy a memory, when a file was mapped, and when
 * uprobes are about to set or take out a breakpoint.
 */
void dtrace_watch_copied(struct mm_struct *from, struct mm_struct *to);
void dtrace_watch_mapped(struct vm_area_struct *vma);
bool dtrace_watch_set(struct vm_area_struct *vma, u64 address);

/* What becomes of a breakpoint that uprobes are about to take out. */
enum dtrace_keep {
	/* Uprobes take it out. */
	DTRACE_GOES,
	/* It stays, because it is ours alone, or was never set by uprobes. */
	DTRACE_STAYS,
	/* Uprobes take it out, and ours is written again. */
	DTRACE_COMES_BACK,
};

enum dtrace_keep dtrace_watch_keeps(const struct arch_uprobe *uprobe, struct vm_area_struct *vma, u64 address);

/* Whether the module has written the carrier's breakpoint. */
static inline bool dtrace_is_own(const struct dtrace_carrier *carrier)
{
	u8 state = smp_load_acquire(&carrier->state);

	return state == DTRACE_OWN || state == DTRACE_SHARED || state == DTRACE_LENT;
}

/*
 * Whether uprobes must not get the breakpoint, unless another tracer has a uprobe there: it is our
 * own or none.
 */
static inline bool dtrace_is_only_own(const struct dtrace_carrier *carrier)
{
	return carrier->uncarried || carrier->kept;
}

/*
 * Whether a mapping belongs to no file and to one memory alone, so that a write to it affects that
 * memory only: code that the program has generated, or the vdso.
 */
static inline bool dtrace_is_bare(const struct vm_area_struct *vma)
{
	const vm_flags_t wanted = VM_MAYEXEC | VM_MAYWRITE, unwanted = VM_HUGETLB | VM_MAYSHARE | VM_IO | VM_PFNMAP;

	return !vma->vm_file && (vma->vm_flags & (wanted | unwanted)) == wanted;
}

/* Whether a mapping is of this file; if `file` is NULL: whether it is bare. */
static inline bool dtrace_has_text(const struct vm_area_struct *vma, const struct file *file)
{
	if (!file)
		return dtrace_is_bare(vma);
	return vma->vm_file && file_inode(vma->vm_file) == file_inode(file);
}

/*
 * Whether the consumer is the only one of its uprobe: in a list with one node, both pointers of the
 * node lead to the head.
 */
static inline bool dtrace_is_alone(const struct uprobe_consumer *consumer)
{
	const struct list_head *node = &consumer->cons_node;

	return READ_ONCE(node->next) == READ_ONCE(node->prev);
}

/*
 * Offset in its file that a mapping has at an address. Without a file: the address at which the
 * mapping was first (as an offset), which does not change when the mapping is moved.
 */
static inline u64 dtrace_offset_of(const struct vm_area_struct *vma, u64 address)
{
	return address - vma->vm_start + ((u64)vma->vm_pgoff << PAGE_SHIFT);
}

/*
 * Whether a private mapping has at an address the text that the file has at an offset. `vma` may be
 * NULL. Without a file: see dtrace_is_bare().
 */
static inline bool dtrace_has_text_at(const struct vm_area_struct *vma, u64 address, const struct file *file, u64 offset)
{
	const vm_flags_t wanted = VM_MAYEXEC, unwanted = VM_HUGETLB | VM_MAYSHARE;

	return vma && (vma->vm_flags & (wanted | unwanted)) == wanted && dtrace_has_text(vma, file) && dtrace_offset_of(vma, address) == offset;
}

#endif
