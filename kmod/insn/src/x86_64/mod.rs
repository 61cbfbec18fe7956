// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only OR MIT

//! x86-64, and i386 programs on it.
//!
//! - [`decode()`] decodes bytes.
//! - [`Insn::class`] says how the instruction is executed.
//! - [`Form::perform`] emulates it.
//! - [`Insn::relocate`] copies it to a slot.
//! - [`Insn::leaves`] tells what a `return` probe needs to know.
//! - [`Insn::uprobes`] tells how the kernel's uprobes would execute it.
//!
//! All forms of both modes, and relocated instructions up to AVX-512, are compared with a
//! processor, with random operands (`tests/processor`, `tests/slots`). The following could not be
//! compared, for want of a machine or of a method:
//!
//! - Shadow stacks. Of the emulated instructions only calls and returns touch one, and
//!   [`touches_shadow_stack`](Insn::touches_shadow_stack) names exactly those. Instructions that
//!   access it explicitly (`incssp`, `rdssp`, `wrss`, `rstorssp`) are executed by the processor in
//!   a slot, which involves no call and no return.
//! - Indirect branch tracking for programs, which Linux does not have: `endbr` does nothing, and
//!   neither does `notrack`.
//! - `%fs` and `%gs` in i386 programs, which need a segment that the kernel sets up. Base and
//!   offset are added as for other segments, and the sum is truncated to 32 bits. Slots of such
//!   programs: a copy, and a jump that reaches all of their memory.
//! - Flags that the manuals leave undefined. Those of shifts keep their values, because processors
//!   differ.
//! - APX and XOP. APX is refused; XOP is relocated like VEX, with which it shares its layout.
//! - Transactions. `xbegin` is refused, and a breakpoint inside a transaction ends it in any case.

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
