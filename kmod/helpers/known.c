// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Known places: where breakpoints of ours are or were (INV-44).
 *
 * A breakpoint may turn up where nobody wants it: a child has it from its parent, a text that is
 * mapped elsewhere took it along, a debugger has saved it and puts it back. So the original code of
 * every place is kept as long as any memory exists that breakpoints of ours were in. A place is
 * known by file and offset, not by address, and holds no reference to its file. If the file is
 * written to, or another one gets its numbers, and has another byte at the place, uprobes carry the
 * breakpoint.
 *
 * The place of one breakpoint is found in a hash table. The places of a mapping are found in a
 * tree, ordered by file and offset, because there may be millions of others.
 */

#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/rbtree.h>
#include <linux/rhashtable.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "own.h"

static const struct rhashtable_params dtrace_known_params = {
	.key_len = sizeof(struct dtrace_file_place),
	.key_offset = offsetof(struct dtrace_known, place),
	.head_offset = offsetof(struct dtrace_known, node),
	.automatic_shrinking = true,
};

static struct rhashtable dtrace_known;

/* The same places, in order. An entry stays until all are forgotten. */
static struct rb_root dtrace_known_sorted = RB_ROOT;
static DEFINE_SPINLOCK(dtrace_known_lock);

static int dtrace_places_compare(const struct dtrace_file_place *one, const struct dtrace_file_place *other)
{
	return cmp_int(one->dev, other->dev) ?: cmp_int(one->ino, other->ino) ?: cmp_int(one->generation, other->generation) ?:
	       cmp_int(one->offset, other->offset);
}

static bool dtrace_known_less(struct rb_node *one, const struct rb_node *other)
{
	return dtrace_places_compare(&rb_entry(one, struct dtrace_known, sorted)->place,
				     &rb_entry(other, struct dtrace_known, sorted)->place) < 0;
}

/*
 * The first place of a file from `from` on, in front of the offset `end`. The caller ensures that
 * no place is forgotten meanwhile.
 */
static struct dtrace_known *dtrace_known_from(const struct dtrace_file_place *from, u64 end)
{
	struct dtrace_file_place last = *from;
	struct dtrace_known *found = NULL;
	struct rb_node *node;

	last.offset = end;
	guard(spinlock)(&dtrace_known_lock);
	for (node = dtrace_known_sorted.rb_node; node;) {
		struct dtrace_known *known = rb_entry(node, struct dtrace_known, sorted);
		bool is_before = dtrace_places_compare(&known->place, from) < 0;

		found = is_before ? found : known;
		node = is_before ? node->rb_right : node->rb_left;
	}
	return found && dtrace_places_compare(&found->place, &last) < 0 ? found : NULL;
}

/* Number of places that are in no file. */
static atomic_t dtrace_known_bare = ATOMIC_INIT(0);

/* Whether known places may be in a mapping. */
static bool dtrace_may_be_known(const struct vm_area_struct *vma)
{
	if (vma->vm_file)
		return vma->vm_flags & VM_MAYEXEC;
	return atomic_read(&dtrace_known_bare) && dtrace_is_bare(vma);
}

/*
 * The place of an address; the caller keeps the mapping unchanged. In text of no file, the offset
 * is one that a child's mapping has too (dtrace_offset_of()).
 */
static struct dtrace_file_place dtrace_place_of(struct vm_area_struct *vma, u64 address)
{
	const struct inode *inode;

	if (!vma->vm_file)
		return (struct dtrace_file_place){ .offset = dtrace_offset_of(vma, address) };
	inode = file_inode(vma->vm_file);
	return (struct dtrace_file_place){
		.dev = inode->i_sb->s_dev,
		.ino = inode->i_ino,
		.generation = inode->i_generation,
		.offset = dtrace_offset_of(vma, address),
	};
}

/*
 * Bytes for members' breakpoints that are charged to no cgroup: all of them, and those of known
 * places, which stay until all places are forgotten. The rest is noted with its object.
 */
static atomic_long_t dtrace_uncharged = ATOMIC_LONG_INIT(0);
static atomic_long_t dtrace_uncharged_known = ATOMIC_LONG_INIT(0);

#define DTRACE_UNCHARGED_MAX SZ_16M

/*
 * Allocation flags for what is kept of members' breakpoints, while locks are held that all
 * consumers need. It is charged to the cgroup of the current task if that needs no waiting: a
 * cgroup that is full of page cache would have to give some back first. What is not charged has a
 * limit, DTRACE_UNCHARGED_MAX (INV-46).
 */
