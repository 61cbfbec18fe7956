// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only OR MIT

//! Instructions of each form, and operands with which they access memory that exists.

use crate::common::Numbers;
use crate::machine::{fs_base, Machine, Regs, DATA, PAGE, STUB};
use dtrace_insn::x86_64::{decode, Class, Form, Insn, Map, Mode};

/// The number of the stub after an instruction.
pub const NEXT: u64 = 1;

/// The number of the stub at its target.
pub const TARGET: u64 = 2;

/// The base of `%gs` while samples run.
pub const GS: u64 = 0x12_3000;

/// Opcodes with an absolute address and no ModRM byte.
const MOFFS: [u8; 4] = [0xa0, 0xa1, 0xa2, 0xa3];

const RCX: usize = 1;
const RSP: u8 = 4;
const RBP: u8 = 5;

/// A form.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    mode: Mode,
    /// Whether the opcode follows 0F.
    secondary: bool,
    opcode: u8,
    /// The `reg` field of its ModRM byte, if that selects the instruction.
    middle: Option<u8>,
    /// The prefix that selects the size: 0 for none, 66 or 48.
    size: u8,
    modrm: bool,
    memory: bool,
    lock: bool,
}

/// All forms that are emulated for programs of a mode.
pub fn forms(mode: Mode) -> Vec<Kind> {
    let mut forms = Vec::new();
    for (secondary, opcode) in [false, true]
        .into_iter()
        .flat_map(|s| (0..=255).map(move |o| (s, o)))
    {
        let modrm = has_modrm(secondary, opcode);
        let middles: Vec<Option<u8>> = match is_group(secondary, opcode) {
            true => (0..8).map(Some).collect(),
            false => vec![None],
        };
        let sizes: &[u8] = if is_byte(secondary, opcode) {
            &[0]
        } else {
            &[0, 0x66, 0x48][..if mode == Mode::Long { 3 } else { 2 }]
        };
        // A register, memory, and memory with a lock prefix.
        let places = [(false, false), (true, false), (true, true)];
        for (memory, lock) in &places[..if modrm { 3 } else { 1 }] {
            for (middle, size) in middles
                .iter()
                .flat_map(|m| sizes.iter().map(move |s| (*m, *s)))
            {
                let kind = Kind {
                    mode,
                    secondary,
                    opcode,
                    middle,
                    size,
                    modrm,
                    memory: *memory,
                    lock: *lock,
                };
                let modrm = if *memory { 0 } else { 0xc0 } | middle.unwrap_or(0) << 3;
                let insn = insn(mode, &kind.bytes(&[], 0, &[modrm], &[0; 8]));
                let done = insn.is_some_and(|insn| {
                    let map = if secondary {
                        Map::Secondary
                    } else {
                        Map::Primary
                    };
                    let read = insn.opcode() == opcode && insn.map() == map;
                    read && matches!(insn.class(), Class::Done(_))
                });
                if done || kind.is_endbr() {
                    forms.push(kind);
                }
            }
        }
    }
    forms
}

fn insn(mode: Mode, bytes: &[u8]) -> Option<Insn> {
    decode(bytes, mode).ok()
}

fn has_modrm(secondary: bool, opcode: u8) -> bool {
    match (secondary, opcode) {
        (false, 0x00..=0x3f) => opcode & 7 < 4,
        (true, 0xb0 | 0xb1 | 0xc0 | 0xc1) => true,
        (false, 0x63 | 0x80..=0x8f | 0xc0 | 0xc1 | 0xc6 | 0xc7 | 0xd0..=0xd3) => true,
        (false, 0xf6 | 0xf7 | 0xfe | 0xff) => true,
        (true, 0x0d | 0x18 | 0x1f | 0x40..=0x4f | 0x90..=0x9f | 0xb6 | 0xb7 | 0xbe | 0xbf) => true,
        _ => false,
    }
}

fn is_group(secondary: bool, opcode: u8) -> bool {
    let groups: &[u8] = match secondary {
        true => &[0x0d, 0x18, 0x1f],
        false => &[
            0x80, 0x81, 0x82, 0x83, 0xc0, 0xc1, 0xc6, 0xc7, 0xd0, 0xd1, 0xd2, 0xd3, 0xf6, 0xf7,
            0xfe, 0xff,
        ],
    };
    groups.contains(&opcode)
}

