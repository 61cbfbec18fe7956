// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! What is to be said about tracing: faults, drops, ends of processes, and what could not be done.
//!
//! Every line has the message that text has, so that a reader can show it without knowing its kind.

use super::put::{Object, Put};
use dtrace_compiler::diag::Diagnostic;
use dtrace_compiler::source::{Origin, Source};
use dtrace_consumer::consume::{Drops, Event, EventProbe, Faulted, Place};
use dtrace_machine::proc::{Ended, Ending};
use dtrace_uapi::fault::Fault;

/// Appends the line of an event. `total` is the number of drops of its kind so far. Returns whether
/// there is one: the place of a fault is in the fault's line.
pub fn line(put: &mut Put<'_>, event: &Event, total: u64) -> bool {
    match event {
        Event::Fault(faulted) => put.object(|object| fault(object, faulted)),
        Event::Place(_) => return false,
        Event::Drop(drops) => put.object(|object| dropped(object, drops, total)),
        Event::Missing(text) => put.object(|object| warning(object, "missing", text)),
        Event::Lowered(text) => put.object(|object| warning(object, "lowered", text)),
        Event::Failed {
            probe,
            failure,
            place,
        } => put.object(|object| {
            object.member("type").text("error");
            self::probe(object, probe);
            self::place(object, place.as_ref());
            message(object, &failure.to_string());
        }),
        Event::Ended(ended) => put.object(|object| process(object, ended)),
    }
    true
}

/// Returns the line of an error that ends the command.
pub fn error(message: &str) -> Vec<u8> {
    said("error", |object| self::message(object, message))
}

/// Returns the line of a compile error in `source`; `message` is what text says.
pub fn refusal(error: &Diagnostic, source: &Source, message: &str) -> Vec<u8> {
    said("error", |object| diagnostic(object, error, source, message))
}

/// Returns the line of a compiler's warning about `source`.
pub fn doubt(warning: &Diagnostic, source: &Source) -> Vec<u8> {
    let message = warning.message.clone();
    said("warning", |object| {
        diagnostic(object, warning, source, &message);
    })
}

fn said(kind: &str, fill: impl FnOnce(&mut Object<'_, '_>)) -> Vec<u8> {
    let mut line = Vec::new();
    Put::to(&mut line, false).object(|object| {
        object.member("type").text(kind);
        fill(object);
    });
    line.push(b'\n');
    line
}

fn diagnostic(object: &mut Object<'_, '_>, error: &Diagnostic, source: &Source, message: &str) {
    object.member("tag").text(error.tag);
    if let Origin::File(name) | Origin::Library(name) = &source.origin {
        object.member("file").text(name);
    }
    let at = source.position(error.span.start);
    object.member("line").integer(at.line);
    object.member("col").integer(at.column);
    self::message(object, message);
    if !error.notes.is_empty() {
        let notes = error.notes.iter().map(String::as_str);
        object.member("notes").texts(notes);
    }
}

fn message(object: &mut Object<'_, '_>, text: &str) {
    object.member("message").text(text.trim_end_matches('\n'));
}

fn warning(object: &mut Object<'_, '_>, kind: &str, text: &str) {
    object.member("type").text("warning");
    object.member("kind").text(kind);
    message(object, text);
}

fn probe(object: &mut Object<'_, '_>, probe: &EventProbe) {
    object.member("epid").integer(probe.epid);
    object.member("id").integer(probe.name.id);
    object.member("provider").text(&probe.name.provider);
    object.member("module").text(&probe.name.module);
    object.member("function").text(&probe.name.func);
    object.member("name").text(&probe.name.name);
}

fn place(object: &mut Object<'_, '_>, place: Option<&Place>) {
    let Some(place) = place else {
        return;
    };
    if let Some(file) = &place.file {
        object.member("file").text(file);
    }
    object.member("line").integer(place.line);
    object.member("col").integer(place.column);
    object.member("source").text(&place.text);
}

fn fault(object: &mut Object<'_, '_>, fault: &Faulted) {
    object.member("type").text("fault");
    object.member("timestamp").integer(fault.timestamp);
    object.member("cpu").integer(fault.cpu);
    probe(object, &fault.probe);
    object.member("fault").text(fault.name());
    match fault.fault {
        Fault::BadIndex => object.member("index").integer(fault.addr as i64),
        Fault::BadSize => object.member("size").integer(fault.addr),
        _ => {
            if let Some(address) = fault.address() {
                object.member("address").address(address);
            }
        }
    }
    object.member("action").integer(fault.action);
    if let Some(offset) = fault.offset {
        object.member("offset").integer(offset);
    }
    place(object, fault.place.as_ref());
    message(object, &fault.to_string());
}

fn dropped(object: &mut Object<'_, '_>, drops: &Drops, total: u64) {
    object.member("type").text("drop");
    object.member("kind").text(&drops.kind.name());
    object.member("tag").text(drops.kind.tag);
    if let Some(cpu) = drops.cpu {
        object.member("cpu").integer(cpu);
    }
    object.member("count").integer(drops.count);
    object.member("total").integer(total);
    message(object, &drops.to_string());
}

fn process(object: &mut Object<'_, '_>, ended: &Ended) {
    object.member("type").text("process");
    object.member("pid").integer(ended.pid);
    let ending = match ended.ending {
        Ending::Exited | Ending::Status(_) => "exited",
        Ending::Signal(_) => "terminated",
    };
    object.member("ending").text(ending);
    match ended.ending {
        Ending::Exited => {}
        Ending::Status(status) => object.member("status").integer(status),
        Ending::Signal(signal) => object.member("signal").integer(signal),
    }
    message(object, &ended.to_string());
}
