// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Builds a clause that is ready to fire from one as the image has it.
// Arithmetic on sizes that `Layout` bounds, and on indexes of actions.
#![allow(clippy::arithmetic_side_effects)]

use super::aggregation::Function;
use super::fast::condition::Condition;
use super::fast::{Body, Extent};
use super::layout::{alignment, Layout};
use super::memory::Memory;
use super::order::Order;
use super::price::price;
use super::rehearsal;
use super::{Act, Action, Aggregate, Datum, Field, Prepared, Shape};
use crate::consumer::{Features, Privileges};
use crate::dif::prepare;
use crate::dif::program::Program;
use crate::dif::verify::{self, Facts};
use crate::dof::{ActionSpec, Clause, Difo};
use crate::error::{Errno, NoMem, Place, Reason};
use crate::mem::Vec;
use crate::var::statics::Table;
use core::ops::Range;
use dtrace_uapi::action::{ustack_arg, ustack_frames, ustack_strsize, Action as Kind};
use dtrace_uapi::ioctl::RecDesc;
use dtrace_uapi::limits::FRAMES_MAX;
use dtrace_uapi::option::Opt;
use dtrace_uapi::types::{AggId, DifType, Epid, DIF_TF_BYREF, DIF_TF_BYUREF, DIF_TYPE_STRING};

/// Maximum number of formats of a consumer: their numbers have 16 bits, and 0 means none.
const FORMATS_MAX: usize = 0xffff;

/// The caller was killed, so the result is not needed.
const INTERRUPTED: Reason = Reason::new(Errno::EINTR, "interrupted");

/// What the clauses of a consumer share, and add to.
#[derive(Debug, Default)]
pub struct Shared {
    /// The variables.
    pub table: Table,
    /// The strings of all programs.
    pub strings: Vec<u8>,
    /// The formats; their numbers start at 1.
    pub formats: Vec<Vec<u8>>,
    /// Number of aggregations; their ids start at 1.
    pub aggregations: AggId,
    /// Maximum size of a key of an associative array, in bytes.
    pub key_size: usize,
    /// A clause uses speculations.
    pub speculates: bool,
    /// A program reads `vtimestamp`.
    pub vtimestamp: bool,
}

impl Shared {
    /// Returns a copy, to which may be added.
    pub fn copy(&self) -> Result<Self, NoMem> {
        Ok(Self {
            table: self.table.copy()?,
            strings: Vec::copy_of(&self.strings)?,
            formats: Vec::try_from_fn(self.formats.len(), |n| {
                Vec::copy_of(self.formats.get(n).map_or(&[], |format| &format[..]))
            })?,
            aggregations: self.aggregations,
            key_size: self.key_size,
            speculates: self.speculates,
            vtimestamp: self.vtimestamp,
        })
    }
}

/// What building needs to know about the consumer.
pub struct Context<'a> {
    /// Rights of the opener.
    pub privileges: Privileges,
    /// Features of the platform.
    pub features: Features,
    /// Destructive actions are allowed and requested.
    pub destructive: bool,
    /// Size of a string, in bytes.
    pub strsize: usize,
    /// Loops are allowed.
    pub loops: bool,
    /// Whether the caller was killed.
    pub is_killed: fn() -> bool,
    /// Returns the value of an option, or its default.
    pub option: &'a dyn Fn(Opt) -> u64,
}

/// Size and final argument of an action's data.
struct Plan {
    size: usize,
    arg: u64,
}

struct Builder<'a> {
    cx: &'a Context<'a>,
    shared: &'a mut Shared,
    /// A destructive subroutine was called since this was cleared.
    destroys: bool,
    /// A program looks up dynamic variables.
    dynamics: bool,
    /// The range of the record in which the last action recorded the size of the memory that
    /// follows.
    asked: Option<Range<usize>>,
    /// It builds a walker's program.
    walker: bool,
}

fn frames(count: u32) -> Result<u32, Reason> {
    if count == 0 || count > FRAMES_MAX {
        return Err(Reason::invalid("bad number of stack frames"));
    }
    Ok(count)
}

