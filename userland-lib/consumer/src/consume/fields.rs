// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The meaning of a record's fields.
//!
//! The kernel describes a field by its position, its action and the number of its statement. The
//! statement has the D type of the value. Both are combined when a description is first read, not
//! for each record, because the statement of an enabled action does not change. Consecutive fields
//! of one statement form a [`Group`].

use crate::value::{Datum, Kind};
use dtrace_compiler::statement::{self, Statement};
use dtrace_uapi::action::Action;
use dtrace_uapi::ioctl::RecDesc;
use std::ops::Range;

/// A field of a record, or of an aggregation's entry.
#[derive(Debug)]
pub struct Field {
    /// The action that records it; `None` if the library does not know it.
    pub action: Option<Action>,
    place: Range<usize>,
    kind: Kind,
    /// Size and signedness of the integer to which the value is narrowed if it fits.
    fitted: Option<(u8, bool)>,
}

impl Field {
    /// Makes the field that `desc` describes. `ty` is its D type; without one, an expression of an
    /// integer's size is taken as signed.
    pub fn new(ty: Option<statement::Kind>, desc: &RecDesc) -> Self {
        let action = Action::from_raw(desc.action);
        let ty = ty.unwrap_or(match desc.size {
            1 | 2 | 4 | 8 if action == Some(Action::Difexpr) => statement::Kind::Signed,
            _ => statement::Kind::Action,
        });
        Self {
            action,
            place: range(desc),
            kind: Kind::of_record(ty, action),
            fitted: match ty {
                statement::Kind::Fitted { size, signed } => Some((size, signed)),
                _ => None,
            },
        }
    }

    /// Whether it has no bytes in the record.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.place.is_empty()
    }

    /// Returns its bytes in `record`; none if it lies outside.
    #[inline]
    pub fn data<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        record.get(self.place.clone()).unwrap_or_default()
    }

    /// Returns its value in `record`.
    #[inline]
    pub fn datum<'a>(&self, record: &'a [u8]) -> Datum<'a> {
        let datum = Datum::new(self.kind, self.data(record));
        match self.fitted {
            Some((size, signed)) => datum.fitted(size, signed),
            None => datum,
        }
    }
}

/// The fields of one statement.
#[derive(Debug)]
pub struct Group {
    /// The statement's number; 0 if there is none.
    pub number: u64,
    /// The fields, at least one.
    pub fields: Vec<Field>,
}

impl Group {
    /// Groups the fields `descs` of a record. A field without a statement is a group of its own.
    pub fn all(descs: &[RecDesc], statements: &[Statement]) -> Vec<Self> {
        let groups = descs.chunk_by(|desc, next| desc.uarg != 0 && desc.uarg == next.uarg);
        groups
            .map(|descs| Self::new(descs[0].uarg, descs, statements))
            .collect()
    }

    /// Returns their statement, if it is one of `statements`.
    #[inline]
    pub fn statement<'a>(&self, statements: &'a [Statement]) -> Option<&'a Statement> {
        statement::find(statements, statement::FIRST, self.number)
    }

    fn new(number: u64, descs: &[RecDesc], statements: &[Statement]) -> Self {
        let statement = statement::find(statements, statement::FIRST, number);
        let ty = |at: usize| match statement {
            Some(
                Statement::Printf(print) | Statement::System(print) | Statement::Freopen(print),
            ) => print.args.get(at).copied(),
            Some(Statement::Trace(ty)) => Some(*ty),
            _ => None,
        };
        let fields = descs.iter().enumerate();
        Self {
            number,
            fields: fields.map(|(at, desc)| Field::new(ty(at), desc)).collect(),
        }
    }
}

/// Returns the range of a field's bytes in its record.
pub fn range(desc: &RecDesc) -> Range<usize> {
    let start = desc.offset as usize;
    start..start + desc.size as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use dtrace_compiler::format::Format;
    use dtrace_compiler::statement::Print;

    fn desc(uarg: u64, offset: u32, size: u32) -> RecDesc {
        RecDesc {
            action: Action::Difexpr as u32,
            uarg,
            offset,
            size,
            ..RecDesc::default()
        }
    }

    #[test]
    fn fields_of_a_statement_stand_together_and_those_of_nobody_alone() {
        let print = Print {
            format: Format::parse("%d %s").expect("a format"),
            args: vec![statement::Kind::Unsigned, statement::Kind::String],
        };
        let statements = [
            Statement::Printf(print),
            Statement::Trace(statement::Kind::Bytes),
        ];
        let descs = [
            desc(1, 12, 4),
            desc(1, 16, 8),
            desc(2, 24, 4),
            desc(0, 28, 4),
            desc(0, 32, 3),
        ];
        let groups = Group::all(&descs, &statements);
        let kinds = |group: &Group| group.fields.iter().map(|field| field.kind).collect();
        let groups: Vec<(u64, Vec<Kind>)> = groups
            .iter()
            .map(|group| (group.number, kinds(group)))
            .collect();
        assert_eq!(
            groups,
            [
                (1, vec![Kind::Int { signed: false }, Kind::Str]),
                (2, vec![Kind::Bytes]),
                (0, vec![Kind::Int { signed: true }]),
                (0, vec![Kind::Bytes]),
            ]
        );
    }

    #[test]
    fn a_field_is_what_the_record_has_at_its_place() {
        let record = [0, 0, 1, 2, 0, 0];
        let ty = statement::Kind::Fitted {
            size: 1,
            signed: false,
        };
        let field = |offset, size| Field::new(Some(ty), &desc(1, offset, size));
        assert_eq!(field(2, 1).datum(&record).data, [1]);
        // A value that does not fit in a byte keeps its size.
        assert_eq!(field(2, 2).datum(&record).data, [1, 2]);
        assert_eq!(field(3, 2).datum(&record).data, [2]);
        assert!(field(4, 4).data(&record).is_empty());
        assert!(field(9, 0).is_empty() && field(9, 0).data(&record).is_empty());
    }
}
