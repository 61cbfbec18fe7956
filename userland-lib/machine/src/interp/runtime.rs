// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Runtimes: how their files are recognized, and which facts about a file their walkers need.
//!
//! The text of a walker states this in lines that begin with `#pragma walker`, which D ignores:
//!
//! - `requires SYMBOL N VALUE [MASK]`: the `N`th word of the data at the symbol, under the mask,
//!   must have that value.
//! - `evaluator SYMBOL…`: functions that are evaluators. `SYMBOL+N` is the target of the call or
//!   jump whose 32-bit displacement is at byte `N` of the symbol.
//! - `blob SYMBOL+N SYMBOL+M`: an evaluator that begins at the target of the displacement at byte
//!   `N` of the first symbol. Its size is the 4-byte number at the target of the displacement at
//!   byte `M` of the second symbol.
//! - `made code`: code that is in no file belongs to an evaluator as well. `made told`: in
//!   addition, such code has neither frame pointers nor rules, and the walker finds callers there.
//! - `address SYMBOL`: a constant, the symbol's address, relative to `__walk[1]`.
//! - `thread SYMBOL`: a constant, the offset of a thread-local variable, relative to `__walk[7]`.
//!   Not available in libraries.
//! - `operand SYMBOL N`: a constant, relative to `__walk[1]`: the address of the operand whose
//!   displacement is at byte `N` of the symbol and ends an instruction.
//! - `words SYMBOL N…`: constants, words of the data at the symbol.
//! - `values N…`: constants, these numbers.
//! - `numbers SYMBOL…`: constants, signed 4-byte numbers at the symbols.
//! - `says TABLE TYPE FIELD VALUE`: the 4-byte static field must have that value. For this and the
//!   following lines see [`layout`](super::layout).
//! - `static TABLE TYPE FIELD`: a constant, the static field's address, relative to `__walk[1]`.
//! - `offsets TABLE TYPE FIELD…`: constants, relative to `__walk[1]`: the addresses of the words
//!   that contain each field's offset once the file is loaded.
//! - `sizes TABLE TYPE…`: constants, sizes of types.
//! - `lines FORMAT`: the format of the third of a frame's names; see [`lines`](super::lines).
//!
//! The constants are the elements of `__walk[]` from 16 on, in the order of the lines. A symbol is
//! looked up in both symbol tables of a file, because most programs are stripped of one.

use super::layout::Tables;
use super::lines::Format;
use dtrace_files::elf::section::section;
use dtrace_files::elf::{frames, texts};
use dtrace_files::fnv::{fnv, FNV};
use dtrace_files::text::parse_number;
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

/// The runtimes that have walkers.
pub const ALL: &[Runtime] = &[
    Runtime {
        name: "hotspot-21.d",
        text: include_str!("../../../dlib/walkers/hotspot-21.d"),
    },
    Runtime {
        name: "cpython-3.11.d",
        text: concat!(
            include_str!("../../../dlib/walkers/cpython-3.11.d"),
            include_str!("../../../dlib/walkers/cpython.d")
        ),
    },
    Runtime {
        name: "cpython-3.12.d",
        text: concat!(
            include_str!("../../../dlib/walkers/cpython-3.12.d"),
            include_str!("../../../dlib/walkers/cpython.d")
        ),
    },
    Runtime {
        name: "cpython-3.13.d",
        text: concat!(
            include_str!("../../../dlib/walkers/cpython-3.13.d"),
            include_str!("../../../dlib/walkers/cpython.d")
        ),
    },
    Runtime {
        name: "cpython-3.14.d",
        text: concat!(
            include_str!("../../../dlib/walkers/cpython-3.14.d"),
            include_str!("../../../dlib/walkers/cpython.d")
        ),
    },
    Runtime {
        name: "perl-5.40.d",
        text: include_str!("../../../dlib/walkers/perl-5.40.d"),
    },
    Runtime {
        name: "php-8.4.d",
        text: include_str!("../../../dlib/walkers/php-8.4.d"),
    },
    Runtime {
        name: "ruby-3.3.d",
        text: include_str!("../../../dlib/walkers/ruby-3.3.d"),
    },
    Runtime {
        name: "v8-11.d",
        text: include_str!("../../../dlib/walkers/v8-11.d"),
    },
];

/// Size of a symbol in bytes (`Elf64_Sym`: the name's offset in 4, kind, visibility, section in 2,
/// address, size).
const SYMBOL: usize = 24;
/// Maximum number of symbols of a table that are read.
const SYMBOLS_MAX: usize = 1 << 20;

impl Runtime {
    /// Returns the walker's number: a hash of its text (FNV-1a), so that the facts stated about a
    /// file belong to this very text.
    pub fn number(&self) -> u64 {
        fnv(self.text.as_bytes(), FNV)
    }

