// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only OR MIT

//! Executes instructions of real programs in place and in a slot, and compares the results:
//! registers including vectors, memory, and signals.
//!
//! Registers that an address consists of get values with which memory is reached. An instruction
//! with a relative address gets another displacement. Instructions are left out if their result
//! differs from one execution to the next (clocks, random numbers), or if they would change the
//! test's own thread.

mod common;
mod machine;

use common::{operands, texts, Numbers};
use dtrace_insn::x86_64::{decode, Class, Insn, Mode, SLOT};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, Register};
use machine::{Landed, Machine, Regs, Vectors, DATA, PAGE};
use std::arch::x86_64::_xgetbv;
use std::collections::{BTreeMap, HashSet};

/// The arithmetic flags and the direction flag.
const FLAGS: u64 = 0x8d5 | 1 << 10;

/// The vector components that the processor saves: x87, SSE, AVX, AVX-512.
fn components() -> u64 {
    // SAFETY: the kernel has enabled XSAVE, which the machine needs as well.
    unsafe { _xgetbv(0) & 0xe7 }
}

/// Random vectors in the layout of `xrstor`.
fn vectors(numbers: &mut Numbers) -> Vectors {
    let mut vectors = Vectors([0; 4096]);
    for word in vectors.0.chunks_exact_mut(8) {
        let value = match numbers.below(4) {
            0 => 0,
            1 => numbers.operand(),
            _ => numbers.next(),
        };
        word.copy_from_slice(&value.to_le_bytes());
    }
    // The x87 unit in its initial state, and all exceptions of SSE masked.
    vectors.0[..24].fill(0);
    vectors.0[..2].copy_from_slice(&0x37f_u16.to_le_bytes());
    vectors.0[24..32].copy_from_slice(&0x1f80_u64.to_le_bytes());
    vectors.0[32..160].fill(0);
    vectors.0[512..576].fill(0);
    vectors.0[512..520].copy_from_slice(&components().to_le_bytes());
    vectors
}

/// Whether the instruction cannot be compared or must not be executed.
fn left_out(other: &Instruction) -> bool {
    use Mnemonic::*;
    let segments = (0..other.op_count()).any(|i| other.op_register(i).is_segment_register());
    segments
        || other.segment_prefix() == Register::FS
        || matches!(
            other.mnemonic(),
            // Clocks and random numbers.
            Rdtsc | Rdtscp | Rdpmc | Rdpru | Rdrand | Rdseed | Rdpid | Cpuid
            // These change the trap flag, segments and their bases, or the state of the thread.
            | Popf | Popfq | Lss | Lfs | Lgs | Wrfsbase | Wrgsbase | Wrpkru | Clui | Stui
            // These load or store all registers, including those that the kernel manages.
            | Xrstor | Xrstor64 | Xrstors | Xrstors64 | Xsave | Xsave64 | Xsavec | Xsavec64
            | Xsaveopt | Xsaveopt64 | Fxsave | Fxsave64 | Fxrstor | Fxrstor64
            // These store the address of an instruction.
            | Fnsave | Fnstenv
            // These wait.
            | Monitorx | Mwaitx | Umonitor | Umwait | Tpause
        )
}

/// The instruction by another decoder, and the offset of its displacement.
fn other(insn: &Insn) -> (Instruction, usize) {
    let mut decoder = Decoder::new(64, insn.bytes(), DecoderOptions::NONE);
    let instruction = decoder.decode();
    let offsets = decoder.get_constant_offsets(&instruction);
    (instruction, offsets.displacement_offset())
}

/// The addresses of the instruction in the program and of its slot.
struct Places {
    from: u64,
    slot: u64,
}

struct Bench {
    machine: Machine,
    numbers: Numbers,
    seen: BTreeMap<String, u64>,
}

/// The result of one execution.
#[derive(Clone)]
struct Outcome {
    landed: Landed,
    regs: Regs,
    vectors: Vectors,
    memory: [Box<[u8; DATA]>; 2],
}

