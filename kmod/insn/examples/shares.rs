// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only OR MIT

//! Prints how the instructions of programs are executed: what share is emulated, relocated to a
//! slot, or refused, for the first instructions of functions and for all, and how the kernel's
//! uprobes would execute them. The files are those on the command line, or else some of the build
//! root's.
//!
//! Functions are those of `.eh_frame`, which stripped files have as well. So data in text is left
//! out.

use dtrace_insn::x86_64::{decode, Class, Encoding, Flow, Insn, Mode};
use object::{Object as _, ObjectSection as _};
use std::collections::BTreeMap;
use std::ops::Range;

const FILES: [&str; 12] = [
    "/usr/lib/x86_64-linux-gnu/libc.so.6",
    "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
    "/usr/bin/python3.13",
    "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
    "/usr/lib/x86_64-linux-gnu/libm.so.6",
    "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
    "/usr/lib/x86_64-linux-gnu/libglib-2.0.so.0",
    "/usr/bin/bash",
    "/usr/bin/perl",
    "/usr/bin/openssl",
    "/usr/bin/qemu-system-x86_64",
    "/usr/bin/kmod",
];

/// The number of instructions of each class.
#[derive(Default)]
struct Shares {
    done: u64,
    slot: u64,
    refused: u64,
}

impl Shares {
    fn count(&mut self, insn: &Insn) {
        match insn.class() {
            Class::Done(_) => self.done += 1,
            Class::Slot => self.slot += 1,
            Class::Refused(_) => self.refused += 1,
        }
    }

    fn text(&self) -> String {
        let all = (self.done + self.slot + self.refused).max(1) as f64;
        let share = |count: u64| count as f64 * 100.0 / all;
        format!(
            "{:6.2} {:6.2} {:6.3}",
            share(self.done),
            share(self.slot),
            share(self.refused)
        )
    }
}

/// The addresses of functions, from the table in `.eh_frame_hdr`.
fn functions(elf: &object::File<'_>) -> Option<Vec<Range<u64>>> {
    let section = elf.section_by_name(".eh_frame_hdr")?;
    let (table, at) = (section.data().ok()?, section.address());
    let frames = elf.section_by_name(".eh_frame")?;
    let (frame_bytes, frames_at) = (frames.data().ok()?, frames.address());
    let word = |bytes: &[u8], offset: usize| {
        let bytes = bytes.get(offset..offset + 4)?;
        Some(i32::from_le_bytes(bytes.try_into().ok()?))
    };
    // The header must say: the pointer to `.eh_frame` and the count are words, and entries are
    // pairs of words relative to the table.
    if table.get(..4)? != [1, 0x1b, 0x03, 0x3b] {
        return None;
    }
    let count = word(table, 8)? as usize;
    let entry = |i: usize| {
        let start = at.wrapping_add_signed(i64::from(word(table, 12 + i * 8)?));
        let frame = at.wrapping_add_signed(i64::from(word(table, 16 + i * 8)?));
        // A frame description begins with its length, a pointer to its common part, the start of
        // the function, and its size.
        let size = word(frame_bytes, (frame - frames_at) as usize + 12)? as u32;
        Some(start..start + u64::from(size))
    };
    (0..count).map(entry).collect()
}

fn mode(elf: &object::File<'_>) -> Mode {
    match elf.is_64() {
        true => Mode::Long,
        false => Mode::Compatible,
    }
}

fn show(file: &str, totals: &mut [Shares; 2]) -> Option<()> {
    let bytes = std::fs::read(file).ok()?;
    let elf = object::File::parse(&*bytes).ok()?;
    let functions = functions(&elf)?;
    let text: Vec<(u64, &[u8])> = elf
        .sections()
        .filter_map(|section| Some((section.address(), section.data().ok()?)))
        .collect();
    let (mut entries, mut all) = (Shares::default(), Shares::default());
    let (mut returns, mut undecoded) = ([0_u64; 2], 0);
    let mut uprobes: BTreeMap<(String, &str), u64> = BTreeMap::new();
    for function in &functions {
        let found = text.iter().find_map(|(at, bytes)| {
            let offset = usize::try_from(function.start.checked_sub(*at)?).ok()?;
            let size = (function.end - function.start) as usize;
            bytes.get(offset..offset + size)
        });
        let mut rest = found?;
        let mut first = true;
        while !rest.is_empty() {
            let Ok(insn) = decode(rest, mode(&elf)) else {
                undecoded += 1;
                break;
            };
            if std::mem::take(&mut first) {
                entries.count(&insn);
                totals[0].count(&insn);
            }
            all.count(&insn);
            totals[1].count(&insn);
            if insn.flow(0) == Flow::Return {
                returns[usize::from(matches!(insn.class(), Class::Done(_)))] += 1;
            }
            let encoding = match insn.encoding() {
                Encoding::Legacy => "legacy",
                Encoding::Vex => "vex",
                Encoding::Evex => "evex",
                Encoding::Xop => "xop",
            };
            let verdict = (format!("{:?}", insn.uprobes()), encoding);
            *uprobes.entry(verdict).or_default() += 1;
            rest = &rest[usize::from(insn.length())..];
        }
    }
    let count = all.done + all.slot + all.refused;
    println!(
        "{file}: {} functions, {count} instructions, {undecoded} that are none",
        functions.len()
    );
    println!("  entries    done, slot, refused %: {}", entries.text());
    println!("  all        done, slot, refused %: {}", all.text());
    println!("  returns    done {}, not {}", returns[1], returns[0]);
    uprobes.retain(|(verdict, _), _| verdict != "Right");
    println!("  uprobes    {uprobes:?}");
    Some(())
}

fn main() {
    let named: Vec<String> = std::env::args().skip(1).collect();
    let files = match named.is_empty() {
        true => FILES.map(str::to_owned).to_vec(),
        false => named,
    };
    let mut totals = [Shares::default(), Shares::default()];
    for file in files {
        if show(&file, &mut totals).is_none() {
            println!("{file}: not read");
        }
    }
    println!(
        "all files: entries {}; all {}",
        totals[0].text(),
        totals[1].text()
    );
}
