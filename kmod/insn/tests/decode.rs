// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only OR MIT

//! Compares the decoder with another one: the lengths and the control flow are the same, and
//! nothing is emulated that the other decoder calls invalid.

mod common;

use common::{operands, texts, Numbers};
use dtrace_insn::x86_64::{decode, Class, Flow, Insn, Mode, Undecoded};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};
use std::collections::BTreeMap;

const AT: u64 = 0x7000_0000;

fn mode(bits: u32) -> Mode {
    match bits {
        64 => Mode::Long,
        _ => Mode::Compatible,
    }
}

fn other(bytes: &[u8], bits: u32) -> Option<Instruction> {
    let mut decoder = Decoder::with_ip(bits, bytes, AT, DecoderOptions::NONE);
    let instruction = decoder.decode();
    (!instruction.is_invalid()).then_some(instruction)
}

/// The control flow by the other decoder; `None` if the instruction enters the kernel.
fn flow(instruction: &Instruction) -> Option<Flow> {
    let target = instruction.near_branch_target();
    let far = instruction.is_jmp_far_indirect()
        || instruction.is_jmp_far()
        || instruction.is_call_far()
        || instruction.is_call_far_indirect();
    Some(match instruction.flow_control() {
        _ if far => Flow::Elsewhere,
        FlowControl::Next => Flow::Next,
        FlowControl::UnconditionalBranch => Flow::Jump(Some(target)),
        FlowControl::IndirectBranch => Flow::Jump(None),
        FlowControl::ConditionalBranch => Flow::Branch(target),
        FlowControl::Call if instruction.is_call_near() => Flow::Call(Some(target)),
        FlowControl::IndirectCall => Flow::Call(None),
        FlowControl::Return if instruction.mnemonic() == Mnemonic::Ret => Flow::Return,
        _ => return None,
    })
}

/// Compares both decoders for these bytes. Returns our error if the other decoder accepts them.
fn compare(bytes: &[u8], bits: u32) -> Result<(), Undecoded> {
    let (ours, theirs) = (decode(bytes, mode(bits)), other(bytes, bits));
    match (ours, theirs) {
        (Ok(insn), Some(instruction)) => {
            let length = usize::from(insn.length());
            assert_eq!(length, instruction.len(), "{bytes:02x?} {bits}");
            assert_eq!(insn.bytes(), &bytes[..length]);
            assert_eq!(
                insn.is_ip_relative(),
                instruction.is_ip_rel_memory_operand(),
                "{bytes:02x?} {bits}"
            );
            compare_flow(&insn, &instruction);
            Ok(())
        }
        (Ok(insn), None) => {
            let class = insn.class();
            assert!(!matches!(class, Class::Done(_)), "{bytes:02x?} {bits}");
            Ok(())
        }
        (Err(error), Some(_)) => Err(error),
        (Err(_), None) => Ok(()),
    }
}

fn compare_flow(insn: &Insn, instruction: &Instruction) {
    let ours = insn.flow(AT);
    // Branches about which processors disagree are refused, so their targets are not compared.
    let disputed = !matches!(insn.class(), Class::Done(_)) && ours != Flow::Next;
    match flow(instruction) {
        _ if disputed => assert!(matches!(insn.class(), Class::Refused(_))),
        Some(theirs) => assert_eq!(ours, theirs, "{:02x?} {instruction:?}", insn.bytes()),
        None => assert!(matches!(ours, Flow::Elsewhere | Flow::Next)),
    }
    if matches!(insn.class(), Class::Slot) {
        let control = instruction.flow_control();
        assert_eq!(control, FlowControl::Next, "{instruction:?}");
    }
}