impl Bench {
    fn memory(&mut self) -> [Box<[u8; DATA]>; 2] {
        let at = [self.machine.low(), self.machine.near()];
        at.map(|at| Box::new(*self.machine.data(at)))
    }

    fn fill(&mut self, memory: &[Box<[u8; DATA]>; 2]) {
        for (at, bytes) in [self.machine.low(), self.machine.near()]
            .into_iter()
            .zip(memory)
        {
            *self.machine.data(at) = **bytes;
        }
    }

    /// Registers with which the addresses that the instruction may use are in memory.
    fn registers(&mut self, insn: &Insn) -> Regs {
        let numbers = &mut self.numbers;
        let mut regs = Regs {
            general: std::array::from_fn(|_| numbers.operand()),
            flags: numbers.next() & FLAGS | 0x202,
        };
        let (low, middle) = (self.machine.low(), self.machine.low() + DATA as u64 / 2);
        // Registers of string instructions, the stack, and `xlat`.
        for register in [3, 4, 5, 6, 7] {
            regs.general[register] = low + 1024 + (numbers.below(DATA as u64 - 2048) & !63);
        }
        if numbers.below(2) == 0 {
            regs.general[1] = numbers.below(64);
        }
        let (other, _) = other(insn);
        if !insn.is_ip_relative() {
            let wanted = middle + (numbers.below(1024) & !63);
            let mut rest = wanted.wrapping_sub(other.memory_displacement64());
            let (base, index) = (other.memory_base(), other.memory_index());
            if index.is_gpr() {
                let value = numbers.below(128) & !15;
                regs.general[index.number()] = value;
                rest = rest.wrapping_sub(value * u64::from(other.memory_index_scale()));
            }
            if base.is_gpr() {
                regs.general[base.number()] = rest;
            }
        }
        regs
    }

    fn execute(
        &mut self,
        at: u64,
        regs: Regs,
        vectors: &Vectors,
        memory: &[Box<[u8; DATA]>; 2],
    ) -> Outcome {
        self.fill(memory);
        let (mut regs, mut vectors) = (regs, vectors.clone());
        let landed = self.machine.run(at, &mut regs, Some(&mut vectors));
        regs.flags &= FLAGS;
        // Do not compare which components are in their initial state, and where the last x87
        // instruction was.
        vectors.0[512..520].fill(0);
        vectors.0[6..16].fill(0);
        Outcome {
            landed,
            regs,
            vectors,
            memory: self.memory(),
        }
    }

    /// Executes an instruction at both places and compares the results.
    fn compare(&mut self, insn: &Insn) {
        let behind = self.machine.code() + CODE_AT;
        let places = Places {
            from: behind + self.numbers.below(64),
            slot: behind + PAGE as u64 + self.numbers.below(64),
        };
        let moved = self.aimed(insn, places.from);
        let mut out = [0xcc; SLOT];
        let length = moved
            .relocate(places.from, places.slot, &mut out)
            .unwrap_or_else(|error| panic!("{moved:02x?}: {error:?}"));
        self.machine.put(places.from, moved.bytes());
        let next = places.from + u64::from(moved.length());
        self.machine.put_stub(next, 1);
        self.machine.put(places.slot, &out[..length]);
        let regs = self.registers(&moved);
        let vectors = vectors(&mut self.numbers);
        let memory = [0; 2].map(|_| {
            let mut bytes = Box::new([0; DATA]);
            let length = self.numbers.below(2) as usize * DATA;
            bytes[..length].fill_with(|| self.numbers.byte());
            bytes
        });
        let here = self.execute(places.from, regs, &vectors, &memory);
        let there = self.execute(places.slot, regs, &vectors, &memory);
        let what = match here.landed {
            Landed::Stub(_) if insn.is_ip_relative() => "distant".to_owned(),
            Landed::Stub(_) => format!("{:?}", insn.encoding()),
            Landed::Signal(signal, _) => format!("signal {signal}"),
        };
        *self.seen.entry(what).or_default() += 1;
        let landed = match there.landed {
            Landed::Signal(signal, ip) => Landed::Signal(signal, ip - places.slot + places.from),
            stub => stub,
        };
        assert_eq!(here.landed, landed, "{:02x?}", moved.bytes());
        assert_eq!(here.regs, there.regs, "{:02x?}", moved.bytes());
        assert!(here.vectors.0 == there.vectors.0, "{:02x?}", moved.bytes());
        assert!(here.memory == there.memory, "{:02x?}", moved.bytes());
    }

