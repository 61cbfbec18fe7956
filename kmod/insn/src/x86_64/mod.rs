// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! x86-64, and i386 programs on it.
//!
//! [`decode()`] takes bytes apart; [`Insn::class`] says who executes the instruction; [`Form::perform`] does it;
//! [`Insn::relocate`] moves it; [`Insn::leaves`] tells what a `return` probe needs to know; [`Insn::uprobes`] what would
//! become of it with one of the kernel's own probes.
//!
//! Tested against a processor: all forms of both modes, and moved instructions up to AVX-512, with random operands
//! (`tests/processor`, `tests/slots`). Not so, for want of a machine or of a way:
//!
//! - Shadow stacks. Calls and returns are the only instructions done here that touch one, and
//!   [`touches_shadow_stack`](Insn::touches_shadow_stack) names exactly those; instructions that handle it by name (`incssp`,
//!   `rdssp`, `wrss`, `rstorssp`) are executed by the processor at a slot, which is no call and no return.
//! - Indirect branch tracking for programs, which Linux does not have: `endbr` does nothing, and neither does `notrack`.
//! - `%fs` and `%gs` in i386 programs, which need a segment of the kernel's making: base and offset are added as for others,
//!   and the sum is cut to 32 bits. Slots of such programs: a copy, and a jump that reaches all of their memory.
//! - Flags that the manuals leave undefined: those of shifts stay as they were, where processors differ among themselves.
//! - APX and XOP. The first is refused; the second is moved as VEX is, whose layout it shares.
//! - Transactions: `xbegin` is refused, and a breakpoint inside a transaction ends it with or without us.

mod brief;
mod carried;
mod class;
mod decode;
mod flags;
mod flow;
mod form;
mod insn;
mod perform;
mod prefixes;
mod prepare;
mod refusal;
mod relocate;
mod tables;
mod uprobes;

pub use brief::{Brief, Briefly};
pub use class::Class;
pub use decode::{decode, Undecoded};
pub use flags::ARITHMETIC;
pub use flow::{Flow, Leaves};
pub use form::{Form, Register, Size};
pub use insn::{Encoding, Insn, Map, Mode, LONGEST};
pub use perform::{Aside, Memory, Registers};
pub use prefixes::Segment;
pub use refusal::Refusal;
pub use relocate::{Unmovable, SLOT};
pub use uprobes::Uprobes;