#define DTRACE_CHARGED (GFP_NOWAIT | __GFP_ACCOUNT | __GFP_NOWARN)

/* Accounts for bytes of members that are charged to no cgroup; false: the limit is reached. */
bool dtrace_uncharged_add(size_t size)
{
	if (atomic_long_add_return(size, &dtrace_uncharged) <= DTRACE_UNCHARGED_MAX)
		return true;
	dtrace_uncharged_sub(size);
	return false;
}

/* Accounts for bytes that have been freed. */
void dtrace_uncharged_sub(size_t size)
{
	atomic_long_sub(size, &dtrace_uncharged);
}

static bool dtrace_may_go_uncharged(const struct dtrace_carrier *carrier, atomic_long_t *noted, size_t size)
{
	if (!carrier->kept)
		return true;
	if (!dtrace_uncharged_add(size))
		return false;
	atomic_long_add(size, noted);
	return true;
}

/* Accounts for what was noted in *bytes, and clears it. */
void dtrace_uncharged_gone(atomic_long_t *bytes)
{
	dtrace_uncharged_sub(atomic_long_xchg(bytes, 0));
}

/*
 * Allocates zeroed memory for a carrier. If it is a member's and is charged to no cgroup, its size
 * is added to *noted.
 */
void *dtrace_alloc_for(const struct dtrace_carrier *carrier, atomic_long_t *noted, size_t size)
{
	void *object = carrier->kept ? kzalloc(size, DTRACE_CHARGED) : NULL;

	return object || !dtrace_may_go_uncharged(carrier, noted, size) ? object : kzalloc(size, GFP_KERNEL);
}

/*
 * Stores a number under another one in `all`, accounted for in the same way; false: there is no
 * memory.
 */
bool dtrace_note_for(const struct dtrace_carrier *carrier, atomic_long_t *noted, struct xarray *all, unsigned long at, unsigned long value)
{
	void *entry = xa_mk_value(value);

	if (carrier->kept && !xa_is_err(xa_store(all, at, entry, DTRACE_CHARGED)))
		return true;
	return dtrace_may_go_uncharged(carrier, noted, 2 * sizeof(struct xa_node)) && !xa_is_err(xa_store(all, at, entry, GFP_KERNEL));
}

/*
 * The known place of an address, if there is one. The caller keeps the mapping unchanged, and is in
 * an RCU read-side critical section or holds a reference to a memory with breakpoints. Does not
 * sleep.
 */
struct dtrace_known *dtrace_known_at(struct vm_area_struct *vma, u64 address)
{
	struct dtrace_file_place place;

	if (!dtrace_may_be_known(vma))
		return NULL;
	place = dtrace_place_of(vma, address);
	guard(rcu)();
	return rhashtable_lookup(&dtrace_known, &place, dtrace_known_params);
}

/*
 * Reads text that is in no file, without our breakpoints. Returns the number of bytes that could be
 * read, or a negative errno. May sleep.
 */
long dtrace_bare_read(struct mm_struct *mm, u64 address, u8 *out, size_t size)
{
	struct dtrace_patience patience = dtrace_patience_asked();
	struct dtrace_known *known;
	struct vm_area_struct *vma;
	size_t n;

	if (!mmget_not_zero(mm))
		return -ESRCH;
	if (!dtrace_mappings_lock(mm, &patience)) {
		mmput_async(mm);
		return -ETIMEDOUT;
	}
	for (n = 0; n < size; n++) {
		int byte = -EFAULT;

		vma = vma_lookup(mm, address + n);
		if (vma && dtrace_is_bare(vma))
			byte = dtrace_peek(mm, address + n);
		if (byte < 0)
			break;
		guard(rcu)();
		known = byte == DTRACE_BREAKPOINT ? dtrace_known_at(vma, address + n) : NULL;
		out[n] = known ? known->code[0] : byte;
	}
	mmap_read_unlock(mm);
	mmput_async(mm);
	return n;
}

/*
 * Whether the bytes behind a breakpoint are what they were. In a file they are not compared (length
 * is 0). The mmap lock is held.
 */
bool dtrace_known_continues(struct mm_struct *mm, const struct dtrace_known *known, u64 address)
{
	unsigned int n;

	for (n = 1; n < known->length; n++)
		if (dtrace_peek(mm, address + n) != known->code[n])
			return false;
	return true;
}

