// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Stacks of programs that are walked again.
 *
 * Probes see the same callers again and again. So each CPU keeps what its walks have found: where text is mapped, rules of tables, and steps, which lead
 * from an instruction to its caller without a look at either. Mappings and steps are right for an epoch: as long as no mapping of that
 * memory has changed and no table has gone, and for a second at most, so that tables in use are marked as used, and changed files are noticed.
 * A CPU knows a few epochs, so that programs may take turns on it.
 *
 * Who walks has claimed the CPU: no other walk on it comes between. Interrupts are off.
 */

#include <linux/hash.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/nospec.h>
#include <linux/percpu.h>
#include <linux/sizes.h>
#include <linux/uaccess.h>
#include <linux/unaligned.h>

#include "follow.h"
#include "processes.h"

#define DTRACE_FOLLOW_EPOCHS 4
#define DTRACE_FOLLOW_PLACES 4
#define DTRACE_FOLLOW_BITS 9

struct dtrace_follow_epoch {
	u64 memory;
	unsigned int sequence;
	unsigned long age, second;
	/* Never another one's on this CPU. */
	u64 number;
	/* How many places were put in; the oldest is overwritten. */
	unsigned int put;
	struct dtrace_unwind_place places[DTRACE_FOLLOW_PLACES];
	/* See dtrace_unwind_teller(); since when, and after which table. */
	u64 teller, newest;
	unsigned long since;
};

struct dtrace_follow {
	u64 last;
	/* The epoch that was asked for last, which is the likeliest; and the one whose place the next takes that begins. */
	unsigned int now, next;
	struct dtrace_follow_epoch epochs[DTRACE_FOLLOW_EPOCHS];
	struct dtrace_unwind_rule rules[DTRACE_UNWIND_RULES];
	struct dtrace_unwind_step steps[1 << DTRACE_FOLLOW_BITS] ____cacheline_aligned;
};

static_assert(sizeof(struct dtrace_unwind_step) == 32);
static_assert(sizeof(struct dtrace_follow) <= PCPU_MIN_UNIT_SIZE);

static struct dtrace_follow __percpu *dtrace_follows;

int dtrace_follow_init(void)
{
	dtrace_follows = alloc_percpu(struct dtrace_follow);
	return dtrace_follows ? 0 : -ENOMEM;
}

/* Nobody walks any more. */
void dtrace_follow_exit(void)
{
	free_percpu(dtrace_follows);
}

struct dtrace_unwind_rule *dtrace_unwind_rules_here(void)
{
	return raw_cpu_ptr(dtrace_follows)->rules;
}

/* The epoch of the current program, which begins now if its memory was another before. NULL: its mappings are being changed. */
static struct dtrace_follow_epoch *dtrace_follow_now(struct dtrace_follow *here)
{
	unsigned long age = dtrace_unwind_age(), second = jiffies / HZ;
	struct mm_struct *mm = current->mm;
	struct dtrace_follow_epoch *epoch;
	unsigned int sequence, n;
	u64 memory;

	if (!mm || !mmap_lock_speculate_try_begin(mm, &sequence))
		return NULL;
	memory = dtrace_memory_number(mm);
	for (n = 0; n < DTRACE_FOLLOW_EPOCHS; n++)
		if (here->epochs[(here->now + n) % DTRACE_FOLLOW_EPOCHS].memory == memory)
			break;
	here->now = n < DTRACE_FOLLOW_EPOCHS ? here->now + n : here->next++;
	epoch = &here->epochs[here->now % DTRACE_FOLLOW_EPOCHS];
	if (epoch->memory == memory && epoch->sequence == sequence && epoch->age == age && epoch->second == second)
		return epoch;
	if (epoch->memory != memory)
		epoch->teller = 0;
	/* One of the same memory that has ended never comes again. */
	epoch->memory = memory;
	epoch->sequence = sequence;
	epoch->age = age;
	epoch->second = second;
	epoch->number = ++here->last;
	epoch->put = 0;
	return epoch;
}

/* Whether what was found since the epoch was asked for is right in it. */
static bool dtrace_follow_is_right(const struct dtrace_follow_epoch *epoch)
{
	return !mmap_lock_speculate_retry(current->mm, epoch->sequence);
}

/* What is known of text of the current program. */
void dtrace_unwind_at(u64 address, struct dtrace_unwind_place *place)
{
	struct dtrace_follow_epoch *epoch = dtrace_follow_now(raw_cpu_ptr(dtrace_follows));
	unsigned int n;

	for (n = 0; epoch && n < min(epoch->put, DTRACE_FOLLOW_PLACES); n++) {
		const struct dtrace_unwind_place *kept = &epoch->places[n];

		if (address >= kept->start && address < kept->end) {
			*place = *kept;
			return;
		}
	}
	dtrace_unwind_look(address, place);
	/* A file without a table may get one. */
	if (epoch && (place->bytes || place->is_made) && dtrace_follow_is_right(epoch))
		epoch->places[epoch->put++ % DTRACE_FOLLOW_PLACES] = *place;
}

/* The number of the current program's epoch; 0: there is none. */
u64 dtrace_unwind_epoch(void)
{
	const struct dtrace_follow_epoch *epoch = dtrace_follow_now(raw_cpu_ptr(dtrace_follows));

	return epoch ? epoch->number : 0;
}

