// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Recorded values: numbers and strings as JSON has them, everything else as an object whose first
//! member says what it is.

use super::put::{Object, Put};
use crate::bytes::as_string;
use crate::Renderer;
use dtrace_compiler::format::{Count, Format, Item};
use dtrace_consumer::consume::Args;
use dtrace_consumer::stack::{self, Frame, Native};
use dtrace_consumer::symbolizer::Location;
use dtrace_consumer::value::{to_f64, Datum, Kind};

/// Appends an element of a record's output: the value of a `trace()`, a `stack()`, a `sym()` …
pub fn element(renderer: &Renderer<'_>, put: &mut Put<'_>, datum: &Datum<'_>) {
    match datum.kind {
        Kind::Int { .. } | Kind::Float | Kind::Str => {
            put.object(|object| value(renderer, object.member("value"), datum));
        }
        Kind::Chars if as_string(datum.data).is_some() => {
            put.object(|object| value(renderer, object.member("value"), datum));
        }
        _ => value(renderer, put, datum),
    }
}

/// Appends a value: a key of an aggregation, an argument of `printf()`.
pub fn value(renderer: &Renderer<'_>, put: &mut Put<'_>, datum: &Datum<'_>) {
    match (datum.kind, datum.signed(), datum.unsigned()) {
        (Kind::Int { signed: true }, Some(number), _) => put.integer(number),
        (Kind::Int { .. }, _, Some(number)) => put.integer(number),
        (Kind::Float, ..) => float(put, datum.data),
        (Kind::Str, ..) => put.bytes(datum.text()),
        (Kind::Chars, ..) => match as_string(datum.data) {
            Some(text) => put.bytes(text),
            None => bytes(put, datum.data),
        },
        (Kind::Int { .. } | Kind::Bytes | Kind::Memory, ..) => bytes(put, datum.data),
        (Kind::Stack | Kind::Ustack | Kind::StackValue, ..) => stack(renderer, put, datum),
        (Kind::Sym | Kind::Mod | Kind::Usym | Kind::Umod | Kind::Uaddr, ..) => {
            symbol(renderer, put, datum);
        }
    }
}

fn bytes(put: &mut Put<'_>, data: &[u8]) {
    put.object(|object| object.member("bytes").base64(data));
}

/// Appends a floating-point number; bytes that are none as bytes.
pub fn float(put: &mut Put<'_>, data: &[u8]) {
    match (<[u8; 4]>::try_from(data), to_f64(data)) {
        (Ok(single), _) => put.single(f32::from_ne_bytes(single)),
        (_, Some(number)) => put.float(number),
        _ => bytes(put, data),
    }
}

/// Appends the arguments of a `printf()`, those of a width or a precision among them. What the
/// format shows as an address is one.
pub fn arguments(renderer: &Renderer<'_>, put: &mut Put<'_>, format: &Format, args: Args<'_>) {
    let conversions = format.items.iter().flat_map(|item| {
        let (stars, kind) = match item {
            Item::Literal(_) => (0, None),
            Item::Conv(conv) => {
                let star = |count: Option<Count>| usize::from(count == Some(Count::Star));
                (star(conv.width) + star(conv.precision), Some(conv.kind))
            }
        };
        std::iter::repeat_n('d', stars).chain(kind)
    });
    let kinds = conversions.chain(std::iter::repeat('d'));
    put.array(|array| {
        for (datum, kind) in args.zip(kinds) {
            let is_address = matches!(kind, 'p' | 'a' | 'A');
            match (datum.kind, datum.unsigned()) {
                (Kind::Int { .. }, Some(address)) if is_address => array.item().address(address),
                _ => value(renderer, array.item(), &datum),
            }
        }
    });
}

fn stack(renderer: &Renderer<'_>, put: &mut Put<'_>, datum: &Datum<'_>) {
    let process = stack::process(datum);
    let is_user = datum.kind == Kind::Ustack || process.is_some();
    put.object(|object| {
        let name = if is_user { "ustack" } else { "stack" };
        object.member(name).array(|array| {
            for frame in stack::frames(datum) {
                array
                    .item()
                    .object(|object| self::frame(renderer, object, &frame));
            }
        });
        if let Some(pid) = process {
            object.member("pid").integer(pid);
        }
    });
}

fn frame(renderer: &Renderer<'_>, object: &mut Object<'_, '_>, frame: &Frame) {
    match frame {
        Frame::Native(native) => self::native(renderer, object, native),
        Frame::Interpreted(pid, word) => {
            let text = renderer.symbols.interpreted(*pid, *word);
            let text = text.unwrap_or_else(|| "?".to_owned());
            object.member("interpreted").text(&text);
        }
        Frame::Lost => object.member("lost").flag(true),
    }
}

fn native(renderer: &Renderer<'_>, object: &mut Object<'_, '_>, native: &Native) {
    object.member("address").address(native.address);
    let location = renderer.shown(native.location(renderer.symbols));
    place(object, location.as_ref());
    if native.is_guess {
        object.member("guessed").flag(true);
    }
    if let Some((id, offset)) = native.build(renderer.symbols) {
        object.member("build_id").text(&id);
        object.member("file_offset").integer(offset);
    }
    if !renderer.style.inlines {
        return;
    }
    let inlined = native.inlined(renderer.symbols);
    if inlined.is_empty() {
        return;
    }
    object.member("inlined").array(|array| {
        for function in inlined.iter() {
            array.item().object(|object| {
                object.member("name").text(&renderer.name(&function.name));
                if let Some((file, line)) = &function.source {
                    object.member("file").text(file);
                    object.member("line").integer(*line);
                }
            });
        }
    });
}

/// Puts the names of an address.
fn place(object: &mut Object<'_, '_>, location: Option<&Location>) {
    let Some(location) = location else {
        return;
    };
    object.member("module").text(&location.object);
    if let Some((name, offset)) = &location.symbol {
        object.member("name").text(name);
        object.member("offset").integer(*offset);
    }
}

fn symbol(renderer: &Renderer<'_>, put: &mut Put<'_>, datum: &Datum<'_>) {
    let Some((pid, pc)) = datum.address() else {
        return bytes(put, datum.data);
    };
    let location = match pid {
        Some(_) => renderer.user(pid, pc),
        None => renderer.kernel(pc),
    };
    let name = match datum.kind {
        Kind::Mod => "mod",
        Kind::Usym => "usym",
        Kind::Umod => "umod",
        Kind::Uaddr => "uaddr",
        _ => "sym",
    };
    put.object(|object| {
        let text = renderer.location(datum).unwrap_or_default();
        object.member(name).text(&text);
        place(object, location.as_ref());
        object.member("address").address(pc);
        if let Some(pid) = pid {
            object.member("pid").integer(pid);
        }
    });
}
