// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! A provider's definition as a note of a file, which tells consumers its types: section
//! `.note.usdt`, owner `prov`, type 1.
//!
//! The description of the note has the name of the provider, padded to 4 bytes; the attributes of
//! its five parts, 4 bytes each; the number of its probes (4 bytes); and the probes. Each probe has
//! its name; the number of its parameters and their types; and the number of the arguments that a
//! consumer sees, and for each of them its type and the index of its parameter. Each probe is
//! padded to 4 bytes. Types and names end with NUL; these counts and indices are bytes. Programs
//! built with DTrace 2.0.7 have the same note (measured; its test programs).

use super::define::{Definition, Form, Parameter, Provider};
use super::dof::is_type;
use dtrace_uapi::types::{Attribute, ProviderAttributes};

/// The section of the notes.
pub const SECTION: &str = ".note.usdt";
/// The tool and version that an image names as its creator.
pub const MAKER: &str = concat!("DTrace for Linux ", env!("CARGO_PKG_VERSION"));
/// The owner of notes with a definition.
pub const OWNER: &str = "prov";
/// The owner of the note that names the maker of the others.
const MAKER_OWNER: &str = "dver";
/// The type of all these notes.
pub const KIND: u64 = 1;
/// Most probes of a provider. A note with more is not read.
const PROBES_MAX: usize = 10_000;

/// Returns the notes of these providers. Unless `strip`, one more note names the tool that made
/// them.
pub fn notes(providers: &[Provider], strip: bool) -> Vec<u8> {
    let mut data = Vec::new();
    for provider in providers {
        note(&mut data, OWNER, &describe(provider));
    }
    if !strip {
        note(&mut data, MAKER_OWNER, format!("{MAKER}\0").as_bytes());
    }
    data
}

fn pad(data: &mut Vec<u8>) {
    data.resize(data.len().next_multiple_of(4), 0);
}

fn text(data: &mut Vec<u8>, text: &str) {
    data.extend(text.as_bytes());
    data.push(0);
}

/// Appends a note.
fn note(data: &mut Vec<u8>, owner: &str, description: &[u8]) {
    for number in [
        owner.len() as u32 + 1,
        description.len() as u32,
        KIND as u32,
    ] {
        data.extend(number.to_le_bytes());
    }
    text(data, owner);
    pad(data);
    data.extend(description);
    pad(data);
}

/// Returns the description of a provider's note.
fn describe(provider: &Provider) -> Vec<u8> {
    let mut data = Vec::new();
    text(&mut data, &provider.name);
    pad(&mut data);
    let ProviderAttributes {
        provider: own,
        module,
        func,
        name,
        args,
    } = provider.attributes;
    for part in [own, module, func, name, args] {
        // The order of dof_attr_t in little endian: an unused byte, class, data, name.
        data.extend([0, part.class, part.data, part.name]);
    }
    data.extend((provider.probes.len() as u32).to_le_bytes());
    for probe in &provider.probes {
        text(&mut data, &probe.shown());
        // Definitions are checked to have no more entries than a byte can count.
        data.push(probe.parameters.len() as u8);
        for parameter in &probe.parameters {
            text(&mut data, &parameter.ty);
        }
        data.push(probe.arguments.len() as u8);
        for (ty, index) in &probe.arguments {
            text(&mut data, ty);
            data.push(*index);
        }
        pad(&mut data);
    }
    data
}

/// Reads the description of a provider's note. `None` if it is not well-formed.
pub fn read(description: &[u8]) -> Option<Provider> {
    let mut reader = Reader {
        all: description,
        at: 0,
    };
    let name = reader.text()?;
    reader.align()?;
    let mut part = || {
        let [_, class, data, name] = *reader.bytes(4)? else {
            return None;
        };
        Some(Attribute { name, data, class })
    };
    let attributes = ProviderAttributes {
        provider: part()?,
        module: part()?,
        func: part()?,
        name: part()?,
        args: part()?,
    };
    let count = reader.bytes(4)?.try_into().ok()?;
    let count = u32::from_le_bytes(count) as usize;
    if count > PROBES_MAX {
        return None;
    }
    let mut probes = Vec::new();
    for _ in 0..count {
        probes.push(reader.probe()?);
        reader.align()?;
    }
    Some(Provider {
        name,
        probes,
        attributes,
    })
}

