// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Options of the consumer, which neither the compiler nor the kernel reads. They may change at any
//! time.

use super::{parse_flag, parse_size, OptionError};
use std::collections::BTreeMap;

/// How records are printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerOptions {
    /// Print the values of the single CPUs below each value of an aggregation.
    pub aggpercpu: bool,
    /// Print addresses as numbers, without looking up symbols.
    pub noresolve: bool,
    /// Begin lines with the probe's name and leave out the numbers of CPU and probe, which differ
    /// from run to run. No option sets this; it is for programs that compare output.
    pub unnumbered: bool,
    /// Most bytes of an object that `print()` shows.
    pub printsize: usize,
    /// Do not report buffers that had to be made smaller.
    pub quietresize: bool,
    /// Print names of C++ and Rust as the linker has them.
    pub mangled: bool,
    /// Print the functions that are inlined at a frame of a process above that frame.
    pub inlines: bool,
    /// How addresses in stacks of processes are printed.
    pub frames: Frames,
    /// Characters for bars. Unless set, packed distributions use what the locale permits, and other
    /// bars use `@`.
    pub encoding: Option<Encoding>,
}

/// Characters for bars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// ASCII characters.
    Ascii,
    /// Block characters, with a resolution of an eighth of a character.
    Utf8,
}

/// How addresses in stacks of processes are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Frames {
    /// As function and offset.
    #[default]
    Names,
    /// As the build-id and the offset in the file, from which any machine with that file can
    /// determine names.
    BuildId,
}

/// An option whose value is one of several words.
trait Word: Copy + PartialEq + 'static {
    /// The words and their values. The index of a word is its number in saved options.
    const ALL: &'static [(&'static str, Self)];

    fn named(name: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, word)| *word)
    }

    fn numbered(number: u64) -> Option<Self> {
        let (_, word) = Self::ALL.get(usize::try_from(number).ok()?)?;
        Some(*word)
    }

    fn number(self) -> Option<u64> {
        let place = Self::ALL.iter().position(|(_, word)| *word == self);
        place.map(|place| place as u64)
    }
}

impl Word for Encoding {
    const ALL: &'static [(&'static str, Self)] = &[("ascii", Self::Ascii), ("utf8", Self::Utf8)];
}

impl Word for Frames {
    const ALL: &'static [(&'static str, Self)] =
        &[("names", Self::Names), ("buildid", Self::BuildId)];
}

/// Accesses the field of a switch.
type Switch = fn(&mut ConsumerOptions) -> &mut bool;

/// The switches, by name.
const SWITCHES: &[(&str, Switch)] = &[
    ("aggpercpu", |o| &mut o.aggpercpu),
    ("inlines", |o| &mut o.inlines),
    ("mangled", |o| &mut o.mangled),
    ("noresolve", |o| &mut o.noresolve),
    ("quietresize", |o| &mut o.quietresize),
];

const PRINTSIZE: &str = "printsize";
const ENCODING: &str = "encoding";
const FRAMES: &str = "frames";

impl Default for ConsumerOptions {
    fn default() -> Self {
        Self {
            aggpercpu: false,
            noresolve: false,
            unnumbered: false,
            printsize: 8192,
            quietresize: false,
            mangled: false,
            inlines: false,
            frames: Frames::Names,
            encoding: None,
        }
    }
}

impl ConsumerOptions {
    /// Sets the option `name`. Returns `None` if it is not an option of the consumer.
    pub(super) fn set(
        &mut self,
        name: &str,
        value: Option<&str>,
    ) -> Option<Result<(), OptionError>> {
        if name == PRINTSIZE {
            let size = value.and_then(parse_size).ok_or(OptionError::Value);
            return Some(size.map(|size| self.printsize = bytes(size)));
        }
        if name == ENCODING {
            let encoding = value.and_then(Encoding::named).ok_or(OptionError::Value);
            return Some(encoding.map(|encoding| self.encoding = Some(encoding)));
        }
        if name == FRAMES {
            let frames = value.and_then(Frames::named).ok_or(OptionError::Value);
            return Some(frames.map(|frames| self.frames = frames));
        }
        let (_, switch) = SWITCHES.iter().find(|(known, _)| *known == name)?;
        let on = parse_flag(value).ok_or(OptionError::Value);
        Some(on.map(|on| *switch(self) = on))
    }

    /// Returns the options that differ from their defaults, by name, for [`adopt`](Self::adopt).
    pub(super) fn saved(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let mut all = self.clone();
        let on = SWITCHES.iter().filter(|(_, switch)| *switch(&mut all));
        let mut saved: Vec<_> = on.map(|(name, _)| (*name, 1)).collect();
        if self.printsize != Self::default().printsize {
            saved.push((PRINTSIZE, self.printsize as u64));
        }
        let encoding = self.encoding.and_then(Encoding::number);
        saved.extend(encoding.map(|number| (ENCODING, number)));
        let frames = Some(self.frames).filter(|frames| *frames != Frames::default());
        saved.extend(
            frames
                .and_then(Frames::number)
                .map(|number| (FRAMES, number)),
        );
        saved.into_iter()
    }

    /// Takes over the options with which tracing was begun, except those that differ from their
    /// defaults here.
    pub(super) fn adopt(&mut self, saved: &BTreeMap<String, u64>) {
        for (name, switch) in SWITCHES {
            *switch(self) |= saved.contains_key(*name);
        }
        if self.printsize == Self::default().printsize {
            let size = saved.get(PRINTSIZE).map(|size| bytes(*size));
            self.printsize = size.unwrap_or(self.printsize);
        }
        let encoding = saved.get(ENCODING);
        self.encoding = self
            .encoding
            .or(encoding.and_then(|number| Encoding::numbered(*number)));
        if self.frames == Frames::default() {
            let frames = saved.get(FRAMES);
            let frames = frames.and_then(|number| Frames::numbered(*number));
            self.frames = frames.unwrap_or_default();
        }
    }
}

/// Converts a size to a number of bytes of memory.
fn bytes(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::{Options, Setter};
    use super::*;

    #[test]
    fn they_change_while_tracing_goes_on() {
        let mut options = Options::default();
        for (name, value) in [
            ("aggpercpu", None),
            ("noresolve", None),
            ("quietresize", Some("yes")),
            ("printsize", Some("1k")),
            ("encoding", Some("utf8")),
            ("mangled", None),
            ("inlines", None),
            ("frames", Some("buildid")),
        ] {
            options.set(name, value, Setter::Running).expect(name);
        }
        let expected = ConsumerOptions {
            aggpercpu: true,
            noresolve: true,
            unnumbered: false,
            printsize: 1024,
            quietresize: true,
            mangled: true,
            inlines: true,
            frames: Frames::BuildId,
            encoding: Some(Encoding::Utf8),
        };
        assert_eq!(options.consumer, expected);
        for (name, value) in [
            ("printsize", Some("all")),
            ("encoding", Some("latin1")),
            ("encoding", None),
            ("frames", Some("fp")),
        ] {
            let refused = options.set(name, value, Setter::Running);
            assert_eq!(refused, Err(OptionError::Value), "{name}");
        }
        assert_eq!(options.consumer, expected);
    }
}
