// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only OR MIT

//! Properties that hold for any bytes, and facts about single instructions.

mod any;

use dtrace_insn::x86_64::{
    decode, Class, Flow, Insn, Leaves, Mode, Refusal, Unmovable, Uprobes, SLOT,
};
use proptest::prelude::*;

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let prefix = prop::sample::select(vec![
        0x66, 0x67, 0xf0, 0xf2, 0xf3, 0x2e, 0x64, 0x65, 0x48, 0x44, 0x0f,
    ]);
    let prefixes = prop::collection::vec(prefix, 0..4);
    (prefixes, any::<[u8; 16]>()).prop_map(|(mut bytes, rest)| {
        bytes.extend(rest);
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(bytes in bytes(), long in any::<bool>(), numbers in any::<[u64; 20]>()) {
        let mode = if long { Mode::Long } else { Mode::Compatible };
        any::instruction(&bytes, mode, &numbers);
    }
}

fn insn(bytes: &[u8]) -> Insn {
    decode(bytes, Mode::Long).expect("an instruction")
}

#[test]
fn what_can_have_no_probe_is_told_why() {
    let refused: [(&[u8], Refusal); 12] = [
        (&[0xcc], Refusal::Breakpoint),
        (&[0x0f, 0x0b], Refusal::Exception),
        (&[0xf1], Refusal::Exception),
        (&[0xf4], Refusal::Privileged),
        (&[0xec], Refusal::Privileged),
        (&[0x0f, 0x30], Refusal::Privileged),
        (&[0x0f, 0x05], Refusal::Gate),
        (&[0xcd, 0x80], Refusal::Gate),
        (&[0x48, 0xcf], Refusal::Far),
        (&[0x8e, 0xd0], Refusal::StackSegment),
        (&[0xc7, 0xf8, 0, 0, 0, 0], Refusal::Transaction),
        (&[0x66, 0xc3], Refusal::Branch),
    ];
    for (bytes, refusal) in refused {
        assert_eq!(insn(bytes).class(), Class::Refused(refusal), "{bytes:02x?}");
    }
}

#[test]
fn what_the_kernels_own_probes_do_wrong_is_known() {
    let known: [(&[u8], Uprobes); 26] = [
        (&[0x55], Uprobes::Right),
        (&[0xf3, 0x0f, 0x1e, 0xfa], Uprobes::Right),
        (&[0x0f, 0x1f, 0x44, 0, 0], Uprobes::Nop5),
        (
            &[0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
            Uprobes::Nop10,
        ),
        (&[0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0], Uprobes::Refused),
        // lock incl (%rax), notrack jmp *%rax, hlt.
        (&[0xf0, 0xff, 0x00], Uprobes::Refused),
        (&[0x3e, 0xff, 0xe0], Uprobes::Refused),
        (&[0xf4], Uprobes::Refused),
        (&[0x0f, 0x05], Uprobes::Wrong),
        (&[0x9c], Uprobes::Wrong),
        (&[0x9d], Uprobes::Right),
        (&[0xf3, 0xa4], Uprobes::Repeats),
        (&[0xa4], Uprobes::Right),
        // vmovdqu (%rdi),%ymm0 and back, vpcmpeqb, vpor, vfnmadd132ss, vcmpps, vpminsw, vzeroupper,
        // vpaddd.
        (&[0xc5, 0xfe, 0x6f, 0x07], Uprobes::Refused),
        (&[0xc5, 0xfe, 0x7f, 0x07], Uprobes::Wrong),
        (&[0xc5, 0xf5, 0x74, 0xc0], Uprobes::Wrong),
        (&[0xc5, 0xf5, 0xeb, 0xc0], Uprobes::Wrong),
        (&[0xc4, 0xe2, 0x71, 0x9d, 0xc0], Uprobes::Wrong),
        (&[0xc5, 0xf4, 0xc2, 0xc0, 0], Uprobes::Wrong),
        (&[0xc5, 0xf5, 0xea, 0xc0], Uprobes::Refused),
        (&[0xc5, 0xf8, 0x77], Uprobes::Wrong),
        (&[0xc5, 0xf5, 0xfe, 0xc0], Uprobes::Right),
        // vfmaddsd of FMA4, vprotd of XOP, two REX prefixes, a mandatory prefix without effect.
        (&[0xc4, 0xe3, 0xf9, 0x6b, 0xc2, 0x10], Uprobes::Refused),
        (&[0x8f, 0xe8, 0x78, 0xc2, 0xc0, 1], Uprobes::Wrong),
        (&[0x48, 0x41, 0x31, 0x20], Uprobes::Wrong),
        (&[0xf2, 0x0f, 0x45, 0x05, 1, 0, 0, 0], Uprobes::Wrong),
    ];
    for (bytes, uprobes) in known {
        assert_eq!(insn(bytes).uprobes(), uprobes, "{bytes:02x?}");
    }
}

#[test]
fn what_is_done_here_needs_no_uprobes() {
    // notrack jmp *%rax, pushf, a nop with a segment, lock incl (%rax), xchg %eax,(%rax), push %rbp
    let done: [(&[u8], bool); 6] = [
        (&[0xf0, 0xff, 0x00], false),
        (&[0x87, 0x00], true),
        (&[0x3e, 0xff, 0xe0], false),
        (&[0x9c], false),
        (&[0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0], false),
        (&[0x55], true),
    ];
    for (bytes, is_carried) in done {
        let insn = insn(bytes);
        assert!(matches!(insn.probed(), Ok(Some(_))), "{bytes:02x?}");
        assert_eq!(insn.is_carried(), is_carried, "{bytes:02x?}");
    }
    // cpuid, lock btsl %eax,(%rax), vmovdqu %ymm0,(%rdi), rep movsb
    let moved: [(&[u8], bool, bool); 4] = [
        (&[0x0f, 0xa2], true, false),
        (&[0xf0, 0x0f, 0xab, 0x00], false, true),
        (&[0xc5, 0xfe, 0x7f, 0x07], false, false),
        (&[0xf3, 0xa4], false, false),
    ];
    for (bytes, is_carried, is_barred) in moved {
        let insn = insn(bytes);
        assert_eq!(insn.probed(), Ok(None), "{bytes:02x?}");
        assert!(insn.is_movable(), "{bytes:02x?}");
        assert_eq!(insn.is_carried(), is_carried, "{bytes:02x?}");
        assert_eq!(insn.is_barred(), is_barred, "{bytes:02x?}");
    }
    // syscall, hlt
    let refused: [(&[u8], &str); 2] = [
        (&[0x0f, 0x05], "is a system call"),
        (&[0xf4], "is privileged"),
    ];
    for (bytes, why) in refused {
        let text = insn(bytes).probed().expect_err("no probe").to_string();
        assert_eq!(text, format!("the instruction {why}"), "{bytes:02x?}");
    }
}

#[test]
fn functions_end_by_returns_and_by_jumps_out() {
    let function = 0x1000..0x1080;
    let at = 0x1010;
    let known: [(&[u8], Leaves); 8] = [
        (&[0xc3], Leaves::Always),
        (&[0xf2, 0xc3], Leaves::Always),
        (&[0xeb, 0x10], Leaves::Never),
        (&[0xe9, 0, 1, 0, 0], Leaves::Always),
        (&[0x0f, 0x84, 0, 1, 0, 0], Leaves::Perhaps),
        (&[0x3e, 0xff, 0xe0], Leaves::Perhaps),
        (&[0xe8, 0, 1, 0, 0], Leaves::Never),
        (&[0x0f, 0x05], Leaves::Never),
    ];
    for (bytes, leaves) in known {
        assert_eq!(insn(bytes).leaves(at, &function), leaves, "{bytes:02x?}");
    }
}

#[test]
fn calls_and_returns_touch_the_shadow_stack() {
    let touch: [&[u8]; 5] = [
        &[0xe8, 0, 0, 0, 0],
        &[0xff, 0x10],
        &[0x3e, 0xff, 0xd0],
        &[0xc3],
        &[0xc2, 8, 0],
    ];
    for bytes in touch {
        assert!(insn(bytes).touches_shadow_stack(), "{bytes:02x?}");
    }
    for bytes in [
        &[0x55][..],
        &[0xff, 0xe0],
        &[0xff, 0x30],
        &[0xe9, 0, 0, 0, 0],
    ] {
        assert!(!insn(bytes).touches_shadow_stack(), "{bytes:02x?}");
    }
}

#[test]
fn slots_near_and_far() {
    let mut out = [0; SLOT];
    // lock incl (%rax) is copied unchanged.
    let plain = insn(&[0xf0, 0xff, 0x00]);
    assert_eq!(plain.relocate(0x5000, 0x1000, &mut out), Ok(8));
    assert_eq!(out[..8], [0xf0, 0xff, 0x00, 0xe9, 0xfb, 0x3f, 0, 0]);
    // Out of reach of a near jump: an indirect jump.
    let from = 0x5555_0000_0000;
    assert_eq!(plain.relocate(from, 0x1000, &mut out), Ok(17));
    assert_eq!(out[3..9], [0xff, 0x25, 0, 0, 0, 0]);
    assert_eq!(out[9..17], (from + 3).to_le_bytes());
    // mulss 0x10(%rip),%xmm0 addresses the same memory.
    let relative = insn(&[0xf3, 0x0f, 0x59, 0x05, 0x10, 0, 0, 0]);
    assert_eq!(relative.relocate(0x5000, 0x1000, &mut out), Ok(13));
    assert_eq!(out[4..8], 0x4010_u32.to_le_bytes());
    let distant = relative.relocate(from, 0x1000, &mut out);
    assert_eq!(distant, Err(Unmovable::Distant));
    let call = insn(&[0xe8, 0, 0, 0, 0]).relocate(0x5000, 0x1000, &mut out);
    assert_eq!(call, Err(Unmovable::Branches));
    let refused = insn(&[0x0f, 0x05]).relocate(0x5000, 0x1000, &mut out);
    assert_eq!(refused, Err(Unmovable::Refused(Refusal::Gate)));
}

#[test]
fn programs_of_32_bits_have_their_own_forms() {
    let insn = |bytes: &[u8]| decode(bytes, Mode::Compatible).expect("an instruction");
    // inc %eax, mov %gs:0x14,%eax, call.
    for bytes in [
        &[0x40][..],
        &[0x65, 0xa1, 0x14, 0, 0, 0],
        &[0xe8, 0, 0, 0, 0],
    ] {
        assert!(
            matches!(insn(bytes).class(), Class::Done(_)),
            "{bytes:02x?}"
        );
    }
    // A segment override to the code segment makes a write invalid: add %ecx,%cs:(%eax).
    assert_eq!(insn(&[0x2e, 0x01, 0x08]).class(), Class::Slot);
    let back = insn(&[0xe9, 0xf0, 0xff, 0xff, 0xff]);
    assert_eq!(back.flow(0), Flow::Jump(Some(0xffff_fff5)));
    // lds, les and bound are not taken for AVX.
    for first in [0xc4, 0xc5, 0x62] {
        assert_eq!(insn(&[first, 0x00]).length(), 2);
    }
    assert_eq!(
        insn(&[0xc4, 0xe2, 0x71, 0x9a, 0xc0]).uprobes(),
        Uprobes::Wrong
    );
}
