// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Runtimes: which files are of one, and what their walkers have to know of these.
//!
//! The text of a walker says it in lines that begin with `#pragma walker`, which D passes by:
//!
//! | line | meaning |
//! |---|---|
//! | `requires SYMBOL N VALUE [MASK]` | the `N`th word of the data at the symbol, under the mask, has that value |
//! | `evaluator SYMBOL…` | functions that are evaluators; `SYMBOL+N`: the function to which the call or jump leads whose distance is at the symbol's byte `N` |
//! | `blob SYMBOL+N SYMBOL+M` | an evaluator that begins where the distance at the first symbol's byte `N` leads; its size is the number of 4 bytes to which that at the second one's byte `M` leads |
//! | `made code` | code that no file has is an evaluator's as well; `made told`: it has neither frame pointers nor rules, and the walker tells callers there |
//! | `address SYMBOL` | a constant: where the symbol is, to be added to `__walk[1]` |
//! | `thread SYMBOL` | a constant: where the thread's own variable is, to be added to `__walk[7]`; libraries have none |
//! | `operand SYMBOL N` | a constant, to be added to `__walk[1]`: where the operand is whose distance ends an instruction and is at the symbol's byte `N` |
//! | `words SYMBOL N…` | constants: words of the data at the symbol |
//! | `values N…` | constants: these numbers |
//! | `numbers SYMBOL…` | constants: numbers of 4 bytes with a sign, at the symbols |
//! | `says TABLE TYPE FIELD VALUE` | the static field of 4 bytes has that value; this and the next: see [`layout`](super::layout) |
//! | `static TABLE TYPE FIELD` | a constant, to be added to `__walk[1]`: where the static field is |
//! | `offsets TABLE TYPE FIELD…` | constants, to be added to `__walk[1]`: where the offset of each field is, a word, once the file is loaded |
//! | `sizes TABLE TYPE…` | constants: sizes of types |
//! | `lines FORMAT` | what the third of a frame's names is: see [`lines`](super::lines) |
//!
//! The constants are the elements of `__walk[]` from 16 on, in the order of the lines. A symbol is looked for in both tables of a file, as
//! most programs are stripped of one.

use super::layout::Tables;
use super::lines::Format;
use crate::elf::{frames, texts};
use crate::fnv::{fnv, FNV};
use crate::options::parse_number;
use crate::unwind::section;
use dtrace_uapi::interp::CONSTANTS_MAX;
use dtrace_unwind::evaluators::{MADE, TOLD};
use object::{elf, Endianness, Object as _, ObjectKind, ObjectSegment as _, ReadRef};
use std::collections::HashMap;
use std::ops::Range;

/// A runtime.
#[derive(Debug)]
pub struct Runtime {
    /// Its name.
    pub name: &'static str,
    /// The text of its walker.
    pub text: &'static str,
}

/// The runtimes that there are walkers for.
pub const ALL: &[Runtime] = &[
    Runtime {
        name: "hotspot-21.d",
        text: include_str!("../../dlib/walkers/hotspot-21.d"),
    },
    Runtime {
        name: "cpython-3.11.d",
        text: concat!(
            include_str!("../../dlib/walkers/cpython-3.11.d"),
            include_str!("../../dlib/walkers/cpython.d")
        ),
    },
    Runtime {
        name: "cpython-3.12.d",
        text: concat!(
            include_str!("../../dlib/walkers/cpython-3.12.d"),
            include_str!("../../dlib/walkers/cpython.d")
        ),
    },
    Runtime {
        name: "cpython-3.13.d",
        text: concat!(
            include_str!("../../dlib/walkers/cpython-3.13.d"),
            include_str!("../../dlib/walkers/cpython.d")
        ),
    },
    Runtime {
        name: "cpython-3.14.d",
        text: concat!(
            include_str!("../../dlib/walkers/cpython-3.14.d"),
            include_str!("../../dlib/walkers/cpython.d")
        ),
    },
    Runtime {
        name: "perl-5.40.d",
        text: include_str!("../../dlib/walkers/perl-5.40.d"),
    },
    Runtime {
        name: "php-8.4.d",
        text: include_str!("../../dlib/walkers/php-8.4.d"),
    },
    Runtime {
        name: "ruby-3.3.d",
        text: include_str!("../../dlib/walkers/ruby-3.3.d"),
    },
    Runtime {
        name: "v8-11.d",
        text: include_str!("../../dlib/walkers/v8-11.d"),
    },
];

