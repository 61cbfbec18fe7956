// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only OR MIT

//! Emulation of an instruction.
//!
//! Invariant: an instruction is performed completely or not at all. Everything that can fail comes
//! before the first change of a register, and a store comes before other changes. So after an
//! [`Aside`] registers and memory are as before. The instruction can then be executed in another
//! way, after its pages have been brought, or end in a signal, with the same effect for the
//! program.

use super::flags::{self, AC, ARITHMETIC, CF, DF, ID, NT, TF, ZF};
use super::form::{Address, Arithmetic, Base, Form, Operand, Operation, Register, Size};
use super::insn::Mode;
use super::prefixes::Segment;

/// The registers of an interrupted thread.
pub trait Registers {
    /// The value of a general register, all 64 bits.
    fn get(&self, register: Register) -> u64;
    /// Sets a general register.
    fn set(&mut self, register: Register, value: u64);
    /// The address of the instruction to emulate.
    fn ip(&self) -> u64;
    /// Sets the address at which the thread continues.
    fn set_ip(&mut self, ip: u64);
    /// The flags.
    fn flags(&self) -> u64;
    /// Sets the flags. Those that a program may not change have their old values.
    fn set_flags(&mut self, flags: u64);
    /// The base of the segment, for an address with `%fs` or `%gs`. Never called for
    /// [`Segment::Flat`].
    fn base(&self, segment: Segment) -> u64;
}

/// The memory of that thread, as far as it can be accessed at once.
pub trait Memory {
    /// The end of the program's addresses. An instruction neither accesses nor executes memory at
    /// this address or beyond.
    fn end(&self) -> u64;
    /// Loads a value and zero-extends it. If the address is a multiple of the size, this is one
    /// access. `None`: it cannot be accessed at once.
    fn load(&mut self, address: u64, size: Size) -> Option<u64>;
    /// Stores the lowest bytes of a value, all or none. If the address is a multiple of the size,
    /// this is one access. Never crosses the end of a page.
    fn store(&mut self, address: u64, size: Size, value: u64) -> Option<()>;
    /// Stores as `store()` does, but only if memory still has the value `old`, which has just been
    /// loaded; both in one atomic step. Never crosses the end of a cache line. If nothing else
    /// accesses the memory, a plain store is enough.
    fn replace(&mut self, address: u64, size: Size, old: u64, value: u64) -> Option<()> {
        let _ = old;
        self.store(address, size, value)
    }
}

/// Why an instruction was not emulated. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aside {
    /// This address cannot be read or written at once, or is not the program's.
    Memory(u64),
    /// The instruction would continue at this address, which is not the program's. The processor
    /// faults at the branch or at the address.
    Target(u64),
    /// It would set a flag that makes the processor trap.
    Flags,
}

/// The smallest size of a page.
const PAGE: u64 = 4096;

/// The smallest size of a cache line. An atomic access across the end of a line stops all
/// processors, or is forbidden.
const LINE: u64 = 64;

/// The flags that `popf` changes in a program.
const POPPED: u64 = ARITHMETIC | DF | AC | ID;

/// The flags that `pushf` does not store: the resume flag and virtual 8086 mode.
const UNSHOWN: u64 = 1 << 16 | 1 << 17;

impl Form {
    /// Emulates the instruction at the registers' `ip`. Registers, flags and memory are then as the
    /// processor would have left them.
    ///
    /// The caller must check what is not in the registers: that the thread has no shadow stack if
    /// [`touches_shadow_stack`] is true, that it is not being single-stepped, and that its code
    /// segment is the one that the kernel has for programs of the mode.
    ///
    /// [`touches_shadow_stack`]: super::Insn::touches_shadow_stack
    pub fn perform<R: Registers, M: Memory>(
        &self,
        registers: &mut R,
        memory: &mut M,
    ) -> Result<(), Aside> {
        let ip = registers.ip();
        let next = self.wrapped(ip.wrapping_add(u64::from(self.length)));
        let mut work = Work {
            form: self,
            registers,
            memory,
            next,
            old: None,
        };
        let to = work.perform()?;
        work.registers.set_ip(to);
        Ok(())
    }

    fn wrapped(&self, address: u64) -> u64 {
        match self.mode {
            Mode::Long => address,
            Mode::Compatible => address & 0xffff_ffff,
        }
    }
}

struct Work<'a, R, M> {
    form: &'a Form,
    registers: &'a mut R,
    memory: &'a mut M,
    /// The address of the next instruction.
    next: u64,
    /// The value that an atomic instruction has loaded. The store is made only if memory still has
    /// it.
    old: Option<u64>,
}

