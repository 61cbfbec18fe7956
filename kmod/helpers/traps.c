// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Breakpoints of programs that are answered in the exception (INV-41).
 *
 * Uprobes answer a breakpoint on the way back to the program, and execute many instructions out of
 * line with a second exception. The module is called before them, in the exception itself; if it
 * can execute the instruction there, nothing is left for uprobes to do. If the module is not
 * certain about a breakpoint that uprobes carry, it leaves it to them, and they call it later; unless
 * a debugger has one there too, of which they do not know.
 *
 * A breakpoint is found by memory and address, in a table that is read under RCU. What it was set
 * for may have been unmapped since, and another file's text, with a debugger's breakpoint, mapped
 * there. That takes the mmap lock for writing and so changes its sequence count; only after such a
 * change the mapping is looked at again.
 */

#include <linux/hash.h>
#include <linux/kdebug.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/mutex.h>
#include <linux/rhashtable.h>

#include "faults.h"
#include "own.h"
#include "pause.h"
#include "percpu.h"
#include "processes.h"
#include "slots.h"
#include "user.h"

static u32 dtrace_spot_hash(const void *data, u32 len, u32 seed)
{
	const struct dtrace_spot *spot = data;

	return hash_64(spot->address + (u64)spot->mm + seed, 32);
}

static int dtrace_spot_differs(struct rhashtable_compare_arg *arg, const void *object)
{
	const struct dtrace_spot *spot = arg->key;
	const struct dtrace_carrier *carrier = object;

	return spot->address != carrier->spot.address || spot->mm != carrier->spot.mm;
}

static const struct rhashtable_params dtrace_trap_params = {
	.key_len = sizeof(struct dtrace_spot),
	.key_offset = offsetof(struct dtrace_carrier, spot),
	.head_offset = offsetof(struct dtrace_carrier, node),
	.hashfn = dtrace_spot_hash,
	.obj_cmpfn = dtrace_spot_differs,
	.automatic_shrinking = true,
};

static struct rhashtable dtrace_traps;

/* Like rhashtable_lookup(), but with the offset of the node in an object known at compile time. */
static __always_inline struct dtrace_carrier *dtrace_trap_find(const struct dtrace_spot *spot)
{
	struct bucket_table *table = rht_dereference_rcu(dtrace_traps.tbl, &dtrace_traps);
	struct rhash_lock_head __rcu *const *bucket;
	struct dtrace_carrier *carrier;
	struct rhash_head *at;
	unsigned int hash;

	do {
		hash = rht_key_hashfn(&dtrace_traps, table, spot, dtrace_trap_params);
		bucket = rht_bucket(table, hash);
		do {
			rht_for_each_entry_rcu_from(carrier, at, rht_ptr_rcu(bucket), table, hash, node)
				if (carrier->spot.address == spot->address && carrier->spot.mm == spot->mm)
					return carrier;
			/* The entry may have been moved to another chain meanwhile. */
		} while (at != RHT_NULLS_MARKER(bucket));
		/*
		 * While the table grows, entries are put into the new one. The pointer to that is
		 * read after the chain, so no entry is overlooked (as in rhashtable_lookup()).
		 */
		smp_rmb();
		table = rht_dereference_rcu(table->future_tbl, &dtrace_traps);
	} while (unlikely(table));
	return NULL;
}

/* Whether a place is what a breakpoint was set for. */
enum dtrace_hold {
	DTRACE_HOLDS,
	/* It is not. */
	DTRACE_FALLEN,
	/* The mappings are being changed. */
	DTRACE_CHANGING,
	/* It is, and a debugger has set its own breakpoint there. */
	DTRACE_COVERED,
	/* A debugger has made another instruction of it. */
	DTRACE_CHANGED,
};

/*
 * Number of reasons to have the notifier registered: answered carriers, and known memories (one for
 * all).
 */
static DEFINE_MUTEX(dtrace_traps_lock);
static unsigned long dtrace_traps_count;

/*
 * Whether the bytes behind a breakpoint are as expected. In code of no file the program may have
 * made another instruction of them.
 */
static bool dtrace_trap_continues(u64 address, const u8 *code, unsigned int length)
{
	unsigned int n;
	u64 byte;

	for (n = 1; n < length; n++)
		if (dtrace_user_get(address + n, 1, &byte) || byte != code[n])
			return false;
	return true;
}