/// Builds a clause. After an error `shared` has parts of it (declarations, strings, formats) and
/// must be dropped.
pub fn build(clause: &Clause, cx: &Context<'_>, shared: &mut Shared) -> Result<Prepared, Reason> {
    let mut builder = Builder::new(cx, shared, false);
    let predicate = match &clause.predicate {
        Some(difo) => Some(builder.program(difo)?),
        None => None,
    };
    let mut actions = Vec::with_capacity(clause.actions.len())?;
    let mut records = Vec::with_capacity(clause.actions.len())?;
    // Ignores calls of the predicate, which comes before all actions.
    builder.destroys = false;
    let mut layout = Layout::RECORD;
    // A clause without actions, or with nothing but `speculate()`, records that its probe fired.
    let mut recording = clause
        .actions
        .iter()
        .all(|spec| spec.kind == Kind::Speculate);
    let mut order = Order::default();
    let mut tuples = tuple_starts(&clause.actions)?;
    let mut next = 0;
    while let Some(spec) = clause.actions.get(next) {
        let number = next as u32 + 1;
        let at = |reason: Reason| match reason.place {
            Place::None => reason.at(Place::Action(number)),
            _ => reason,
        };
        if let Some(end) = tuples.pop_if_starts(next) {
            let tuple = clause.actions.get(next..=end).unwrap_or(&[]);
            order.aggregate().map_err(at)?;
            let aggregate = builder.aggregate(tuple, next as u32).map_err(at)?;
            actions.push(Action {
                number: end as u32 + 1,
                act: Act::Aggregate(aggregate),
            })?;
            next = end + 1;
            continue;
        }
        let (act, record) = builder.action(spec, number, &mut layout).map_err(at)?;
        let has_data = record.size > 0 || spec.kind.is_printf_like() || spec.kind == Kind::Libact;
        let destroys = core::mem::take(&mut builder.destroys);
        order.action(spec.kind, has_data, destroys).map_err(at)?;
        recording |= has_data;
        records.push(record)?;
        actions.push(Action { number, act })?;
        next += 1;
    }
    // Whole EPIDs, so that padding can be told from records wherever one ends.
    let size = if recording {
        layout.size().next_multiple_of(size_of::<Epid>())
    } else {
        0
    };
    let dynamics = builder.dynamics;
    shared.speculates |= order.speculates();
    let reads_user = rehearsal::reads_user(predicate.as_ref(), &actions);
    let reads_args = rehearsal::reads_args(predicate.as_ref(), &actions);
    let condition = Condition::of(predicate);
    let principal = if order.speculated() { 0 } else { size };
    let price = price(condition.program(), &actions, principal);
    let extent = Extent {
        record: size,
        principal,
        price,
    };
    Ok(Prepared {
        price,
        body: Body::of(&condition, &actions, extent)?,
        condition,
        dynamics,
        reads_user,
        reads_args,
        actions,
        size,
        principal,
        align: layout.align(),
        records,
        uarg: clause.uarg,
    })
}

/// First and last action of each aggregation; the last aggregation comes first.
struct Tuples(Vec<(usize, usize)>);

impl Tuples {
    /// Removes the tuple that starts with action `start`, if there is one, and returns its last
    /// action.
    fn pop_if_starts(&mut self, start: usize) -> Option<usize> {
        match self.0.last() {
            Some((first, _)) if *first == start => self.0.pop().map(|(_, last)| last),
            _ => None,
        }
    }
}

fn tuple_starts(actions: &[ActionSpec]) -> Result<Tuples, Reason> {
    let mut out = Vec::new();
    let mut taken = actions.len();
    for (last, spec) in actions.iter().enumerate().rev() {
        if !spec.kind.is_aggregation() {
            continue;
        }
        let fail = |text| Reason::invalid(text).at(Place::Action(last as u32 + 1));
        if last >= taken {
            return Err(fail("aggregation within the tuple of another"));
        }
        let first = last
            .checked_sub(spec.ntuple as usize)
            .ok_or_else(|| fail("tuple is longer than there are actions"))?;
        taken = first;
        out.push((first, last))?;
    }
    Ok(Tuples(out))
}

/// Builds a walker's program, which has variables of its own. Also returns the size of those, in
/// bytes.
pub fn walker(
    difo: &Difo,
    cx: &Context<'_>,
    shared: &mut Shared,
) -> Result<(Program, usize), Reason> {
    let outer = core::mem::take(&mut shared.table);
    let program = Builder::new(cx, shared, true).program(difo);
    let own = core::mem::replace(&mut shared.table, outer);
    Ok((program?, own.locals_size()))
}

impl<'a> Builder<'a> {
    fn new(cx: &'a Context<'a>, shared: &'a mut Shared, walker: bool) -> Self {
        Self {
            cx,
            shared,
            destroys: false,
            dynamics: false,
            asked: None,
            walker,
        }
    }

