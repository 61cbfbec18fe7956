// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Clauses that are ready to fire: actions, the layout of their records, aggregations.
//!
//! A clause is built once and shared by all probes that it is bound to. The modules:
//! - [`layout`] says where in a record each action's data lie.
//! - [`build`] puts programs and places together, and [`fire`] runs them.
//! - [`output`] is what they write to, and how they end.
//! - [`aggregation`] and [`float`] are the arithmetic of the aggregating functions.
//! - [`memory`] is `tracemem()` with a computed size.
//! - [`stacks`] writes stacks.
//! - [`fast`] has the fast paths past all that.
//! - [`price`] is what a clause takes whatever the data is.
//! - [`rehearsal`] finds out beforehand which user memory a clause would miss.

pub mod aggregation;
pub mod build;
pub mod fast;
pub mod fire;
mod float;
pub mod layout;
pub mod memory;
mod order;
pub mod output;
mod price;
pub mod rehearsal;
pub(crate) mod speculate;
pub mod stacks;

use crate::dif::program::Program;
use crate::mem::Vec;
use aggregation::Function;
use dtrace_uapi::ioctl::{RecDesc, RECORD_TIME};
use dtrace_uapi::types::AggId;
use fast::condition::Condition;
use fast::Body;
use memory::Memory;

/// How an expression's result becomes data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The value itself, in this many bytes.
    Value(u8),
    /// The bytes at the address.
    Bytes,
    /// The string at the address.
    String,
    /// The bytes at the user address.
    UserBytes,
    /// The string at the user address.
    UserString,
}

/// What is written to a place in a record or in a key.
#[derive(Debug)]
pub enum Datum {
    /// The result of an expression.
    Expr {
        /// The expression.
        program: Program,
        /// What is written of its result.
        shape: Shape,
    },
    /// A kernel stack, of as many frames as there is room for.
    Stack,
    /// Process id and user stack, followed by frames of interpreted code if there is room.
    Ustack {
        /// Maximum number of frames, not counting those of interpreted code.
        frames: u32,
    },
    /// A kernel address.
    Address(Program),
    /// Process id and user address.
    UserAddress(Program),
}

/// A datum and its place.
#[derive(Debug)]
pub struct Field {
    /// The datum.
    pub datum: Datum,
    /// Its offset from the beginning of the record or of the aggregation's entry.
    pub offset: usize,
    /// Its size, in bytes.
    pub size: usize,
    /// The action that it belongs to, from 1.
    pub action: u32,
}

/// An aggregating action.
#[derive(Debug)]
pub struct Aggregate {
    /// Its id.
    pub id: AggId,
    /// Its key.
    pub keys: Vec<Field>,
    /// Size of id and key, in bytes.
    pub key_size: usize,
    /// The value that is aggregated; `None` for `count()`.
    pub value: Option<Program>,
    /// How often the value counts in a distribution; `None` for once.
    pub increment: Option<Program>,
    /// The action of the value, from 1.
    pub action: u32,
    /// The function.
    pub function: Function,
    /// Offset of its data in the entry.
    pub offset: usize,
    /// Size of an entry, in bytes.
    pub size: usize,
    /// Descriptions of key and data; offsets are relative to the id.
    pub records: Vec<RecDesc>,
}

/// What an action does.
#[derive(Debug)]
pub enum Act {
    /// Writes data.
    Record(Field),
    /// Writes as much memory as the record says: `tracemem()` with a computed size.
    Memory(Memory),
    /// Evaluates an expression for its effect.
    Effect(Program),
    /// Ends the tracing; the exit status is data.
    Exit(Field),
    /// Aggregates.
    Aggregate(Aggregate),
    /// Stops the process.
    Stop,
    /// Signals the process.
    Raise(Program),
    /// Enters the debugger.
    Breakpoint,
    /// Panics.
    Panic,
    /// Spins.
    Chill(Program),
    /// Records what follows in a speculation; ends the clause if that is not possible.
    Speculate(Program),
    /// Moves a speculation's records to the principal buffer.
    Commit(Program),
    /// Drops a speculation's records.
    Discard(Program),
    /// Does nothing in the kernel; the consumer acts on the record.
    Nothing,
}

/// An action and its number.
#[derive(Debug)]
pub struct Action {
    /// From 1; `ERROR` reports this number.
    pub number: u32,
    /// What it does.
    pub act: Act,
}

/// A clause that is ready to fire.
#[derive(Debug)]
pub struct Prepared {
    /// When it runs.
    pub condition: Condition,
    /// What it does.
    pub body: Body,
    /// A program looks up thread-local variables or elements of associative arrays.
    pub dynamics: bool,
    /// It loads user memory.
    pub reads_user: bool,
    /// It reads an argument of the probe.
    pub reads_args: bool,
    /// The actions.
    pub actions: Vec<Action>,
    /// Size of the record with its header, in bytes; 0 if the clause records nothing.
    pub size: usize,
    /// Room of the record in the principal buffer: `size`, or 0 if the record goes to a
    /// speculation.
    pub principal: usize,
    /// Alignment of the record, a power of two.
    pub align: usize,
    /// Descriptions of the record's data.
    pub records: Vec<RecDesc>,
    /// A value of the consumer's, which is passed back to it.
    pub uarg: u64,
    /// What it takes from the budget whatever the data is, in units.
    pub price: usize,
}

impl Prepared {
    /// Returns the charge of the record in the principal buffer; 0 if nothing goes there.
    pub fn charge(&self) -> usize {
        self.principal.saturating_sub(RECORD_TIME)
    }

    /// Returns the aggregating actions.
    pub fn aggregates(&self) -> impl Iterator<Item = &Aggregate> {
        self.actions.iter().filter_map(|action| match &action.act {
            Act::Aggregate(aggregate) => Some(aggregate),
            _ => None,
        })
    }
}