/*
 * Whether the mapping at a place is what the breakpoint was set for. May be wrong while the
 * mappings are being changed. The caller is in an RCU read-side critical section, or holds the mmap
 * lock.
 */
static bool dtrace_trap_fits(const struct dtrace_carrier *carrier)
{
	const struct dtrace_spot *spot = &carrier->spot;
	struct vm_area_struct *vma = vma_lookup(spot->mm, spot->address);
	struct file *file;

	if (!vma || !(vma->vm_flags & VM_EXEC))
		return false;
	/*
	 * Without the lock the vma may be another one by now, but its file never becomes NULL; the
	 * sequence count tells.
	 */
	file = READ_ONCE(vma->vm_file);
	if (!file != !carrier->file || dtrace_offset_of(vma, spot->address) != carrier->offset)
		return false;
	if (file ? READ_ONCE(file->f_inode) != file_inode(carrier->file)
		 : !dtrace_trap_continues(spot->address, carrier->code, carrier->length))
		return false;
	return !carrier->slot || dtrace_slot_is_there(carrier);
}

/* Whether no debugger is known to have written a breakpoint or another instruction there. */
static bool dtrace_trap_is_plain(const struct dtrace_carrier *carrier)
{
	return !READ_ONCE(carrier->changed) && !dtrace_own_is_covered(carrier);
}

/* Finds out what a place is, after the mappings may have changed. */
static noinline enum dtrace_hold dtrace_trap_look(struct dtrace_carrier *carrier, unsigned int seq)
{
	bool fits = dtrace_trap_fits(carrier);

	if (mmap_lock_speculate_retry(carrier->spot.mm, seq))
		return DTRACE_CHANGING;
	if (!fits)
		return DTRACE_FALLEN;
	if (dtrace_trap_is_plain(carrier)) {
		/*
		 * Odd, so it is no count at which the mappings stand still. If it is still there
		 * afterwards, dtrace_carrier_noted() has not been called since; another thread's
		 * mark must not pass for it, because that may have been made after such a call.
		 */
		unsigned int mine = (unsigned int)current->pid << 1 | 1;

		WRITE_ONCE(carrier->seq, mine);
		/*
		 * Pairs with dtrace_carrier_noted(): at least one side sees what the other has
		 * written.
		 */
		smp_mb();
		if (dtrace_trap_is_plain(carrier)) {
			cmpxchg(&carrier->seq, mine, seq);
			return DTRACE_HOLDS;
		}
	}
	/* A change is noted before it is written, and the write may fail. */
	if (READ_ONCE(carrier->changed) && !dtrace_trap_continues(carrier->spot.address, carrier->code, carrier->length))
		return DTRACE_CHANGED;
	return dtrace_own_is_covered(carrier) ? DTRACE_COVERED : DTRACE_HOLDS;
}

static enum dtrace_hold dtrace_trap_hold(struct dtrace_carrier *carrier)
{
	unsigned int seq;

	if (!mmap_lock_speculate_try_begin(carrier->spot.mm, &seq))
		return DTRACE_CHANGING;
	return likely(READ_ONCE(carrier->seq) == seq) ? DTRACE_HOLDS : dtrace_trap_look(carrier, seq);
}

/*
 * Whether the place is what the breakpoint was set for, whatever a debugger has made of it. The
 * mmap lock is held.
 */
bool dtrace_trap_holds(struct dtrace_carrier *carrier)
{
	enum dtrace_hold hold = dtrace_trap_hold(carrier);

	return hold != DTRACE_FALLEN && hold != DTRACE_CHANGING;
}

struct dtrace_carrier *dtrace_trap_at(struct mm_struct *mm, u64 address)
{
	struct dtrace_spot spot = { .mm = mm, .address = address };

	guard(rcu)();
	return dtrace_trap_find(&spot);
}

/* Whether the byte at an address of the current program is a breakpoint, or a negative errno. */
static int dtrace_trap_stays(u64 address)
{
	u64 byte;
	int error = dtrace_user_get(address, 1, &byte);

	return error ?: byte == DTRACE_BREAKPOINT;
}

/* Whether the exception came from an instruction of two bytes, which is nobody's breakpoint. */
static bool dtrace_trap_is_long(u64 address)
{
	u64 opcode, number;

	return !dtrace_user_get(address, 1, &number) && !dtrace_user_get(address - 1, 1, &opcode) &&
	       dtrace_trap_is_interrupt(opcode, number);
}

