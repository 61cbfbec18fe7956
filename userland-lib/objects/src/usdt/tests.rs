// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use dtrace_files::arch::programs::arguments;
use dtrace_uapi::process::{FLOAT, NO_REGISTER};

/// Parses one operand. Returns `[value, base, index, shift, size]` and letters for what else is
/// set: `s`igned, `l`oaded, `h`igh byte, relative to the `f`ile, `d`ouble or float.
fn read_one(text: &str) -> Option<([i64; 5], String)> {
    let symbols = |name: &str| (name == "counter").then_some(0x4000);
    let all = arguments(text, &symbols);
    assert_eq!(all.len(), 1, "{text}");
    let Operand { arg, is_of_file } = all[0]?;
    let register = |n| if n == NO_REGISTER { -1 } else { i64::from(n) };
    let flags = [
        (arg.is_signed != 0, 's'),
        (arg.is_loaded != 0, 'l'),
        (arg.is_high != 0, 'h'),
        (is_of_file, 'f'),
        (arg.form == FLOAT, 'd'),
    ];
    let letters = flags.iter().filter(|(is, _)| *is).map(|(_, c)| *c);
    Some((
        [
            arg.value as i64,
            register(arg.base),
            register(arg.index),
            i64::from(arg.shift),
            i64::from(arg.size),
        ],
        letters.collect(),
    ))
}

#[test]
fn every_kind_of_operand_is_read() {
    for (text, numbers, letters) in [
        ("8@%rax", [0, 0, -1, 0, 8], ""),
        ("-4@%edi", [0, 7, -1, 0, 4], "s"),
        ("2@%r10w", [0, 10, -1, 0, 2], ""),
        ("4@%r15d", [0, 15, -1, 0, 4], ""),
        ("1@%sil", [0, 6, -1, 0, 1], ""),
        ("-1@%bh", [0, 3, -1, 0, 1], "sh"),
        ("-4@$-1", [-1, -1, -1, 0, 4], "s"),
        ("8@$0x10", [16, -1, -1, 0, 8], ""),
        ("8@(%rsp)", [0, 4, -1, 0, 8], "l"),
        ("-8@-16(%rbp)", [-16, 5, -1, 0, 8], "sl"),
        ("4@8(%rax,%rdx)", [8, 0, 2, 0, 4], "l"),
        ("4@8(%rax, %rdx, 4)", [8, 0, 2, 2, 4], "l"),
        ("-8@4(,%rdx,4)", [4, -1, 2, 2, 8], "sl"),
        ("-4@counter(%rip)", [0x4000, -1, -1, 0, 4], "slf"),
        ("-4@40+counter(%rip)", [0x4028, -1, -1, 0, 4], "slf"),
        ("4@counter-4(%rip)", [0x3ffc, -1, -1, 0, 4], "lf"),
        ("4@counter", [0x4000, -1, -1, 0, 4], "lf"),
        ("%ecx", [0, 1, -1, 0, 8], ""),
        ("8f@%xmm0", [0, 0x20, -1, 0, 8], "d"),
        ("-4f@%xmm15", [0, 0x2f, -1, 0, 4], "d"),
        ("4@%ymm7", [0, 0x27, -1, 0, 4], ""),
        ("8f@-16(%rbp)", [-16, 5, -1, 0, 8], "ld"),
    ] {
        assert_eq!(
            read_one(text),
            Some((numbers, letters.to_owned())),
            "{text}"
        );
    }
}

#[test]
fn what_is_no_operand_is_told_from_one() {
    for text in [
        "3@%rax",
        "8@%rox",
        "8@%r16",
        "8@",
        "8@()",
        "8@4(%rip)",
        "8@other(%rip)",
        "8@4(%rax",
        "8f@%xmm16",
        "8f@%xmm",
        "2f@%xmm0",
        "8f@%mm0",
        "8@4(%rax,%rdx,3)",
        "8@%fs:4",
        "8@4(%ah)",
        "-128@%rax",
        "8@counter+counter(%rip)",
        "8@4(%rax,%rdx,4,5)",
        "8@$",
        "8@-counter(%rip)",
    ] {
        assert_eq!(read_one(text), None, "{text}");
    }
    let symbols = |_: &str| None;
    let all = arguments(
        " 8@%rax  4@nothing(%rip) -4@8(%rbp, %rcx, 2)\t1@%al ",
        &symbols,
    );
    assert_eq!(
        all.iter().map(Option::is_some).collect::<Vec<_>>(),
        [true, false, true, true]
    );
}

