// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Tests of claiming: which consumer a file speaks for, and when each is dropped.

use crate::seat::Seat;
use dtrace_engine::mem::Boxed;
use std::cell::RefCell;
use std::rc::Rc;

/// A consumer that records its drop.
struct Guest(&'static str, Rc<RefCell<Vec<&'static str>>>);

impl Drop for Guest {
    fn drop(&mut self) {
        self.1.borrow_mut().push(self.0);
    }
}

#[test]
fn the_first_claim_counts_and_all_go_with_the_file() {
    let gone = Rc::new(RefCell::new(Vec::new()));
    let guest = |name| Guest(name, gone.clone());
    let boxed = |name| Boxed::new(guest(name)).unwrap();
    let seat = Seat::new(guest("own"));
    assert_eq!((seat.0, seat.has_claimed()), ("own", false));
    assert!(seat.claim(boxed("anonymous")).is_ok());
    assert_eq!((seat.0, seat.has_claimed()), ("anonymous", true));
    // The second one is returned, and is not dropped with the file.
    let back = seat.claim(boxed("another")).err().unwrap();
    assert_eq!((back.0, seat.0), ("another", "anonymous"));
    drop(back);
    assert_eq!(*gone.borrow(), ["another"]);
    drop(seat);
    assert_eq!(*gone.borrow(), ["another", "own", "anonymous"]);
}