fn is_byte(secondary: bool, opcode: u8) -> bool {
    match (secondary, opcode) {
        (false, 0x00..=0x3f) => matches!(opcode & 7, 0 | 2 | 4),
        (false, 0x80 | 0x84 | 0x86 | 0x88 | 0x8a | 0xa0 | 0xa2 | 0xa8 | 0xb0..=0xb7) => true,
        (false, 0xc0 | 0xc6 | 0xd0 | 0xd2 | 0xf6 | 0xfe | 0x70..=0x7f | 0xe0..=0xeb) => true,
        (true, 0x80..=0x9f | 0xb0 | 0xc0) => true,
        _ => false,
    }
}

impl Kind {
    fn bytes(&self, prefixes: &[u8], rex: u8, modrm: &[u8], tail: &[u8]) -> Vec<u8> {
        let mut bytes = prefixes.to_vec();
        if self.lock {
            bytes.push(0xf0);
        }
        if self.size == 0x66 {
            bytes.push(0x66);
        }
        let rex = rex | if self.size == 0x48 { 0x48 } else { 0 };
        if rex != 0 {
            bytes.push(rex);
        }
        if self.secondary {
            bytes.push(0x0f);
        }
        bytes.push(self.opcode);
        if self.modrm {
            bytes.extend(modrm);
        }
        bytes.extend(tail);
        bytes
    }

    fn is(&self, opcodes: &[u8]) -> bool {
        !self.secondary && opcodes.contains(&self.opcode)
    }

    fn is_endbr(&self) -> bool {
        (self.secondary, self.opcode, self.size) == (true, 0x1e, 0)
    }

    fn is_group_ff(&self, middles: &[u8]) -> bool {
        self.opcode == 0xff && !self.secondary && self.middle.is_some_and(|m| middles.contains(&m))
    }

    /// Whether it reads or writes the memory that its ModRM byte names.
    fn reaches(&self) -> bool {
        let hint = self.secondary && matches!(self.opcode, 0x0d | 0x18 | 0x1f);
        self.memory && !self.is(&[0x8d]) && !hint
    }

    /// Whether it pushes or pops.
    fn is_stack(&self) -> bool {
        let opcode = self.opcode;
        let push = !self.secondary && (0x50..0x60).contains(&opcode);
        push || self.is(&[0x68, 0x6a, 0x9c, 0x9d, 0xc2, 0xc3, 0xe8]) || self.is_group_ff(&[2, 6])
    }

    /// Whether it continues at an address from the stack, a register or memory.
    fn is_indirect(&self) -> bool {
        self.is(&[0xc2, 0xc3]) || self.is_group_ff(&[2, 4])
    }

    /// The bytes of its distance, if it is a branch.
    fn distance(&self) -> Option<usize> {
        match (self.secondary, self.opcode) {
            (false, 0x70..=0x7f | 0xe0..=0xe3 | 0xeb) => Some(1),
            (false, 0xe8 | 0xe9) | (true, 0x80..=0x8f) => Some(4),
            _ => None,
        }
    }

    /// Creates an instruction of this form and puts it into the machine.
    pub fn sample(&self, numbers: &mut Numbers, machine: &mut Machine) -> Sample {
        loop {
            if let Some(sample) = self.try_sample(numbers, machine) {
                machine.put(sample.at, &sample.bytes);
                machine.put_stub(sample.next(), NEXT as u32);
                if sample.kind.is_indirect() || sample.kind.distance().is_some() {
                    machine.put_stub(sample.target, TARGET as u32);
                }
                return sample;
            }
        }
    }