/// A 64-bit program with one segment of code at 0x1000, and these notes.
fn file(notes: &[u8], base: Option<u64>) -> Vec<u8> {
    let names = b"\0.shstrtab\0.note.stapsdt\0.stapsdt.base\0";
    let mut sections = vec![
        [0u64; 4],
        [3, 0, 0, names.len() as u64],
        [7, 0, 0, notes.len() as u64],
    ];
    let mut out = vec![0u8; 0x78];
    for (n, bytes) in [(1, &names[..]), (2, notes)] {
        sections[n][2] = out.len() as u64;
        out.extend(bytes);
    }
    if let Some(address) = base {
        sections.push([1, address, out.len() as u64, 1]);
        out.push(0);
    }
    out.resize(out.len().next_multiple_of(8), 0);
    let table = out.len() as u64;
    for (n, [kind, address, offset, size]) in sections.iter().enumerate() {
        let name = [0u32, 1, 11, 25][n];
        out.extend(name.to_le_bytes());
        out.extend((*kind as u32).to_le_bytes());
        for word in [0, *address, *offset, *size, 0, 1, 0] {
            out.extend(word.to_le_bytes());
        }
    }
    out[..16].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
    put(16, &[3, 0, 62, 0, 1, 0, 0, 0]);
    put(32, &64u64.to_le_bytes());
    put(40, &table.to_le_bytes());
    put(
        52,
        &[64, 0, 56, 0, 1, 0, 64, 0, sections.len() as u8, 0, 1, 0],
    );
    put(64, &[1, 0, 0, 0, 5, 0, 0, 0]);
    for (n, word) in [0u64, 0x1000, 0x1000, 0x2000, 0x2000, 4096]
        .iter()
        .enumerate()
    {
        put(72 + 8 * n, &word.to_le_bytes()[..]);
    }
    out
}

fn note(addresses: [u64; 3], strings: &str) -> Vec<u8> {
    let mut description: Vec<u8> = addresses.iter().flat_map(|a| a.to_le_bytes()).collect();
    description.extend(strings.bytes());
    let mut out = Vec::new();
    for word in [8, description.len() as u32, 3] {
        out.extend(word.to_le_bytes());
    }
    out.extend(b"stapsdt\0");
    out.extend(description);
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

#[test]
fn notes_are_where_the_linker_has_moved_them() {
    let notes = [
        note([0x1100, 0x2000, 0], "one\0first__probe\08@%rdi\0"),
        note([0x1200, 0x2000, 0x1300], "one\0second\0\0"),
    ]
    .concat();
    let found = notes::parse(&file(&notes, Some(0x2010))[..]);
    let brief: Vec<_> = found
        .iter()
        .map(|n| {
            (
                n.provider.as_str(),
                n.name.as_str(),
                n.address,
                n.offset,
                n.semaphore,
                n.arguments.len(),
            )
        })
        .collect();
    assert_eq!(
        brief,
        [
            ("one", "first-probe", 0x1110, 0x110, 0, 1),
            ("one", "second", 0x1210, 0x210, 0x310, 0)
        ]
    );
    // Without the base, addresses are taken as they are.
    let found = notes::parse(&file(&notes, None)[..]);
    assert_eq!(found[0].address, 0x1100);
}

#[test]
fn a_site_that_is_told_twice_is_there_once() {
    let again = |kind: u32, site: u64, strings: &str| {
        let mut out = note([site, 0x1800, 0], "");
        out.truncate(36);
        out.extend(strings.bytes());
        let size = out.len() as u32 - 20;
        out[..12].copy_from_slice(&[5, size, kind].map(u32::to_le_bytes).concat());
        out[12..20].copy_from_slice(b"usdt\0\0\0\0");
        out.resize(out.len().next_multiple_of(4), 0);
        out
    };
    let notes = [
        again(1, 0x1100, "one\0first-probe\0\x018@%rdi\0"),
        note([0x1100, 0x2000, 0x1300], "one\0first__probe\08@%rdi\0"),
        again(1, 0x1180, "one\0first-probe\0\x018@%rsi\0"),
        again(2, 0x1190, "one\0first-probe\0\x018@%rbx\0"),
    ]
    .concat();
    let found = notes::parse(&file(&notes, Some(0x2000))[..]);
    let brief = found.iter().map(|n| (n.address, n.semaphore, n.asks));
    assert_eq!(
        brief.collect::<Vec<_>>(),
        [
            (0x1100, 0x300, false),
            (0x1180, 0, false),
            (0x1190, 0, true)
        ]
    );
}

#[test]
fn names_that_no_description_spells_are_left_out() {
    for strings in [
        "a/b\0c\0\0",
        "a\0b/c\0\0",
        "\0b\0\0",
        "a\0\0\0",
        "a1\0b\0\0",
        "pid\0b\0\0",
        "a\0b\n\0\0",
        "a\0b",
        "a b\0c\0\0",
    ] {
        let found = notes::parse(&file(&note([0x1100, 0, 0], strings), None)[..]);
        assert_eq!(found, [], "{strings:?}");
    }
    // No segment has this address.
    let outside = note([0x9000, 0, 0], "a\0b\0\0");
    assert_eq!(notes::parse(&file(&outside, None)[..]), []);
}

#[test]
fn a_file_that_is_cut_or_changed_anywhere_is_read_or_not() {
    let notes = [
        note([0x1100, 0x2000, 0], "one\0first\08@%rdi -4@x(%rip)\0"),
        note([0x1200, 0x2000, 0x1300], "one\0second\0\0"),
    ]
    .concat();
    let whole = file(&notes, Some(0x2000));
    for len in 0..whole.len() {
        notes::parse(&whole[..len]);
    }
    for at in 0..whole.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut changed = whole.clone();
            changed[at] = value;
            notes::parse(&changed[..]);
        }
    }
}

#[test]
fn a_provider_names_processes_by_its_end() {
    assert_eq!(processes("python1234"), (vec![1234], true));
    for provider in [
        "fbt",
        "",
        "1234",
        "python0",
        "*",
        "?x12",
        "python99999999999",
    ] {
        assert_eq!(processes(provider), (vec![], false), "{provider}");
    }
    assert!(!processes("a*").1);
}