struct Reader<'d> {
    all: &'d [u8],
    at: usize,
}

impl<'d> Reader<'d> {
    fn bytes(&mut self, count: usize) -> Option<&'d [u8]> {
        let bytes = self.all.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(bytes)
    }

    fn byte(&mut self) -> Option<u8> {
        self.bytes(1)?.first().copied()
    }

    fn text(&mut self) -> Option<String> {
        let rest = self.all.get(self.at..)?;
        let len = rest.iter().position(|c| *c == 0)?;
        self.at += len + 1;
        String::from_utf8(rest[..len].to_vec()).ok()
    }

    /// Reads the name of a type. It is checked, because it is displayed before the compiler parses
    /// it.
    fn ty(&mut self) -> Option<String> {
        self.text().filter(|ty| is_type(ty))
    }

    /// Skips padding. That of the last probe may be missing.
    fn align(&mut self) -> Option<()> {
        self.at = self.at.checked_next_multiple_of(4)?;
        Some(())
    }

    fn probe(&mut self) -> Option<Definition> {
        let name = self.text()?;
        let mut parameters = Vec::new();
        for _ in 0..self.byte()? {
            parameters.push(Parameter {
                ty: self.ty()?,
                // Only needed where the value is passed.
                form: Form::None,
            });
        }
        let mut arguments = Vec::new();
        for _ in 0..self.byte()? {
            let ty = self.ty()?;
            let index = self.byte()?;
            if usize::from(index) >= parameters.len() {
                return None;
            }
            arguments.push((ty, index));
        }
        Some(Definition {
            name,
            parameters,
            arguments,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::define::ATTRIBUTES;
    use super::*;

    fn provider() -> Provider {
        let parameter = |ty: &str| Parameter {
            ty: ty.to_owned(),
            form: Form::None,
        };
        let probe = |name: &str, parameters: &[&str], arguments: &[(&str, u8)]| Definition {
            name: name.to_owned(),
            parameters: parameters.iter().copied().map(parameter).collect(),
            arguments: arguments
                .iter()
                .map(|(ty, index)| ((*ty).to_owned(), *index))
                .collect(),
        };
        Provider {
            name: "work".to_owned(),
            probes: vec![
                probe("none", &[], &[]),
                probe(
                    "two-ways",
                    &["int", "char *"],
                    &[("char *", 1), ("long", 0), ("int", 0)],
                ),
            ],
            attributes: ATTRIBUTES,
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let data = describe(&provider());
        assert_eq!(&data[..12], b"work\0\0\0\0\0\x05\x04\x04");
        assert_eq!(read(&data), Some(provider()));
    }

    #[test]
    fn what_is_cut_off_is_nothing() {
        let data = describe(&provider());
        let whole = data.iter().rposition(|c| *c != 0).unwrap() + 2;
        for len in 0..whole {
            assert_eq!(read(&data[..len]), None, "{len}");
        }
        let mut wrong = data;
        let at = wrong.len() - 8;
        assert!(wrong[at..].contains(&0));
        // An argument whose parameter does not exist.
        let index = wrong.iter().rposition(|c| *c == b't').unwrap() + 2;
        wrong[index] = 2;
        assert_eq!(read(&wrong), None);
    }

    #[test]
    fn notes_follow_one_another() {
        let data = notes(&[provider(), provider()], true);
        let one = 12 + 8 + describe(&provider()).len();
        assert_eq!(data.len(), 2 * one);
        assert_eq!(&data[..20], b"\x05\0\0\0\x54\0\0\0\x01\0\0\0prov\0\0\0\0");
        assert_eq!(data[..one], data[one..]);
        let all = notes(&[provider(), provider()], false);
        assert_eq!(all[..data.len()], data);
        assert!(all[data.len() + 12..].starts_with(b"dver\0\0\0\0DTrace for Linux "));
    }
}
