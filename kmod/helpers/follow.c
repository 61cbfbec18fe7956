// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Stacks of programs that are walked again (INV-13).
 *
 * Probes see the same callers again and again. So each CPU keeps what its walks have found: where
 * text is mapped, rules of tables, and steps, which lead from an instruction to its caller without
 * a look at mapping or table. Mappings and steps are valid for an epoch: as long as no mapping of
 * that memory has changed and no table has been removed, and for a second at most, so that tables
 * in use are marked as used, and changed files are noticed. A CPU knows a few epochs, so that
 * programs may take turns on it.
 *
 * Programs that wait for something, or compute in a loop, have the whole stack again. So a stack
 * that comes twice is *recorded* when it is walked by steps alone: at which address each word was
 * loaded, and its value. If all these words are the same again, so is the stack, and it keeps its
 * number.
 *
 * A walk has claimed its CPU, with interrupts off, so no other walk on that CPU interrupts it
 * (INV-4).
 */

#include <linux/hash.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/percpu.h>
#include <linux/sizes.h>
#include <linux/uaccess.h>
#include <linux/unaligned.h>

#include "follow.h"
#include "processes.h"

#define DTRACE_FOLLOW_EPOCHS 4
#define DTRACE_FOLLOW_PLACES 4
#define DTRACE_FOLLOW_BITS 9
/*
 * No stack below this address is walked. A step loads words at most 32 KiB below a CFA, so the
 * addresses do not wrap around.
 */
#define DTRACE_FOLLOW_LOWEST SZ_64K

struct dtrace_follow_epoch {
	u64 memory;
	unsigned int sequence;
	/*
	 * dtrace_unwind_age() when the epoch began; the jiffy at which it ends; and the second in
	 * which it began.
	 */
	unsigned long age, until, second;
	/* Never used for another epoch, or for a stack, on this CPU. */
	u64 number;
	/* How many places were put in; the oldest is overwritten. */
	unsigned int put;
	struct dtrace_unwind_place places[DTRACE_FOLLOW_PLACES];
	/*
	 * See dtrace_unwind_teller(). `since`: the second in which that was found; `newest`: the
	 * newest table at that time.
	 */
	u64 teller, newest;
	unsigned long since;
};

/* Most words of a recorded stack: one for each frame, or two if the frame pointer is saved. */
#define DTRACE_RECORD_WORDS 32
#define DTRACE_RECORD_BITS 4

/*
 * A stack: its first frame, and the words that were loaded for it, by their offset from its stack
 * pointer.
 */
struct dtrace_record {
	u64 epoch, ip, sp, fp;
	pid_t pid;
	/* Largest number of frames that the walk was to return. */
	u32 room;
	/*
	 * Never used for another stack, or for an epoch, on this CPU; 0: the stack has come, but
	 * was not recorded.
	 */
	u64 number;
	unsigned int count;
	u32 offsets[DTRACE_RECORD_WORDS];
	u64 words[DTRACE_RECORD_WORDS];
};