    fn try_sample(&self, numbers: &mut Numbers, machine: &Machine) -> Option<Sample> {
        let long = self.mode == Mode::Long;
        let code = if long {
            machine.code()
        } else {
            machine.low_code()
        };
        let at = code + PAGE as u64 + numbers.below(64);
        let mut rex = match numbers.below(2) {
            1 if long => 0x40 | numbers.below(8) as u8,
            _ => 0,
        };
        let counts = self.is(&[0xe0, 0xe1, 0xe2, 0xe3]);
        let mut prefixes = Vec::new();
        // Where segments have a meaning, in 32-bit mode, the code segment cannot be written.
        let flats = if long { 4 } else { 3 };
        let flat = [0x26, 0x36, 0x3e, 0x2e][numbers.below(flats) as usize];
        let (mut segment, mut distant) = (0, false);
        match numbers.below(8) {
            0 => prefixes.push(flat),
            1 if self.memory && long => {
                prefixes.push(0x65);
                segment = GS;
            }
            2 if self.memory && long => {
                prefixes.push(0x64);
                (segment, distant) = (fs_base(), true);
            }
            3 if self.distance().is_some() && !counts || self.is_indirect() => {
                prefixes.push(0xf2 + numbers.below(2) as u8);
            }
            4 if self.is(&[0x90]) && rex & 1 == 0 => prefixes.push(0xf3),
            _ => (),
        }
        let addressed = counts || long && (self.memory || self.is(&MOFFS));
        let narrow = numbers.below(8) == 0 && addressed && !distant;
        if narrow {
            prefixes.push(0x67);
        }
        if self.is_endbr() {
            prefixes.push(0xf3);
        }
        let mut sample = Sample {
            kind: *self,
            at,
            bytes: Vec::new(),
            target: code + 3 * PAGE as u64 + numbers.below(64),
            narrow,
            segment,
            low: machine.low(),
            near: machine.near(),
            operand: None,
            address: Address::default(),
            displacement_at: 0,
            absolute: machine.low() + 64 + numbers.below(DATA as u64 - 128),
        };
        let mut modrm = Vec::new();
        if self.memory {
            let address = Address::any(numbers, self.mode, self.is_stack());
            // 32-bit addresses would not reach this memory.
            let fixed = address.base.is_none() && address.index.is_none();
            let beyond = address.relative && (segment != 0 || narrow && self.reaches());
            if beyond || fixed && distant {
                return None;
            }
            sample.address = address;
            modrm = sample.encode_address(numbers, &mut rex);
        } else if self.modrm {
            let (low, middle) = (numbers.below(8) as u8, numbers.below(8) as u8);
            modrm.push(0xc0 | self.middle.unwrap_or(middle) << 3 | low);
            sample.operand = Some(low | (rex & 1) << 3);
        }
        let mut tail: Vec<u8> = (0..8).map(|_| numbers.byte()).collect();
        if self.is_endbr() {
            tail[0] = 0xfa + numbers.below(2) as u8;
        }
        if self.is(&MOFFS) {
            tail = sample.absolute.to_le_bytes().to_vec();
        }
        sample.displacement_at = self.bytes(&prefixes, rex, &[], &[]).len() + 1;
        let mut bytes = self.bytes(&prefixes, rex, &modrm, &tail);
        let length = usize::from(insn(self.mode, &bytes)?.length());
        bytes.truncate(length);
        sample.bytes = bytes;
        sample.link(numbers)?;
        // A call through the stack pointer would push into code.
        let own = self.is_group_ff(&[2]) && sample.operand == Some(RSP);
        (length <= 15 && !own).then_some(sample)
    }
}

/// The parts of an address.
#[derive(Clone, Copy, Debug, Default)]
struct Address {
    base: Option<u8>,
    index: Option<(u8, u8)>,
    displacement: i32,
    relative: bool,
}

impl Address {
    fn any(numbers: &mut Numbers, mode: Mode, stack: bool) -> Self {
        let registers = if mode == Mode::Long { 16 } else { 8 };
        let [base, index] = [0; 2].map(|_| numbers.below(registers) as u8);
        let index = (index != RSP).then_some((index, numbers.below(4) as u8));
        let displacement = match numbers.below(4) {
            0 => 0,
            1 => numbers.byte() as i8 as i32,
            _ => numbers.next() as i32 >> numbers.below(24),
        };
        let mut address = Self {
            base: Some(base),
            index: None,
            displacement,
            relative: false,
        };
        match numbers.below(8) {
            0..=2 => (),
            3 | 4 => address.index = index,
            5 => (address.base, address.index) = (None, index),
            6 => address.base = None,
            _ => (address.base, address.relative) = (None, true),
        }
        // So that the stack is in memory as well.
        if stack && base == RSP {
            address.index = None;
            address.displacement = i32::from(address.displacement as i8) / 2;
        }
        address
    }
}

/// An instruction at its address.
#[derive(Clone, Debug)]
pub struct Sample {
    kind: Kind,
    /// Its address.
    pub at: u64,
    bytes: Vec<u8>,
    /// Its target, if it is a branch.
    pub target: u64,
    narrow: bool,
    /// The base that its segment adds.
    segment: u64,
    low: u64,
    near: u64,
    /// The register that its ModRM byte names.
    operand: Option<u8>,
    address: Address,
    displacement_at: usize,
    /// The address that it accesses, if no register is part of it.
    absolute: u64,
}

/// What a choice of operands leads to.
pub struct Reached {
    /// Addresses that are read or written.
    pub addresses: [u64; 2],
    /// An address, and the target that must be stored there.
    pub pointer: Option<(u64, u64)>,
}

