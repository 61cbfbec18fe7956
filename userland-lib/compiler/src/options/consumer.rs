// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Options of the consumer, which neither the compiler nor the kernel reads. They may change at any
//! time, except the format of the output.

use super::{parse_flag, parse_size, OptionError, Setter};
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
    /// The format of the output. It is fixed while tracing is active, and is not saved with an
    /// anonymous enabling: whoever claims that chooses it.
    pub oformat: Oformat,
    /// Characters for bars. Unless set, packed distributions use what the locale permits, and other
    /// bars use `@`.
    pub encoding: Option<Encoding>,
}

/// The format of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Oformat {
    /// Text.
    #[default]
    Text,
    /// A line of JSON for each record, each row of an aggregation and each event.
    Json,
    /// The same, with integers beyond 2^53 as strings, which JavaScript would round.
    JsonQuoted,
    /// The aggregations alone, as comma-separated values.
    Csv,
}

impl Oformat {
    /// Whether events and errors are part of the output.
    pub fn is_json(self) -> bool {
        matches!(self, Self::Json | Self::JsonQuoted)
    }
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

impl Word for Oformat {
    const ALL: &'static [(&'static str, Self)] = &[
        ("text", Self::Text),
        ("json", Self::Json),
        ("json,quote64", Self::JsonQuoted),
        ("csv", Self::Csv),
    ];
}

impl Word for Frames {
    const ALL: &'static [(&'static str, Self)] =
        &[("names", Self::Names), ("buildid", Self::BuildId)];
}

/// What is known of an option.
struct Row {
    /// Its name, which is its field's.
    name: &'static str,
    /// Sets it. `None` if the value does not follow its syntax.
    set: fn(&mut ConsumerOptions, Option<&str>) -> Option<()>,
    /// Returns its number in saved options, unless it has its default.
    saved: fn(&ConsumerOptions) -> Option<u64>,
    /// Sets it to a number of saved options.
    adopt: fn(&mut ConsumerOptions, u64),
}

/// The row of a switch.
macro_rules! switch {
    ($field:ident) => {
        Row {
            name: stringify!($field),
            set: |options, value| {
                options.$field = parse_flag(value)?;
                Some(())
            },
            saved: |options| options.$field.then_some(1),
            adopt: |options, _| options.$field = true,
        }
    };
}

/// Every option, by name.
const ROWS: &[Row] = &[
    switch!(aggpercpu),
    Row {
        name: "encoding",
        set: |options, value| {
            options.encoding = Some(Encoding::named(value?)?);
            Some(())
        },
        saved: |options| options.encoding?.number(),
        adopt: |options, number| options.encoding = Encoding::numbered(number),
    },
    Row {
        name: "frames",
        set: |options, value| {
            options.frames = Frames::named(value?)?;
            Some(())
        },
        saved: |options| {
            let frames = Some(options.frames).filter(|frames| *frames != Frames::default());
            frames?.number()
        },
        adopt: |options, number| options.frames = Frames::numbered(number).unwrap_or_default(),
    },
    switch!(inlines),
    switch!(mangled),
    switch!(noresolve),
    Row {
        name: "printsize",
        set: |options, value| {
            options.printsize = bytes(parse_size(value?)?);
            Some(())
        },
        saved: |options| {
            let size = Some(options.printsize).filter(|size| *size != PRINTSIZE_DEFAULT);
            Some(size? as u64)
        },
        adopt: |options, number| options.printsize = bytes(number),
    },
    switch!(quietresize),
];

/// Default of `printsize`, bytes.
const PRINTSIZE_DEFAULT: usize = 8192;

/// Not a row, because it is fixed while tracing is active, and not saved.
pub(super) const OFORMAT: &str = "oformat";

impl Default for ConsumerOptions {
    fn default() -> Self {
        Self {
            aggpercpu: false,
            noresolve: false,
            unnumbered: false,
            printsize: PRINTSIZE_DEFAULT,
            quietresize: false,
            mangled: false,
            inlines: false,
            frames: Frames::Names,
            oformat: Oformat::Text,
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
        setter: Setter,
    ) -> Option<Result<(), OptionError>> {
        if name == OFORMAT {
            let format = value.and_then(Oformat::named);
            let format = format.ok_or(OptionError::Format).and_then(|format| {
                let is_fixed = setter == Setter::Running && format != self.oformat;
                (!is_fixed).then_some(format).ok_or(OptionError::Active)
            });
            return Some(format.map(|format| self.oformat = format));
        }
        let row = ROWS.iter().find(|row| row.name == name)?;
        Some((row.set)(self, value).ok_or(OptionError::Value))
    }

    /// Returns the options that differ from their defaults, by name, for [`adopt`](Self::adopt).
    pub(super) fn saved(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        ROWS.iter()
            .filter_map(|row| Some((row.name, (row.saved)(self)?)))
    }

    /// Takes over the options with which tracing was begun, except those that differ from their
    /// defaults here.
    pub(super) fn adopt(&mut self, saved: &BTreeMap<String, u64>) {
        for row in ROWS {
            if let (Some(number), None) = (saved.get(row.name), (row.saved)(self)) {
                (row.adopt)(self, *number);
            }
        }
    }
}

/// Returns the names of all options of the consumer.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|row| row.name)
}

/// Converts a size to a number of bytes of memory.
fn bytes(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::Options;
    use super::*;

    #[test]
    fn the_format_is_chosen_before_tracing_begins() {
        let mut options = Options::default();
        for (value, format) in [
            ("csv", Oformat::Csv),
            ("text", Oformat::Text),
            ("json", Oformat::Json),
            ("json,quote64", Oformat::JsonQuoted),
        ] {
            options.set("oformat", Some(value), Setter::User).unwrap();
            assert_eq!(options.consumer.oformat, format);
        }
        for value in [
            None,
            Some("xml"),
            Some("json,quote"),
            Some("JSON"),
            Some(""),
        ] {
            let error = options.set("oformat", value, Setter::User).unwrap_err();
            assert_eq!(
                error.to_string(),
                "Invalid value for specified option: the formats are text, json, json,quote64 and csv"
            );
        }
        let mut change = |value| options.set("oformat", Some(value), Setter::Running);
        assert_eq!(change("json,quote64"), Ok(()));
        assert_eq!(change("text"), Err(OptionError::Active));
        assert_eq!(options.consumer.oformat, Oformat::JsonQuoted);
        assert!(!options.saved().contains_key("oformat"));
    }

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
            oformat: Oformat::Text,
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