/* Returns the place if its code is the carrier's, or -EBUSY. In a file the first byte decides. */
static struct dtrace_known *dtrace_known_checked(struct dtrace_known *known, const struct dtrace_carrier *carrier, u8 length)
{
	bool is = known->length == length && !memcmp(known->code, carrier->code, max(length, 1));

	return is ? known : ERR_PTR(-EBUSY);
}

/*
 * Makes a carrier's place known, or returns an error pointer. -EBUSY: another instruction was there
 * before.
 */
struct dtrace_known *dtrace_known_make(struct vm_area_struct *vma, const struct dtrace_carrier *carrier)
{
	struct dtrace_known *known, *other = dtrace_known_at(vma, carrier->spot.address);
	u8 length = vma->vm_file ? 0 : carrier->length;

	/* Most carriers were tried a moment ago. */
	if (other)
		return dtrace_known_checked(other, carrier, length);
	known = dtrace_alloc_for(carrier, &dtrace_uncharged_known, sizeof(*known));
	if (!known)
		return ERR_PTR(-ENOMEM);
	known->place = dtrace_place_of(vma, carrier->spot.address);
	memcpy(known->code, carrier->code, sizeof(known->code));
	known->length = length;
	/* Uprobes set none in text that is in no file. */
	known->barred = !vma->vm_file;
	other = rhashtable_lookup_get_insert_fast(&dtrace_known, &known->node, dtrace_known_params);
	if (!other) {
		scoped_guard(spinlock, &dtrace_known_lock)
			rb_add(&known->sorted, &dtrace_known_sorted, dtrace_known_less);
		if (!vma->vm_file)
			atomic_inc(&dtrace_known_bare);
		return known;
	}
	/* The table's own -EBUSY means that it is being grown, so it becomes -ENOMEM here. */
	kfree(known);
	return IS_ERR(other) ? ERR_PTR(-ENOMEM) : dtrace_known_checked(other, carrier, length);
}

static void dtrace_known_free(void *object, void *data)
{
	kfree(object);
}

int dtrace_known_init(void)
{
	return rhashtable_init(&dtrace_known, &dtrace_known_params);
}

/*
 * Frees all places. Nobody looks for or adds any. When the guards go, uprobes take out the
 * breakpoints that guards saw to.
 */
void dtrace_known_exit(void)
{
	dtrace_guards_dismiss();
	atomic_set(&dtrace_known_bare, 0);
	dtrace_uncharged_gone(&dtrace_uncharged_known);
	/*
	 * dtrace_bare_read() may still look, but not after a grace period: no bare place is known
	 * any more.
	 */
	synchronize_rcu();
	dtrace_known_sorted = RB_ROOT;
	rhashtable_free_and_destroy(&dtrace_known, dtrace_known_free, NULL);
}

/* Forgets all places. Nobody looks, as above. */
void dtrace_known_forget(void)
{
	dtrace_uncharged_gone(&dtrace_uncharged_known);
	if (!atomic_read(&dtrace_known.nelems))
		return;
	dtrace_known_exit();
	/* Cannot fail: if memory is short, the kernel makes a smaller table. */
	if (dtrace_known_init())
		pr_err("dtrace: no table of places\n");
}

/* A breakpoint that is left to uprobes. */
struct dtrace_leftover {
	struct list_head all;
	struct dtrace_known *known;
	struct file *file;
	u64 address;
};

/*
 * Leaves a breakpoint to uprobes. Without memory for that, it is taken out for all who may want it.
 */
static void dtrace_known_leave(struct dtrace_known *known, struct vm_area_struct *vma, u64 address, struct list_head *left)
{
	struct dtrace_leftover *one = kmalloc(sizeof(*one), GFP_KERNEL);

	if (!one) {
		dtrace_poke(vma->vm_mm, address, DTRACE_BREAKPOINT, known->code[0]);
		return;
	}
	one->known = known;
	one->file = get_file(vma->vm_file);
	one->address = address;
	list_add(&one->all, left);
}

/*
 * Takes the breakpoint out of a mapping that is at one known place of it. Returns 1; 0: there is
 * none, or other tracers may want it too, and it is put on a list; or a negative errno. `counts`:
 * the program's counter is counted down as well. The mmap lock is held.
 */