    /// Verifies and prepares an object. That takes milliseconds at most. An image with thousands of
    /// objects takes much longer, so each object is refused once the caller was killed.
    fn program(&mut self, difo: &Difo) -> Result<Program, Reason> {
        if (self.cx.is_killed)() {
            return Err(INTERRUPTED);
        }
        let facts: Facts = verify::verify(
            difo,
            &verify::Context {
                privileges: self.cx.privileges,
                features: self.cx.features,
                destructive: self.cx.destructive,
                strsize: self.cx.strsize,
                loops: self.cx.loops,
                walker: self.walker,
            },
        )?;
        for var in difo.vars.iter() {
            self.shared.table.declare(var, self.cx.strsize)?;
        }
        self.shared.key_size = self.shared.key_size.max(facts.key_size);
        self.destroys |= facts.destructive;
        self.shared.speculates |= facts.speculation;
        self.shared.vtimestamp |= facts.vtimestamp;
        let strings = self.strings(&difo.strings)?;
        let program = prepare::prepare(
            difo,
            &prepare::Context {
                table: &self.shared.table,
                strings,
                kernel: self.cx.privileges.kernel_memory,
            },
        )?;
        self.dynamics |= program.looks_for_dynamics();
        Ok(program)
    }

    /// Adds a string table to the consumer's, and returns its offset. The objects of one program
    /// often share one table, so a table that is at the end already is not added again.
    fn strings(&mut self, add: &[u8]) -> Result<usize, Reason> {
        let all = &mut self.shared.strings;
        let tail = all.len().saturating_sub(add.len());
        if all.get(tail..) == Some(add) {
            return Ok(tail);
        }
        let at = all.len();
        all.extend(add)?;
        Ok(at)
    }