/// Bytes of a symbol (`Elf64_Sym`: the name's offset in 4, kind, visibility, section in 2, address, size).
const SYMBOL: usize = 24;
/// Symbols of a table that are looked at.
const SYMBOLS_MAX: usize = 1 << 20;

impl Runtime {
    /// The walker's number: a hash of its text (FNV-1a), so that what a file says is meant for this very text.
    pub fn number(&self) -> u64 {
        fnv(self.text.as_bytes(), FNV)
    }

    /// The runtime whose walker has that number.
    pub fn numbered(number: u64) -> Option<&'static Self> {
        ALL.iter().find(|runtime| runtime.number() == number)
    }

    /// What the third of its frames' names is.
    pub fn lines(&self) -> Option<Format> {
        let mut formats = self.said("lines");
        Format::named(formats.next()?.first()?)
    }

    /// What it says, line by line: the kind of the line, and the words behind.
    fn lines_said(&self) -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
        let lines = self.text.lines();
        let told = lines.filter_map(|line| line.strip_prefix("#pragma walker "));
        told.filter_map(|line| {
            let (kind, rest) = line.split_once(' ')?;
            Some((kind, rest.split_whitespace().collect()))
        })
    }

    /// The words of each line of that kind.
    fn said(&self, kind: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
        let lines = self.lines_said().filter(move |(known, _)| *known == kind);
        lines.map(|(_, words)| words)
    }

    /// The lines of constants, with their kind, in order.
    fn constants(&self) -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
        let kinds = [
            "address", "thread", "operand", "words", "values", "numbers", "static", "offsets",
            "sizes",
        ];
        let is_constant = move |kind: &str| kinds.contains(&kind);
        self.lines_said().filter(move |(kind, _)| is_constant(kind))
    }
}

/// What a file says of its evaluators, in the layout of `dtrace_unwind`'s `evaluators`, if it is of a runtime that there is a walker for.
pub fn evaluators_of<'a, R: ReadRef<'a>>(file: &object::File<'a, R>) -> Option<Vec<u8>> {
    if !file.is_64() || !file.is_little_endian() {
        return None;
    }
    // Nothing else has to be known of most files.
    let symbols = Symbols::of(file);
    ALL.iter().find_map(|runtime| {
        let elf = Elf {
            file,
            symbols: &symbols,
            tables: Tables::default(),
        };
        elf.evaluators(runtime)
    })
}

/// Addresses and sizes of the symbols that runtimes name.
struct Symbols(HashMap<&'static str, (u64, u64)>);

impl Symbols {
    fn of<'a, R: ReadRef<'a>>(file: &object::File<'a, R>) -> Self {
        let wanted: Vec<&'static str> = ALL.iter().flat_map(symbols_of).collect();
        let mut found = HashMap::new();
        for (table, strings) in [(".dynsym", ".dynstr"), (".symtab", ".strtab")] {
            let (Some(table), Some(strings)) = (section(file, table), section(file, strings))
            else {
                continue;
            };
            for symbol in table.chunks_exact(SYMBOL).take(SYMBOLS_MAX) {
                if let Some((name, place)) = defined(symbol, &strings, &wanted) {
                    found.insert(name, place);
                }
            }
        }
        Self(found)
    }
}

/// The name of a symbol if it is wanted, with its address and size. The name is not read as such: it may have any length.
fn defined(
    symbol: &[u8],
    strings: &[u8],
    wanted: &[&'static str],
) -> Option<(&'static str, (u64, u64))> {
    let word = |at: usize| Some(u64::from_le_bytes(symbol.get(at..at + 8)?.try_into().ok()?));
    let name = strings.get(word(0)? as u32 as usize..)?;
    let is_it = |text: &&&str| {
        let rest = name.strip_prefix(text.as_bytes());
        rest.is_some_and(|rest| rest.first() == Some(&0))
    };
    let name = wanted.iter().find(is_it)?;
    let is_defined = symbol.get(6..8)? != [0, 0];
    is_defined.then_some((name, (word(8)?, word(16)?)))
}

/// The symbols that a runtime's walker names.
fn symbols_of(runtime: &Runtime) -> Vec<&'static str> {
    let places = runtime.said("evaluator").chain(runtime.said("blob"));
    let places = places.flatten();
    let places = places.map(|place| place.split('+').next().unwrap_or(place));
    let requirements = runtime
        .said("requires")
        .chain(runtime.said("says"))
        .filter_map(|words| words.first().copied());
    let constants = runtime.constants().flat_map(|(kind, words)| {
        let count = match kind {
            "values" => 0,
            "numbers" => words.len(),
            _ => 1,
        };
        words.into_iter().take(count)
    });
    places.chain(requirements).chain(constants).collect()
}

/// A file, as runtimes look at it.
pub(super) struct Elf<'f, 'a, R: ReadRef<'a>> {
    pub(super) file: &'f object::File<'a, R>,
    symbols: &'f Symbols,
    tables: Tables<'a>,
}

