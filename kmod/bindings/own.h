/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* Breakpoints of our own in programs, and what is known of those that were there; own.c, known.c and watch.c hold the bodies. */
#ifndef _DTRACE_OWN_H
#define _DTRACE_OWN_H

#include <linux/atomic.h>
#include <linux/compiler_types.h>
#include <linux/fs.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/rhashtable-types.h>
#include <linux/types.h>
#include <linux/uprobes.h>
#include <linux/xarray.h>

#include "processes.h"

/* The breakpoint. */
#define DTRACE_INT3 0xcc

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
	struct dtrace_file_place place;
	/* What the file has there. */
	u8 byte;
	/* Whether uprobes had one there besides, in a memory that we know. */
	bool uprobed;
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
	/* It was copied from another one, breakpoints included. */
	bool inherited;
	/* By their addresses the known places where somebody may put a breakpoint of ours back that was taken away. */
	struct xarray suspects;
	struct rcu_head rcu;
};

int dtrace_known_init(void);
void dtrace_known_exit(void);
struct dtrace_known *dtrace_known_at(struct vm_area_struct *vma, u64 address);
struct dtrace_known *dtrace_known_make(struct vm_area_struct *vma, u64 address, u8 byte);
void dtrace_known_heal(struct dtrace_memory *memory);
void dtrace_known_forget(void);
int dtrace_known_guard(struct dtrace_known *known, struct file *file);

struct dtrace_memory *dtrace_memory_get(struct mm_struct *mm);
struct dtrace_memory *dtrace_memory_make(struct mm_struct *mm);
void dtrace_memory_put(struct dtrace_memory *memory);
bool dtrace_memory_is_known(struct mm_struct *mm);
bool dtrace_memory_has_places(struct mm_struct *mm);
bool dtrace_memories_lost(void);
void dtrace_memories_exit(void);

int dtrace_poke(struct mm_struct *mm, u64 address, u8 old, u8 new);

void dtrace_own_set(struct dtrace_carrier **all, size_t count);
void dtrace_own_clear(struct dtrace_carrier **all, size_t count);
void dtrace_own_forget(struct dtrace_carrier *carrier);
/* What is to be done before the current program comes to a breakpoint again. */
enum dtrace_errand_kind {
	/* To wait for who changes the memory. */
	DTRACE_ERRAND_WAIT,
	/* To give it to uprobes. */
	DTRACE_ERRAND_YIELD,
	/* To find out whose it is, and take it away if it is nobody's. */
	DTRACE_ERRAND_LOOK,
	/* To write those anew that belong into what was mapped. */
	DTRACE_ERRAND_RENEW,
};

void dtrace_own_errand(u64 address, enum dtrace_errand_kind kind);

/* Of traps.c. */
struct dtrace_carrier *dtrace_trap_at(struct mm_struct *mm, u64 address);
bool dtrace_trap_holds(struct dtrace_carrier *carrier);
void dtrace_traps_each(struct dtrace_memory *memory, void (*call)(struct dtrace_carrier *carrier, void *data), void *data);
void dtrace_traps_attend(void);
void dtrace_traps_ignore(void);

int dtrace_watch_begin(void);
bool dtrace_watch_end(void);
/* Called by watch.c where uprobes are about to copy a memory, and to set or take out a breakpoint. */
void dtrace_watch_copied(struct mm_struct *from, struct mm_struct *to);
void dtrace_watch_mapped(struct vm_area_struct *vma);
void dtrace_watch_set(struct vm_area_struct *vma, u64 address);
bool dtrace_watch_keeps(struct mm_struct *mm, u64 address);

/* Whether we have written it. */
static inline bool dtrace_is_own(const struct dtrace_carrier *carrier)
{
	u8 state = smp_load_acquire(&carrier->state);

	return state == DTRACE_OWN || state == DTRACE_SHARED;
}

/* Where in its file a mapping has an address. */
static inline u64 dtrace_offset_of(const struct vm_area_struct *vma, u64 address)
{
	return address - vma->vm_start + ((u64)vma->vm_pgoff << PAGE_SHIFT);
}

#endif
