// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Lists of probes, and the version of the command, as JSON.

use super::put::{Object, Put};
use dtrace_compiler::stability::{class_name, stability_name};
use dtrace_uapi::types::Attribute;

/// A probe in a list.
#[derive(Clone, Debug, Default)]
pub struct Listed<'a> {
    /// Its id.
    pub id: u32,
    /// Its provider, module, function and name.
    pub parts: [&'a str; 4],
    /// What `-v` adds.
    pub details: Option<Details>,
}

/// What `dtrace -lv` says of a probe.
#[derive(Clone, Debug, Default)]
pub struct Details {
    /// The stability of the provider's names, and of its arguments, if it is known.
    pub attributes: Option<[Attribute; 2]>,
    /// The arguments' types.
    pub arguments: Vec<String>,
}

/// Appends the line of a probe.
pub fn probe(out: &mut Vec<u8>, listed: &Listed<'_>) {
    Put::to(out, false).object(|object| {
        object.member("type").text("listed");
        object.member("id").integer(listed.id);
        for (part, text) in ["provider", "module", "function", "name"]
            .iter()
            .zip(listed.parts)
        {
            object.member(part).text(text);
        }
        if let Some(details) = &listed.details {
            self::details(object, details);
        }
    });
    out.push(b'\n');
}

fn details(object: &mut Object<'_, '_>, details: &Details) {
    if let Some(attributes) = details.attributes {
        object.member("attributes").object(|object| {
            for (what, attribute) in ["description", "arguments"].iter().zip(attributes) {
                object.member(what).object(|object| {
                    object.member("name").text(&stability_name(attribute.name));
                    object.member("data").text(&stability_name(attribute.data));
                    object.member("class").text(&class_name(attribute.class));
                });
            }
        });
    }
    let types = details.arguments.iter().map(String::as_str);
    object.member("args").texts(types);
}

/// Appends the line of the versions of D and of the command.
pub fn version(out: &mut Vec<u8>, d: &str, command: &str) {
    Put::to(out, false).object(|object| {
        object.member("type").text("version");
        object.member("d").text(d);
        object.member("dtrace").text(command);
    });
    out.push(b'\n');
}
