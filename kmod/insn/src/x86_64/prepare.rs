// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only OR MIT

//! Conversion of an instruction to its form, if it has one.
//!
//! Instructions that cannot be emulated exactly have none: those that use registers that the kernel
//! does not save at the exception (x87, SSE, AVX, segments, shadow stacks), atomic operations on
//! single bits and on two words, string instructions, 16-bit addresses, and encodings whose meaning
//! differs between processors or is not defined.

use super::flags::{CF, DF};
use super::form::{
    Address, Arithmetic, Base, Condition, Form, Operand, Operation, Register, Shift, Size,
};
use super::insn::{Encoding, Insn, Map};

const NONE: Operand = Operand::Immediate(0);

/// The form of an instruction; `None` if it cannot be emulated.
pub(super) fn form(insn: &Insn) -> Option<Form> {
    let prefixes = insn.prefixes;
    if insn.encoding != Encoding::Legacy {
        return None;
    }
    let parts = match insn.map {
        Map::Primary => primary(insn)?,
        Map::Secondary => secondary(insn)?,
        _ => return None,
    };
    // F2 and F3 have no meaning before a branch, a return or a nop, but may have one before others.
    let repeatable = match parts.operation {
        Operation::Nothing => insn.is(Map::Primary, 0x90) || insn.is(Map::Secondary, 0x1e),
        Operation::Jump | Operation::Call | Operation::Return(_) => true,
        Operation::JumpBy(_) | Operation::CallBy(_) | Operation::JumpIf(..) => true,
        _ => false,
    };
    if prefixes.repeat() != 0 && !repeatable {
        return None;
    }
    let in_memory = matches!(parts.to, Operand::Memory(_));
    if prefixes.lock() && !(in_memory && may_lock(parts.operation)) {
        return None;
    }
    Some(Form {
        operation: parts.operation,
        size: parts.size,
        to: parts.to,
        from: parts.from,
        length: insn.length,
        mode: insn.mode,
        // An exchange with memory is atomic without the prefix.
        atomic: prefixes.lock() || in_memory && parts.operation == Operation::Swap,
    })
}

/// Whether the instruction may have a lock prefix if it changes memory. With others the prefix is
/// an invalid opcode.
fn may_lock(operation: Operation) -> bool {
    match operation {
        Operation::Arithmetic(kind) => kind != Arithmetic::Compare,
        Operation::Increment | Operation::Decrement | Operation::Negate | Operation::Not => true,
        Operation::Swap | Operation::ExchangeAdd | Operation::CompareExchange => true,
        _ => false,
    }
}

struct Parts {
    operation: Operation,
    size: Size,
    to: Operand,
    from: Operand,
}

fn parts(operation: Operation, size: Size, to: Operand, from: Operand) -> Option<Parts> {
    Some(Parts {
        operation,
        size,
        to,
        from,
    })
}

fn bare(operation: Operation, size: Size) -> Option<Parts> {
    parts(operation, size, NONE, NONE)
}

/// The operand size that the prefixes select.
fn operand_size(insn: &Insn) -> Size {
    match (insn.prefixes.w(), insn.prefixes.operand()) {
        (true, _) => Size::Quad,
        (false, true) => Size::Word,
        (false, false) => Size::Long,
    }
}

/// The same, or a byte if the opcode is even.
fn size(insn: &Insn) -> Size {
    match insn.opcode & 1 {
        0 => Size::Byte,
        _ => operand_size(insn),
    }
}

/// The size of what is pushed or popped.
fn stack_size(insn: &Insn) -> Size {
    match operand_size(insn) {
        Size::Word => Size::Word,
        _ => ip_size(insn),
    }
}

fn ip_size(insn: &Insn) -> Size {
    if insn.long() {
        Size::Quad
    } else {
        Size::Long
    }
}

/// Whether a branch continues at its whole target. With an operand-size prefix some processors
/// truncate the target to 16 bits.
pub(super) fn whole_branch(insn: &Insn) -> bool {
    !insn.prefixes.operand() || insn.prefixes.w()
}

fn register(insn: &Insn, number: u8, size: Size) -> Operand {
    if size == Size::Byte && !insn.prefixes.rex() && number & 0x0c == 4 {
        return Operand::High(Register::new(number & 3));
    }
    Operand::Register(Register::new(number))
}