impl Sample {
    /// The address of the next instruction.
    pub fn next(&self) -> u64 {
        self.at + self.bytes.len() as u64
    }

    /// Whether it is an instruction of a 64-bit program.
    pub fn is_long(&self) -> bool {
        self.kind.mode == Mode::Long
    }

    /// Its form.
    pub fn form(&self) -> Form {
        let insn = insn(self.kind.mode, &self.bytes).expect("an instruction");
        match insn.class() {
            Class::Done(form) => form,
            class => panic!("{self:x?} is {class:?}"),
        }
    }

    /// The flags that no manual defines after it.
    pub fn undefined(&self, before: &Regs) -> u64 {
        const CF: u64 = 1;
        const AF: u64 = 1 << 4;
        const OF: u64 = 1 << 11;
        if self.kind.secondary || !matches!(self.kind.opcode, 0xc0 | 0xc1 | 0xd0..=0xd3) {
            return 0;
        }
        let last = self.bytes.last().copied().unwrap_or(0);
        let count = match self.kind.opcode & 0xfe {
            0xc0 => last,
            0xd0 => 1,
            _ => before.general[RCX] as u8,
        };
        let bits = match (self.kind.opcode & 1, self.kind.size) {
            (0, _) => 8,
            (_, 0x66) => 16,
            (_, 0x48) => 64,
            _ => 32,
        };
        let count = count & if bits == 64 { 63 } else { 31 };
        let rotates = self.kind.middle.is_some_and(|middle| middle < 4);
        let mut undefined = 0;
        if count > 1 {
            undefined |= OF;
        }
        if count != 0 && !rotates {
            undefined |= AF;
        }
        if count >= bits && !rotates {
            undefined |= CF;
        }
        undefined
    }

    /// The bytes from ModRM to displacement. Sets the REX bits of the registers.
    fn encode_address(&mut self, numbers: &mut Numbers, rex: &mut u8) -> Vec<u8> {
        let middle = self.kind.middle.unwrap_or(numbers.below(8) as u8) << 3;
        let Address {
            base,
            index,
            mut displacement,
            relative,
        } = self.address;
        let high = base.is_some_and(|base| base > 7) || index.is_some_and(|(index, _)| index > 7);
        if base.is_some() || index.is_some() {
            *rex &= !3;
            if high {
                *rex |=
                    0x40 | index.map_or(0, |(index, _)| index >> 3 << 1) | base.unwrap_or(0) >> 3;
            }
        }
        if relative && self.kind.mode == Mode::Compatible {
            let absolute = (self.absolute as u32).to_le_bytes();
            (self.address.relative, self.address.displacement) = (false, self.absolute as i32);
            return [&[middle | 5][..], &absolute].concat();
        }
        if relative {
            // Set by `link()`, when the length is known.
            return [&[middle | 5][..], &[0; 4]].concat();
        }
        let form = match (base, displacement) {
            (None, _) => 0,
            (Some(base), 0) if base & 7 != RBP => 0,
            (_, -128..=127) if numbers.below(2) == 0 => 0x40,
            _ => 0x80,
        };
        if base.is_none() && index.is_none() {
            // REX.X must not be set: it would turn the number that stands for no index into a
            // register.
            *rex &= !2;
            displacement = self.absolute.wrapping_sub(self.segment) as i32;
            self.address.displacement = displacement;
        }
        let low = base.map_or(5, |base| base & 7);
        let mut bytes = match index {
            None if base.is_some() && low != RSP => vec![form | middle | low],
            None => vec![form | middle | 4, 0x20 | low],
            Some((index, shift)) => vec![form | middle | 4, shift << 6 | (index & 7) << 3 | low],
        };
        match form {
            0 if base.is_some() => (),
            0x40 => bytes.push(displacement as u8),
            _ => bytes.extend(displacement.to_le_bytes()),
        }
        bytes
    }

    /// Sets distances, which depend on the length.
    fn link(&mut self, numbers: &mut Numbers) -> Option<()> {
        let (length, next) = (self.bytes.len(), self.next());
        if self.address.relative && self.kind.memory {
            self.absolute = self.near + 64 + numbers.below(DATA as u64 - 128);
            let distance = self.absolute.wrapping_sub(next) as i32;
            let at = self.displacement_at;
            self.bytes[at..at + 4].copy_from_slice(&distance.to_le_bytes());
        }
        if let Some(size) = self.kind.distance() {
            let distance = match size {
                1 => numbers.byte() as i8 as i32,
                _ => numbers.below(3000) as i32 - 1500,
            };
            let stub = STUB as i32;
            let clear = distance >= stub || distance <= -(length as i32 + stub);
            clear.then_some(())?;
            self.target = next.wrapping_add(i64::from(distance) as u64);
            self.bytes[length - size..].copy_from_slice(&distance.to_le_bytes()[..size]);
        }
        Some(())
    }

