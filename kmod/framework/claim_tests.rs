// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Tests of claiming: which consumer a file speaks for, and when each is dropped.

use crate::claim::Claimable;
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
    let file = Claimable::new(guest("own"));
    assert_eq!((file.0, file.has_claimed()), ("own", false));
    assert!(file.claim(boxed("anonymous")).is_ok());
    assert_eq!((file.0, file.has_claimed()), ("anonymous", true));
    // The second one is returned, and is not dropped with the file.
    let back = file.claim(boxed("another")).err().unwrap();
    assert_eq!((back.0, file.0), ("another", "anonymous"));
    drop(back);
    assert_eq!(*gone.borrow(), ["another"]);
    drop(file);
    assert_eq!(*gone.borrow(), ["another", "own", "anonymous"]);
}