/// The operand in the `reg` field of the ModRM byte.
fn middle(insn: &Insn, size: Size) -> Operand {
    register(insn, insn.middle() | insn.prefixes.r(), size)
}

/// The register in the lowest bits of the opcode.
fn low(insn: &Insn, size: Size) -> Operand {
    register(insn, insn.opcode & 7 | insn.prefixes.b(), size)
}

/// The operand that the ModRM byte names, a register or memory.
fn place(insn: &Insn, size: Size) -> Option<Operand> {
    let modrm = insn.modrm?;
    match modrm >= 0xc0 {
        true => Some(register(insn, modrm & 7 | insn.prefixes.b(), size)),
        false => address(insn, modrm).map(Operand::Memory),
    }
}

fn memory(insn: &Insn) -> Option<Operand> {
    match insn.of_registers() {
        true => None,
        false => place(insn, Size::Quad),
    }
}

fn address(insn: &Insn, modrm: u8) -> Option<Address> {
    let prefixes = insn.prefixes;
    if !insn.long() && (prefixes.address() || prefixes.code_segment()) {
        return None;
    }
    let (form, low) = (modrm >> 6, modrm & 7);
    let (mut base, mut index) = (Base::Register(Register::new(low | prefixes.b())), None);
    if let Some(sib) = insn.sib {
        let number = sib >> 3 & 7 | prefixes.x();
        index = (number != 4).then_some((Register::new(number), sib >> 6));
        base = match (form, sib & 7) {
            (0, 5) => Base::Nothing,
            (_, low) => Base::Register(Register::new(low | prefixes.b())),
        };
    } else if (form, low) == (0, 5) {
        base = if insn.long() {
            Base::Next
        } else {
            Base::Nothing
        };
    }
    Some(Address {
        base,
        index,
        displacement: i64::from(insn.displacement) as u64,
        segment: prefixes.segment()?,
        wide: insn.long() && !prefixes.address(),
    })
}

/// Memory whose address is in the instruction.
fn absolute(insn: &Insn) -> Option<Operand> {
    let prefixes = insn.prefixes;
    (insn.long() || !prefixes.address() && !prefixes.code_segment()).then_some(())?;
    Some(Operand::Memory(Address {
        base: Base::Nothing,
        index: None,
        displacement: insn.immediate,
        segment: prefixes.segment()?,
        wide: insn.long() && !prefixes.address(),
    }))
}

fn arithmetic(number: u8) -> Operation {
    Operation::Arithmetic(match number & 7 {
        0 => Arithmetic::Add,
        1 => Arithmetic::Or,
        2 => Arithmetic::AddCarry,
        3 => Arithmetic::SubtractBorrow,
        4 => Arithmetic::And,
        5 => Arithmetic::Subtract,
        6 => Arithmetic::Xor,
        _ => Arithmetic::Compare,
    })
}

