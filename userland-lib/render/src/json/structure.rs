// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! `print()`: a structure is an object of its members, an array an array of its elements.
//!
//! Members of a structure or union without a name are members of what contains it, as in C. A
//! pointer is an address, and is not followed; an enumerator is its name. The record may hold less
//! than the value (`printsize`): what is missing is left out, and `"truncated":true` says so.

use super::put::{Object, Put};
use super::value;
use crate::place::{enumerator, Place};
use dtrace_compiler::shape::{Field, Form, Shape, DEPTH};

/// Appends the element of a record's output for a value of type `shape`. `data` is its recorded
/// bytes, `address` where it lies, if a pointer to it was printed.
pub fn element(put: &mut Put<'_>, address: Option<u64>, shape: &Shape, data: &[u8]) {
    put.object(|object| {
        object.member("print").object(|object| {
            object.member("type").text(&shape.name);
            if let Some(address) = address {
                object.member("address").address(address);
            }
            let mut reader = Reader {
                data,
                is_cut: (data.len() as u64) < shape.size,
            };
            let put = object.member("value");
            reader.value(put, shape, Place::default(), 0);
            if reader.is_cut {
                object.member("truncated").flag(true);
            }
        });
    });
}

struct Reader<'a> {
    data: &'a [u8],
    /// Whether something is missing.
    is_cut: bool,
}

impl<'a> Reader<'a> {
    fn rest(&self, place: Place) -> &'a [u8] {
        place.rest(self.data)
    }

    /// Whether a value was recorded, at least in part.
    fn is_there(&mut self, shape: &Shape, place: Place) -> bool {
        let is_there = shape.size == 0 || !self.rest(place).is_empty();
        self.is_cut |= !is_there;
        is_there
    }

    fn value(&mut self, put: &mut Put<'_>, shape: &Shape, place: Place, depth: usize) {
        if depth > DEPTH || !self.is_there(shape, place) {
            self.is_cut = true;
            return put.null();
        }
        match &shape.form {
            Form::Record(fields) => {
                put.object(|object| self.members(object, fields, place, depth));
            }
            Form::Array {
                count, text: true, ..
            } => {
                let rest = self.rest(place);
                let size = usize::try_from(*count).unwrap_or(usize::MAX);
                let text = &rest[..size.min(rest.len())];
                let end = text.iter().position(|&byte| byte == 0);
                self.is_cut |= end.is_none() && text.len() < size;
                put.bytes(&text[..end.unwrap_or(text.len())]);
            }
            Form::Array { element, count, .. } => self.array(put, element, *count, place, depth),
            _ => self.scalar(put, shape, place),
        }
    }

    fn members(
        &mut self,
        object: &mut Object<'_, '_>,
        fields: &[Field],
        place: Place,
        depth: usize,
    ) {
        for field in fields {
            let at = Place {
                bits: field.bits,
                ..place.beyond(field.bit_offset)
            };
            match &field.shape.form {
                // Deeper than any type of C, this ends.
                Form::Record(inner) if field.name.is_empty() && depth < DEPTH => {
                    self.members(object, inner, at, depth + 1);
                }
                // Without a name, there is nothing but padding.
                _ if field.name.is_empty() => {}
                Form::Opaque => {}
                _ if self.is_there(&field.shape, at) => {
                    self.value(object.member(&field.name), &field.shape, at, depth + 1);
                }
                _ => {}
            }
        }
    }

    fn array(
        &mut self,
        put: &mut Put<'_>,
        element: &Shape,
        count: u64,
        place: Place,
        depth: usize,
    ) {
        // Elements without size have no values; putting `count` of them would be unbounded.
        let count = if element.size == 0 { 0 } else { count };
        put.array(|array| {
            for number in 0..count {
                let offset = number.saturating_mul(element.size).saturating_mul(8);
                let at = place.beyond(offset);
                if !self.is_there(element, at) {
                    break;
                }
                self.value(array.item(), element, at, depth + 1);
            }
        });
    }

    fn scalar(&mut self, put: &mut Put<'_>, shape: &Shape, place: Place) {
        let rest = self.rest(place);
        let size = usize::try_from(shape.size).unwrap_or(usize::MAX);
        let number = place.number(shape, self.data);
        match (&shape.form, number) {
            (Form::Float, _) => match rest.get(..size) {
                Some(data) => value::float(put, data),
                None => self.missing(put),
            },
            (Form::Pointer, Some((address, _))) => put.address(address),
            (Form::Int { signed: false }, Some((number, _))) => put.integer(number),
            (Form::Int { .. }, Some((_, number))) => put.integer(number),
            (Form::Enum(items), Some((_, number))) => match enumerator(items, number) {
                Some(name) => put.text(name),
                None => put.integer(number),
            },
            // Wider than any D integer.
            (Form::Int { .. }, None) if place.is_wide(shape) => match rest.get(..size) {
                Some(data) => put.object(|object| object.member("bytes").base64(data)),
                None => self.missing(put),
            },
            (Form::Opaque, _) => put.null(),
            _ => self.missing(put),
        }
    }

    fn missing(&mut self, put: &mut Put<'_>) {
        self.is_cut = true;
        put.null();
    }
}
