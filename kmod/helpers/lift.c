// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Takes our own breakpoints (own.c) out again, writes them anew where text was mapped, and lends
 * them to uprobes.
 *
 * A breakpoint that may be left over somewhere, in another copy of the page or for another tracer,
 * is noted as a suspect: its place stays known (known.c), so that a program that comes there goes
 * on.
 */

#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/xarray.h>

#include "own.h"
#include "pen.h"

/*
 * From now on a breakpoint at the carrier's place may be one of ours that is left over, though its
 * memory wants none there. The memory's lock is held.
 */
static void dtrace_own_suspect(const struct dtrace_carrier *carrier)
{
	struct dtrace_memory *memory = carrier->memory;
	struct dtrace_known *known = carrier->known;

	/* If that cannot be noted, a breakpoint at any known place may be. */
	if (!dtrace_note_for(carrier, &memory->uncharged_suspects, &memory->suspects, (unsigned long)known, 1))
		WRITE_ONCE(memory->inherited, true);
	WRITE_ONCE(memory->suspected, true);
}

/* Whether a debugger has a breakpoint where the carrier's is. */
bool dtrace_own_is_covered(const struct dtrace_carrier *carrier)
{
	return READ_ONCE(carrier->coverer);
}

/*
 * Takes a breakpoint out. If uprobes or a debugger want one there too, the byte stays for them. If
 * the breakpoint may be somewhere else, or stays, the place is remembered. The memory's lock and
 * its mmap lock are held.
 */
static void dtrace_own_lift(struct dtrace_carrier *carrier, struct dtrace_pen *pen)
{
	struct dtrace_memory *memory = carrier->memory;
	u64 at = carrier->spot.address;
	bool moved = !dtrace_own_is_there(carrier, vma_lookup(memory->mm, at));
	/* From here on nobody gives it to uprobes. */
	bool shared = xchg(&carrier->state, DTRACE_GONE) == DTRACE_SHARED && mm_flags_test(MMF_HAS_UPROBES, memory->mm);

	dtrace_memory_passes_none(memory);
	dtrace_count_no_more(carrier, memory->mm, pen->brings);
	/* Without a debugger the breakpoint must not stay: it would kill the program. */
	if (!moved && !shared && dtrace_own_is_covered(carrier) && (dtrace_coverer_lives(carrier) || dtrace_pen_debugger(pen))) {
		xa_erase(&memory->suspects, (unsigned long)carrier->known);
		return;
	}
	if (moved || shared || dtrace_pen_put(pen, carrier, DTRACE_BREAKPOINT, carrier->code[0]) < 0 || READ_ONCE(carrier->rewritten))
		dtrace_own_suspect(carrier);
}

/*
 * Takes out a breakpoint that nobody can answer, unless another tracer has one there. The memory's
 * lock and its mmap lock are held.
 */
static void dtrace_own_drop(struct dtrace_carrier *carrier, struct dtrace_pen *pen)
{
	dtrace_own_lift(carrier, pen);
	if (!dtrace_own_is_covered(carrier))
		dtrace_own_suspect(carrier);
}

static void dtrace_own_tell_lost(struct dtrace_carrier *carrier)
{
	WRITE_ONCE(carrier->changed, false);
	carrier->lose(carrier);
}

/*
 * The same, and notifies the carrier's owner. The memory's lock is held. Does nothing if the task
 * is killed while it waits for the mmap lock.
 */
void dtrace_own_lose(struct dtrace_carrier *carrier)
{
	struct mm_struct *mm = carrier->spot.mm;
	struct dtrace_pen pen = { .mm = mm, .brings = true };

	if (mmap_read_lock_killable(mm))
		return;
	dtrace_own_drop(carrier, &pen);
	dtrace_pen_lift(&pen);
	mmap_read_unlock(mm);
	dtrace_own_tell_lost(carrier);
}

/* Whether a breakpoint can be taken out, and counted down, without bringing a page. */
static bool dtrace_own_is_in(const struct dtrace_carrier *carrier, struct dtrace_pen *pen)
{
	u64 at = carrier->spot.address;
	bool writes = dtrace_is_own(carrier) && dtrace_own_is_there(carrier, vma_lookup(pen->mm, at));

	return (!writes || !dtrace_pen_move(pen, at, true)) && dtrace_counter_is_in(carrier, pen->mm);
}

/*
 * Takes away those breakpoints of one memory that still stay, as far as they are ours and their
 * pages are in memory. Returns whether the others can be taken away when their pages have been
 * brought. The memory's lock is held.
 */