impl<'a, R: ReadRef<'a>> Elf<'_, 'a, R> {
    fn evaluators(&self, runtime: &Runtime) -> Option<Vec<u8>> {
        let is_it = runtime
            .said("requires")
            .all(|words| self.meets(&words) == Some(true));
        let says = |words: Vec<&str>| self.says(&words) == Some(true);
        if !is_it || !runtime.said("says").all(says) {
            return None;
        }
        let mut parts: Vec<Range<u64>> = runtime
            .said("evaluator")
            .flatten()
            .filter_map(|place| self.part(place))
            .collect();
        for places in runtime.said("blob") {
            parts.push(self.blob(&places)?);
        }
        parts.extend(runtime.said("made").map(|words| match words[..] {
            ["told"] => Range {
                start: MADE,
                end: TOLD,
            },
            _ => MADE..MADE,
        }));
        if parts.is_empty() {
            return None;
        }
        let constants = self.constants(runtime)?;
        if constants.len() > CONSTANTS_MAX {
            return None;
        }
        let counts = parts.len() as u64 | (constants.len() as u64) << 32;
        let ends = parts.iter().flat_map(|part| [part.start, part.end]);
        let words = [runtime.number(), counts]
            .into_iter()
            .chain(ends)
            .chain(constants);
        Some(words.flat_map(u64::to_le_bytes).collect())
    }

    /// The constants of a runtime.
    fn constants(&self, runtime: &Runtime) -> Option<Vec<u64>> {
        let mut constants = Vec::new();
        for (kind, words) in runtime.constants() {
            let (name, rest) = words.split_first()?;
            match kind {
                "static" | "offsets" | "sizes" => {
                    let table = self.symbols.0.get(*name)?.0;
                    constants.extend(self.of_layout(kind, table, rest)?);
                }
                "address" => constants.push(self.relative(self.symbols.0.get(*name)?.0)?),
                "thread" => constants.push(self.of_thread(self.symbols.0.get(*name)?.0)?),
                "operand" => {
                    let operand = self.led_to(name, rest.first()?)?;
                    constants.push(self.relative(operand)?);
                }
                "values" => {
                    for value in words {
                        constants.push(parse_number(value)?);
                    }
                }
                "numbers" => {
                    for name in words {
                        let at = self.symbols.0.get(name)?.0;
                        constants.push(i64::from(self.number(at)?) as u64);
                    }
                }
                _ => {
                    for n in rest {
                        constants.push(self.word(name, n.parse().ok()?)?);
                    }
                }
            }
        }
        Some(constants)
    }