struct dtrace_follow {
	u64 last;
	/*
	 * The record that the next walk fills, if any; the one that was found last; and the number
	 * of the stack that the last walk has recorded.
	 */
	struct dtrace_record *recording, *found;
	u64 recorded;
	/*
	 * Index of the epoch that was used last, which is the likeliest next; and of the one that
	 * the next new epoch overwrites.
	 */
	unsigned int now, next;
	struct dtrace_follow_epoch epochs[DTRACE_FOLLOW_EPOCHS];
	struct dtrace_unwind_rule rules[DTRACE_UNWIND_RULES];
	struct dtrace_record records[1 << DTRACE_RECORD_BITS];
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

/* The caller ensures that no CPU walks a stack any more. */
void dtrace_follow_exit(void)
{
	free_percpu(dtrace_follows);
}

struct dtrace_unwind_rule *dtrace_unwind_rules_here(void)
{
	return raw_cpu_ptr(dtrace_follows)->rules;
}

/* Whether an epoch of that memory is still valid. */
static __always_inline bool dtrace_follow_lasts(const struct dtrace_follow_epoch *epoch, u64 memory, unsigned int sequence)
{
	return epoch->memory == memory && epoch->sequence == sequence && epoch->age == dtrace_unwind_age() &&
	       time_before(jiffies, epoch->until);
}

/* Finds the epoch of a memory, or begins one. */
static noinline struct dtrace_follow_epoch *dtrace_follow_find(struct dtrace_follow *here, u64 memory, unsigned int sequence)
{
	struct dtrace_follow_epoch *epoch;
	unsigned int n;

	for (n = 0; n < DTRACE_FOLLOW_EPOCHS; n++)
		if (here->epochs[(here->now + n) % DTRACE_FOLLOW_EPOCHS].memory == memory)
			break;
	here->now = (n < DTRACE_FOLLOW_EPOCHS ? here->now + n : here->next++) % DTRACE_FOLLOW_EPOCHS;
	epoch = &here->epochs[here->now];
	if (dtrace_follow_lasts(epoch, memory, sequence))
		return epoch;
	if (epoch->memory != memory)
		epoch->teller = 0;
	/*
	 * Numbers are not reused, so nothing of an ended epoch of the same memory is found again.
	 */
	epoch->memory = memory;
	epoch->sequence = sequence;
	epoch->age = dtrace_unwind_age();
	epoch->until = jiffies + HZ;
	epoch->second = jiffies / HZ;
	epoch->number = ++here->last;
	epoch->put = 0;
	return epoch;
}

/* The epoch of the current program. NULL: it has no memory, or its mappings are being changed. */
static __always_inline struct dtrace_follow_epoch *dtrace_follow_now(struct dtrace_follow *here)
{
	struct dtrace_follow_epoch *epoch = &here->epochs[here->now];
	struct mm_struct *mm = current->mm;
	unsigned int sequence;
	u64 memory;

	if (!mm || !mmap_lock_speculate_try_begin(mm, &sequence))
		return NULL;
	memory = dtrace_memory_number(mm);
	return likely(dtrace_follow_lasts(epoch, memory, sequence)) ? epoch : dtrace_follow_find(here, memory, sequence);
}

/*
 * Whether the mappings have not changed since dtrace_follow_now(). What was found in between is
 * valid in the epoch only then.
 */
static bool dtrace_follow_is_right(const struct dtrace_follow_epoch *epoch)
{
	return !mmap_lock_speculate_retry(current->mm, epoch->sequence);
}

/* Finds the text of the current program at an address. */
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
	/* Text without a table is not kept, because its file may get a table. */
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
 * The start of the text whose runtime owns the code that the current program has generated, as it
 * was found last. The caller must check that it is still there. 0: it must be searched for; all
 * ones: a moment ago there was none.
 */
u64 dtrace_unwind_teller(void)
{
	const struct dtrace_follow_epoch *epoch = dtrace_follow_now(raw_cpu_ptr(dtrace_follows));

	if (!epoch)
		return 0;
	/* Since then such a file may have been mapped, or may have got its table. */
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

/*
 * The entry for the step from an address. The epoch is part of the hash, because processes that
 * were forked from one parent have the same addresses.
 */
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

	/*
	 * A word above the CFA might lie behind the end of user space, which dtrace_follow_steps()
	 * does not check.
	 */
	if (step->saved > 0)
		return;
	if (epoch && epoch->number == step->epoch && dtrace_follow_is_right(epoch))
		*dtrace_follow_step(here->steps, step->at, step->epoch) = *step;
}

/*
 * Notes a word that was loaded for a stack. A count above DTRACE_RECORD_WORDS marks a stack that
 * cannot be recorded.
 */
static __always_inline void dtrace_record_add(struct dtrace_record *record, u64 at, u64 word)
{
	u64 offset = at - record->sp;

	if (record->count >= DTRACE_RECORD_WORDS || offset > U32_MAX) {
		record->count = DTRACE_RECORD_WORDS + 1;
		return;
	}
	/*
	 * No array indices: the compiler would add calls that check them, and no call is allowed
	 * between user_read_access_begin() and its end.
	 */
	*(record->offsets + record->count) = offset;
	*(record->words + record->count++) = word;
}

/* The loop of dtrace_unwind_follow(), in an epoch. `put` and `record` may be NULL. */
static __always_inline u32 dtrace_follow_steps(struct dtrace_follow *here, struct dtrace_unwind_frame *frame, u64 epoch, u64 *put, u32 room,
					       struct dtrace_record *record)
{
	u64 ip = frame->ip, sp = frame->sp, fp = frame->fp, at = frame->is_exact ? ip : ip - 1;
	u32 left = room;

