// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Converts what a consumer yields to text, byte for byte as dtrace(1) prints it.
//!
//! [`Renderer`] turns single values, aggregations and their parts into bytes. It reads nothing from
//! the kernel; all that the text depends on besides the value (options, symbols, the time zone) is
//! in it, so that every layout can be tested on the host. It appends to a `Vec<u8>`, not to a
//! `String`, because a traced string may hold any bytes, and these are passed through unchanged.
//! [`Text`] uses it to print whole records, and does what they ask of the output. [`json`] and
//! [`csv`] write the same for programs. [`Form`] is the one that the option `oformat` selects.
//!
//! Invariant: recorded data is untrusted. No content or length of it makes a function here panic or
//! allocate more than a bounded multiple of its input and of the format's widths.

#![forbid(unsafe_code)]

/// Appends formatted text to a `Vec<u8>`.
macro_rules! put {
    ($out:expr, $($arg:tt)*) => {{
        // Writing to a Vec cannot fail.
        let _ = std::io::Write::write_fmt($out, format_args!($($arg)*));
    }};
}

mod bytes;
mod compact;
pub mod csv;
mod float;
mod form;
mod histogram;
#[cfg(test)]
mod hostile;
pub mod json;
mod line;
mod object;
mod output;
mod pad;
mod place;
mod printa;
mod printf;
mod stack;
mod structure;
mod symbol;
mod text;
#[cfg(test)]
mod text_tests;
mod time;
mod trace;

pub use form::{Form, Sink};
pub use output::Output;
pub use printf::RenderError;
pub use text::{Printer, Text};
pub use time::Zone;

use dtrace_consumer::aggregate::Sort;
use dtrace_consumer::symbolizer::Symbolizer;

/// Options that change how values are printed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    /// `quiet`: values of `trace()` are not padded to columns.
    pub quiet: bool,
    /// `rawbytes`: byte arrays are always dumped, never shown as strings; `trace()` also dumps
    /// strings and numbers.
    pub rawbytes: bool,
    /// `stackindent`: indentation of a stack's frames, columns.
    pub stackindent: Option<usize>,
    /// `aggzoom`: bars are scaled so that the longest nearly fills the column.
    pub aggzoom: bool,
    /// `agghist`: counts and sums are printed as bars.
    pub agghist: bool,
    /// `aggpack`: a distribution is printed on one line.
    pub aggpack: bool,
    /// Whether that line may contain characters other than ASCII.
    pub utf8: bool,
    /// `encoding=utf8`: bars are drawn with UTF-8 blocks and may end in eighths of a character.
    pub eighths: bool,
    /// `mangled`: C++ and Rust symbols are shown mangled.
    pub mangled: bool,
    /// `frames=buildid`: user frames are shown as build ID and offset in the file.
    pub build_ids: bool,
    /// `inlines`: functions inlined at a user frame have lines of their own.
    pub inlines: bool,
    /// The order in which aggregations are printed.
    pub sort: Sort,
}

/// Everything that a value's text depends on besides the value.
#[derive(Clone, Copy)]
pub struct Renderer<'a> {
    /// The options.
    pub style: &'a Style,
    /// Resolves addresses to names.
    pub symbols: &'a dyn Symbolizer,
    /// The time zone in which times are printed.
    pub zone: &'a Zone,
}

#[cfg(test)]
mod testing {
    use super::{Renderer, Style, Zone};
    use dtrace_consumer::symbolizer::{Location, Symbolizer};
    use dtrace_files::dwarf::Inlined;
    use dtrace_uapi::interp::Word;
    use std::rc::Rc;

    /// Knows some functions of the kernel and of process 42. One of the latter, `malloc`, has other
    /// functions inlined at one of its instructions.
    pub struct Fixture;

    impl Symbolizer for Fixture {
        fn interpreted(&self, _pid: u32, frame: Word) -> Option<String> {
            Some(format!("frame {} at {}", frame.name, frame.position))
        }

        fn kernel(&self, pc: u64) -> Option<Location> {
            match pc {
                0x1000..=0x10ff => Some(Location::symbol("vmlinux", "vfs_read", pc - 0x1000)),
                0x2000..=0x20ff => Some(Location::symbol("ext4", "ext4_map_blocks", pc - 0x2000)),
                0x3000..=0x30ff => Some(Location::object("ext4")),
                _ => None,
            }
        }

        fn user(&self, pid: Option<u32>, pc: u64) -> Option<Location> {
            match (pid, pc) {
                (Some(42), 0x400000..=0x4000ff) => {
                    Some(Location::symbol("libc.so.6", "malloc", pc - 0x400000))
                }
                (Some(42), 0x500000..=0x5000ff) => Some(Location::object("a.out")),
                (Some(42), 0x400100..=0x40010f) => Some(Location::object("libc.so.6")),
                (Some(42), 0x400110..=0x40011f) => {
                    Some(Location::symbol("libc.so.6", "abort", pc - 0x400110))
                }
                (Some(42), 0x400120..=0x40012f) => {
                    Some(Location::symbol("libc.so.6", "free", pc - 0x400120))
                }
                _ => None,
            }
        }

        fn inlined(&self, pid: u32, pc: u64) -> Rc<[Inlined]> {
            let inlined = |name: &str, source| Inlined {
                name: name.to_owned(),
                source,
            };
            match (pid, pc) {
                (42, 0x400010) => Rc::new([
                    inlined("_ZN1n5innerEi", Some(("prog.cc".into(), 4))),
                    inlined("outer", None),
                ]),
                _ => Rc::default(),
            }
        }

        fn port(&self, port: u16) -> Option<String> {
            (port == 22).then(|| "ssh".into())
        }
    }

    /// Makes the ends of lines, and blanks before them, visible.
    pub fn visible(text: &str) -> String {
        let line = |line: &str| match line.strip_suffix('\n') {
            Some(line) => format!("|{line}$\n"),
            None => format!("|{line}"),
        };
        text.split_inclusive('\n').map(line).collect()
    }

    /// Renders with `style` and the fixture's symbols, in UTC.
    pub fn render(style: &Style, f: impl FnOnce(Renderer<'_>, &mut Vec<u8>)) -> String {
        let zone = Zone::utc();
        let mut out = Vec::new();
        f(
            Renderer {
                style,
                symbols: &Fixture,
                zone: &zone,
            },
            &mut out,
        );
        String::from_utf8(out).expect("the test prints UTF-8")
    }
}