    /// The constants that a table of the file's layout tells.
    fn of_layout(&self, kind: &str, table: u64, words: &[&'static str]) -> Option<Vec<u64>> {
        let (of, rest) = words.split_first()?;
        match kind {
            "sizes" => {
                let sizes = words.iter();
                sizes.map(|of| self.tables.size(self, table, of)).collect()
            }
            "static" => {
                let at = self.tables.static_field(self, table, [of, rest.first()?])?;
                Some(vec![self.relative(at)?])
            }
            _ => {
                let fields = rest.iter();
                let place = |field: &&str| {
                    let at = self.tables.offset(self, table, [of, field])?;
                    self.relative(at)
                };
                fields.map(place).collect()
            }
        }
    }

    /// Whether a static field has a value.
    fn says(&self, words: &[&str]) -> Option<bool> {
        let [table, of, field, value] = words else {
            return None;
        };
        let table = self.symbols.0.get(table)?.0;
        let at = self.tables.static_field(self, table, [of, field])?;
        Some(u64::from(self.number(at)? as u32) == parse_number(value)?)
    }

    fn meets(&self, words: &[&str]) -> Option<bool> {
        let (name, rest) = words.split_first()?;
        let (n, rest) = rest.split_first()?;
        let value = parse_number(rest.first()?)?;
        let mask = rest
            .get(1)
            .map_or(Some(u64::MAX), |mask| parse_number(mask))?;
        Some(self.word(name, n.parse().ok()?)? & mask == value)
    }

    /// Where in the file an evaluator is.
    fn part(&self, place: &str) -> Option<Range<u64>> {
        let (address, size) = match place.split_once('+') {
            None => *self.symbols.0.get(place)?,
            Some((name, n)) => {
                let address = self.led_to(name, n)?;
                (address, frames::size_of(self.file, address)?)
            }
        };
        self.in_file(address, size)
    }

    /// Where in the file code is to which, and to whose size, operands lead.
    fn blob(&self, places: &[&str]) -> Option<Range<u64>> {
        let [begin, size] = places else {
            return None;
        };
        let led = |place: &str| {
            let (name, n) = place.split_once('+')?;
            self.led_to(name, n)
        };
        let size = u64::try_from(self.number(led(size)?)?).ok()?;
        self.in_file(led(begin)?, size)
    }

    fn in_file(&self, address: u64, size: u64) -> Option<Range<u64>> {
        let segment = self.segment(address)?;
        let within = address.checked_sub(segment.address())?;
        let begin = segment.file_range().0.checked_add(within)?;
        Some(begin..begin.checked_add(size)?)
    }

    fn segment(&self, address: u64) -> Option<object::Segment<'a, '_, R>> {
        self.file.segments().find(|segment| {
            let begin = segment.address();
            (begin..begin.saturating_add(segment.file_range().1)).contains(&address)
        })
    }

    /// An address, from where offset 0 of the file would be if all of it were mapped as the code is.
    fn relative(&self, address: u64) -> Option<u64> {
        let code = texts(self.file).into_iter().next()?;
        let begin = code.address.checked_sub(code.offset)?;
        Some(address.wrapping_sub(begin))
    }

    /// The place of a thread's own variable, from the thread pointer: a program's lie in front of it (System V ABI, AMD64 §3.4.6), a
    /// library's where there was room. A program is what names a loader, or has fixed addresses.
    fn of_thread(&self, offset: u64) -> Option<u64> {
        let object::File::Elf64(elf) = self.file else {
            return None;
        };
        let endian = Endianness::Little;
        let headers = elf.elf_program_headers();
        let of = |kind| {
            let mut all = headers.iter();
            all.find(|header| header.p_type.get(endian) == kind)
        };
        let is_program = of(elf::PT_INTERP).is_some() || self.file.kind() == ObjectKind::Executable;
        let all = of(elf::PT_TLS).filter(|_| is_program)?;
        // As far in front as lets them begin where their address wants it.
        let begin = all.p_vaddr.get(endian);
        let end = begin.checked_add(all.p_memsz.get(endian))?;
        let end = end.checked_next_multiple_of(all.p_align.get(endian).max(1))?;
        Some(offset.wrapping_sub(end.checked_sub(begin)?))
    }

    /// Where an instruction leads that ends with a distance from its end, 32 bits at that byte of a function.
    fn led_to(&self, name: &str, n: &str) -> Option<u64> {
        let at = self.symbols.0.get(name)?.0.checked_add(n.parse().ok()?)?;
        at.checked_add(4)?
            .checked_add_signed(self.number(at)?.into())
    }

    /// A number of 4 bytes of the data at an address.
    fn number(&self, at: u64) -> Option<i32> {
        let data = self.segment(at)?.data_range(at, 4).ok()??;
        Some(i32::from_le_bytes(data.try_into().ok()?))
    }

    /// A word of the data at a symbol.
    fn word(&self, name: &str, n: u64) -> Option<u64> {
        self.word_at(self.symbols.0.get(name)?.0.checked_add(n.checked_mul(8)?)?)
    }

    /// A word of the data at an address.
    pub(super) fn word_at(&self, at: u64) -> Option<u64> {
        let data = self.segment(at)?.data_range(at, 8).ok()??;
        Some(u64::from_le_bytes(data.try_into().ok()?))
    }

    /// The data from an address on, so much of it or as much as there is.
    pub(super) fn bytes_from(&self, at: u64, most: u64) -> Option<&'a [u8]> {
        let segment = self.segment(at)?;
        let end = segment.address().checked_add(segment.file_range().1)?;
        let size = end.checked_sub(at)?.min(most);
        segment.data_range(at, size).ok()?
    }
}