/* What a breakpoint is taken for at which no carrier of ours is known. */
static enum dtrace_stray dtrace_trap_judge(u64 address)
{
	enum dtrace_stray stray = dtrace_memory_strays(address);
	struct vm_area_struct *vma;
	struct dtrace_known *known;

	if (stray != DTRACE_STRAY && stray != DTRACE_LEFT)
		return stray;
	vma = lock_vma_under_rcu(current->mm, address);
	if (!vma)
		return stray;
	known = dtrace_known_at(vma, address);
	if (!known || !dtrace_trap_continues(address, known->code, known->length) ||
	    (stray == DTRACE_LEFT && mm_flags_test(MMF_HAS_UPROBES, current->mm) &&
	     dtrace_known_others(known) == DTRACE_OTHERS_SOME))
		stray = DTRACE_FOREIGN;
	vma_end_read(vma);
	return stray;
}

/*
 * Answers a breakpoint at which no carrier of ours is known. It may be one that is left over; an
 * errand looks at it on the way back.
 */
static noinline int dtrace_trap_strays(struct pt_regs *regs)
{
	u64 address = dtrace_trap_address(regs);
	enum dtrace_stray stray = dtrace_trap_judge(address);
	int stays;

	if (stray == DTRACE_UNKNOWN || dtrace_trap_is_long(address))
		return NOTIFY_DONE;
	/* One of ours may have been taken out since the processor hit it. */
	stays = dtrace_trap_stays(address);
	if (stray == DTRACE_FOREIGN && stays > 0)
		return NOTIFY_DONE;
	instruction_pointer_set(regs, address);
	dtrace_own_errand(address, stays ? DTRACE_ERRAND_LOOK : DTRACE_ERRAND_AFFIRM);
	return NOTIFY_STOP;
}

/*
 * Whether the debugger is there whose breakpoint covers a carrier's. The current thread need not be
 * one that it traces. If the process that has written the breakpoint has ended, one that traces a
 * thread of the program takes over; so all threads are looked at once after a write at most.
 */
static bool dtrace_trap_is_wanted(struct dtrace_carrier *carrier)
{
	pid_t coverer = READ_ONCE(carrier->coverer), heir;

	/* The debugger has just taken its own away: the program comes again. */
	if (!coverer)
		return false;
	if (dtrace_is_ptraced() || dtrace_coverer_lives(carrier))
		return true;
	heir = dtrace_debugger_of(carrier->spot.mm);
	/* If another debugger has written one meanwhile, the program comes again. */
	return cmpxchg(&carrier->coverer, coverer, heir) == coverer && heir;
}

/*
 * Answers a breakpoint where a debugger has one too. Ours fires, and the program gets the signal
 * for the debugger's. The debugger may execute the instruction elsewhere; if it steps over it in
 * place, that does not fire again.
 */
static int dtrace_trap_cover(struct dtrace_carrier *carrier, struct pt_regs *regs)
{
	u64 address = dtrace_trap_address(regs);
	struct dtrace_errand *signal;

	instruction_pointer_set(regs, address);
	/*
	 * The debugger has gone, and its breakpoint would kill the program: it is forgotten, and
	 * the program comes again.
	 */
	if (!dtrace_trap_is_wanted(carrier))
		return NOTIFY_STOP;
	signal = dtrace_errand_ahead(DTRACE_ERRAND_SIGNAL);
	/* Without memory for the errand the program comes again. */
	if (!signal)
		return NOTIFY_STOP;
	if (!carrier->meet(carrier, regs)) {
		dtrace_errand_cancel(signal);
		return NOTIFY_STOP;
	}
	if (atomic_read(&dtrace_brings_taken))
		dtrace_brought();
	dtrace_errand_send(signal, address);
	return NOTIFY_STOP;
}

/*
 * Answers a breakpoint that cannot be answered as usual: one that we have written, which no other
 * handler would answer, or one that uprobes carry and a debugger covers.
 */
static noinline int dtrace_trap_defer(struct dtrace_carrier *carrier, struct pt_regs *regs, enum dtrace_hold hold)
{
	u64 address = dtrace_trap_address(regs);

	switch (hold) {
	case DTRACE_COVERED:
		return dtrace_trap_cover(carrier, regs);
	case DTRACE_FALLEN:
		return dtrace_trap_strays(regs);
	case DTRACE_CHANGING:
		dtrace_own_errand(address, DTRACE_ERRAND_WAIT);
		break;
	case DTRACE_CHANGED:
		dtrace_own_errand(address, DTRACE_ERRAND_DROP);
		break;
	case DTRACE_HOLDS:
		dtrace_own_errand(address, DTRACE_ERRAND_YIELD);
		break;
	}
	instruction_pointer_set(regs, address);
	return NOTIFY_STOP;
}