#[test]
fn text_of_programs_is_read_as_by_another_decoder() {
    for text in texts() {
        let (mut at, mut all) = (0, 0_u64);
        let mut refused = BTreeMap::new();
        while at < text.bytes.len() {
            let rest = &text.bytes[at..text.bytes.len().min(at + 20)];
            let length = other(rest, text.bits).map_or(1, |instruction| instruction.len());
            if let Err(error) = compare(rest, text.bits) {
                refused.entry(format!("{error:?}")).or_insert((0, rest)).0 += 1;
            }
            at += length;
            all += 1;
        }
        println!("{}: {all} {refused:02x?}", text.file.display());
        // Data between functions may look like any instruction.
        let refused: u64 = refused.values().map(|(count, _)| *count).sum();
        assert!(
            refused <= all / 10_000,
            "{}: {refused} of {all}",
            text.file.display()
        );
    }
}

/// Bytes that begin like an instruction of some kind.
fn bytes(numbers: &mut Numbers) -> [u8; 20] {
    let mut bytes = [0; 20];
    bytes.fill_with(|| numbers.byte());
    let prefixes = [
        0x66, 0x67, 0xf0, 0xf2, 0xf3, 0x2e, 0x36, 0x3e, 0x26, 0x64, 0x65, 0x48, 0x4f, 0x41,
    ];
    let mut at = numbers.below(4).saturating_sub(1) as usize;
    for byte in &mut bytes[..at] {
        *byte = prefixes[numbers.below(14) as usize];
    }
    let starts: [&[u8]; 12] = [
        &[],
        &[],
        &[0x0f],
        &[0x0f],
        &[0x0f, 0x38],
        &[0x0f, 0x3a],
        &[0xc5],
        &[0xc4, 0xe1],
        &[0xc4, 0xe2],
        &[0x62, 0xf1],
        &[0x62, 0xf2],
        &[0x8f, 0xe8],
    ];
    let start = starts[numbers.below(12) as usize];
    if numbers.below(8) == 0 {
        at = 0;
    }
    bytes[at..at + start.len()].copy_from_slice(start);
    bytes
}

#[test]
fn random_bytes_are_read_as_by_another_decoder_or_refused() {
    let mut numbers = Numbers::new(1);
    let mut refused = BTreeMap::new();
    for _ in 0..operands(2_000_000) {
        let bytes = bytes(&mut numbers);
        for bits in [64, 32] {
            if let Err(error) = compare(&bytes, bits) {
                let example = || {
                    let instruction = other(&bytes, bits).expect("it was accepted");
                    format!("{:?} {bits}", instruction.code())
                };
                let entry = refused.entry((format!("{error:?}"), example()));
                *entry.or_insert(0) += 1;
            }
        }
    }
    // We refuse only two kinds of instructions that the other decoder accepts: disputed branches,
    // and those that need a processor with APX.
    refused.retain(|(error, _), _| error != "Disputed");
    assert!(refused.is_empty(), "{refused:#?}");
}

#[test]
fn bytes_that_end_early_and_long_ones_are_told() {
    let whole = [0x48, 0x8b, 0x84, 0x8a, 1, 2, 3, 4];
    for end in 0..whole.len() {
        assert_eq!(decode(&whole[..end], Mode::Long), Err(Undecoded::Short));
    }
    assert!(decode(&whole, Mode::Long).is_ok());
    let mut long = [0x66; 20];
    long[14] = 0x90;
    assert_eq!(decode(&long, Mode::Long).map(|insn| insn.length()), Ok(15));
    long[14] = 0x66;
    assert_eq!(decode(&long, Mode::Long), Err(Undecoded::Long));
    long[13] = 0xb8;
    assert_eq!(decode(&long, Mode::Long), Err(Undecoded::Long));
    assert_eq!(decode(&[0xd5, 0x18, 0x90], Mode::Long), Err(Undecoded::Apx));
    let call = [0x66, 0xe8, 0, 0, 0, 0];
    assert_eq!(decode(&call, Mode::Long), Err(Undecoded::Disputed));
    assert!(decode(&[0x66, 0x48, 0xe8, 0, 0, 0, 0], Mode::Long).is_ok());
}
