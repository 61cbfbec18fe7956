// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only OR MIT

//! What the tests share: random numbers, and the text of programs.

// Each test is a crate of its own and uses only a part of this.
#![allow(dead_code)]

use object::elf::PF_X;
use object::{Object as _, ObjectSegment as _, SegmentFlags};
use std::path::PathBuf;

/// A random number generator of modest quality that favours edge cases.
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    pub fn byte(&mut self) -> u8 {
        (self.next() >> 32) as u8
    }

    /// A random operand. Half of them are near 0 or near the sign bit of some width, or have such a
    /// number in the lower half.
    pub fn operand(&mut self) -> u64 {
        let random = self.next();
        let edge = 1_u64.rotate_left([0, 7, 8, 15, 16, 31, 32, 63][self.below(8) as usize]);
        let near = edge.wrapping_add(self.below(5)).wrapping_sub(2);
        match self.below(8) {
            0 => near,
            1 => near.wrapping_neg(),
            2 => self.below(4).wrapping_sub(2),
            3 => random & !0xffff_ffff | near & 0xffff_ffff,
            _ => random,
        }
    }
}

/// The number of random operands for each form; many in `make instructions`.
pub fn operands(few: u64) -> u64 {
    let count = std::env::var("DTRACE_INSN_OPERANDS").ok();
    count.map_or(few, |count| count.parse().expect("a number of operands"))
}

/// Executable text of a file.
pub struct Text {
    pub file: PathBuf,
    pub bits: u32,
    pub bytes: Vec<u8>,
}

/// The text of some programs and libraries of this machine, including the C library.
pub fn texts() -> Vec<Text> {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("what is mapped here");
    let mapped = maps.lines().filter_map(|line| line.split_once('/'));
    let mut files: Vec<PathBuf> = mapped.map(|(_, path)| format!("/{path}").into()).collect();
    let known = [
        "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
        "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
        "/usr/lib/x86_64-linux-gnu/libm.so.6",
        "/usr/bin/python3.13",
        "/usr/bin/perl",
        "/usr/bin/busybox",
        "/usr/bin/bash",
        "/usr/lib/i386-linux-gnu/libc.so.6",
        "/usr/lib32/libc.so.6",
    ];
    files.extend(known.map(PathBuf::from));
    files.sort();
    files.dedup();
    let texts: Vec<Text> = files.iter().flat_map(text).collect();
    assert!(texts.iter().any(|text| text.file.ends_with("libc.so.6")));
    texts
}

fn text(file: &PathBuf) -> Vec<Text> {
    let Ok(bytes) = std::fs::read(file) else {
        return Vec::new();
    };
    let Ok(elf) = object::File::parse(&*bytes) else {
        return Vec::new();
    };
    let bits = if elf.is_64() { 64 } else { 32 };
    let code = |flags| matches!(flags, SegmentFlags::Elf { p_flags, .. } if p_flags.contains(PF_X));
    let segments = elf.segments().filter(|segment| code(segment.flags()));
    segments
        .map(|segment| Text {
            file: file.clone(),
            bits,
            bytes: segment.data().expect("text").to_vec(),
        })
        .collect()
}