static bool dtrace_own_lift_in(struct dtrace_memory *memory, struct dtrace_carrier **all, size_t count, struct dtrace_patience *patience)
{
	struct dtrace_pen pen = { .mm = memory->mm, .brings = patience->alone };
	bool any = false;
	size_t n;

	if (!dtrace_mappings_lock(memory->mm, patience))
		return false;
	for (n = 0; n < count; n++) {
		if (all[n]->stays && (pen.brings || dtrace_own_is_in(all[n], &pen))) {
			if (dtrace_is_own(all[n]))
				dtrace_own_lift(all[n], &pen);
			/*
			 * If uprobes carry the breakpoint by now, the module's count is taken back
			 * all the same.
			 */
			dtrace_count_no_more(all[n], memory->mm, pen.brings);
			all[n]->stays = false;
		}
		any |= all[n]->stays;
		cond_resched();
	}
	dtrace_pen_lift(&pen);
	mmap_read_unlock(memory->mm);
	return any;
}

static bool dtrace_own_stays(const struct dtrace_carrier *carrier)
{
	return carrier->stays;
}

/*
 * The same, and brings pages: after a fork the program shares its pages with the child. The
 * memory's lock is held.
 */
static void dtrace_own_lift_with(struct dtrace_memory *memory, struct dtrace_carrier **all, size_t count,
				 struct dtrace_patience *patience)
{
	size_t n;

	if (dtrace_own_lift_in(memory, all, count, patience)) {
		/* Even if that has failed, some pages may have been brought. */
		dtrace_own_bring(memory, all, count, dtrace_own_stays, patience);
		dtrace_own_lift_in(memory, all, count, patience);
	}
	/*
	 * A debugger that has saved the byte of a breakpoint puts it back when it detaches, even if
	 * uprobes carry the breakpoint by then.
	 */
	if (dtrace_is_debugged(memory->mm))
		for (n = 0; n < count; n++)
			if (!all[n]->stays && !dtrace_own_is_covered(all[n]))
				dtrace_own_suspect(all[n]);
}

/*
 * The same, and takes the memory's lock. Carriers that are done leave the memory's list; those that
 * could not be had in time stay.
 */
static void dtrace_own_lift_all(struct dtrace_memory *memory, struct dtrace_carrier **all, size_t count, struct dtrace_patience *patience)
{
	bool lives;
	size_t n;

	for (n = 0; n < count; n++)
		all[n]->stays = true;
	if (!dtrace_memory_lock(memory, patience))
		return;
	lives = mmget_not_zero(memory->mm);
	if (lives) {
		dtrace_own_lift_with(memory, all, count, patience);
		mmput_async(memory->mm);
	}
	for (n = 0; n < count; n++) {
		all[n]->stays &= lives;
		if (!all[n]->stays)
			list_del(&all[n]->peer);
	}
	mutex_unlock(&memory->lock);
}

/*
 * Takes breakpoints away, as dtrace_own_lift_all() does for one memory. They are answered until
 * dtrace_trap_remove().
 */
void dtrace_own_clear(struct dtrace_carrier **all, size_t count, struct dtrace_patience *patience)
{
	size_t first, end;

	for (first = 0; first < count; first = end) {
		struct dtrace_memory *memory = all[first]->memory;

		for (end = first + 1; end < count && all[end]->memory == memory; end++)
			;
		if (memory)
			dtrace_own_lift_all(memory, all + first, end - first, patience);
	}
}

/* Called when the carrier is not answered any more: drops its reference to the memory. */
void dtrace_own_forget(struct dtrace_carrier *carrier)
{
	struct dtrace_memory *memory = carrier->memory;

	if (!memory)
		return;
	carrier->memory = NULL;
	if (atomic_dec_and_test(&memory->places) && !list_empty(&memory->areas))
		WRITE_ONCE(memory->stale, true);
	dtrace_memory_put(memory);
}

/*
 * Writes a breakpoint again if it is not there. The memory's lock and its mmap lock are held. If
 * text was mapped again, its earlier pages, with the breakpoint, may be mapped somewhere else; so
 * the place is remembered.
 */
static void dtrace_own_restore(struct dtrace_carrier *carrier, struct dtrace_pen *pen)
{
	struct dtrace_memory *memory = carrier->memory;
	u64 at = carrier->spot.address;
	struct vm_area_struct *vma = vma_lookup(memory->mm, at);
	pid_t coverer = READ_ONCE(carrier->coverer);

	if (!dtrace_own_is_there(carrier, vma) || vma->vm_flags & VM_WRITE || dtrace_pen_move(pen, at, false) ||
	    !dtrace_pen_sees(pen, at, carrier->code, 1))
		return;
	/*
	 * A debugger's breakpoint has gone with the earlier text, unless the debugger has just
	 * written one.
	 */
	cmpxchg(&carrier->coverer, coverer, 0);
	if (dtrace_pen_put(pen, carrier, carrier->code[0], DTRACE_BREAKPOINT) > 0)
		dtrace_own_suspect(carrier);
}