/*
 * Gives up a breakpoint that could not be answered, with its slot if it had one. If the instruction
 * must not be executed in a slot, uprobes must not execute it out of line either.
 */
static noinline int dtrace_trap_give_up(struct dtrace_carrier *carrier, u64 slot, struct pt_regs *regs)
{
	u64 address = dtrace_trap_address(regs);

	if (!slot)
		return dtrace_trap_defer(carrier, regs, DTRACE_HOLDS);
	instruction_pointer_set(regs, address);
	dtrace_own_errand(address, DTRACE_ERRAND_DROP);
	return NOTIFY_STOP;
}

/*
 * Whether the processor would have reported the step that was executed; it may be set to report
 * branches alone.
 */
static bool dtrace_trap_made_step(const struct dtrace_carrier *carrier, u64 slot, const struct pt_regs *regs)
{
	u64 address = carrier->spot.address;
	u64 next = dtrace_pc(regs);

	/* In a slot the processor itself reports the step. */
	if (next == address || (slot && next == slot))
		return false;
	return !dtrace_trap_steps_branches() || next != address + carrier->length;
}

/*
 * Answers a breakpoint like dtrace_trap_own(), but the place has changed, or the program is being
 * stepped through, so the debugger must see a step. Uprobes see to that if they may have the
 * breakpoint.
 */
static noinline int dtrace_trap_step(struct dtrace_carrier *carrier, struct pt_regs *regs, enum dtrace_hold hold)
{
	u64 address = dtrace_trap_address(regs);
	u64 slot = smp_load_acquire(&carrier->slot);
	struct dtrace_errand *step;
	bool done, moved;

	/*
	 * If only branches are reported, the jump behind the instruction in a slot would be one too
	 * many.
	 */
	moved = slot && !dtrace_trap_steps_branches();
	if (hold != DTRACE_HOLDS || (!dtrace_is_only_own(carrier) && !moved))
		return dtrace_trap_defer(carrier, regs, hold);
	instruction_pointer_set(regs, address);
	step = dtrace_errand_ahead(DTRACE_ERRAND_STEP);
	/* Without memory for the errand the program comes again. */
	if (!step)
		return NOTIFY_STOP;
	done = carrier->trap(carrier, regs, slot);
	if (done && dtrace_pc(regs) != address && atomic_read(&dtrace_brings_taken))
		dtrace_brought();
	if (done && dtrace_trap_made_step(carrier, slot, regs)) {
		dtrace_errand_send(step, dtrace_pc(regs));
		return NOTIFY_STOP;
	}
	dtrace_errand_cancel(step);
	if (done)
		return NOTIFY_STOP;
	dtrace_trap_leave(regs, address);
	return dtrace_trap_give_up(carrier, slot, regs);
}

/* Answers a breakpoint that we have written and that nobody else wants. */
static __always_inline int dtrace_trap_own(struct dtrace_carrier *carrier, struct pt_regs *regs)
{
	enum dtrace_hold hold = dtrace_trap_hold(carrier);
	u64 address = dtrace_trap_address(regs);
	u64 slot;

	if (unlikely(hold != DTRACE_HOLDS || dtrace_trap_steps(regs)))
		return dtrace_trap_step(carrier, regs, hold);
	/* Another thread may give the carrier a slot meanwhile. */
	slot = smp_load_acquire(&carrier->slot);
	instruction_pointer_set(regs, address);
	if (unlikely(!carrier->trap(carrier, regs, slot))) {
		dtrace_trap_leave(regs, address);
		return dtrace_trap_give_up(carrier, slot, regs);
	}
	if (unlikely(atomic_read(&dtrace_brings_taken)) && dtrace_pc(regs) != address)
		dtrace_brought();
	return NOTIFY_STOP;
}