    /// Returns the runtime whose walker has that number.
    pub fn numbered(number: u64) -> Option<&'static Self> {
        ALL.iter().find(|runtime| runtime.number() == number)
    }

    /// Returns the format of the third of its frames' names.
    pub fn lines(&self) -> Option<Format> {
        let mut formats = self.said("lines");
        Format::named(formats.next()?.first()?)
    }

    /// Returns the pragma lines of the walker: the kind of each line, and the words that follow.
    fn lines_said(&self) -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
        let lines = self.text.lines();
        let told = lines.filter_map(|line| line.strip_prefix("#pragma walker "));
        told.filter_map(|line| {
            let (kind, rest) = line.split_once(' ')?;
            Some((kind, rest.split_whitespace().collect()))
        })
    }

    /// Returns the words of each line of that kind.
    fn said(&self, kind: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
        let lines = self.lines_said().filter(move |(known, _)| *known == kind);
        lines.map(|(_, words)| words)
    }

    /// Returns the lines that define constants, with their kinds, in order.
    fn constants(&self) -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
        let kinds = [
            "address", "thread", "operand", "words", "values", "numbers", "static", "offsets",
            "sizes",
        ];
        let is_constant = move |kind: &str| kinds.contains(&kind);
        self.lines_said().filter(move |(kind, _)| is_constant(kind))
    }
}

/// Returns the description of a file's evaluators, in the layout of `dtrace_unwind`'s `evaluators`,
/// if the file belongs to a runtime that has a walker.
pub fn evaluators_of<'a, R: ReadRef<'a>>(file: &object::File<'a, R>) -> Option<Vec<u8>> {
    if !file.is_64() || !file.is_little_endian() {
        return None;
    }
    // The symbols alone rule out most files.
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

/// Addresses and sizes of the symbols that walkers name.
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

/// Returns the name of a symbol with its address and size, if it is wanted and defined. The name is
/// only compared, not read as a string, because it may have any length.
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

/// Returns the symbols that a runtime's walker names.
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

/// An ELF file with what has been looked up in it.
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

    /// Returns the constants of a runtime.
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

    /// Returns the constants of a line that refers to a table of the file's layout.
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

    /// Whether a static field has the required value.
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

    /// Returns the file range of an evaluator.
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

    /// Returns the file range of a blob: displacements lead to its start and to its size.
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

    /// Converts an address to one relative to where offset 0 of the file would be if the whole file
    /// were mapped like its code.
    fn relative(&self, address: u64) -> Option<u64> {
        let code = texts(self.file).into_iter().next()?;
        let begin = code.address.checked_sub(code.offset)?;
        Some(address.wrapping_sub(begin))
    }

    /// Returns the offset of a thread-local variable from the thread pointer. Those of a program
    /// are below the thread pointer (System V ABI, AMD64 §3.4.6); those of a library are wherever
    /// there was room. A file is a program if it names an interpreter or has fixed addresses.
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
        // The block begins as far below as its size requires, rounded up to its alignment.
        let begin = all.p_vaddr.get(endian);
        let end = begin.checked_add(all.p_memsz.get(endian))?;
        let end = end.checked_next_multiple_of(all.p_align.get(endian).max(1))?;
        Some(offset.wrapping_sub(end.checked_sub(begin)?))
    }

    /// Returns the target of an instruction that ends with a 32-bit displacement, relative to its
    /// end, at byte `n` of a function.
    fn led_to(&self, name: &str, n: &str) -> Option<u64> {
        let at = self.symbols.0.get(name)?.0.checked_add(n.parse().ok()?)?;
        at.checked_add(4)?
            .checked_add_signed(self.number(at)?.into())
    }

    /// Returns the signed 4-byte number at an address.
    fn number(&self, at: u64) -> Option<i32> {
        let data = self.segment(at)?.data_range(at, 4).ok()??;
        Some(i32::from_le_bytes(data.try_into().ok()?))
    }

    /// Returns the `n`th word of the data at a symbol.
    fn word(&self, name: &str, n: u64) -> Option<u64> {
        self.word_at(self.symbols.0.get(name)?.0.checked_add(n.checked_mul(8)?)?)
    }

    /// Returns the word at an address.
    pub(super) fn word_at(&self, at: u64) -> Option<u64> {
        let data = self.segment(at)?.data_range(at, 8).ok()??;
        Some(u64::from_le_bytes(data.try_into().ok()?))
    }

    /// Returns the data from an address on, at most `most` bytes, fewer if the segment ends before.
    pub(super) fn bytes_from(&self, at: u64, most: u64) -> Option<&'a [u8]> {
        let segment = self.segment(at)?;
        let end = segment.address().checked_add(segment.file_range().1)?;
        let size = end.checked_sub(at)?.min(most);
        segment.data_range(at, size).ok()?
    }
}
