// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Types as `print()` needs them: names, sizes and members, without the compiler's tables.
//!
//! The consumer prints long after the compiler has finished with a program, so what it needs to
//! know of a type is copied. The copy is no deeper than anything is printed, because structures of
//! the kernel nest very deep.

use crate::shape::{Field, Form, Shape, DEPTH};
use crate::statement;
use dtrace_types::{Kind, Ty, Types};

/// Returns what `print()` needs to know of `ty`.
pub(super) fn shape_of(types: &mut Types<'_>, ty: Ty) -> Shape {
    shape_at(types, ty, DEPTH)
}

fn shape_at(types: &mut Types<'_>, ty: Ty, depth: usize) -> Shape {
    let form = match depth.checked_sub(1) {
        Some(depth) => form_of(types, ty, depth),
        None => Form::Opaque,
    };
    Shape {
        name: name_of(types, ty),
        size: types.size(ty).unwrap_or(0),
        form,
    }
}

/// Returns the name of the type. A record without a tag is called `struct` or `union`.
fn name_of(types: &mut Types<'_>, ty: Ty) -> String {
    let anonymous = matches!(types.kind(ty), Kind::Record(_))
        && types.tag(ty).is_some_and(|(_, tag)| tag.is_empty());
    match types.record(ty).filter(|_| anonymous) {
        Some(record) if record.is_union => "union".to_owned(),
        Some(_) => "struct".to_owned(),
        None => types.name(ty),
    }
}

fn form_of(types: &mut Types<'_>, ty: Ty, depth: usize) -> Form {
    match types.base(ty).clone() {
        Kind::Int { int, .. } => Form::Int { signed: int.signed },
        Kind::Float { .. } => Form::Float,
        Kind::Pointer { .. } => Form::Pointer,
        Kind::Enum(_) => {
            let items = types.enumeration(ty);
            Form::Enum(items.map_or_else(Vec::new, |list| list.items.clone()))
        }
        Kind::Array(element, count) => Form::Array {
            text: types.is_char(element),
            element: Box::new(shape_at(types, element, depth)),
            count: count.unwrap_or(0).into(),
        },
        Kind::String => Form::Array {
            text: true,
            element: Box::new(shape_at(types, Ty::CHAR, depth)),
            count: types.size(ty).unwrap_or(0),
        },
        Kind::Record(_) => {
            let record = types.record(ty);
            let members = record.iter().flat_map(|record| &record.members);
            let fields = members.map(|member| Field {
                name: member.name.clone(),
                shape: shape_at(types, member.path.ty, depth),
                bit_offset: member.path.bit_offset,
                bits: member.path.bits,
            });
            Form::Record(fields.collect())
        }
        _ => Form::Opaque,
    }
}

/// Returns the description of the type for the consumer.
pub(super) fn record_kind(types: &Types<'_>, ty: Ty) -> statement::Kind {
    match types.base(ty) {
        Kind::String => statement::Kind::String,
        Kind::Array(element, _) if types.is_char(*element) => statement::Kind::Chars,
        Kind::Record(_) if types.frames_of(ty).is_some() => statement::Kind::Stack,
        Kind::Array(..) | Kind::Record(_) => statement::Kind::Bytes,
        Kind::Float { .. } => statement::Kind::Float,
        Kind::Stack(_) | Kind::Symbol | Kind::Usymbol | Kind::Dynamic => statement::Kind::Action,
        Kind::Inferred(shown) => {
            types
                .int(*shown)
                .map_or(statement::Kind::Signed, |int| statement::Kind::Fitted {
                    size: int.size,
                    signed: int.signed,
                })
        }
        _ if types.int(ty).is_some_and(|int| int.signed) => statement::Kind::Signed,
        _ => statement::Kind::Unsigned,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dtrace_objects::processes::Nowhere;

    #[test]
    fn members_keep_their_names_places_and_types() {
        let mut types = Types::new(&Nowhere);
        let text = types.array_of(Ty::CHAR, Some(5));
        let color = types
            .declare_enum(Some("color"), vec![("RED".to_owned(), 3)])
            .expect("an enumeration");
        let inner = types
            .declare_record(true, None, Some(vec![("c".to_owned(), Ty::UINT8_T, None)]))
            .expect("a union");
        let members = [
            ("n", Ty::INT, None),
            ("b", text, None),
            ("bits", Ty::UINT, Some(3)),
            ("u", inner, None),
            ("e", color, None),
            ("p", Ty::VOID_POINTER, None),
        ];
        let members = members.map(|(name, ty, bits)| (name.to_owned(), ty, bits));
        let outer = types
            .declare_record(false, Some("outer"), Some(members.to_vec()))
            .expect("a structure");
        let shape = shape_of(&mut types, outer);
        assert_eq!((shape.name.as_str(), shape.size), ("struct outer", 24));
        let Form::Record(fields) = shape.form else {
            panic!("a structure has members");
        };
        let seen: Vec<_> = fields
            .iter()
            .map(|f| (f.name.as_str(), f.shape.name.as_str(), f.bit_offset, f.bits))
            .collect();
        assert_eq!(
            seen,
            [
                ("n", "int", 0, 0),
                ("b", "char [5]", 32, 0),
                ("bits", "unsigned int", 72, 3),
                ("u", "union", 80, 0),
                ("e", "enum color", 96, 0),
                ("p", "void *", 128, 0),
            ]
        );
        assert_eq!(
            fields[4].shape.form,
            Form::Enum(vec![("RED".to_owned(), 3)])
        );
    }

    #[test]
    fn what_is_too_deep_to_be_printed_is_left_out() {
        let mut types = Types::new(&Nowhere);
        let mut ty = Ty::INT;
        for _ in 0..=DEPTH {
            ty = types.array_of(ty, Some(1));
        }
        let mut shape = shape_of(&mut types, ty);
        while let Form::Array { element, .. } = shape.form {
            shape = *element;
        }
        assert_eq!(shape.form, Form::Opaque);
    }

    #[test]
    fn records_of_types() {
        let mut types = Types::new(&Nowhere);
        let chars = types.array_of(Ty::CHAR, Some(8));
        let ints = types.array_of(Ty::INT, Some(8));
        for (ty, kind) in [
            (chars, statement::Kind::Chars),
            (ints, statement::Kind::Bytes),
            (Ty::PID_T, statement::Kind::Signed),
            (Ty::VOID_POINTER, statement::Kind::Unsigned),
            (Ty::STACK, statement::Kind::Action),
        ] {
            assert_eq!(record_kind(&types, ty), kind);
        }
    }
}
