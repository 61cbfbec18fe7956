// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Valid and invalid DOF images.

mod common;

use common::asm::asm;
use common::dof::Image;
use common::images::{sample, try_image};
use common::{config, cpu, machine::TestMachine, Steps, PROBE};
use dtrace_engine::error::Place;
use dtrace_engine::mem::alloc::{fail_after, live};
use dtrace_engine::{Consumer, Enabling, Errno};
use dtrace_uapi::action::Action;
use dtrace_uapi::dof::{Hdr, RelocDesc, RelocHdr, Sec, SecType, RELO_SETX, SECF_LOAD, VERSION_2};
use dtrace_uapi::limits::DOF_MAX;
use dtrace_uapi::option::Opt;
use proptest::prelude::*;
use zerocopy::{FromBytes, IntoBytes};

fn text(result: Result<Enabling, dtrace_engine::Reason>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn a_good_image_becomes_clauses_and_options() {
    let e = Enabling::parse(&sample().write()).unwrap();
    assert_eq!(e.options(), [(Opt::Strsize, 128)]);
    assert_eq!(e.clauses().len(), 2);
    let c = &e.clauses()[0];
    assert_eq!(
        (&c.probe.provider[..8], &c.probe.name[..6]),
        (&b"syscall\0"[..], &b"entry\0"[..])
    );
    assert_eq!((c.actions.len(), c.uarg, c.actions[2].uarg), (3, 7, 3));
    assert_eq!(c.actions[0].format.as_deref(), Some(&b"%d\n"[..]));
    assert_eq!(c.predicate.as_ref().unwrap().text.len(), 8);

    let consumer = Consumer::new(config()).unwrap();
    let first = consumer.add_enabling(&e).unwrap();
    let ecb = consumer.bind(first[0], PROBE).unwrap();
    assert_eq!(consumer.option(Opt::Strsize), 128);
    consumer.format(1, |f| assert_eq!(f, b"%d\n")).unwrap();
    assert_eq!(consumer.format(2, |_| ()).unwrap_err().errno, Errno::EINVAL);
    consumer.go().unwrap();
    consumer.activate();
    assert_eq!(consumer.fire(&cpu(0), ecb, &TestMachine::default()), None);
}

#[test]
fn every_field_of_the_header_is_checked() {
    type Change = (&'static str, fn(&mut Hdr));
    let changes: [Change; 17] = [
        ("bad magic", |h| h.ident[1] = b'E'),
        ("bad data model", |h| h.ident[4] = 1),
        ("bad byte order", |h| h.ident[5] = 2),
        ("unknown version of DOF", |h| h.ident[6] = VERSION_2 + 1),
        ("unknown version of DIF", |h| h.ident[7] = 1),
        ("too many integer registers", |h| h.ident[8] = 9),
        ("too many tuple registers", |h| h.ident[9] = 9),
        ("padding of the identification is not zero", |h| {
            h.ident[15] = 1
        }),
        ("unknown flags", |h| h.flags = 1),
        ("bad size of the header", |h| h.hdrsize = 60),
        ("size of section headers is zero", |h| h.secsize = 0),
        ("bad size of section headers", |h| h.secsize = 40),
        ("section headers are misaligned", |h| h.secoff += 4),
        ("section headers overlap the header", |h| h.secoff = 8),
        ("section headers are truncated", |h| h.secnum = u32::MAX),
        ("image is truncated", |h| {
            h.loadsz += 1;
            h.filesz += 1;
        }),
        ("file size is less than the loaded size", |h| h.filesz -= 1),
    ];
    for (want, change) in changes {
        let got = Enabling::parse(&sample().write_with(change)).unwrap_err();
        assert_eq!((got.text, got.errno), (want, Errno::EINVAL));
    }
    assert_eq!(
        text(Enabling::parse(&[0; 63])),
        "image is shorter than its header"
    );
    assert_eq!(
        text(Enabling::parse(&[])),
        "image is shorter than its header"
    );
    let big = Enabling::parse(&sample().write_with(|h| h.loadsz = DOF_MAX as u64 + 1));
    assert_eq!(big.unwrap_err().errno, Errno::E2BIG);
    assert_eq!(
        Enabling::parse(&vec![0; DOF_MAX + 1]).unwrap_err().errno,
        Errno::E2BIG
    );
}

/// Writes the sample, changes a section header in the finished image, and parses it.
fn with_section(ty: SecType, change: impl Fn(&mut Sec)) -> Result<Enabling, dtrace_engine::Reason> {
    let mut bytes = sample().write();
    let n = Hdr::read_from_prefix(&bytes).unwrap().0.secnum as usize;
    for i in 0..n {
        let at = 64 + 32 * i;
        let mut sec = Sec::read_from_bytes(&bytes[at..at + 32]).unwrap();
        if sec.ty == ty as u32 {
            change(&mut sec);
            bytes[at..at + 32].copy_from_slice(sec.as_bytes());
            return Enabling::parse(&bytes);
        }
    }
    panic!("no such section");
}

#[test]
fn every_field_of_a_section_is_checked() {
    type Change = (&'static str, SecType, fn(&mut Sec));
    let changes: [Change; 12] = [
        ("unknown type of section", SecType::Dif, |s| s.ty = 99),
        (
            "providers are for helpers, not for enablings",
            SecType::Dif,
            |s| s.ty = SecType::Provider as u32,
        ),
        (
            "loadable section without the load flag",
            SecType::Dif,
            |s| s.flags = 0,
        ),
        ("unknown flags of a section", SecType::Dif, |s| {
            s.flags = SECF_LOAD | 2
        }),
        (
            "section that cannot be loaded has the load flag",
            SecType::Dif,
            |s| s.ty = SecType::Comments as u32,
        ),
        ("bad alignment of a section", SecType::Dif, |s| s.align = 3),
        ("bad alignment of a section", SecType::Dif, |s| s.align = 0),
        ("misaligned section", SecType::Dif, |s| s.offset += 1),
        ("section out of the image's range", SecType::Dif, |s| {
            s.size = u64::MAX
        }),
        ("section out of the image's range", SecType::Dif, |s| {
            s.offset = u64::MAX - 3
        }),
        ("unterminated string table", SecType::Strtab, |s| {
            s.size -= 1
        }),
        ("section overlaps the headers", SecType::Dif, |s| {
            s.offset = 64
        }),
    ];
    for (want, ty, change) in changes {
        assert_eq!(with_section(ty, change).unwrap_err().text, want);
    }
    let overlap = with_section(SecType::Inttab, |s| s.offset -= 8).unwrap_err();
    assert_eq!(overlap.text, "section overlaps another");
    assert!(matches!(overlap.place, Place::Section(_)));
    assert_eq!(
        with_section(SecType::Dif, |s| s.entsize = 8)
            .unwrap_err()
            .text,
        "bad size of a table's entries"
    );
    assert_eq!(
        with_section(SecType::Dif, |s| s.size -= 1)
            .unwrap_err()
            .text,
        "size is not a multiple of the entries' size"
    );
}

#[test]
fn wild_links_are_refused() {
    for (ty, at, want) in [
        (SecType::EcbDesc, 0, "link to a section that does not exist"),
        (SecType::EcbDesc, 4, "link to a section that does not exist"),
        (
            SecType::ProbeDesc,
            0,
            "link to a section that does not exist",
        ),
        (SecType::ProbeDesc, 4, "string out of its table's range"),
        (SecType::ActDesc, 0, "link to a section that does not exist"),
        (SecType::ActDesc, 8, "unknown kind of action"),
        (SecType::ActDesc, 16, "string out of its table's range"),
        (
            SecType::DifoHdr,
            8,
            "link to a section that does not exist or is not loaded",
        ),
        (SecType::OptDesc, 0, "unknown option"),
    ] {
        let mut image = sample();
        let (_, data) = image
            .secs
            .iter_mut()
            .find(|(s, _)| s.ty == ty as u32)
            .unwrap();
        data[at..at + 4].copy_from_slice(&0x7fff_fff0u32.to_ne_bytes());
        assert_eq!(Enabling::parse(&image.write()).unwrap_err().text, want);
    }
    // A link to a section of another type, and a link to the section itself.
    for to in [0u32, 4] {
        let mut image = sample();
        let (_, data) = image
            .secs
            .iter_mut()
            .find(|(s, _)| s.ty == SecType::EcbDesc as u32)
            .unwrap();
        data[4..8].copy_from_slice(&to.to_ne_bytes());
        assert_eq!(
            Enabling::parse(&image.write()).unwrap_err().text,
            "link to a section of another type"
        );
    }
}

/// Parses an image with a predicate that has `relocs` relocations of `target`, each of the name
/// `symbol`.
fn relocated(
    offset: u64,
    target: Option<u32>,
    symbol: &[u8],
    relocs: usize,
) -> Result<Enabling, dtrace_engine::Reason> {
    let mut image = Image::default();
    let difo = asm("setx 100, %r1\n ret %r1");
    let header = image.difo(&difo);
    let ints = (0..header)
        .find(|i| image.secs[*i as usize].0.ty == SecType::Inttab as u32)
        .unwrap();
    let strtab = image.section(SecType::Strtab, 1, 0, &[b"\0", symbol, b"\0"].concat());
    let reloc = RelocDesc {
        name: 1,
        ty: RELO_SETX,
        offset,
        data: 11,
    };
    let relsec = image.table(SecType::Reltab, &vec![reloc; relocs]);
    let head = RelocHdr {
        strtab,
        relsec,
        tgtsec: target.unwrap_or(ints),
    };
    let head = image.section(SecType::KrelHdr, 4, 0, head.as_bytes());
    image.secs[header as usize].1.extend(head.as_bytes());
    image.secs[header as usize].0.size += 4;
    let strtab = image.section(SecType::Strtab, 1, 0, b"\0");
    let probe = dtrace_uapi::dof::ProbeDesc {
        strtab,
        ..Default::default()
    };
    let probes = image.section(SecType::ProbeDesc, 4, 0, probe.as_bytes());
    let ecb = dtrace_uapi::dof::EcbDesc {
        probes,
        pred: header,
        actions: u32::MAX,
        ..Default::default()
    };
    image.section(SecType::EcbDesc, 8, 0, ecb.as_bytes());
    Enabling::parse(&image.write())
}

#[test]
fn relocations_add_to_the_integers() {
    let build = |offset, target| relocated(offset, target, b"symbol", 1);
    let good = build(0, None).unwrap();
    assert_eq!(good.clauses()[0].predicate.as_ref().unwrap().ints[0], 111);
    assert_eq!(
        build(8, None).unwrap_err().text,
        "relocation out of its target's range"
    );
    assert_eq!(
        build(1, None).unwrap_err().text,
        "relocation out of its target's range"
    );
    assert_eq!(
        build(0, Some(0)).unwrap_err().text,
        "relocation of something else than the DIFO's integers"
    );
}

/// Each name is scanned to its end, so many relocations must not share a long one.
#[test]
fn names_are_charged_as_often_as_they_are_read() {
    let long = vec![b'x'; DOF_MAX / 2];
    relocated(0, None, &long, 4).unwrap();
    let refused = relocated(0, None, &long, 10_000).unwrap_err();
    assert_eq!(refused.errno, Errno::E2BIG);
}

#[test]
fn sharing_a_section_without_end_is_too_big() {
    let mut image = Image::default();
    let words = vec![dtrace_uapi::dif::Instr::fmt(dtrace_uapi::dif::Op::Nop, 0, 0, 0).0; 60_000];
    let dif = image.table(SecType::Dif, &words);
    let mut header = dtrace_uapi::dof::DifoHdr::default().as_bytes().to_vec();
    header.extend(dif.as_bytes());
    let difo = image.section(SecType::DifoHdr, 4, 0, &header);
    let act = dtrace_uapi::dof::ActDesc {
        difo,
        kind: Action::Difexpr as u32,
        strtab: u32::MAX,
        ..Default::default()
    };
    let actions = image.table(SecType::ActDesc, &vec![act; 5000]);
    let strtab = image.section(SecType::Strtab, 1, 0, b"\0");
    let probe = dtrace_uapi::dof::ProbeDesc {
        strtab,
        ..Default::default()
    };
    let probes = image.section(SecType::ProbeDesc, 4, 0, probe.as_bytes());
    let ecb = dtrace_uapi::dof::EcbDesc {
        probes,
        pred: u32::MAX,
        actions,
        ..Default::default()
    };
    image.section(SecType::EcbDesc, 8, 0, ecb.as_bytes());
    let before = live();
    assert_eq!(
        Enabling::parse(&image.write()).unwrap_err().errno,
        Errno::E2BIG
    );
    assert_eq!(live(), before);
}

#[test]
fn nothing_stays_allocated_when_memory_is_short() {
    let bytes = sample().write();
    let before = live();
    let mut n = 0;
    loop {
        fail_after(Some(n));
        let result = Enabling::parse(&bytes).and_then(|e| {
            let consumer = Consumer::new(config())?;
            consumer.add_enabling(&e)?;
            Ok(())
        });
        fail_after(None);
        assert_eq!(live(), before, "after {n} allocations");
        match result {
            Ok(()) => break,
            Err(reason) => assert_eq!(reason.errno, Errno::ENOMEM),
        }
        n += 1;
    }
    assert!(n > 20);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_images_are_refused_or_run(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut bytes = sample().write();
        for (index, byte) in changes {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        try_image(&bytes);
    }

    #[test]
    fn mutated_words_are_refused_or_run(changes in prop::collection::vec((any::<prop::sample::Index>(), 0u32..64), 1..4)) {
        let mut bytes = sample().write();
        for (index, word) in changes {
            let at = 4 * index.index(bytes.len() / 4);
            bytes[at..at + 4].copy_from_slice(&word.to_ne_bytes());
        }
        try_image(&bytes);
    }

    #[test]
    fn truncated_images_are_refused(index in any::<prop::sample::Index>()) {
        let bytes = sample().write();
        prop_assert!(Enabling::parse(&bytes[..index.index(bytes.len())]).is_err());
    }
}

#[test]
fn the_sample_is_accepted_whole() {
    assert!(try_image(&sample().write()));
}
