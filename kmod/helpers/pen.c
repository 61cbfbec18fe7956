// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Writes to a program's text, page by page.
 *
 * A page that is written to becomes the memory's own copy. To make the copy, memory is charged to
 * the program's control group, which can make the task wait for seconds; and the page may have to
 * be read from a slow file, or from one that another program serves. So a caller that holds locks
 * which others need writes only to pages that are in memory; bring.c has brought them (INV-46).
 */

#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/page-flags.h>

#include "own.h"
#include "pen.h"

void dtrace_pen_lift(struct dtrace_pen *pen)
{
	if (!pen->page)
		return;
	if (pen->written)
		set_page_dirty_lock(pen->page);
	put_page(pen->page);
	pen->page = NULL;
	pen->written = false;
}

/*
 * Goes to the page of an address. If `writes`, the page is the memory's own copy from then on.
 * -EAGAIN: the page is not in memory and must not be brought.
 */
int dtrace_pen_move(struct dtrace_pen *pen, u64 address, bool writes)
{
	unsigned int flags = FOLL_FORCE | (writes ? FOLL_WRITE : 0) | (pen->brings ? 0 : FOLL_NOFAULT);
	u64 at = address & PAGE_MASK;
	long got;

	if (pen->page && pen->at == at && (pen->writes || !writes))
		return 0;
	if (!pen->brings && pen->missing == at + 1)
		return -EAGAIN;
	dtrace_pen_lift(pen);
	got = get_user_pages_remote(pen->mm, at, 1, flags, &pen->page, NULL);
	if (got != 1) {
		pen->page = NULL;
		pen->missing = at + 1;
		if (!pen->brings)
			return -EAGAIN;
		return got < 0 ? got : -EFAULT;
	}
	pen->at = at;
	pen->writes = writes;
	return 0;
}

/*
 * Whether the page has these bytes at the address. Bytes beyond the end of the page are not
 * compared.
 */
bool dtrace_pen_sees(struct dtrace_pen *pen, u64 address, const u8 *bytes, size_t size)
{
	void *page = kmap_local_page(pen->page);
	bool same = !memcmp(page + offset_in_page(address), bytes, min(size, PAGE_SIZE - offset_in_page(address)));

	kunmap_local(page);
	return same;
}

/*
 * A single byte is written, so a processor that executes it meanwhile sees either the old or the
 * new one.
 */
void dtrace_pen_write(struct dtrace_pen *pen, u64 address, u8 byte)
{
	u8 *page = kmap_local_page(pen->page);

	WRITE_ONCE(page[offset_in_page(address)], byte);
	kunmap_local(page);
	pen->written = true;
}

/*
 * Writes `new` if `old` is there. Returns 1 if so, 0 if another byte is there, or a negative errno.
 */
int dtrace_pen_replace(struct dtrace_pen *pen, u64 address, u8 old, u8 new)
{
	int error = dtrace_pen_move(pen, address, false);

	if (error || !dtrace_pen_sees(pen, address, &old, 1))
		return error;
	error = dtrace_pen_move(pen, address, true);
	if (error || !dtrace_pen_sees(pen, address, &old, 1))
		return error;
	dtrace_pen_write(pen, address, new);
	return 1;
}

/*
 * Replaces one byte of a program's text, as dtrace_pen_replace(); brings the page. May sleep. The
 * mmap lock is held.
 */
int dtrace_poke(struct mm_struct *mm, u64 address, u8 old, u8 new)
{
	struct dtrace_pen pen = { .mm = mm, .brings = true };
	int error = dtrace_pen_replace(&pen, address, old, new);

	dtrace_pen_lift(&pen);
	return error;
}

/*
 * The byte of a program's text at an address, or a negative errno. May sleep. The mmap lock is
 * held.
 */
int dtrace_peek(struct mm_struct *mm, u64 address)
{
	struct dtrace_pen pen = { .mm = mm, .brings = true };
	int result = dtrace_pen_move(&pen, address, false);

	if (!result) {
		const u8 *page = kmap_local_page(pen.page);

		result = page[offset_in_page(address)];
		kunmap_local(page);
	}
	dtrace_pen_lift(&pen);
	return result;
}

/*
 * Writes the byte that is there to the current program's text, by a compare-and-exchange, which
 * changes nothing whatever other tasks do. The breakpoint that the program has hit at the address
 * has gone. An emulated processor may still execute it for ever: it may have translated the code
 * after another processor had looked up the page and before that one wrote to it. The next write to
 * the page makes it notice that its translation is stale.
 */
void dtrace_pen_affirm(u64 address)
{
	struct dtrace_pen pen = { .mm = current->mm, .brings = true };

	if (mmap_read_lock_killable(pen.mm))
		return;
	/* A page of the file itself was never written to. */
	if (!dtrace_pen_move(&pen, address, false) && PageAnon(pen.page)) {
		u8 *page = kmap_local_page(pen.page);
		u8 *at = page + offset_in_page(address), byte = READ_ONCE(*at);

		cmpxchg(at, byte, byte);
		kunmap_local(page);
	}
	dtrace_pen_lift(&pen);
	mmap_read_unlock(pen.mm);
}

/*
 * The debugger that traces the program that the pen writes to; 0: there is none. That takes a look
 * at all threads, so the answer is kept.
 */
pid_t dtrace_pen_debugger(struct dtrace_pen *pen)
{
	if (!pen->asked)
		pen->debugger = dtrace_debugger_of(pen->mm);
	pen->asked = true;
	return pen->debugger;
}

/*
 * Whether the bytes behind the first byte of a carrier's instruction are as expected, as far as the
 * page goes. The pen is at the first byte.
 */
bool dtrace_pen_sees_rest(struct dtrace_pen *pen, const struct dtrace_carrier *carrier)
{
	u64 next = carrier->spot.address + 1;

	return !offset_in_page(next) || dtrace_pen_sees(pen, next, carrier->code + 1, carrier->length - 1);
}

/*
 * Writes the first byte of a carrier's instruction, as dtrace_pen_replace(). In code of no file
 * there may be another instruction by now, which stays.
 */
int dtrace_pen_put(struct dtrace_pen *pen, const struct dtrace_carrier *carrier, u8 old, u8 new)
{
	u64 at = carrier->spot.address;

	if (!carrier->file) {
		int error = dtrace_pen_move(pen, at, false);

		if (error)
			return error;
		if (!dtrace_pen_sees_rest(pen, carrier))
			return 0;
	}
	return dtrace_pen_replace(pen, at, old, new);
}