/* Whether a debugger that was about to make another instruction of a carrier's has done so. */
static bool dtrace_own_is_changed(struct dtrace_carrier *carrier, struct dtrace_pen *pen)
{
	const u8 breakpoint = DTRACE_BREAKPOINT;
	u64 at = carrier->spot.address;

	/* A debugger's breakpoint hides what the debugger has made of the instruction. */
	if (!READ_ONCE(carrier->changed) || dtrace_own_is_covered(carrier))
		return false;
	/* A debugger that writes later marks the memory as stale when it has written. */
	WRITE_ONCE(carrier->changed, dtrace_pen_move(pen, at, false) || !dtrace_pen_sees(pen, at, &breakpoint, 1) ||
					     !dtrace_pen_sees_rest(pen, carrier));
	return READ_ONCE(carrier->changed);
}

/*
 * Writes those breakpoints of a memory between two addresses again that are not there, because a
 * file has been mapped. Those whose instruction a debugger has changed are given up. Returns
 * whether that could be done. The memory's lock is held.
 */
bool dtrace_own_renew(struct dtrace_memory *memory, u64 start, u64 end, struct dtrace_patience *patience)
{
	struct dtrace_pen pen = { .mm = memory->mm, .brings = true };
	struct dtrace_carrier *carrier;
	bool lost = false;

	if (!dtrace_mappings_lock(memory->mm, patience))
		return false;
	list_for_each_entry(carrier, &memory->carriers, peer) {
		u64 at = carrier->spot.address;

		cond_resched();
		if (at < start || at >= end || !dtrace_is_own(carrier))
			continue;
		if (dtrace_own_is_changed(carrier, &pen)) {
			dtrace_own_drop(carrier, &pen);
			lost = true;
		} else {
			dtrace_own_restore(carrier, &pen);
		}
	}
	dtrace_pen_lift(&pen);
	mmap_read_unlock(memory->mm);
	if (!lost)
		return true;
	list_for_each_entry(carrier, &memory->carriers, peer)
		if (dtrace_carrier_is_lost(carrier) && READ_ONCE(carrier->changed))
			dtrace_own_tell_lost(carrier);
	return true;
}

/*
 * The carrier whose breakpoint we have written for the text that the mapping has at an address. The
 * caller is in an RCU read-side critical section.
 */
struct dtrace_carrier *dtrace_own_at(struct vm_area_struct *vma, u64 address)
{
	struct dtrace_carrier *carrier = dtrace_trap_at(vma->vm_mm, address);

	return carrier && dtrace_is_own(carrier) && dtrace_own_is_there(carrier, vma) ? carrier : NULL;
}

/*
 * The carrier in a state whose breakpoint was ours before uprobes carried it, and where a debugger
 * has its own. The caller is in an RCU read-side critical section.
 */
struct dtrace_carrier *dtrace_own_covered_at(struct vm_area_struct *vma, u64 address, u8 state)
{
	struct dtrace_carrier *carrier = dtrace_trap_at(vma->vm_mm, address);

	return carrier && smp_load_acquire(&carrier->state) == state && READ_ONCE(carrier->memory) && dtrace_own_is_covered(carrier) &&
	       dtrace_own_is_there(carrier, vma) ? carrier : NULL;
}

/*
 * Takes a breakpoint of ours out, so that uprobes find the instruction. The mmap lock is held for
 * writing.
 */
void dtrace_own_lend(struct vm_area_struct *vma, u64 address)
{
	struct dtrace_carrier *carrier;
	int code;

	rcu_read_lock();
	carrier = dtrace_own_at(vma, address);
	code = carrier ? carrier->code[0] : -ENOENT;
	rcu_read_unlock();
	if (code >= 0)
		dtrace_poke(vma->vm_mm, address, DTRACE_BREAKPOINT, code);
}

/*
 * Writes a breakpoint of ours again, because uprobes have set none there, or have taken theirs out.
 * The mmap lock is held for writing.
 */
void dtrace_own_take_back(struct vm_area_struct *vma, u64 address)
{
	struct dtrace_carrier *carrier;
	int code = -ENOENT;

	rcu_read_lock();
	carrier = dtrace_own_at(vma, address);
	/* If uprobes have got it from us meanwhile, it stays theirs. */
	if (carrier && (cmpxchg(&carrier->state, DTRACE_LENT, DTRACE_OWN) == DTRACE_LENT ||
			cmpxchg(&carrier->state, DTRACE_SHARED, DTRACE_OWN) == DTRACE_SHARED))
		code = carrier->code[0];
	carrier = dtrace_own_covered_at(vma, address, DTRACE_GONE);
	/* The breakpoint that comes back is the debugger's. */
	if (carrier)
		code = carrier->code[0];
	rcu_read_unlock();
	/*
	 * For a task that has been killed no page is brought. The breakpoint is written at the next
	 * sweep then.
	 */
	if (code >= 0 && dtrace_poke(vma->vm_mm, address, code, DTRACE_BREAKPOINT) < 0)
		dtrace_memory_is_stale(vma->vm_mm);
}
