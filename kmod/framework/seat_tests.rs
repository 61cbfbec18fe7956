// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Tests of claiming: who is spoken for, and when it goes.

use crate::seat::Seat;
use dtrace_engine::mem::Boxed;
use std::cell::RefCell;
use std::rc::Rc;

/// A consumer that says when it goes.
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
    // A second one is handed back, and is none of the file's business.
    let back = seat.claim(boxed("another")).err().unwrap();
    assert_eq!((back.0, seat.0), ("another", "anonymous"));
    drop(back);
    assert_eq!(*gone.borrow(), ["another"]);
    drop(seat);
    assert_eq!(*gone.borrow(), ["another", "own", "anonymous"]);
}