/*
 * Where text is whose runtime has the code that the current program has made, as it was found; who uses it looks whether it still is. 0: it is to be
 * looked for; all ones: a moment ago there was none.
 */
u64 dtrace_unwind_teller(void)
{
	const struct dtrace_follow_epoch *epoch = dtrace_follow_now(raw_cpu_ptr(dtrace_follows));

	if (!epoch)
		return 0;
	/* There may be one since, or its table. */
	if (epoch->teller == U64_MAX && (epoch->since != epoch->second || epoch->newest != dtrace_unwind_newest()))
		return 0;
	return epoch->teller;
}

void dtrace_unwind_keep_teller(u64 teller)
{
	struct dtrace_follow_epoch *epoch = dtrace_follow_now(raw_cpu_ptr(dtrace_follows));

	if (!epoch)
		return;
	epoch->teller = teller;
	epoch->since = epoch->second;
	epoch->newest = dtrace_unwind_newest();
}

/* Where the step from an address is kept. Processes that were forked from one have the same addresses. */
static __always_inline struct dtrace_unwind_step *dtrace_follow_step(struct dtrace_unwind_step *steps, u64 at, u64 epoch)
{
	return &steps[hash_32((u32)(at ^ epoch), DTRACE_FOLLOW_BITS)];
}

static __always_inline bool dtrace_follow_is_from(const struct dtrace_unwind_step *step, u64 at, u64 epoch)
{
	return step->at == at && step->epoch == epoch;
}

/* Keeps a step that was found in its epoch, unless that has ended. */
void dtrace_unwind_keep(const struct dtrace_unwind_step *step)
{
	struct dtrace_follow *here = raw_cpu_ptr(dtrace_follows);
	const struct dtrace_follow_epoch *epoch = dtrace_follow_now(here);

	if (epoch && epoch->number == step->epoch && dtrace_follow_is_right(epoch))
		*dtrace_follow_step(here->steps, step->at, step->epoch) = *step;
}

/*
 * Goes from frame to frame by what is kept, and writes where each goes on, if `pcs` is not NULL. Returns how many frames were left behind, at most `room`.
 * The frame is then the next one, unless there is none. The caller knows that the processor has the program's memory, as for
 * dtrace_unwind_word().
 */
u32 dtrace_unwind_follow(struct dtrace_unwind_frame *frame, u64 epoch, u8 *pcs, u32 room)
{
	/* What is loaded lies less than 32 KiB from here, in user space. */
	const u64 lowest = SZ_64K, range = TASK_SIZE_MAX - 2 * SZ_64K;
	struct dtrace_unwind_step *steps = raw_cpu_ptr(dtrace_follows)->steps;
	u64 ip = frame->ip, sp = frame->sp, fp = frame->fp;
	u64 at = frame->is_exact ? ip : ip - 1, *put = (u64 *)pcs;
	u32 left = room;

	pagefault_disable();
	if (!user_read_access_begin((const void __user *)sp, sizeof(sp)))
		goto none;
	while (left) {
		const struct dtrace_unwind_step *step = dtrace_follow_step(steps, at, epoch);
		u64 cfa, from, caller, saved = fp;

		if (!dtrace_follow_is_from(step, at, epoch))
			break;
		cfa = (step->by_fp ? fp : sp) + step->cfa;
		/* So is the one of an end. */
		if (cfa <= sp) {
			frame->is_last = step->is_last;
			break;
		}
		if (cfa % sizeof(cfa) || cfa - lowest >= range)
			break;
		/* A processor that went on without waiting for that loads nothing of the kernel's. */
		from = array_index_nospec(cfa - lowest, range) + lowest;
		unsafe_get_user(caller, (const u64 __user *)(from - sizeof(caller)), ended);
		if (!caller)
			break;
		if (step->is_saved)
			unsafe_get_user(saved, (const u64 __user *)(from + step->saved), ended);
		if (put)
			put_unaligned(ip, put++);
		left--;
		ip = caller;
		at = ip - 1;
		sp = cfa;
		fp = saved;
	}
ended:
	user_read_access_end();
none:
	pagefault_enable();
	if (left != room) {
		frame->ip = ip;
		frame->sp = sp;
		frame->fp = fp;
		frame->is_exact = false;
	}
	return room - left;
}

/*
 * A word of the current program's memory, of 4 or 8 bytes, if it is there. The caller knows that the processor has that memory: interrupts are off,
 * and copy_from_user_nofault() has succeeded since, or the program itself has come here.
 */
bool dtrace_unwind_word(u64 address, u32 size, u64 *word)
{
	const void __user *at = (const void __user *)address;
	u32 half;

	pagefault_disable();
	if (!user_read_access_begin(at, size)) {
		pagefault_enable();
		return false;
	}
	if (size == sizeof(*word)) {
		unsafe_get_user(*word, (const u64 __user *)at, failed);
	} else {
		unsafe_get_user(half, (const u32 __user *)at, failed);
		*word = half;
	}
	user_read_access_end();
	pagefault_enable();
	return true;
failed:
	user_read_access_end();
	pagefault_enable();
	return false;
}
