// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Loads from any address, and what can be read about locks.

use kernel::prelude::*;

#[kunit_tests(dtrace_memory)]
mod tests {
    use super::*;
    use crate::bindings;
    use crate::sys::locks::mutex_owner;
    use crate::sys::nofault::{load, load_str, load_u64, user_load, user_load_str, user_store};
    use crate::sys::percpu::CpuGuard;
    use crate::sys::symbols;
    use crate::sys::task::{irq_level, Current};
    use kernel::page::PAGE_SIZE;

    const TEXT: &[u8; 18] = b"a string\0behind it";
    /// Null, a user's address twice, an address between the halves of the address space, and the
    /// last word.
    const BAD: [u64; 5] = [
        0,
        0x1000,
        0x7fff_ffff_e000,
        0x8000_0000_0000_0000,
        u64::MAX - 7,
    ];

    #[test]
    fn what_is_there_is_loaded() {
        let mut bytes = [0; 8];
        assert!(load(TEXT.as_ptr() as u64, &mut bytes).is_ok());
        assert_eq!(bytes, *b"a string");
        let word = 0x0123_4567_89ab_cdef_u64;
        assert_eq!(load_u64(&raw const word as u64).ok(), Some(word));
    }

    #[test]
    fn a_string_ends_with_its_nul_or_its_room() {
        let at = TEXT.as_ptr() as u64;
        let mut room = [0xff; 16];
        assert_eq!(load_str(at, &mut room).ok(), Some(8));
        assert_eq!(&room[..9], b"a string\xff");
        let mut room = [0xff; 5];
        assert_eq!(load_str(at, &mut room).ok(), Some(5));
        assert_eq!(&room, b"a str");
        assert_eq!(load_str(at, &mut []).ok(), Some(0));
    }

    #[test]
    fn what_is_not_mapped_is_refused() {
        for at in BAD {
            let mut bytes = [0; 8];
            assert!(load(at, &mut bytes).is_err());
            assert!(load_u64(at).is_err());
            assert!(load_str(at, &mut bytes).is_err());
        }
    }

    /// The direct map also covers memory that the machine does not have at the moment, or has no
    /// longer.
    #[test]
    fn what_is_no_memory_is_refused() {
        // SAFETY: No preconditions.
        let pages = unsafe { bindings::dtrace_test_pages() };
        if pages == 0 {
            return;
        }
        let page = pages + PAGE_SIZE as u64;
        let loaded = [false, true].map(|there| {
            // SAFETY: The page belongs to the test alone, and the last round marks it as present
            // again.
            unsafe { bindings::dtrace_test_page_is(page, there) };
            let mut bytes = [0; 8];
            [
                load(page + 8, &mut bytes).is_ok(),
                // Also reads the end of the page before it.
                load(page - 4, &mut bytes).is_ok(),
                load_str(page, &mut bytes).is_ok(),
                load_u64(pages).is_ok(),
            ]
        });
        // SAFETY: These are the pages allocated above, and nothing uses them any more.
        unsafe { bindings::dtrace_test_pages_free(pages) };
        assert_eq!(loaded, [[false, false, false, true], [true; 4]]);
    }

    /// The address behind a page in the vmalloc space is not mapped.
    #[test]
    fn no_load_goes_beyond_what_it_was_asked_for() -> Result {
        let mut page = VVec::from_elem(b'x', PAGE_SIZE, GFP_KERNEL)?;
        let end = page.as_ptr() as u64 + PAGE_SIZE as u64;
        let mut room = [0; 16];
        assert!(load(end - 5, &mut room[..5]).is_ok());
        assert!(load(end - 5, &mut room[..6]).is_err());
        assert!(load_u64(end - 8).is_ok());
        assert!(load_u64(end - 7).is_err());
        assert_eq!(load_str(end - 5, &mut room[..5]).ok(), Some(5));
        assert!(load_str(end - 5, &mut room).is_err());
        if let Some(last) = page.last_mut() {
            *last = 0;
        }
        assert_eq!(load_str(end - 5, &mut room).ok(), Some(4));
        Ok(())
    }

    /// The tests run in kernel threads, which borrow whatever page tables are in use.
    #[test]
    fn a_kernel_thread_has_no_user_memory() {
        let mut bytes = [0; 8];
        for at in [0, 0x40_0000, 0x7fff_ffff_e000, TEXT.as_ptr() as u64] {
            assert!(user_load(at, &mut bytes).is_err());
            assert!(user_load_str(at, &mut bytes).is_err());
            assert!(user_store(at, &bytes).is_err());
        }
    }

    #[test]
    fn a_kernel_thread_is_one() {
        let found = CpuGuard::enter().map(|guard| {
            let task = Current::get(&guard);
            (
                task.pid() == task.tgid(),
                task.user_regs().is_some(),
                task.descends_from(u64::from(task.ppid())),
                // A kernel thread gets none, which is no failure.
                task.signal(9),
                irq_level(),
            )
        });
        assert_eq!(found, Some((true, false, (true, 1), true, 0)));
    }

    /// Any mutex of the kernel would do; this one is not taken by anything else now.
    #[test]
    fn a_mutex_tells_who_holds_it() -> Result {
        let mutex = symbols::lookup(c"ftrace_lock")?.as_ptr();
        let at = mutex as u64;
        // SAFETY: The pointer is to a mutex of the kernel, which is unlocked again by the task that
        // has locked it.
        let (held, free, current) = unsafe {
            bindings::mutex_lock(mutex);
            let held = mutex_owner(at).ok();
            bindings::mutex_unlock(mutex);
            (
                held,
                mutex_owner(at).ok(),
                bindings::dtrace_current() as u64,
            )
        };
        assert_eq!(held, Some(current));
        assert_eq!(free, Some(0));
        for at in BAD {
            assert!(mutex_owner(at).is_err());
        }
        Ok(())
    }
}