    /// Sets registers so that existing memory is accessed, occasionally at its end.
    pub fn choose(&self, numbers: &mut Numbers, regs: &mut Regs) -> Reached {
        let pick = |numbers: &mut Numbers| {
            let offset = match numbers.below(2048) {
                0 => numbers.below(16).wrapping_sub(8),
                1 => DATA as u64 - 8 + numbers.below(16),
                _ => 64 + numbers.below(DATA as u64 - 128),
            };
            self.low.wrapping_add(offset)
        };
        if self.kind.mode == Mode::Compatible {
            regs.general = regs.general.map(|value| value & 0xffff_ffff);
        }
        let stack = pick(numbers);
        let mut reached = Reached {
            addresses: [self.low; 2],
            pointer: None,
        };
        if self.kind.is_stack() {
            regs.general[usize::from(RSP)] = stack;
            reached.addresses[1] = stack;
        }
        if self.kind.is(&[0xc9]) {
            regs.general[usize::from(RBP)] = stack;
            reached.addresses[0] = stack;
        }
        if self.kind.is(&[0xe0, 0xe1, 0xe2, 0xe3]) && numbers.below(2) == 0 {
            regs.general[RCX] = regs.general[RCX] & !0xffff_ffff | numbers.below(3);
        }
        if self.kind.is(&MOFFS) {
            reached.addresses[0] = self.absolute;
        }
        if self.kind.reaches() {
            let wanted = pick(numbers);
            reached.addresses[0] = self.reach(numbers, regs, wanted);
        }
        if self.kind.is_stack() {
            // A push stores below the stack pointer.
            reached.addresses[1] = regs.general[usize::from(RSP)].wrapping_sub(8);
        }
        if self.kind.is_indirect() {
            let to = match numbers.below(64) {
                0 if self.kind.mode == Mode::Long => numbers.operand() | 1 << 63,
                1..=7 => self.next(),
                _ => self.target,
            };
            match self.operand {
                _ if self.kind.is(&[0xc2, 0xc3]) => {
                    reached.pointer = Some((regs.general[usize::from(RSP)], to));
                }
                Some(register) => regs.general[usize::from(register)] = to,
                None => reached.pointer = Some((reached.addresses[0], to)),
            }
        }
        reached
    }

    /// Sets the registers of its address so that it accesses `wanted` or an address close to it.
    /// Returns that address.
    fn reach(&self, numbers: &mut Numbers, regs: &mut Regs, wanted: u64) -> u64 {
        let Address {
            base,
            index,
            displacement,
            relative,
        } = self.address;
        let displacement = i64::from(displacement) as u64;
        let rest = wanted.wrapping_sub(self.segment).wrapping_sub(displacement);
        let long = self.kind.mode == Mode::Long;
        let cut = |value: u64| match self.narrow || !long {
            true => value & 0xffff_ffff,
            false => value,
        };
        // With 32-bit addresses the upper halves have no meaning.
        let noise = match self.narrow && long && !self.kind.is_stack() {
            true => numbers.next() << 32,
            false => 0,
        };
        let mut set = |register: u8, value: u64| {
            regs.general[usize::from(register)] = value.wrapping_add(noise);
        };
        match (base, index) {
            (Some(base), None) => set(base, cut(rest)),
            (Some(base), Some((index, shift))) if base != index => {
                let value = numbers.operand();
                set(index, value);
                let value = value.wrapping_add(noise) << shift;
                set(base, cut(rest.wrapping_sub(value)));
            }
            (Some(base), Some((_, shift))) => {
                let rest = cut(rest);
                let parts = (1 << shift) + 1;
                let value = rest / parts;
                set(base, value);
                return wanted.wrapping_sub(rest % parts);
            }
            (None, Some((index, shift))) => {
                let rest = cut(rest);
                set(index, rest >> shift);
                return wanted.wrapping_sub(rest & ((1 << shift) - 1));
            }
            (None, None) if relative => {
                return self.absolute;
            }
            (None, None) => return displacement.wrapping_add(self.segment),
        }
        wanted
    }
}