/* Answers a breakpoint that uprobes carry. They do what the module cannot. */
static int dtrace_trap_carried(struct dtrace_carrier *carrier, struct pt_regs *regs)
{
	enum dtrace_hold hold = dtrace_trap_hold(carrier);
	u64 address = dtrace_trap_address(regs);

	/*
	 * Uprobes do not know of the debugger's. While the mappings are being changed, nobody knows
	 * whether it is still there, so the program comes again.
	 */
	if (hold == DTRACE_COVERED || (hold == DTRACE_CHANGING && dtrace_own_is_covered(carrier)))
		return dtrace_trap_defer(carrier, regs, hold);
	if (dtrace_trap_steps(regs) || !dtrace_is_alone(&carrier->consumer) || hold != DTRACE_HOLDS)
		return NOTIFY_DONE;
	instruction_pointer_set(regs, address);
	if (carrier->trap(carrier, regs, DTRACE_REST_UPROBES))
		return NOTIFY_STOP;
	dtrace_trap_leave(regs, address);
	return NOTIFY_DONE;
}

/* Answers a breakpoint that is not ours alone, or is none of ours. */
static noinline int dtrace_trap_otherwise(struct dtrace_carrier *carrier, struct pt_regs *regs, u8 state)
{
	int ret;

	if (state == DTRACE_UNSET || state == DTRACE_GONE)
		return dtrace_trap_strays(regs);
	dtrace_cpu_stops();
	ret = state == DTRACE_CARRIED ? dtrace_trap_carried(carrier, regs)
				      : dtrace_trap_defer(carrier, regs, dtrace_trap_hold(carrier));
	dtrace_cpu_goes_on();
	return ret;
}

static int dtrace_trapped(struct notifier_block *self, unsigned long event, void *data)
{
	struct pt_regs *regs = ((struct die_args *)data)->regs;
	struct dtrace_carrier *carrier;
	struct dtrace_spot spot;
	int ret;
	u8 state;

	if (event != DTRACE_BREAKPOINT_EVENT || !user_mode(regs))
		return NOTIFY_DONE;
	spot.mm = current->mm;
	spot.address = dtrace_trap_address(regs);
	carrier = dtrace_trap_find(&spot);
	if (!carrier)
		return dtrace_trap_strays(regs);
	state = smp_load_acquire(&carrier->state);
	if (unlikely(state != DTRACE_OWN))
		return dtrace_trap_otherwise(carrier, regs, state);
	dtrace_cpu_stops();
	ret = dtrace_trap_own(carrier, regs);
	dtrace_cpu_goes_on();
	return ret;
}

static struct notifier_block dtrace_trap_notifier = {
	.notifier_call = dtrace_trapped,
	/* Called before uprobes. */
	.priority = INT_MAX,
};

/* Registers the notifier, unless it is registered. */
void dtrace_traps_attend(void)
{
	guard(mutex)(&dtrace_traps_lock);
	if (!dtrace_traps_count++)
		register_die_notifier(&dtrace_trap_notifier);
}

void dtrace_traps_ignore(void)
{
	guard(mutex)(&dtrace_traps_lock);
	if (!--dtrace_traps_count)
		unregister_die_notifier(&dtrace_trap_notifier);
}

/*
 * Lets the exception answer hits of the carrier. The caller keeps the carrier until
 * dtrace_carriers_sync() after dtrace_trap_remove(). -EEXIST: another carrier is there.
 */
int dtrace_trap_add(struct dtrace_carrier *carrier)
{
	int error;

	carrier->seq = DTRACE_SEQ_NONE;
	error = rhashtable_lookup_insert_fast(&dtrace_traps, &carrier->node, dtrace_trap_params);
	if (error)
		return error;
	carrier->answered = true;
	dtrace_traps_attend();
	return 0;
}

void dtrace_trap_remove(struct dtrace_carrier *carrier)
{
	if (!carrier->answered)
		return;
	carrier->answered = false;
	rhashtable_remove_fast(&dtrace_traps, &carrier->node, dtrace_trap_params);
	dtrace_traps_ignore();
}

int dtrace_traps_init(void)
{
	int error = rhashtable_init(&dtrace_traps, &dtrace_trap_params);

	if (error)
		return error;
	error = dtrace_known_init();
	if (error)
		goto no_places;
	error = dtrace_programs_init();
	if (!error)
		return 0;
	dtrace_known_exit();
no_places:
	rhashtable_destroy(&dtrace_traps);
	return error;
}

/* Called when no carrier is left. May sleep. */
void dtrace_traps_exit(void)
{
	/* Nor must one be left that was left behind. */
	dtrace_left_wait();
	dtrace_programs_wait();
	dtrace_memories_exit();
	dtrace_programs_exit();
	dtrace_known_exit();
	rhashtable_destroy(&dtrace_traps);
}