fn primary(insn: &Insn) -> Option<Parts> {
    let opcode = insn.opcode;
    let accumulator = Operand::Register(Register::RAX);
    let immediate = Operand::Immediate(insn.immediate);
    match opcode {
        0x00..=0x3f => {
            let (operation, size) = (arithmetic(opcode >> 3), size(insn));
            match opcode & 7 {
                0 | 1 => parts(operation, size, place(insn, size)?, middle(insn, size)),
                2 | 3 => parts(operation, size, middle(insn, size), place(insn, size)?),
                4 | 5 => parts(operation, size, accumulator, immediate),
                _ => None,
            }
        }
        // Only in 32-bit mode; in 64-bit mode these bytes are REX prefixes.
        0x40..=0x4f => {
            let size = operand_size(insn);
            let operation = match opcode & 8 {
                0 => Operation::Increment,
                _ => Operation::Decrement,
            };
            parts(operation, size, low(insn, size), NONE)
        }
        0x50..=0x57 => parts(
            Operation::Push,
            stack_size(insn),
            NONE,
            low(insn, Size::Quad),
        ),
        0x58..=0x5f => parts(
            Operation::Pop,
            stack_size(insn),
            low(insn, Size::Quad),
            NONE,
        ),
        // With an operand-size prefix some processors load 2 bytes, others 4.
        0x63 if insn.long() && operand_size(insn) != Size::Word => {
            let (size, from) = (operand_size(insn), Size::Long);
            let operation = Operation::MoveSign(from);
            parts(operation, size, middle(insn, size), place(insn, from)?)
        }
        0x68 | 0x6a => parts(Operation::Push, stack_size(insn), NONE, immediate),
        0x70..=0x7f | 0xe0..=0xe3 | 0xe8 | 0xe9 | 0xeb => branch(insn),
        0x80..=0x83 => {
            let size = size(insn);
            parts(
                arithmetic(insn.middle()),
                size,
                place(insn, size)?,
                immediate,
            )
        }
        0x84 | 0x85 => {
            let size = size(insn);
            parts(
                Operation::Test,
                size,
                place(insn, size)?,
                middle(insn, size),
            )
        }
        0x86 | 0x87 => {
            let size = size(insn);
            parts(
                Operation::Swap,
                size,
                place(insn, size)?,
                middle(insn, size),
            )
        }
        0x88 | 0x89 => {
            let size = size(insn);
            parts(
                Operation::Move,
                size,
                place(insn, size)?,
                middle(insn, size),
            )
        }
        0x8a | 0x8b => {
            let size = size(insn);
            parts(
                Operation::Move,
                size,
                middle(insn, size),
                place(insn, size)?,
            )
        }
        0x8d => {
            let size = operand_size(insn);
            parts(Operation::Address, size, middle(insn, size), memory(insn)?)
        }
        0x90 if insn.prefixes.b() == 0 => bare(Operation::Nothing, Size::Long),
        0x90..=0x97 => {
            let size = operand_size(insn);
            parts(Operation::Swap, size, low(insn, size), accumulator)
        }
        0x98 => bare(Operation::Widen, operand_size(insn)),
        0x99 => bare(Operation::Spread, operand_size(insn)),
        0x9c if stack_size(insn) != Size::Word => bare(Operation::PushFlags, stack_size(insn)),
        0x9d if stack_size(insn) != Size::Word => bare(Operation::PopFlags, stack_size(insn)),
        0xa0 | 0xa1 => parts(Operation::Move, size(insn), accumulator, absolute(insn)?),
        0xa2 | 0xa3 => parts(Operation::Move, size(insn), absolute(insn)?, accumulator),
        0xa8 | 0xa9 => parts(Operation::Test, size(insn), accumulator, immediate),
        0xb0..=0xb7 => parts(
            Operation::Move,
            Size::Byte,
            low(insn, Size::Byte),
            immediate,
        ),
        0xb8..=0xbf => {
            let size = operand_size(insn);
            parts(Operation::Move, size, low(insn, size), immediate)
        }
        0xc0 | 0xc1 => shift(insn, immediate),
        0xd0 | 0xd1 => shift(insn, Operand::Immediate(1)),
        0xd2 | 0xd3 => shift(insn, Operand::Register(Register::RCX)),
        0xc2 | 0xc3 if whole_branch(insn) => bare(Operation::Return(insn.immediate), ip_size(insn)),
        0xc6 | 0xc7 if insn.middle() == 0 => {
            let size = size(insn);
            parts(Operation::Move, size, place(insn, size)?, immediate)
        }
        0xc9 if stack_size(insn) != Size::Word => bare(Operation::Leave, stack_size(insn)),
        0xf5 => bare(Operation::FlipCarry, Size::Long),
        0xf8 => bare(Operation::ClearFlag(CF), Size::Long),
        0xf9 => bare(Operation::SetFlag(CF), Size::Long),
        0xfc => bare(Operation::ClearFlag(DF), Size::Long),
        0xfd => bare(Operation::SetFlag(DF), Size::Long),
        0xf6 | 0xf7 => {
            let size = size(insn);
            let operation = match insn.middle() {
                0 | 1 => return parts(Operation::Test, size, place(insn, size)?, immediate),
                2 => Operation::Not,
                3 => Operation::Negate,
                _ => return None,
            };
            parts(operation, size, place(insn, size)?, NONE)
        }
        0xfe | 0xff => changed(insn),
        _ => None,
    }
}

