// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Writing to a program's text, page by page.
 *
 * A page that is written to becomes the memory's own. To make it so is to take memory that is charged to the program's group of processes, which can
 * be made to wait for seconds, and to read what may be far away, or served by another program. Who holds locks that others need does not do that: it
 * writes to pages that are there, and bring.c has brought.
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

/* Goes to the page of an address. To be written to, it is a copy of the memory's own from then on. EAGAIN: it is not there, and not to be brought. */
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

/* Whether there is what is said, as far as the page goes. */
bool dtrace_pen_sees(struct dtrace_pen *pen, u64 address, const u8 *bytes, size_t size)
{
	void *page = kmap_local_page(pen->page);
	bool same = !memcmp(page + offset_in_page(address), bytes, min(size, PAGE_SIZE - offset_in_page(address)));

	kunmap_local(page);
	return same;
}

/* Other processors that execute it see the one or the other. */
void dtrace_pen_write(struct dtrace_pen *pen, u64 address, u8 byte)
{
	u8 *page = kmap_local_page(pen->page);

	WRITE_ONCE(page[offset_in_page(address)], byte);
	kunmap_local(page);
	pen->written = true;
}

/* 1 if something was written, or a negative errno. */
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

/* Makes one byte of a program's text another one, if it is what is said; 1 if so. The lock of the memory is held. */
int dtrace_poke(struct mm_struct *mm, u64 address, u8 old, u8 new)
{
	struct dtrace_pen pen = { .mm = mm, .brings = true };
	int error = dtrace_pen_replace(&pen, address, old, new);

	dtrace_pen_lift(&pen);
	return error;
}

/* The byte of a program's text at an address, or a negative errno. The lock of the memory is held. */
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
 * Writes to the current program's text what is there, by a write that changes nothing whatever others do. A breakpoint that was met there is gone. An
 * emulated processor may execute it for ever all the same: what it has translated between another one's look where to write and the write. The
 * next write to the page shows it that the translation is old.
 */
void dtrace_pen_affirm(u64 address)
{
	struct dtrace_pen pen = { .mm = current->mm, .brings = true };

	if (mmap_read_lock_killable(pen.mm))
		return;
	/* What is a file's was never written to. */
	if (!dtrace_pen_move(&pen, address, false) && PageAnon(pen.page)) {
		u8 *page = kmap_local_page(pen.page);
		u8 *at = page + offset_in_page(address), byte = READ_ONCE(*at);

		cmpxchg(at, byte, byte);
		kunmap_local(page);
	}
	dtrace_pen_lift(&pen);
	mmap_read_unlock(pen.mm);
}
