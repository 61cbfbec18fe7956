// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Names of frames of interpreted code, which come from the memory of a process and may be
//! anything.

use dtrace::interp::names::{Frames, Source};
use dtrace::interp::numbers;
use dtrace_uapi::interp::{NameHead, Word};
use zerocopy::{FromZeros, IntoBytes};

struct Names(Vec<u8>);

impl Source for Names {
    fn names(&self, _: u32) -> Option<Vec<u8>> {
        Some(self.0.clone())
    }
}

/// The text of any frame must be printable.
pub fn frames(data: &[u8]) {
    let Some(([kind, position, first, function, file], names)) = data.split_first_chunk() else {
        return;
    };
    let numbers: Vec<u64> = numbers().collect();
    let rest = names
        .len()
        .saturating_sub(usize::from(*function) + usize::from(*file));
    let mut head = NameHead::new_zeroed();
    head.walker = numbers[usize::from(*kind) % numbers.len()];
    head.first = u32::from(*first) << (kind % 32);
    let scope = rest / 4;
    let sizes = [
        usize::from(*function),
        usize::from(*file),
        rest - scope,
        scope,
    ];
    head.sizes = sizes.map(|size| size as u16);
    let frames = Frames::default();
    frames.ask(Some(Box::new(Names([head.as_bytes(), names].concat()))));
    let word = Word {
        native: 0,
        position: u32::from(*position) << (kind % 17),
        name: 1,
    };
    let none = |_, _: &str| Err(std::io::ErrorKind::NotFound.into());
    let text = frames.text(1, word, none);
    assert!(!text.chars().any(char::is_control), "{text:?}");
}
