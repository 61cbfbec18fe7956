// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! `print()` of a value: its type and all of its members, as illumos prints them.
//!
//! Each member has a line with its type, indented by four columns more than the structure that
//! contains it. Integers are hexadecimal, arrays are in brackets, text is in quotes. Pointers are
//! not followed. The record may hold less than the value (`printsize`); `...` stands for the rest.

use super::place::{enumerator, Place};
use super::{float, pad, Renderer};
use dtrace_compiler::shape::{Field, Form, Shape, DEPTH};

/// Indentation per level of nesting, columns.
const INDENT: usize = 4;

impl Renderer<'_> {
    /// Appends a value of type `shape`. `data` is its recorded bytes, which may be truncated.
    pub fn object(&self, out: &mut Vec<u8>, shape: &Shape, data: &[u8]) {
        let mut printer = Printer { out, data };
        put!(printer.out, "{} ", shape.name);
        match text_of(shape, data) {
            Some(text) => printer.text(text),
            None => printer.value(shape, Place::default(), 0),
        }
        out.push(b'\n');
    }
}

struct Printer<'a> {
    out: &'a mut Vec<u8>,
    data: &'a [u8],
}

impl<'a> Printer<'a> {
    fn rest(&self, place: Place) -> &'a [u8] {
        place.rest(self.data)
    }

    fn indent(&mut self, depth: usize) {
        pad::fill(self.out, b' ', depth * INDENT);
    }

    fn value(&mut self, shape: &Shape, place: Place, depth: usize) {
        let rest = self.rest(place);
        match &shape.form {
            _ if rest.is_empty() && shape.size > 0 => put!(self.out, "..."),
            _ if depth > DEPTH => put!(self.out, "..."),
            Form::Record(fields) => self.record(fields, place, depth),
            Form::Array { element, count, .. } => match text_of(shape, rest) {
                Some(text) => {
                    put!(self.out, "[ ");
                    self.text(text);
                    put!(self.out, " ]");
                }
                None => self.array(element, *count, place, depth),
            },
            _ => self.scalar(shape, place),
        }
    }

    fn record(&mut self, fields: &[Field], place: Place, depth: usize) {
        put!(self.out, "{{\n");
        for field in fields {
            let at = Place {
                bits: field.bits,
                ..place.beyond(field.bit_offset)
            };
            self.indent(depth + 1);
            if self.rest(at).is_empty() && field.shape.size > 0 {
                put!(self.out, "...\n");
                break;
            }
            self.head(field);
            self.value(&field.shape, at, depth + 1);
            put!(self.out, "\n");
        }
        self.indent(depth);
        put!(self.out, "}}");
    }

    /// A member's type and name.
    fn head(&mut self, field: &Field) {
        let space = match field.shape.name.ends_with('*') {
            true if !field.name.is_empty() => "",
            _ => " ",
        };
        put!(self.out, "{}{space}", field.shape.name);
        if field.name.is_empty() {
            return;
        }
        put!(self.out, "{} ", field.name);
        if field.bits != 0 {
            put!(self.out, ":{} ", field.bits);
        }
        put!(self.out, "= ");
    }

    fn array(&mut self, element: &Shape, count: u64, place: Place, depth: usize) {
        let records = matches!(element.form, Form::Record(_));
        // Elements without size have no values; printing `count` of them would be unbounded.
        let count = if element.size == 0 { 0 } else { count };
        put!(self.out, "[");
        for i in 0..count {
            let at = place.beyond(i.saturating_mul(element.size).saturating_mul(8));
            let separator = if i > 0 { "," } else { "" };
            if records {
                put!(self.out, "{separator}\n");
                self.indent(depth + 1);
            } else {
                put!(self.out, "{separator} ");
            }
            if self.rest(at).is_empty() {
                put!(self.out, "...");
                break;
            }
            if records {
                put!(self.out, "{} ", element.name);
            }
            self.value(element, at, depth + 1);
        }
        if records && count > 0 {
            put!(self.out, "\n");
            self.indent(depth);
        } else {
            put!(self.out, " ");
        }
        put!(self.out, "]");
    }

    fn scalar(&mut self, shape: &Shape, place: Place) {
        let rest = self.rest(place);
        if let Form::Float = shape.form {
            let size = usize::try_from(shape.size).unwrap_or(usize::MAX);
            let text = rest.get(..size).and_then(float::text);
            return put!(self.out, "{}", text.as_deref().unwrap_or("..."));
        }
        let value = place.number(shape, self.data);
        match (&shape.form, value) {
            (Form::Int { signed: true }, Some((value, _))) if is_char(shape) && place.bits == 0 => {
                put!(self.out, "'");
                self.escaped(&[value as u8], b'\'');
                put!(self.out, "'");
            }
            (Form::Enum(items), Some((_, number))) => match enumerator(items, number) {
                Some(name) => put!(self.out, "{name}"),
                None => put!(self.out, "{number}"),
            },
            (Form::Int { .. } | Form::Pointer, Some((0, _))) => put!(self.out, "0"),
            (Form::Int { .. } | Form::Pointer, Some((value, _))) => put!(self.out, "{value:#x}"),
            // Wider than any D integer: all bytes, the most significant first.
            (Form::Int { .. }, None) if place.is_wide(shape) && rest.len() as u64 >= shape.size => {
                let size = shape.size as usize;
                put!(self.out, "0x");
                for byte in rest[..size].iter().rev() {
                    put!(self.out, "{byte:02x}");
                }
            }
            _ => put!(self.out, "..."),
        }
    }

    fn text(&mut self, text: &[u8]) {
        self.out.push(b'"');
        self.escaped(text, b'"');
        self.out.push(b'"');
    }

    fn escaped(&mut self, text: &[u8], quote: u8) {
        for &byte in text {
            match byte {
                0 => put!(self.out, "\\0"),
                _ if byte == quote || byte == b'\\' => self.out.extend([b'\\', byte]),
                _ if is_printable(byte) => self.out.push(byte),
                _ => put!(self.out, "\\{byte:03o}"),
            }
        }
    }
}

fn is_char(shape: &Shape) -> bool {
    shape.size == 1 && matches!(shape.name.as_str(), "char" | "const char")
}

/// Whether the byte is printed unescaped. Bytes of characters other than ASCII are.
fn is_printable(byte: u8) -> bool {
    byte >= b' ' && byte != 0x7f
}

/// Returns the recorded text of a value, up to its NUL if there is one: of any string, and of an
/// array of characters if all of its text is printable.
fn text_of<'a>(shape: &Shape, data: &'a [u8]) -> Option<&'a [u8]> {
    let Form::Array {
        text: true, count, ..
    } = shape.form
    else {
        return None;
    };
    let size = usize::try_from(count).map_or(data.len(), |count| count.min(data.len()));
    let data = data.get(..size)?;
    let end = data.iter().position(|&byte| byte == 0);
    let text = &data[..end.unwrap_or(size)];
    (size > 0 && (shape.name == "string" || text.iter().all(|&byte| is_printable(byte))))
        .then_some(text)
}