static int dtrace_known_heal_at(struct vm_area_struct *vma, struct dtrace_known *known, u64 address, bool counts, struct list_head *left)
{
	bool is_left = mm_flags_test(MMF_HAS_UPROBES, vma->vm_mm) && !known->barred;
	int found = dtrace_peek(vma->vm_mm, address);

	if (found >= 0)
		found = found == DTRACE_BREAKPOINT && dtrace_known_continues(vma->vm_mm, known, address);
	if (found > 0 && is_left) {
		dtrace_known_leave(known, vma, address, left);
		return 0;
	}
	if (found > 0)
		found = dtrace_poke(vma->vm_mm, address, DTRACE_BREAKPOINT, known->code[0]);
	if (found > 0 && counts)
		dtrace_count_inherited(vma, known);
	return found;
}

/*
 * Takes breakpoints of ours out of a mapping: those at suspected places, or at all known ones.
 * Returns how many it has taken out. Those that other tracers may want too are put on a list.
 */
static unsigned long dtrace_known_heal_in(struct vm_area_struct *vma, struct xarray *suspects, struct list_head *left, bool *failed)
{
	struct dtrace_file_place place = dtrace_place_of(vma, vma->vm_start);
	const u64 first = place.offset, end = first + (vma->vm_end - vma->vm_start);
	struct dtrace_known *known;
	unsigned long healed = 0;
	int found;

	for (; (known = dtrace_known_from(&place, end)); place.offset = known->place.offset + 1) {
		cond_resched();
		if (suspects && !xa_load(suspects, (unsigned long)known))
			continue;
		found = dtrace_known_heal_at(vma, known, vma->vm_start + (known->place.offset - first), !suspects, left);
		*failed |= found < 0;
		healed += found > 0;
	}
	return healed;
}

static int dtrace_known_mm_lock(struct mm_struct *mm, bool killable)
{
	if (killable)
		return mmap_read_lock_killable(mm);
	mmap_read_lock(mm);
	return 0;
}

/*
 * Takes out a breakpoint that no other tracer wants. Uprobes take out the others themselves. Returns
 * whether it has taken it out.
 */
static bool dtrace_known_hand_over(struct mm_struct *mm, struct dtrace_leftover *one, bool killable)
{
	int error = dtrace_known_guard(one->known, one->file, mm, killable);
	bool poked = false;
	bool is_ours = error ? error != -EINVAL && error != -EINTR : dtrace_known_others(one->known) == DTRACE_OTHERS_NONE;

	/*
	 * -EINVAL means that another tracer has a uprobe with a counter there. After any other
	 * error, and with no other consumer, nobody else has one there. It is taken out here and
	 * not by uprobes, because in text that is mapped writable they have set none, and have not
	 * read the instruction.
	 */
	if (is_ours && !dtrace_known_mm_lock(mm, killable)) {
		poked = dtrace_poke(mm, one->address, DTRACE_BREAKPOINT, one->known->code[0]) > 0;
		mmap_read_unlock(mm);
	}
	fput(one->file);
	kfree(one);
	return poked;
}

/*
 * Takes all breakpoints out of a memory that may be ours: those at suspected places, or, if
 * `suspects` is NULL, at all known ones. Returns how many it has taken out; those that are left to
 * uprobes do not count. None that is left in the memory is wanted. Those that uprobes may want they take out when they are hit, or when the places
 * are forgotten. If there are none of those and nothing has failed, *healed becomes true, before
 * the memory can be copied again. May sleep; takes the mmap lock. `killable`: a program waits for
 * locks, which others may hold for as long as they like; if it is killed, breakpoints remain.
 */
unsigned long dtrace_known_heal(struct mm_struct *mm, struct xarray *suspects, bool killable, bool *healed)
{
	struct dtrace_leftover *one, *next;
	struct vm_area_struct *vma;
	unsigned long count = 0;
	bool failed = false;
	LIST_HEAD(left);

	if (!mmget_not_zero(mm))
		return 0;
	if (dtrace_known_mm_lock(mm, killable)) {
		mmput(mm);
		return 0;
	}
	VMA_ITERATOR(vmi, mm, 0);
	for_each_vma(vmi, vma) {
		if (vma->anon_vma && dtrace_may_be_known(vma))
			count += dtrace_known_heal_in(vma, suspects, &left, &failed);
		cond_resched();
	}
	WRITE_ONCE(*healed, !failed && list_empty(&left));
	mmap_read_unlock(mm);
	list_for_each_entry_safe(one, next, &left, all)
		count += dtrace_known_hand_over(mm, one, killable);
	mmput(mm);
	return count;
}
