// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! From values to text, byte for byte as dtrace(1) prints it.
//!
//! Everything here is a function from recorded bytes to output bytes: no record is walked, nothing is read from
//! the kernel. What the text depends on besides the value (options, symbols, the time zone) is gathered in
//! [`Renderer`], so that every layout is tested on the host. Output goes into a `Vec<u8>`, not a `String`:
//! traced strings are whatever bytes the traced program had, and they pass through untouched.
//!
//! Invariant: recorded data comes from outside; no content or length of it makes a function here panic or
//! allocate more than a bounded multiple of its input and of the format's widths.

/// Appends formatted text to a `Vec<u8>`, which takes everything.
macro_rules! put {
    ($out:expr, $($arg:tt)*) => {{
        // Writing to a Vec cannot fail.
        let _ = std::io::Write::write_fmt($out, format_args!($($arg)*));
    }};
}

pub mod aggregate;
mod bytes;
mod compact;
mod float;
mod histogram;
#[cfg(test)]
mod hostile;
pub mod line;
pub mod message;
pub mod object;
mod pad;
mod printa;
mod printf;
mod stack;
pub mod structure;
pub mod symbol;
pub mod time;
mod trace;
pub mod value;

pub use aggregate::{Aggregations, Sort};
pub use printf::RenderError;
pub use symbol::{Location, NoSymbols, Symbolizer};
pub use time::Zone;
pub use value::{Datum, Kind};

/// The options that change how values are printed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    /// `quiet`: values of `trace()` stand without columns.
    pub quiet: bool,
    /// `rawbytes`: byte arrays are always dumped, never shown as strings.
    pub rawbytes: bool,
    /// `stackindent`: columns before a stack's frames.
    pub stackindent: Option<usize>,
    /// `aggzoom`: the longest bar of a distribution is scaled to the column's width.
    pub aggzoom: bool,
    /// `agghist`: counts and sums are printed as bars.
    pub agghist: bool,
    /// `aggpack`: a distribution is printed in one line.
    pub aggpack: bool,
    /// Whether that line may have more than ASCII characters.
    pub utf8: bool,
    /// `encoding`: bars may end in eighths of a character of UTF-8.
    pub eighths: bool,
    /// `mangled`: names of C++ and Rust are shown as the linker has them.
    pub mangled: bool,
    /// `frames=buildid`: frames of processes are shown by the build of their program.
    pub build_ids: bool,
    /// `inlines`: functions that are inlined at a frame of a process have lines of their own.
    pub inlines: bool,
    /// The order in which aggregations are printed.
    pub sort: Sort,
}

/// What a value's text depends on besides the value.
#[derive(Clone, Copy)]
pub struct Renderer<'a> {
    /// The options.
    pub style: &'a Style,
    /// Names of addresses.
    pub symbols: &'a dyn Symbolizer,
    /// The zone of times.
    pub zone: &'a Zone,
}

#[cfg(test)]
mod testing {
    use super::{Location, Renderer, Style, Symbolizer, Zone};
    use crate::dwarf::Inlined;
    use dtrace_uapi::interp::Word;
    use std::rc::Rc;

    /// Knows two kernel functions and one of a process, which has others inlined at one of its instructions.
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

    /// Shows the ends of lines and the blanks at their ends.
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