	/* This opens user access; the loop masks each address by itself. */
	masked_user_access_begin((void __user *)sp);
	while (left) {
		const struct dtrace_unwind_step *step = dtrace_follow_step(here->steps, at, epoch);
		u64 cfa, caller, saved = fp;
		void __user *from;

		if (!dtrace_follow_is_from(step, at, epoch))
			break;
		cfa = (step->by_fp ? fp : sp) + step->cfa;
		/*
		 * The CFA must grow. A step to no caller has a CFA equal to the stack pointer, so
		 * it ends here too.
		 */
		if (cfa <= sp) {
			frame->is_last = step->is_last;
			break;
		}
		if (cfa % sizeof(cfa))
			break;
		/*
		 * The masking holds under speculation too: a processor that mispredicts the checks
		 * loads nothing of the kernel's. If it takes a low CFA for a caller's it may load
		 * from the last 32 KiB of the address space, where nothing is mapped.
		 */
		from = mask_user_address((void __user *)cfa);
		if ((u64)from != cfa)
			break;
		unsafe_get_user(caller, (u64 __user *)(from - sizeof(caller)), ended);
		if (!caller)
			break;
		if (record)
			dtrace_record_add(record, cfa - sizeof(caller), caller);
		if (step->is_saved) {
			unsafe_get_user(saved, (u64 __user *)(from + step->saved), ended);
			if (record)
				dtrace_record_add(record, cfa + step->saved, saved);
		}
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
	if (left != room) {
		frame->ip = ip;
		frame->sp = sp;
		frame->fp = fp;
		frame->is_exact = false;
	}
	return room - left;
}

/* Walks, and records the stack if the walk came to its end or to `room` frames. */
static noinline u32 dtrace_follow_recording(struct dtrace_follow *here, struct dtrace_unwind_frame *frame, u64 epoch, u64 *put, u32 room,
					    struct dtrace_record *record)
{
	u32 count;

