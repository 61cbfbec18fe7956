// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Clauses made ready to fire: actions, the layout of their records, aggregations.
//!
//! A clause is built once and shared by all probes that it is bound to; [`layout`] says where in a record each action's
//! data lie, [`build`] puts programs and places together, [`fire`] runs them, [`aggregation`] and [`float`] are the
//! arithmetic of the aggregating functions, [`memory`] is `tracemem()` of a computed size, [`stacks`] writes stacks and counts by them, [`short`] and [`brief`] are the ways
//! past all that; [`price`] is what it takes whatever the data is; [`rehearsal`] tells beforehand which user memory a clause will not find.

pub mod aggregation;
pub mod brief;
pub mod build;
mod execname;
pub mod fire;
mod float;
pub mod layout;
pub mod memory;
mod order;
mod price;
pub mod record;
pub mod rehearsal;
pub mod short;
pub(crate) mod speculate;
pub mod stacks;

use crate::dif::program::Program;
use crate::mem::Vec;
use aggregation::Function;
use brief::Brief;
use dtrace_uapi::ioctl::{RecDesc, RECORD_TIME};
use dtrace_uapi::types::AggId;
use memory::Memory;
use short::{Guard, Note, Tally, TallyBy};
use stacks::TallyStack;

/// How an expression's result becomes data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The value itself, in this many bytes.
    Value(u8),
    /// The bytes at the address.
    Bytes,
    /// The string at the address.
    String,
    /// The bytes at the user's address.
    UserBytes,
    /// The string at the user's address.
    UserString,
}

/// What is written to a place in a record or in a key.
#[derive(Debug)]
pub enum Datum {
    /// The result of an expression.
    Expr {
        /// The expression.
        program: Program,
        /// What is written of it.
        shape: Shape,
    },
    /// A kernel stack, of as many frames as there is room for.
    Stack,
    /// Process id and user stack, and frames of interpreted code behind it where there is room.
    Ustack {
        /// How many frames at most, but for the latter.
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
    /// What.
    pub datum: Datum,
    /// Where, from the beginning of the record or of the aggregation's entry.
    pub offset: usize,
    /// Its size, bytes.
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
    /// Size of id and key, bytes.
    pub key_size: usize,
    /// What is aggregated; nothing for `count()`.
    pub value: Option<Program>,
    /// How often it counts in a distribution; once if nothing says otherwise.
    pub increment: Option<Program>,
    /// The action of the value, from 1.
    pub action: u32,
    /// The function.
    pub function: Function,
    /// Offset of its data in the entry.
    pub offset: usize,
    /// Size of an entry, bytes.
    pub size: usize,
    /// The records of key and data, relative to the id.
    pub records: Vec<RecDesc>,
}

/// What an action does.
#[derive(Debug)]
pub enum Act {
    /// Writes data.
    Record(Field),
    /// Writes as much memory as the record says.
    Memory(Memory),
    /// Evaluates an expression for its effect.
    Effect(Program),
    /// Ends the tracing; the status is data too.
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
    /// Records to a speculation what follows; ends the clause where that cannot be.
    Speculate(Program),
    /// Moves a speculation's records to the principal buffer.
    Commit(Program),
    /// Forgets a speculation's records.
    Discard(Program),
    /// Leaves all to the consumer.
    Nothing,
}

/// An action and its number.
#[derive(Debug)]
pub struct Action {
    /// From 1, as `ERROR` counts.
    pub number: u32,
    /// What it does.
    pub act: Act,
}

/// A clause that is ready to fire.
#[derive(Debug)]
pub struct Prepared {
    /// The condition, where it can be asked before anything is made ready.
    pub guard: Option<Guard>,
    /// The condition otherwise.
    pub predicate: Option<Program>,
    /// All that is done, where that is no more than to count.
    pub tally: Option<Tally>,
    /// The same, by a number.
    pub tally_by: Option<TallyBy>,
    /// The same, by a stack.
    pub tally_stack: Option<TallyStack>,
    /// The same where it is to record what cannot fault.
    pub note: Option<Note>,
    /// The whole clause but for the guard, where none of it can fault.
    pub brief: Option<Brief>,
    /// A program looks for thread-locals or elements of associative arrays.
    pub dynamics: bool,
    /// It loads user memory.
    pub reads_user: bool,
    /// It asks for an argument of the probe.
    pub reads_args: bool,
    /// The actions.
    pub actions: Vec<Action>,
    /// Size of the record with its header; 0 where the clause records nothing.
    pub size: usize,
    /// Room that the record takes in the principal buffer: `size`, or 0 where it goes to a speculation.
    pub principal: usize,
    /// Alignment of the record, a power of two.
    pub align: usize,
    /// Records of the principal buffer.
    pub records: Vec<RecDesc>,
    /// The consumer's note.
    pub uarg: u64,
    /// What it takes of a firing's budget whatever the data is, units.
    pub price: usize,
}

impl Prepared {
    /// What the record is charged in the principal buffer; 0 where nothing goes there.
    pub fn charge(&self) -> usize {
        self.principal.saturating_sub(RECORD_TIME)
    }

    /// The aggregating actions.
    pub fn aggregates(&self) -> impl Iterator<Item = &Aggregate> {
        self.actions.iter().filter_map(|action| match &action.act {
            Act::Aggregate(aggregate) => Some(aggregate),
            _ => None,
        })
    }
}
