// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! A shop that sells an item every tenth of a second: `shop-rust [TIMES]`.

use probe::{probe, probe_lazy};
use std::ffi::{CStr, CString};
use std::thread::sleep;
use std::time::Duration;

/// The text of a receipt. It is needed only while the probe is enabled.
fn receipt(number: usize, price: usize, what: &CStr) -> CString {
    let what = what.to_string_lossy();
    CString::new(format!("receipt {number}: {what} for {price}")).expect("no NUL in it")
}

fn main() {
    let fruits = [c"apple", c"pear", c"plum"];
    let times = std::env::args().nth(1);
    let times = times.map_or(10, |times| times.parse().expect("a number"));
    let mut receipts = 0;
    for (n, what) in fruits.into_iter().cycle().take(times).enumerate() {
        let price = 10 + n;
        probe!(shop, sold, price, what.as_ptr());
        let text;
        probe_lazy!(shop, receipt, {
            receipts += 1;
            text = receipt(receipts, price, what);
            text.as_ptr()
        });
        sleep(Duration::from_millis(100));
    }
    println!("receipts: {receipts}");
}
