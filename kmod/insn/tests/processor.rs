// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only OR MIT

//! Compares every emulated form with the processor: registers, flags, memory and control flow are
//! the same for random operands.
//!
//! A form is an opcode (with the instruction that its ModRM byte selects), a size, and whether its
//! operand is memory. The other bytes change every few hundred operands: registers, prefixes
//! without meaning, and addresses of all kinds. Half of the operands are edge cases. Memory
//! operands are sometimes at the end of the memory that can be accessed, or beyond.

mod common;
mod machine;
mod samples;

use common::{operands, Numbers};
use dtrace_insn::x86_64::{
    Aside, Form, Memory, Mode, Register, Registers, Segment, Size, ARITHMETIC,
};
use machine::{set_gs_base, Landed, Machine, Regs, DATA};
use samples::{forms, Sample, GS, NEXT, TARGET};

/// The direction flag, which is also loaded at random.
const DIRECTION: u64 = 1 << 10;
/// The flags that are compared.
const COMPARED: u64 = ARITHMETIC | DIRECTION | 1 << 18 | 1 << 21;

/// The flags that a program always has: interrupts enabled, and a bit without meaning.
const ALWAYS: u64 = 0x202;

/// How many operands each encoding is tried with.
const EACH: u64 = 256;

/// The expected state of a thread.
struct Thread {
    regs: Regs,
    ip: u64,
    bases: [u64; 2],
}

impl Registers for Thread {
    fn get(&self, register: Register) -> u64 {
        self.regs.general[usize::from(register.number())]
    }

    fn set(&mut self, register: Register, value: u64) {
        self.regs.general[usize::from(register.number())] = value;
    }

    fn ip(&self) -> u64 {
        self.ip
    }

    fn set_ip(&mut self, ip: u64) {
        self.ip = ip;
    }

    fn flags(&self) -> u64 {
        self.regs.flags
    }

    fn set_flags(&mut self, flags: u64) {
        self.regs.flags = flags;
    }

    fn base(&self, segment: Segment) -> u64 {
        match segment {
            Segment::Flat => panic!("it has no base"),
            Segment::Fs => self.bases[0],
            Segment::Gs => self.bases[1],
        }
    }
}

/// The expected contents of both memories of the machine.
struct Mirror {
    end: u64,
    at: [u64; 2],
    bytes: [Box<[u8; DATA]>; 2],
}

impl Mirror {
    fn at(&mut self, address: u64, size: u64) -> Option<&mut [u8]> {
        for (at, bytes) in self.at.iter().zip(&mut self.bytes) {
            let offset = address.wrapping_sub(*at);
            if offset <= DATA as u64 - size {
                return Some(&mut bytes[offset as usize..(offset + size) as usize]);
            }
        }
        None
    }
}

impl Memory for Mirror {
    fn end(&self) -> u64 {
        self.end
    }

    fn load(&mut self, address: u64, size: Size) -> Option<u64> {
        let bytes = self.at(address, size.bytes())?;
        let mut value = [0; 8];
        value[..bytes.len()].copy_from_slice(bytes);
        Some(u64::from_le_bytes(value))
    }

    fn store(&mut self, address: u64, size: Size, value: u64) -> Option<()> {
        let bytes = self.at(address, size.bytes())?;
        bytes.copy_from_slice(&value.to_le_bytes()[..size.bytes() as usize]);
        Some(())
    }
}

/// The registers that a program has. For a 32-bit program the others and the upper halves have no
/// meaning.
fn shown(sample: &Sample, regs: &Regs) -> Vec<u64> {
    match sample.is_long() {
        true => regs.general.to_vec(),
        false => regs.general[..8]
            .iter()
            .map(|value| value & 0xffff_ffff)
            .collect(),
    }
}

struct Bench {
    machine: Machine,
    mirror: Mirror,
    numbers: Numbers,
    bases: [u64; 2],
    /// How many were emulated.
    done: u64,
    /// How many of those were also performed as a [`Brief`](dtrace_insn::x86_64::Brief).
    brief: u64,
    /// How many were left to the processor.
    aside: u64,
    /// How many of those faulted on the processor.
    faults: u64,
}

impl Bench {
    fn new(mode: Mode) -> Self {
        let end = match mode {
            Mode::Long => 0x7fff_ffff_f000,
            Mode::Compatible => 1 << 32,
        };
        let mut machine = Machine::take();
        let at = [machine.low(), machine.near()];
        let bytes = at.map(|at| {
            machine.data(at).fill(0);
            Box::new([0; DATA])
        });
        let bases = [machine::fs_base(), GS];
        set_gs_base(bases[1]);
        Self {
            machine,
            mirror: Mirror { end, at, bytes },
            numbers: Numbers::new(7),
            bases,
            done: 0,
            brief: 0,
            aside: 0,
            faults: 0,
        }
    }

    /// Stores a number at an address and its complement after it, as far as there is memory, in
    /// both memories.
    fn scatter(&mut self, around: u64, value: u64) {
        let bytes = (u128::from(value) | u128::from(!value) << 64).to_le_bytes();
        // At the end of the memory, byte by byte.
        let whole = self.mirror.at(around, 16).is_some();
        for (i, bytes) in (0..).zip(bytes.chunks(if whole { 16 } else { 1 })) {
            let address = around.wrapping_add(i);
            if let Some(place) = self.mirror.at(address, bytes.len() as u64) {
                place.copy_from_slice(bytes);
                let (which, offset) = self.place(address);
                let data = self.machine.data(self.mirror.at[which]);
                data[offset..offset + bytes.len()].copy_from_slice(bytes);
            }
        }
    }

