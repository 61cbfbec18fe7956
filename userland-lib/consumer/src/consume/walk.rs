// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Walks one record: yields its head, the values of its fields in order, and its end.
//!
//! A record is walked group by group ([`Group`]). A group either yields values or acts (on an
//! aggregation or an option).
//!
//! A failure of a group (an unknown option, data that does not fit its format) becomes an
//! [`Event`], and the walk continues. The walk ends only if output cannot be written or the device
//! fails or supplies inconsistent data.

use super::fields::Group;
use super::order::Turn;
use super::{
    faulted, Args, ConsumeError, Consumer, Context, Event, Failure, Faulted, Head, Receiver,
    Refused, Value,
};
use crate::value::{until_nul, Datum, Kind};
use dtrace_compiler::options::{Options, Setter};
use dtrace_compiler::program::PART_BITS;
use dtrace_compiler::statement::Statement;
use dtrace_uapi::action::Action;

/// A group of fields and the bytes of their record.
struct Values<'a> {
    group: &'a Group,
    record: &'a [u8],
}

impl<'a> Values<'a> {
    fn data(&self, index: usize) -> &'a [u8] {
        let field = self.group.fields.get(index);
        field.map_or(&[], |field| field.data(self.record))
    }

    /// Returns the value of the first field as a number, if it is an integer.
    fn number(&self) -> Option<i64> {
        Datum::new(Kind::Int { signed: true }, self.data(0)).signed()
    }

    fn args(&self) -> Args<'a> {
        Args::new(self.group, self.record)
    }

    /// Returns the first bytes of an object, as many as `print()` may show.
    fn object(&self, index: usize, options: &Options) -> &'a [u8] {
        let data = self.data(index);
        &data[..data.len().min(options.consumer.printsize)]
    }

    /// The values of a `trace()`, or of an action that needs no statement.
    fn plain(&self) -> impl Iterator<Item = Value<'a>> + '_ {
        let mut limit = usize::MAX;
        self.group.fields.iter().filter_map(move |field| {
            let data = field.data(self.record);
            match field.action {
                // The size computed by a tracemem() comes before the memory and limits it.
                Some(Action::TracememDynsize) => {
                    let size = Datum::new(Kind::Int { signed: false }, data).unsigned();
                    let size = size.and_then(|size| usize::try_from(size).ok());
                    limit = size.unwrap_or(0);
                    None
                }
                Some(Action::Tracemem) => Some(Value::memory(&data[..data.len().min(limit)])),
                Some(Action::Exit | Action::None) => None,
                _ if field.is_empty() => None,
                _ => Some(Value::Datum(field.datum(self.record))),
            }
        })
    }
}

impl Consumer {
    /// Yields one record and performs its actions.
    pub(super) fn walk(
        &mut self,
        context: Context<'_>,
        options: &mut Options,
        to: &mut dyn Receiver,
        turn: &Turn<'_>,
    ) -> Result<(), ConsumeError> {
        let this = &turn.record.enabled;
        if this.is_error {
            return self.fault(context, to, turn);
        }
        let head = Head {
            cpu: turn.cpu,
            timestamp: turn.record.timestamp,
            clause: this.clause >> PART_BITS,
            enabled: this,
            following: turn.following.map(|record| &*record.enabled),
            is_continued: std::mem::replace(&mut self.goes_on, turn.goes_on),
            goes_on: turn.goes_on,
        };
        to.begin(&head).map_err(ConsumeError::Output)?;
        for group in &this.groups {
            let values = Values {
                group,
                record: turn.bytes,
            };
            match self.group(context, options, to, &values) {
                Ok(()) => {}
                Err(Stop::Group(failure)) => to.event(Event::Failed {
                    probe: (&**this).into(),
                    failure,
                    place: context.places.statement(group.number),
                }),
                Err(Stop::Walk(error)) => return Err(error),
            }
        }
        to.end(&head).map_err(ConsumeError::Output)
    }

    /// Reports a fault from a record of the library's own clause of `dtrace:::ERROR`.
    fn fault(
        &mut self,
        context: Context<'_>,
        to: &mut dyn Receiver,
        turn: &Turn<'_>,
    ) -> Result<(), ConsumeError> {
        let mut args = [0; 5];
        let fields = turn
            .record
            .enabled
            .groups
            .iter()
            .flat_map(|group| &group.fields);
        for (arg, field) in args.iter_mut().zip(fields) {
            *arg = Datum::new(Kind::Int { signed: false }, field.data(turn.bytes))
                .unsigned()
                .unwrap_or(0);
        }
        let [epid, rest @ ..] = args;
        let epid =
            u32::try_from(epid).map_err(|_| ConsumeError::Layout("a fault names no probe"))?;
        let faulty = self.layouts.enabled(context, epid)?;
        let [action, offset, ..] = rest;
        let place = context.places.find(faulty.clause, action, offset);
        to.event(Event::Fault(Faulted {
            cpu: turn.cpu,
            timestamp: turn.record.timestamp,
            place: place.clone(),
            ..faulted(&faulty, rest)
        }));
        if let Some(place) = place {
            to.event(Event::Place(place));
        }
        Ok(())
    }