impl<R: Registers, M: Memory> Work<'_, R, M> {
    /// Performs the operation, and returns the address at which the thread continues.
    fn perform(&mut self) -> Result<u64, Aside> {
        let Form {
            operation,
            size,
            to,
            from,
            ..
        } = *self.form;
        match operation {
            Operation::Nothing => (),
            Operation::Move => {
                let value = self.read(from, size)?;
                self.write(to, size, value)?;
            }
            Operation::MoveZero(narrow) => {
                let value = self.read(from, narrow)?;
                self.write(to, size, value)?;
            }
            Operation::MoveSign(narrow) => {
                let value = narrow.extend(self.read(from, narrow)?);
                self.write(to, size, value)?;
            }
            Operation::Address => {
                if let Operand::Memory(address) = from {
                    let value = self.offset(&address);
                    self.write(to, size, value)?;
                }
            }
            Operation::Arithmetic(_)
            | Operation::Test
            | Operation::Increment
            | Operation::Decrement
            | Operation::Negate
            | Operation::Not
            | Operation::Shift(_) => self.compute(operation)?,
            Operation::Swap => {
                let (a, b) = (self.read(to, size)?, self.read(from, size)?);
                self.write(to, size, b)?;
                self.write(from, size, a)?;
            }
            Operation::ExchangeAdd => {
                let (a, b) = (self.read(to, size)?, self.read(from, size)?);
                let flags = self.registers.flags();
                let (sum, flags) = flags::arithmetic(Arithmetic::Add, a, b, size, flags);
                self.exchange(sum, a)?;
                self.registers.set_flags(flags);
            }
            Operation::CompareExchange => self.compare_exchange()?,
            Operation::Reverse => {
                let unused = 64_u32.wrapping_sub(size.bits());
                let value = self.read(to, size)?.swap_bytes().wrapping_shr(unused);
                self.write(to, size, value)?;
            }
            Operation::Widen => {
                let narrow = match size {
                    Size::Quad => Size::Long,
                    Size::Long => Size::Word,
                    _ => Size::Byte,
                };
                let value = narrow.extend(self.registers.get(Register::RAX));
                self.set(Register::RAX, size, value);
            }
            Operation::Spread => {
                let sign = (size.extend(self.registers.get(Register::RAX)) as i64).wrapping_shr(63);
                self.set(Register::RDX, size, sign as u64);
            }
            Operation::Set(condition) => {
                let value = condition.holds(self.registers.flags());
                self.write(to, size, u64::from(value))?;
            }
            Operation::MoveIf(condition) => {
                // Memory is read even if the condition is false, and a 4-byte destination clears
                // its upper half in any case.
                let value = self.read(from, size)?;
                let value = match condition.holds(self.registers.flags()) {
                    true => value,
                    false => self.read(to, size)?,
                };
                self.write(to, size, value)?;
            }
            Operation::ClearFlag(flag) => {
                let flags = self.registers.flags();
                self.registers.set_flags(flags & !flag);
            }
            Operation::SetFlag(flag) => {
                let flags = self.registers.flags();
                self.registers.set_flags(flags | flag);
            }
            Operation::FlipCarry => {
                let flags = self.registers.flags();
                self.registers.set_flags(flags ^ CF);
            }
            _ => return self.stack_or_branch(operation),
        }
        Ok(self.next)
    }

    /// Sets `to` to `value` and `from` to `other`. If both are the same register, it becomes
    /// `value`.
    fn exchange(&mut self, value: u64, other: u64) -> Result<(), Aside> {
        let Form { size, to, from, .. } = *self.form;
        if let Operand::Memory(_) = to {
            self.write(to, size, value)?;
            return self.write(from, size, other);
        }
        self.write(from, size, other)?;
        self.write(to, size, value)
    }

    fn compare_exchange(&mut self) -> Result<(), Aside> {
        let Form { size, to, from, .. } = *self.form;
        let (a, b) = (self.read(to, size)?, self.read(from, size)?);
        let expected = self.registers.get(Register::RAX) & size.mask();
        let flags = self.registers.flags();
        let (_, flags) = flags::arithmetic(Arithmetic::Compare, expected, a, size, flags);
        match a == expected {
            true => self.write(to, size, b)?,
            false => {
                // The processor stores even if the comparison fails.
                if let Operand::Memory(_) = to {
                    self.write(to, size, a)?;
                }
                self.set(Register::RAX, size, a);
            }
        }
        self.registers.set_flags(flags);
        Ok(())
    }

    /// Performs operations that set the flags from their result.
    fn compute(&mut self, operation: Operation) -> Result<(), Aside> {
        let Form { size, to, from, .. } = *self.form;
        let a = self.read(to, size)?;
        let flags = self.registers.flags();
        let (result, flags) = match operation {
            Operation::Arithmetic(kind) => {
                let b = self.read(from, size)?;
                flags::arithmetic(kind, a, b, size, flags)
            }
            Operation::Test => {
                let b = self.read(from, size)?;
                flags::arithmetic(Arithmetic::And, a, b, size, flags)
            }
            Operation::Shift(kind) => {
                let count = self.read(from, Size::Byte)?;
                flags::shift(kind, a, count, size, flags)
            }
            Operation::Increment => flags::step(a, false, size, flags),
            Operation::Decrement => flags::step(a, true, size, flags),
            Operation::Negate => flags::arithmetic(Arithmetic::Subtract, 0, a, size, flags),
            _ => (!a & size.mask(), flags),
        };
        let kept = matches!(
            operation,
            Operation::Arithmetic(Arithmetic::Compare) | Operation::Test
        );
        if !kept {
            self.write(to, size, result)?;
        }
        self.registers.set_flags(flags);
        Ok(())
    }

    fn stack_or_branch(&mut self, operation: Operation) -> Result<u64, Aside> {
        let Form { size, to, from, .. } = *self.form;
        match operation {
            Operation::Push => {
                let value = self.read(from, size)?;
                self.push(size, value)?;
            }
            Operation::PushFlags => {
                let value = self.registers.flags() & !UNSHOWN;
                self.push(size, value)?;
            }
            Operation::Pop => {
                let (value, sp) = self.top(size, self.registers.get(Register::RSP))?;
                self.registers.set(Register::RSP, sp);
                self.write(to, size, value)?;
            }
            Operation::PopFlags => {
                let (value, sp) = self.top(size, self.registers.get(Register::RSP))?;
                if value & (TF | NT) != 0 {
                    return Err(Aside::Flags);
                }
                let flags = self.registers.flags();
                self.registers
                    .set_flags(flags & !(POPPED | NT) | value & POPPED);
                self.registers.set(Register::RSP, sp);
            }
            Operation::Leave => {
                let (value, sp) = self.top(size, self.registers.get(Register::RBP))?;
                self.registers.set(Register::RSP, sp);
                self.set(Register::RBP, size, value);
            }
            Operation::Return(more) => {
                let (value, sp) = self.top(size, self.registers.get(Register::RSP))?;
                let target = self.target(value)?;
                let sp = self.form.wrapped(sp.wrapping_add(more));
                self.registers.set(Register::RSP, sp);
                return Ok(target);
            }
            Operation::Call => {
                let value = self.read(from, size)?;
                return self.call(value);
            }
            Operation::CallBy(by) => return self.call(self.next.wrapping_add(by)),
            Operation::Jump => {
                let value = self.read(from, size)?;
                return self.target(value);
            }
            Operation::JumpBy(by) => return self.target(self.next.wrapping_add(by)),
            Operation::JumpIf(condition, by) if condition.holds(self.registers.flags()) => {
                return self.target(self.next.wrapping_add(by));
            }
            Operation::JumpEmpty(by) if self.registers.get(Register::RCX) & size.mask() == 0 => {
                return self.target(self.next.wrapping_add(by));
            }
            Operation::Loop(zero, by) => return self.count(zero, by),
            _ => (),
        }
        Ok(self.next)
    }

    fn call(&mut self, to: u64) -> Result<u64, Aside> {
        let target = self.target(to)?;
        self.push(self.form.size, self.next)?;
        Ok(target)
    }

    fn count(&mut self, zero: Option<bool>, by: u64) -> Result<u64, Aside> {
        let size = self.form.size;
        let left = self.registers.get(Register::RCX).wrapping_sub(1) & size.mask();
        let is_zero = self.registers.flags() & ZF != 0;
        let mut to = self.next;
        if left != 0 && zero.is_none_or(|wanted| wanted == is_zero) {
            to = self.target(self.next.wrapping_add(by))?;
        }
        self.set(Register::RCX, size, left);
        Ok(to)
    }

    fn target(&self, address: u64) -> Result<u64, Aside> {
        let address = self.form.wrapped(address);
        match address < self.memory.end() {
            true => Ok(address),
            false => Err(Aside::Target(address)),
        }
    }

    fn push(&mut self, size: Size, value: u64) -> Result<(), Aside> {
        let sp = self.registers.get(Register::RSP);
        let sp = self.form.wrapped(sp.wrapping_sub(size.bytes()));
        self.store(sp, size, value)?;
        self.registers.set(Register::RSP, sp);
        Ok(())
    }

    /// Loads the value at `sp`. Returns it and the stack pointer after it is popped.
    fn top(&mut self, size: Size, sp: u64) -> Result<(u64, u64), Aside> {
        let sp = self.form.wrapped(sp);
        let value = self.load(sp, size)?;
        Ok((value, self.form.wrapped(sp.wrapping_add(size.bytes()))))
    }

    fn read(&mut self, operand: Operand, size: Size) -> Result<u64, Aside> {
        let value = match operand {
            Operand::Register(register) => self.registers.get(register),
            Operand::High(register) => self.registers.get(register) >> 8,
            Operand::Immediate(value) => value,
            Operand::Memory(address) => self.load(self.linear(&address), size)?,
        };
        Ok(value & size.mask())
    }

    fn write(&mut self, operand: Operand, size: Size, value: u64) -> Result<(), Aside> {
        match operand {
            Operand::Register(register) => self.set(register, size, value),
            Operand::High(register) => {
                let whole = self.registers.get(register);
                let value = whole & !0xff00 | (value & 0xff) << 8;
                self.registers.set(register, value);
            }
            Operand::Immediate(_) => (),
            Operand::Memory(address) => self.store(self.linear(&address), size, value)?,
        }
        Ok(())
    }

    /// Sets a register as an instruction does: a result of 4 bytes clears the upper half, a smaller
    /// one keeps the other bytes.
    fn set(&mut self, register: Register, size: Size, value: u64) {
        let kept = match size {
            Size::Byte | Size::Word => self.registers.get(register) & !size.mask(),
            Size::Long | Size::Quad => 0,
        };
        self.registers.set(register, kept | value & size.mask());
    }

    /// An address without the base of its segment.
    fn offset(&self, address: &Address) -> u64 {
        let base = match address.base {
            Base::Nothing => 0,
            Base::Next => self.next,
            Base::Register(register) => self.registers.get(register),
        };
        let index = address.index.map_or(0, |(register, shift)| {
            self.registers.get(register).wrapping_shl(u32::from(shift))
        });
        let offset = base.wrapping_add(index).wrapping_add(address.displacement);
        if address.wide {
            offset
        } else {
            offset & 0xffff_ffff
        }
    }

    fn linear(&self, address: &Address) -> u64 {
        let base = match address.segment {
            Segment::Flat => 0,
            segment => self.registers.base(segment),
        };
        self.form.wrapped(self.offset(address).wrapping_add(base))
    }

    /// Whether all bytes are within the program's addresses.
    fn reachable(&self, address: u64, size: Size) -> bool {
        let end = address.checked_add(size.bytes());
        end.is_some_and(|end| end <= self.memory.end())
    }

    /// Whether the address raises an alignment-check exception, which the program has enabled.
    fn unaligned(&self, address: u64, size: Size) -> bool {
        address & size.bytes().wrapping_sub(1) != 0 && self.registers.flags() & AC != 0
    }

    fn load(&mut self, address: u64, size: Size) -> Result<u64, Aside> {
        if !self.reachable(address, size) || self.unaligned(address, size) {
            return Err(Aside::Memory(address));
        }
        let value = self.memory.load(address, size);
        let value = value.ok_or(Aside::Memory(address))? & size.mask();
        self.old = self.form.atomic.then_some(value);
        Ok(value)
    }

    fn store(&mut self, address: u64, size: Size, value: u64) -> Result<(), Aside> {
        let page = address & PAGE.wrapping_sub(1);
        // A store across pages could succeed on one page and fail on the other.
        let crosses = page.wrapping_add(size.bytes()) > PAGE;
        if crosses || !self.reachable(address, size) || self.unaligned(address, size) {
            return Err(Aside::Memory(address));
        }
        let value = value & size.mask();
        let stored = match self.old {
            None => self.memory.store(address, size, value),
            Some(_) if (address & LINE.wrapping_sub(1)).wrapping_add(size.bytes()) > LINE => None,
            Some(old) => self.memory.replace(address, size, old, value),
        };
        stored.ok_or(Aside::Memory(address))
    }
}