    fn required<'d>(&self, spec: &'d ActionSpec) -> Result<&'d Difo, Reason> {
        spec.difo
            .as_deref()
            .ok_or(Reason::invalid("action without an expression"))
    }

    /// Returns the size of the data of an object's result, in bytes.
    fn result_size(&self, ty: &DifType, kind: Kind, arg: u64) -> Result<usize, Reason> {
        if ty.kind == DIF_TYPE_STRING {
            return Ok(self.cx.strsize);
        }
        if ty.size != 0 {
            return Ok(ty.size as usize);
        }
        if matches!(kind, Kind::Tracemem | Kind::TracememDynsize) {
            return usize::try_from(arg).map_err(|_| Reason::invalid("too much memory"));
        }
        Ok(0)
    }

    /// Returns size and final argument of an action's data.
    fn plan(&self, spec: &ActionSpec) -> Result<Plan, Reason> {
        let option = |opt| (self.cx.option)(opt);
        let ty = spec.difo.as_ref().map(|difo| difo.rtype);
        let plan = |size, arg| Ok(Plan { size, arg });
        match spec.kind {
            Kind::Difexpr | Kind::Tracemem | Kind::TracememDynsize | Kind::Libact => {
                if spec.kind != Kind::Libact {
                    self.required(spec)?;
                }
                let ty = ty.unwrap_or_default();
                plan(self.result_size(&ty, spec.kind, spec.arg)?, spec.arg)
            }
            kind if kind.is_printf_like() => {
                let ty = ty.unwrap_or_default();
                plan(self.result_size(&ty, kind, 0)?, spec.arg)
            }
            Kind::Exit => plan(4, spec.arg),
            Kind::Stack => {
                let n = if spec.arg == 0 {
                    option(Opt::Stackframes)
                } else {
                    spec.arg
                };
                let n = frames(u32::try_from(n).unwrap_or(u32::MAX))?;
                plan(n as usize * 8, u64::from(n))
            }
            Kind::Ustack | Kind::Jstack => {
                let jstack = spec.kind == Kind::Jstack;
                let mut n = ustack_frames(spec.arg);
                let mut strsize = ustack_strsize(spec.arg);
                if n == 0 {
                    let opt = if jstack {
                        Opt::Jstackframes
                    } else {
                        Opt::Ustackframes
                    };
                    n = u32::try_from(option(opt)).unwrap_or(u32::MAX);
                }
                if strsize == 0 && jstack {
                    strsize = u32::try_from(option(Opt::Jstackstrsize)).unwrap_or(u32::MAX);
                }
                let n = frames(n)?;
                let size = (n as usize + 1) * 8 + (strsize as usize).next_multiple_of(8);
                plan(size, ustack_arg(n, strsize))
            }
            Kind::Sym | Kind::Mod => plan(8, spec.arg),
            Kind::Usym | Kind::Umod | Kind::Uaddr => plan(16, spec.arg),
            _ => plan(0, spec.arg),
        }
    }

    fn check_allowed(&self, kind: Kind) -> Result<(), Reason> {
        let features = &self.cx.features;
        let refuse = |name, text| Err(Reason::invalid(text).about(name));
        let missing = "not available on this platform";
        match kind {
            Kind::Stop | Kind::Raise if !features.signals => return refuse("signals", missing),
            Kind::Breakpoint if !features.breakpoint => return refuse("breakpoint", missing),
            Kind::Panic if !features.panic => return refuse("panic", missing),
            Kind::Chill if !features.chill => return refuse("chill", missing),
            Kind::Ustack | Kind::Jstack if !features.ustack => return refuse("ustack", missing),
            _ => {}
        }
        if kind.is_destructive() && !self.cx.destructive {
            return Err(Reason::new(
                Errno::EACCES,
                "destructive action needs destructive actions to be enabled",
            ));
        }
        Ok(())
    }

    fn shape(&self, ty: &DifType, kind: Kind) -> Shape {
        let string = ty.kind == DIF_TYPE_STRING;
        let memory = matches!(kind, Kind::Tracemem | Kind::TracememDynsize);
        match (ty.flags & DIF_TF_BYUREF != 0, string) {
            (true, true) => Shape::UserString,
            (true, false) => Shape::UserBytes,
            (false, true) => Shape::String,
            (false, false) if ty.flags & DIF_TF_BYREF != 0 => Shape::Bytes,
            // `tracemem(address, size)`: the size is the action's, and the expression has none.
            (false, false) if memory && ty.size == 0 => Shape::Bytes,
            (false, false) => Shape::Value(ty.size as u8),
        }
    }

    /// Returns what an action writes; `None` if it has no data.
    fn datum(&mut self, spec: &ActionSpec, plan: &Plan) -> Result<Option<Datum>, Reason> {
        if plan.size == 0 {
            return Ok(None);
        }
        Ok(Some(match spec.kind {
            Kind::Stack => Datum::Stack,
            Kind::Ustack | Kind::Jstack => Datum::Ustack {
                frames: ustack_frames(plan.arg),
            },
            Kind::Sym | Kind::Mod => Datum::Address(self.program(self.required(spec)?)?),
            Kind::Usym | Kind::Umod | Kind::Uaddr => {
                Datum::UserAddress(self.program(self.required(spec)?)?)
            }
            _ => {
                let difo = self.required(spec)?;
                let shape = match spec.kind {
                    Kind::Exit => Shape::Value(4),
                    kind => self.shape(&difo.rtype, kind),
                };
                Datum::Expr {
                    program: self.program(difo)?,
                    shape,
                }
            }
        }))
    }

    fn format(&mut self, spec: &ActionSpec) -> Result<u16, Reason> {
        let Some(format) = &spec.format else {
            return Ok(0);
        };
        // The format is compared with all others, which may take long.
        if (self.cx.is_killed)() {
            return Err(INTERRUPTED);
        }
        let formats = &mut self.shared.formats;
        let known = formats.iter().position(|known| known[..] == format[..]);
        let index = match known {
            Some(index) => index,
            None if formats.len() >= FORMATS_MAX => {
                return Err(Reason::new(Errno::E2BIG, "too many formats"))
            }
            None => {
                formats.push(Vec::copy_of(format)?)?;
                formats.len() - 1
            }
        };
        Ok(index as u16 + 1)
    }

    fn place(
        &self,
        spec: &ActionSpec,
        plan: &Plan,
        layout: &mut Layout,
        format: u16,
    ) -> Result<RecDesc, Reason> {
        let offset = layout
            .add(plan.size)
            .ok_or(Reason::new(Errno::E2BIG, "record is too big"))?;
        Ok(RecDesc {
            action: spec.kind as u32,
            size: plan.size as u32,
            offset: offset as u32,
            alignment: alignment(plan.size) as u16,
            format,
            arg: plan.arg,
            uarg: spec.uarg,
        })
    }

    /// Builds an action that is not part of an aggregation.
    fn action(
        &mut self,
        spec: &ActionSpec,
        number: u32,
        layout: &mut Layout,
    ) -> Result<(Act, RecDesc), Reason> {
        self.check_allowed(spec.kind)?;
        let plan = self.plan(spec)?;
        let format = self.format(spec)?;
        let datum = self.datum(spec, &plan)?;
        let record = self.place(spec, &plan, layout, format)?;
        let asked = self.asked.take();
        let act = match (datum, spec.kind) {
            (Some(datum), kind) => {
                let field = Field {
                    datum,
                    offset: record.offset as usize,
                    size: plan.size,
                    action: number,
                };
                match kind {
                    Kind::Exit => Act::Exit(field),
                    Kind::Tracemem => Memory::act(field, asked),
                    Kind::TracememDynsize => {
                        self.asked = Some(field.offset..field.offset + field.size);
                        Act::Record(field)
                    }
                    _ => Act::Record(field),
                }
            }
            (None, Kind::Stop) => Act::Stop,
            (None, Kind::Breakpoint) => Act::Breakpoint,
            (None, Kind::Panic) => Act::Panic,
            (None, Kind::Raise) => Act::Raise(self.program(self.required(spec)?)?),
            (None, Kind::Chill) => Act::Chill(self.program(self.required(spec)?)?),
            (None, Kind::Speculate) => Act::Speculate(self.program(self.required(spec)?)?),
            (None, Kind::Commit) => Act::Commit(self.program(self.required(spec)?)?),
            (None, Kind::Discard) => Act::Discard(self.program(self.required(spec)?)?),
            (None, Kind::None) => return Err(Reason::invalid("no such action")),
            (None, _) => match &spec.difo {
                Some(difo) => Act::Effect(self.program(difo)?),
                None => Act::Nothing,
            },
        };
        Ok((act, record))
    }

    /// Builds an aggregation from its tuple, whose first action is number `before + 1`, and itself.
    fn aggregate(&mut self, tuple: &[ActionSpec], before: u32) -> Result<Aggregate, Reason> {
        let (itself, mut keys) = tuple
            .split_last()
            .ok_or(Reason::invalid("aggregation without itself"))?;
        let function = Function::new(itself.kind, itself.arg)?;
        let mut action = before + tuple.len() as u32;
        let mut value = match &itself.difo {
            Some(difo) => Some(self.program(difo)?),
            None => None,
        };
        let mut increment = None;
        if let Some((last, others)) = keys.split_last() {
            // An expression without data at the end of the tuple is not a key. It is the value or,
            // if the action itself has the value, the increment.
            if last.kind == Kind::Difexpr && self.plan(last)?.size == 0 {
                let program = self.program(self.required(last)?)?;
                if value.is_none() {
                    value = Some(program);
                    action -= 1;
                } else if function.is_distribution() {
                    increment = Some(program);
                } else {
                    return Err(Reason::invalid("aggregating function takes no increment"));
                }
                keys = others;
            }
        }
        if value.is_none() && function != Function::Count {
            return Err(Reason::invalid("aggregation without a value"));
        }
        let mut layout = Layout::ENTRY;
        let mut records = Vec::with_capacity(keys.len() + 1)?;
        let mut fields = Vec::with_capacity(keys.len())?;
        for (index, spec) in keys.iter().enumerate() {
            self.check_allowed(spec.kind)?;
            let plan = self.plan(spec)?;
            let datum = self
                .datum(spec, &plan)?
                .filter(|_| spec.kind != Kind::Exit && !spec.kind.is_printf_like())
                .ok_or(Reason::invalid("action cannot be part of a key"))?;
            let record = self.place(spec, &plan, &mut layout, 0)?;
            fields.push(Field {
                datum,
                offset: record.offset as usize,
                size: plan.size,
                action: before + index as u32 + 1,
            })?;
            records.push(record)?;
        }
        let key_size = layout.size();
        let plan = Plan {
            size: function.size(),
            arg: itself.arg,
        };
        let record = self.place(itself, &plan, &mut layout, 0)?;
        records.push(record)?;
        self.shared.aggregations = self
            .shared
            .aggregations
            .checked_add(1)
            .ok_or(Reason::new(Errno::E2BIG, "too many aggregations"))?;
        Ok(Aggregate {
            id: self.shared.aggregations,
            keys: fields,
            key_size,
            value,
            increment,
            action,
            function,
            offset: record.offset as usize,
            size: layout.size(),
            records,
        })
    }
}