    /// Yields the values of a group, or does what it says.
    fn group(
        &mut self,
        context: Context<'_>,
        options: &mut Options,
        to: &mut dyn Receiver,
        values: &Values<'_>,
    ) -> Result<(), Stop> {
        let statement = values.group.statement(context.statements);
        if statement.is_some_and(Statement::reads_aggregations) {
            self.refresh(context, options, to)?;
        }
        let around = context.around(options);
        match statement {
            Some(Statement::Printf(print)) => {
                to.value(Value::Printf(&print.format, values.args()), around)?;
            }
            Some(Statement::System(print)) => {
                to.value(Value::System(&print.format, values.args()), around)?;
            }
            Some(Statement::Freopen(print)) => {
                to.value(Value::Freopen(&print.format, values.args()), around)?;
            }
            Some(Statement::Ftruncate) => to.value(Value::Ftruncate, around)?,
            Some(Statement::Print(shape)) => {
                let address = values.number().unwrap_or(0) as u64;
                let pointee = Value::Pointee {
                    address,
                    shape,
                    data: values.object(1, options),
                };
                to.value(pointee, around)?;
            }
            Some(Statement::PrintValue(shape)) => {
                to.value(Value::Object(shape, values.object(0, options)), around)?;
            }
            Some(Statement::Printa { format, aggs }) => {
                let printa = Value::Printa {
                    format: format.as_ref(),
                    vars: aggs,
                    aggregations: &self.aggregations,
                };
                to.value(printa, around)?;
                for var in aggs {
                    self.aggregations.note_printed(*var);
                }
            }
            Some(Statement::Setopt) => {
                let failed = setopt(options, values);
                to.options(options);
                if let Some(failure) = failed {
                    return Err(Stop::Group(failure));
                }
            }
            Some(Statement::Exit) => {
                let status = values.number();
                self.exit_status = status.and_then(|status| i32::try_from(status).ok());
                if let Some(status) = self.exit_status {
                    to.value(Value::Exit(status), around)?;
                }
            }
            Some(Statement::Clear(var)) => self.aggregations.clear(*var),
            Some(Statement::Trunc(var)) => {
                self.aggregations.trunc(*var, values.number().unwrap_or(0));
            }
            Some(Statement::Normalize(var)) => {
                let factor = values
                    .number()
                    .and_then(|factor| u64::try_from(factor).ok());
                match factor.filter(|factor| *factor != 0) {
                    Some(factor) => self.aggregations.normalize(*var, factor),
                    None => return Err(Stop::Group(Failure::Normalize)),
                }
            }
            Some(Statement::Denormalize(var)) => self.aggregations.denormalize(*var),
            Some(Statement::Speculative | Statement::Error | Statement::Aggregate { .. }) => {}
            Some(Statement::Trace(_) | Statement::Tracemem | Statement::Action) | None => {
                for value in values.plain() {
                    to.value(value, around)?;
                }
            }
        }
        Ok(())
    }
}

/// Why a group was not done.
enum Stop {
    /// For this reason, which concerns it alone.
    Group(Failure),
    /// The walk cannot go on.
    Walk(ConsumeError),
}

impl From<ConsumeError> for Stop {
    fn from(error: ConsumeError) -> Self {
        Self::Walk(error)
    }
}

impl From<Refused> for Stop {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Value(reason) => Self::Group(Failure::Other(reason)),
            Refused::Output(error) => Self::Walk(ConsumeError::Output(error)),
        }
    }
}

/// Sets the option that a `setopt()` names. Returns why that failed, if it did.
fn setopt(options: &mut Options, values: &Values<'_>) -> Option<Failure> {
    let text = |at| String::from_utf8_lossy(until_nul(values.data(at)));
    let (name, value) = (text(0), (values.group.fields.len() > 1).then(|| text(1)));
    let set = options.set(&name, value.as_deref(), Setter::Running);
    set.err().map(|error| Failure::Setopt {
        name: name.into_owned(),
        value: value.map_or_else(|| "1".to_owned(), std::borrow::Cow::into_owned),
        error: error.to_string(),
    })
}