    /// The same instruction with a displacement that, at `from`, leads to memory.
    fn aimed(&mut self, insn: &Insn, from: u64) -> Insn {
        if !insn.is_ip_relative() {
            return *insn;
        }
        let wanted = self.machine.near() + (self.numbers.below(DATA as u64 - 128) & !63);
        let next = from + u64::from(insn.length());
        let distance = (wanted.wrapping_sub(next) as i64 as i32).to_le_bytes();
        let mut bytes = insn.bytes().to_vec();
        let (_, at) = other(insn);
        bytes[at..at + 4].copy_from_slice(&distance);
        decode(&bytes, Mode::Long).expect("the same instruction")
    }
}

/// The offset of programs in the machine's code.
const CODE_AT: u64 = 2 * PAGE as u64;

/// The instructions of all texts that can be relocated, grouped by kind and encoding.
fn movable() -> Vec<Vec<Insn>> {
    let mut all: BTreeMap<(u32, bool), HashSet<Vec<u8>>> = BTreeMap::new();
    for text in texts().iter().filter(|text| text.bits == 64) {
        let mut at = 0;
        while at < text.bytes.len() {
            let rest = &text.bytes[at..text.bytes.len().min(at + 15)];
            let Ok(insn) = decode(rest, Mode::Long) else {
                at += 1;
                continue;
            };
            at += usize::from(insn.length());
            let moved = insn.relocate(0x1000, 0x2000, &mut [0; SLOT]);
            let plain = matches!(insn.class(), Class::Done(_) | Class::Slot);
            let (other, _) = other(&insn);
            if plain && moved.is_ok() && !left_out(&other) {
                let kind = (other.code() as u32, insn.is_ip_relative());
                all.entry(kind).or_default().insert(insn.bytes().to_vec());
            }
        }
    }
    let insn = |bytes: &Vec<u8>| decode(bytes, Mode::Long).expect("it was one");
    let each = all.into_values().map(|bytes| {
        let mut bytes: Vec<_> = bytes.into_iter().collect();
        bytes.sort();
        bytes.iter().map(insn).collect()
    });
    each.collect()
}

#[test]
fn instructions_do_the_same_at_a_slot() {
    let all = movable();
    let mut bench = Bench {
        machine: Machine::take(),
        numbers: Numbers::new(3),
        seen: BTreeMap::new(),
    };
    let count = operands(30_000).min(1_000_000);
    for _ in 0..count {
        let kind = &all[bench.numbers.below(all.len() as u64) as usize];
        let which = bench.numbers.below(kind.len() as u64) as usize;
        bench.compare(&kind[which]);
    }
    println!("{} kinds, {count} executed: {:?}", all.len(), bench.seen);
    let executed = |what: &str| bench.seen.get(what).copied().unwrap_or(0);
    assert!(executed("Legacy") > count / 4);
    assert!(executed("distant") > count / 10);
    assert_eq!(executed("Vex") > 0, components() & 4 != 0);
    assert_eq!(executed("Evex") > 0, components() & 0xe0 != 0);
    let faults: u64 = bench
        .seen
        .iter()
        .filter(|(what, _)| what.starts_with("signal"))
        .map(|(_, n)| n)
        .sum();
    assert!(faults < count / 5);
}
