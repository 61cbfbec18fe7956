/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/*
 * Breakpoints of our own in programs, and what is known of those that were there; own.c, bring.c, counters.c, errands.c, known.c, guards.c, memories.c,
 * patience.c, shown.c and watch.c hold the bodies.
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

#include "processes.h"
#include "trap.h"

/* How many tasks of a memory are likely to be let on to others' breakpoints at once. */
#define DTRACE_LET_ON 8

/* A place of a file, wherever that is mapped. */
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
	/* What the file has there; where there is none, the whole instruction. */
	u8 code[15];
	u8 length;
	/* Uprobes cannot have the place. */
	bool barred;
	/* Where in the file a breakpoint of ours there has counted; 0 for nowhere. */
	u64 counter;
	/* Until when somebody is taken to have a uprobe there that lets nobody else in, in jiffies; 0 for no such. */
	unsigned long theirs;
	/* Sees to it that uprobes know the place; none until that is needed. */
	struct dtrace_guard *guard;
};

/* A memory that breakpoints of ours are or were in. */
struct dtrace_memory {
	struct hlist_node hash;
	struct list_head all;
	struct mm_struct *mm;
	refcount_t count;
	/* Who changes breakpoints in it. */
	struct mutex lock;
	/* How many carriers have had breakpoints here, and are answered. */
	atomic_t places;
	/* Those that may be written, and those that are left behind. */
	struct list_head carriers, left;
	/* Its worker: takes away what is left behind, renews breakpoints, unmaps areas. */
	struct work_struct work;
	/* Somebody maps an area; somebody brings pages. */
	bool maps, brings;
	/* Where the program executes what the exception cannot do, under RCU; and by the instructions' addresses, where. */
	struct list_head areas;
	struct xarray slots;
	/* A breakpoint at any known place may be one of ours: it was copied from another one. */
	bool inherited;
	/* By their addresses the known places where one may be of ours that was taken away, and whether there ever were any. */
	struct xarray suspects;
	bool suspected;
	/* Bytes of what is noted in slots and in suspects that are charged to nobody. */
	atomic_long_t uncharged_slots, uncharged_suspects;
	/* Something was mapped, and nobody has looked whether breakpoints belong there; or they are gone, and areas are left. */
	bool stale;
	/* None of ours is left in it, nor will be. */
	bool healed;
	/* Where the next breakpoint that a task hits is none of ours; 0 for nowhere. Tasks share them. */
	unsigned long passes[DTRACE_LET_ON];
	/* Between which addresses there ever were any. */
	u64 lowest, highest;
	/* The process that has read it by process_vm_readv() last; 0 for none. */
	pid_t raw_reader;
	/* Which one uprobes are getting, by whom, and whether they have set it. */
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
unsigned long dtrace_known_heal(struct mm_struct *mm, struct xarray *suspects, bool *healed);
void dtrace_known_forget(void);
int dtrace_known_guard(struct dtrace_known *known, struct file *file, struct mm_struct *mm);
void dtrace_guards_dismiss(void);
void dtrace_guards_relieve(void);
bool dtrace_guards_keep(void);

/* Whether anybody else has a uprobe at a place. */
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

/* What a breakpoint in the current memory, where none is known of ours, is to be taken for. */
enum dtrace_stray {
	/* None of ours: never, or not this time. */
	DTRACE_UNKNOWN,
	/* Nor is this one, unless it has just been taken out. */
	DTRACE_FOREIGN,
	/* One of ours in a memory that has some, or had. */
	DTRACE_STRAY,
	/* The same, unless somebody else has a uprobe there. */
	DTRACE_LEFT,
};

enum dtrace_stray dtrace_memory_strays(u64 address);
void dtrace_memories_exit(void);

/* How long somebody waits for programs. */
struct dtrace_patience {
	/* It is users who wait; who waits ends where he is killed. */
	bool users, killable;
	/* Nobody needs a lock that is held but for the memory's own, so what is missing may be brought with it. */
	bool alone;
	/* Until when, and for how long somebody has waited, jiffies. */
	unsigned long until, waited;
	/* What is left to wait for jobs besides, jiffies; how many were waited for with nothing left. */
	long spare;
	unsigned int late;
	/* Where the last area found no room; 0 for nowhere. */
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

u64 dtrace_counter_at(struct mm_struct *mm, const struct file *file, u64 offset);
bool dtrace_counter_is_in(const struct dtrace_carrier *carrier, struct mm_struct *mm);
int dtrace_count(struct dtrace_carrier *carrier, struct mm_struct *mm, struct dtrace_known *known, bool inherits);
void dtrace_count_no_more(struct dtrace_carrier *carrier, struct mm_struct *mm, bool brings);
void dtrace_count_inherited(struct vm_area_struct *vma, const struct dtrace_known *known);

int dtrace_poke(struct mm_struct *mm, u64 address, u8 old, u8 new);
int dtrace_peek(struct mm_struct *mm, u64 address);

bool dtrace_is_debugged(struct mm_struct *mm);
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

/* What is to be done before the current program comes to a breakpoint again. */
enum dtrace_errand_kind {
	/* To wait for who changes the memory. */
	DTRACE_ERRAND_WAIT,
	/* To give it to uprobes. */
	DTRACE_ERRAND_YIELD,
	/* To take it away: nobody can execute the instruction somewhere else. */
	DTRACE_ERRAND_DROP,
	/* To have the processor see that it is gone. */
	DTRACE_ERRAND_AFFIRM,
	/* To find out whose it is, and take it away if it is nobody's. */
	DTRACE_ERRAND_LOOK,
	/* To write those anew that belong into what was mapped. */
	DTRACE_ERRAND_RENEW,
	/* To stop behind it: who steps through the program has made a step, and we have. */
	DTRACE_ERRAND_STEP,
	/* To get the signal for it: a debugger has his own there too. */
	DTRACE_ERRAND_SIGNAL,
};

void dtrace_own_errand(u64 address, enum dtrace_errand_kind kind);
struct dtrace_errand *dtrace_errand_ahead(enum dtrace_errand_kind kind);
void dtrace_errand_send(struct dtrace_errand *errand, u64 address);
void dtrace_errand_cancel(struct dtrace_errand *errand);

/* Of traps.c. No sequence count of a memory that nobody changes is that: those are even. */
#define DTRACE_SEQ_NONE 1

struct dtrace_carrier *dtrace_trap_at(struct mm_struct *mm, u64 address);
bool dtrace_trap_holds(struct dtrace_carrier *carrier);
void dtrace_traps_attend(void);
void dtrace_traps_ignore(void);

/* Of shown.c; two are called by watch.c. */
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
/* Called by watch.c where uprobes are about to copy a memory, and to set or take out a breakpoint. */
void dtrace_watch_copied(struct mm_struct *from, struct mm_struct *to);
void dtrace_watch_mapped(struct vm_area_struct *vma);
bool dtrace_watch_set(struct vm_area_struct *vma, u64 address);

/* What becomes of a breakpoint that uprobes take out. */
enum dtrace_keep {
	/* They do it. */
	DTRACE_GOES,
	/* It stays: it is ours alone, or was never theirs. */
	DTRACE_STAYS,
	/* They do it, and we write ours again. */
	DTRACE_COMES_BACK,
};

enum dtrace_keep dtrace_watch_keeps(const struct arch_uprobe *uprobe, struct vm_area_struct *vma, u64 address);

/* Whether we have written it. */
static inline bool dtrace_is_own(const struct dtrace_carrier *carrier)
{
	u8 state = smp_load_acquire(&carrier->state);

	return state == DTRACE_OWN || state == DTRACE_SHARED || state == DTRACE_LENT;
}

/* Whether it is our own or none, as long as nobody else has a uprobe there. */
static inline bool dtrace_is_only_own(const struct dtrace_carrier *carrier)
{
	return carrier->uncarried || carrier->kept;
}

/* Whether a mapping is of no file and of one memory alone. What is written there belongs to that: code that a program makes, or the vdso. */
static inline bool dtrace_is_bare(const struct vm_area_struct *vma)
{
	const vm_flags_t wanted = VM_MAYEXEC | VM_MAYWRITE, unwanted = VM_HUGETLB | VM_MAYSHARE | VM_IO | VM_PFNMAP;

	return !vma->vm_file && (vma->vm_flags & (wanted | unwanted)) == wanted;
}

/* Whether a mapping is of a file; of none: whether it is bare. */
static inline bool dtrace_has_text(const struct vm_area_struct *vma, const struct file *file)
{
	if (!file)
		return dtrace_is_bare(vma);
	return vma->vm_file && file_inode(vma->vm_file) == file_inode(file);
}

/* Whether nobody else has a uprobe where this one is: a list of one leads to its head in both directions. */
static inline bool dtrace_is_alone(const struct uprobe_consumer *consumer)
{
	const struct list_head *node = &consumer->cons_node;

	return READ_ONCE(node->next) == READ_ONCE(node->prev);
}

/* Where in its file a mapping has an address; where it was first, if there is no file. It stays that when the mapping is moved. */
static inline u64 dtrace_offset_of(const struct vm_area_struct *vma, u64 address)
{
	return address - vma->vm_start + ((u64)vma->vm_pgoff << PAGE_SHIFT);
}

/* Whether at an address a mapping of one memory alone has the text that a file has at an offset; of none: see dtrace_is_bare(). */
static inline bool dtrace_has_text_at(const struct vm_area_struct *vma, u64 address, const struct file *file, u64 offset)
{
	const vm_flags_t wanted = VM_MAYEXEC, unwanted = VM_HUGETLB | VM_MAYSHARE;

	return vma && (vma->vm_flags & (wanted | unwanted)) == wanted && dtrace_has_text(vma, file) && dtrace_offset_of(vma, address) == offset;
}

#endif