/// The group of opcodes FE and FF.
fn changed(insn: &Insn) -> Option<Parts> {
    let (size, ip) = (size(insn), ip_size(insn));
    match (insn.middle(), insn.opcode) {
        (0, _) => parts(Operation::Increment, size, place(insn, size)?, NONE),
        (1, _) => parts(Operation::Decrement, size, place(insn, size)?, NONE),
        (2, 0xff) if whole_branch(insn) => parts(Operation::Call, ip, NONE, place(insn, ip)?),
        (4, 0xff) if whole_branch(insn) => parts(Operation::Jump, ip, NONE, place(insn, ip)?),
        (6, 0xff) => {
            let size = stack_size(insn);
            parts(Operation::Push, size, NONE, place(insn, size)?)
        }
        _ => None,
    }
}

fn shift(insn: &Insn, count: Operand) -> Option<Parts> {
    let size = size(insn);
    let shift = match insn.middle() {
        0 => Shift::RotateLeft,
        1 => Shift::RotateRight,
        4 => Shift::Left,
        5 => Shift::Right,
        7 => Shift::Arithmetic,
        _ => return None,
    };
    parts(Operation::Shift(shift), size, place(insn, size)?, count)
}

/// Branches whose target is in the instruction.
fn branch(insn: &Insn) -> Option<Parts> {
    whole_branch(insn).then_some(())?;
    let by = insn.immediate;
    let counter = match (insn.long(), insn.prefixes.address()) {
        (true, false) => Size::Quad,
        (false, true) => Size::Word,
        _ => Size::Long,
    };
    match insn.opcode {
        0x70..=0x8f => bare(
            Operation::JumpIf(Condition(insn.opcode & 15), by),
            Size::Quad,
        ),
        0xe0 => bare(Operation::Loop(Some(false), by), counter),
        0xe1 => bare(Operation::Loop(Some(true), by), counter),
        0xe2 => bare(Operation::Loop(None, by), counter),
        0xe3 => bare(Operation::JumpEmpty(by), counter),
        0xe8 => bare(Operation::CallBy(by), ip_size(insn)),
        0xe9 | 0xeb => bare(Operation::JumpBy(by), ip_size(insn)),
        _ => None,
    }
}

fn secondary(insn: &Insn) -> Option<Parts> {
    let (size, condition) = (operand_size(insn), Condition(insn.opcode & 15));
    match insn.opcode {
        // Prefetches. A program cannot tell whether they were executed.
        0x0d if insn.middle() < 2 && !insn.of_registers() => bare(Operation::Nothing, size),
        0x18 if insn.middle() < 4 && !insn.of_registers() => bare(Operation::Nothing, size),
        0x1e if insn.prefixes.repeat() == 0xf3 && matches!(insn.modrm, Some(0xfa | 0xfb)) => {
            bare(Operation::Nothing, size)
        }
        0x1f if insn.middle() == 0 => bare(Operation::Nothing, size),
        0x40..=0x4f => {
            let operation = Operation::MoveIf(condition);
            parts(operation, size, middle(insn, size), place(insn, size)?)
        }
        0x80..=0x8f => branch(insn),
        0x90..=0x9f => parts(
            Operation::Set(condition),
            Size::Byte,
            place(insn, Size::Byte)?,
            NONE,
        ),
        0xb6 | 0xb7 | 0xbe | 0xbf => {
            let from = if insn.opcode & 1 == 0 {
                Size::Byte
            } else {
                Size::Word
            };
            let operation = match insn.opcode & 8 {
                0 => Operation::MoveZero(from),
                _ => Operation::MoveSign(from),
            };
            parts(operation, size, middle(insn, size), place(insn, from)?)
        }
        0xb0 | 0xb1 | 0xc0 | 0xc1 => {
            let size = self::size(insn);
            let operation = match insn.opcode & 0x40 {
                0 => Operation::CompareExchange,
                _ => Operation::ExchangeAdd,
            };
            parts(operation, size, place(insn, size)?, middle(insn, size))
        }
        0xc8..=0xcf if size != Size::Word => parts(Operation::Reverse, size, low(insn, size), NONE),
        _ => None,
    }
}