    fn place(&self, address: u64) -> (usize, usize) {
        let which = usize::from(address.wrapping_sub(self.mirror.at[0]) >= DATA as u64);
        (which, address.wrapping_sub(self.mirror.at[which]) as usize)
    }

    /// Whether memory near an address is as expected.
    fn same_memory(&mut self, around: u64) -> bool {
        let (which, offset) = self.place(around);
        if offset >= DATA {
            return true;
        }
        let range = offset.saturating_sub(24)..(offset + 32).min(DATA);
        let data = self.machine.data(self.mirror.at[which]);
        data[range.clone()] == self.mirror.bytes[which][range]
    }

    /// Tries an instruction with one set of operands.
    fn try_one(&mut self, sample: &Sample, form: &Form) {
        let mut regs = Regs {
            general: std::array::from_fn(|_| self.numbers.operand()),
            flags: self.numbers.next() & (ARITHMETIC | DIRECTION) | ALWAYS,
        };
        let reached = sample.choose(&mut self.numbers, &mut regs);
        for address in reached.addresses {
            let value = self.numbers.operand();
            self.scatter(address, value);
        }
        if let Some((at, to)) = reached.pointer {
            self.scatter(at, to);
        }
        let mut thread = Thread {
            regs,
            ip: sample.at,
            bases: self.bases,
        };
        let before = regs;
        let briefly = form.brief().and_then(|brief| {
            let register = |register: Register| before.general[usize::from(register.number())];
            let sp = register(Register::RSP);
            brief.perform(sample.at, sp, register, &mut self.mirror)
        });
        match form.perform(&mut thread, &mut self.mirror) {
            Ok(()) => {
                self.done += 1;
                if let Some(briefly) = briefly {
                    self.brief += 1;
                    let mut brief = before;
                    brief.general[usize::from(Register::RSP.number())] = briefly.sp;
                    assert_eq!((brief, briefly.ip), (thread.regs, thread.ip), "{sample:x?}");
                }
                let landed = self.machine.run(sample.at, &mut regs, None);
                let stub = match thread.ip {
                    ip if ip == sample.next() => NEXT,
                    ip if ip == sample.target => TARGET,
                    ip => panic!("{sample:x?}: to {ip:x}, but the processor: {landed:x?}"),
                };
                let mask = COMPARED & !sample.undefined(&before);
                let same = landed == Landed::Stub(stub)
                    && shown(sample, &regs) == shown(sample, &thread.regs)
                    && (regs.flags ^ thread.regs.flags) & mask == 0;
                assert!(
                    same,
                    "{sample:x?}\nbefore {before:x?}\nprocessor {regs:x?} {landed:x?}\nours {:x?} {:x}",
                    thread.regs, thread.ip
                );
            }
            Err(aside) => {
                assert_eq!(thread.regs, before, "{sample:x?}: {aside:?} changes");
                assert_eq!(thread.ip, sample.at);
                assert_eq!(briefly, None, "{sample:x?}: {aside:?}");
                self.aside += 1;
                self.left(sample, regs, aside);
            }
        }
        for address in reached.addresses {
            assert!(
                self.same_memory(address),
                "{sample:x?}: memory at {address:x}"
            );
        }
    }

    /// An address that the emulation cannot access is one that the processor cannot access either;
    /// it leaves everything unchanged.
    fn left(&mut self, sample: &Sample, mut regs: Regs, aside: Aside) {
        let before = regs;
        match aside {
            // A store that crosses the end of a page is possible for the processor.
            Aside::Memory(address) if self.mirror.at(address, 8).is_none() => {
                let landed = self.machine.run(sample.at, &mut regs, None);
                let faulted = matches!(landed, Landed::Signal(_, ip) if ip == sample.at);
                assert!(faulted, "{sample:x?} {before:x?} {landed:x?}");
                assert_eq!(shown(sample, &regs), shown(sample, &before), "{sample:x?}");
                self.faults += 1;
            }
            _ => (),
        }
    }

    fn all_memory(&mut self) {
        for which in 0..2 {
            let at = self.mirror.at[which];
            assert!(*self.machine.data(at) == *self.mirror.bytes[which]);
        }
    }
}

fn compare(mode: Mode) {
    let count = operands(4096);
    let mut bench = Bench::new(mode);
    let forms = forms(mode);
    for kind in &forms {
        let mut tried = 0;
        while tried < count {
            let sample = kind.sample(&mut bench.numbers, &mut bench.machine);
            let form = sample.form();
            for _ in 0..EACH.min(count - tried) {
                bench.try_one(&sample, &form);
            }
            tried += EACH;
        }
        bench.all_memory();
    }
    println!(
        "{mode:?}: {} forms, {} operands each; {} done, {} left to the processor, {} of them faulted",
        forms.len(),
        count,
        bench.done,
        bench.aside,
        bench.faults
    );
    assert!(bench.aside < bench.done / 50, "{} left", bench.aside);
    assert!(bench.faults > 0);
}

#[test]
fn forms_do_what_the_processor_does() {
    compare(Mode::Long);
}

#[test]
fn forms_of_32_bits_do_what_the_processor_does() {
    compare(Mode::Compatible);
}