	/* If the walk stops early the words are not those of the stack that had the number. */
	record->number = 0;
	record->count = 0;
	count = dtrace_follow_steps(here, frame, epoch, put, room, record);
	if (record->count <= DTRACE_RECORD_WORDS && (frame->is_last || count == room))
		here->recorded = record->number = ++here->last;
	return count;
}

/* Whether a record is of the current program's stack that begins with these registers. */
static __always_inline bool dtrace_record_is_of(const struct dtrace_record *record, u64 ip, u64 sp, u64 fp, u64 epoch, u32 room)
{
	return record->ip == ip && record->sp == sp && record->fp == fp && record->epoch == epoch && record->room == room &&
	       record->pid == current->tgid;
}

/*
 * Walks by the steps that are kept, and writes the program counter of each frame that it leaves to
 * `pcs`, if that is not NULL. Returns the number of those frames, at most `room`. *frame is then
 * the frame at which the walk stopped. The processor must have the program's memory, as for
 * dtrace_unwind_word().
 */
u32 dtrace_unwind_follow(struct dtrace_unwind_frame *frame, u8 *pcs, u32 room)
{
	struct dtrace_follow *here = raw_cpu_ptr(dtrace_follows);
	const struct dtrace_follow_epoch *now = dtrace_follow_now(here);
	struct dtrace_record *record = here->recording;
	u32 count;

	/* Only this walk is to be recorded. */
	here->recording = NULL;
	/* The CFA grows from frame to frame, so no later one is lower. */
	if (!now || frame->sp < DTRACE_FOLLOW_LOWEST)
		return 0;
	pagefault_disable();
	if (unlikely(record) && frame->is_exact && dtrace_record_is_of(record, frame->ip, frame->sp, frame->fp, now->number, room))
		count = dtrace_follow_recording(here, frame, now->number, (u64 *)pcs, room, record);
	else
		count = dtrace_follow_steps(here, frame, now->number, (u64 *)pcs, room, NULL);
	pagefault_enable();
	return count;
}

/* Whether all words of a stack have the recorded values. */
static bool dtrace_record_holds(const struct dtrace_record *record)
{
	const u64 *words = record->words, *end = words + record->count;
	const u8 __user *sp = (const u8 __user *)record->sp;
	const u32 *offset = record->offsets;
	u64 word;

	pagefault_disable();
	masked_user_access_begin((void __user *)sp);
	for (; words < end; words++) {
		/* dtrace_follow_steps() has masked this address when it recorded it. */
		unsafe_get_user(word, (const u64 __user *)(sp + *offset++), ended);
		if (word != *words)
			break;
	}
ended:
	user_read_access_end();
	pagefault_enable();
	return words == end;
}

/*
 * Returns the number of the current program's stack that begins with these registers and is walked
 * for at most `room` frames, if it was recorded and is the same. 0: it was not, or is not; the next
 * walk of it may record it. The processor must have the program's memory, unless `sp` is 0: then
 * there is no stack.
 */
u64 dtrace_unwind_again(u64 ip, u64 sp, u64 fp, u32 room)
{
	struct dtrace_follow *here = raw_cpu_ptr(dtrace_follows);
	struct dtrace_record *record = &here->records[hash_32((u32)(ip ^ sp) + room, DTRACE_RECORD_BITS)];
	const struct dtrace_follow_epoch *now;

	here->recorded = 0;
	here->recording = NULL;
	if (sp < DTRACE_FOLLOW_LOWEST || (u64)mask_user_address((void __user *)sp) != sp)
		return 0;
	now = dtrace_follow_now(here);
	if (!now)
		return 0;
	if (!dtrace_record_is_of(record, ip, sp, fp, now->number, room)) {
		record->epoch = now->number;
		record->ip = ip;
		record->sp = sp;
		record->fp = fp;
		record->pid = current->tgid;
		record->room = room;
		record->number = 0;
		return 0;
	}
	/*
	 * Under misprediction the processor would compare one program's stack with another's, at
	 * addresses that were never checked.
	 */
	barrier_nospec();
	if (record->number && dtrace_record_holds(record)) {
		here->found = record;
		return record->number;
	}
	record->number = 0;
	here->recording = record;
	return 0;
}

/*
 * The caller does not know the number that dtrace_unwind_again() has returned: the next walk of
 * that stack records it anew.
 */
void dtrace_unwind_record_anew(void)
{
	struct dtrace_follow *here = raw_cpu_ptr(dtrace_follows);

	here->recording = here->found;
}

/* The number of the stack that was walked since dtrace_unwind_again(); 0: it has none. */
u64 dtrace_unwind_recorded(void)
{
	return raw_cpu_ptr(dtrace_follows)->recorded;
}

/*
 * Loads a word of the current program's memory, of 4 or 8 bytes; false if it is not in memory. The
 * processor must have that memory: interrupts are off, and copy_from_user_nofault() has succeeded
 * since, or the probe has fired in the program itself.
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
