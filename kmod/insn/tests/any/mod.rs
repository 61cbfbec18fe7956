// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only OR MIT

//! Properties that must hold for any bytes, registers and memory.

use dtrace_insn::x86_64::{
    decode, Class, Flow, Form, Insn, Memory, Mode, Register, Registers, Segment, Size, LONGEST,
    SLOT,
};

/// Registers with arbitrary values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Thread {
    general: [u64; 16],
    ip: u64,
    flags: u64,
    base: u64,
}

impl Registers for Thread {
    fn get(&self, register: Register) -> u64 {
        self.general[usize::from(register.number())]
    }

    fn set(&mut self, register: Register, value: u64) {
        self.general[usize::from(register.number())] = value;
    }

    fn ip(&self) -> u64 {
        self.ip
    }

    fn set_ip(&mut self, ip: u64) {
        self.ip = ip;
    }

    fn flags(&self) -> u64 {
        self.flags
    }

    fn set_flags(&mut self, flags: u64) {
        self.flags = flags;
    }

    fn base(&self, segment: Segment) -> u64 {
        assert!(segment != Segment::Flat);
        self.base
    }
}

/// Memory that may or may not be present. Asserts that only addresses of the program are accessed.
struct Anywhere {
    end: u64,
    seed: u64,
    stores: u32,
}

impl Anywhere {
    fn next(&mut self, address: u64, size: Size) -> Option<u64> {
        let end = address.checked_add(size.bytes()).expect("an address");
        assert!(end <= self.end, "{address:x} is not the program's");
        self.seed = self.seed.rotate_left(9).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ address;
        (self.seed & 7 != 0).then_some(self.seed)
    }
}

impl Memory for Anywhere {
    fn end(&self) -> u64 {
        self.end
    }

    fn load(&mut self, address: u64, size: Size) -> Option<u64> {
        assert!(self.stores == 0, "a load behind a store");
        self.next(address, size)
    }

    fn store(&mut self, address: u64, size: Size, value: u64) -> Option<()> {
        assert!(value & !size.mask() == 0);
        assert!(address & 4095 <= 4096 - size.bytes(), "it crosses pages");
        self.next(address, size)?;
        self.stores += 1;
        assert!(self.stores == 1, "two stores");
        Some(())
    }
}

/// Decodes bytes, and does everything that can be done with the instruction.
pub fn instruction(bytes: &[u8], mode: Mode, numbers: &[u64; 20]) {
    let Ok(insn) = decode(bytes, mode) else {
        return;
    };
    let length = usize::from(insn.length());
    assert!((1..=LONGEST).contains(&length) && insn.bytes() == &bytes[..length]);
    // Bytes after the instruction have no influence.
    assert_eq!(decode(insn.bytes(), mode), Ok(insn));
    let [.., at, slot, _, _] = *numbers;
    insn.uprobes();
    insn.leaves(at, &(at..at.saturating_add(100)));
    moved(&insn, at, slot);
    match insn.class() {
        Class::Done(form) => done(&insn, &form, numbers),
        Class::Slot => assert_eq!(insn.flow(at), Flow::Next),
        Class::Refused(refusal) => assert!(!refusal.to_string().is_empty()),
    }
}

fn moved(insn: &Insn, at: u64, slot: u64) {
    let mut out = [0; SLOT];
    let near = at.wrapping_add(slot % (1 << 30));
    for slot in [slot, near] {
        if let Ok(length) = insn.relocate(at, slot, &mut out) {
            assert!(length > usize::from(insn.length()) && length <= SLOT);
            let (copy, jump) = out[..length].split_at(usize::from(insn.length()));
            let copy = decode(copy, insn.mode()).expect("the same instruction");
            assert_eq!(
                (copy.length(), copy.opcode()),
                (insn.length(), insn.opcode())
            );
            let jump = decode(jump, insn.mode()).expect("a jump");
            assert!(matches!(jump.flow(0), Flow::Jump(_)));
            // Every output that is too small is refused.
            for room in 0..length {
                assert!(insn.relocate(at, slot, &mut out[..room]).is_err());
            }
        }
    }
    if !matches!(insn.class(), Class::Done(_) | Class::Slot) || insn.flow(at) != Flow::Next {
        assert!(insn.relocate(at, slot, &mut out).is_err());
    }
}

fn done(insn: &Insn, form: &Form, numbers: &[u64; 20]) {
    let [general @ .., ip, flags, base, seed] = *numbers;
    let end = match insn.mode() {
        Mode::Long => 0x7fff_ffff_f000,
        Mode::Compatible => 1 << 32,
    };
    let before = Thread {
        general,
        ip,
        flags,
        base,
    };
    let mut after = before;
    let mut memory = Anywhere {
        end,
        seed,
        stores: 0,
    };
    match form.perform(&mut after, &mut memory) {
        Ok(()) if insn.flow(ip) == Flow::Next => (),
        Ok(()) => assert!(after.ip < end || after.ip == ip.wrapping_add(u64::from(insn.length()))),
        Err(_) => assert!(after == before && memory.stores == 0),
    }
    const NEVER: u64 = !(0x8d5 | 1 << 10 | 1 << 14 | 1 << 18 | 1 << 21);
    assert_eq!((after.flags ^ before.flags) & NEVER, 0);
}
