// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The source line of an instruction.
//!
//! A compiler tells it in rows of address, file and line, in sequences of growing addresses. An instruction is of the last row that is
//! not behind it. A unit's rows are read once. Code that the linker has left out has sequences too, at small addresses that are other code's:
//! of those that hold an address the one counts that begins nearest to it.

use super::part::{Part, Unit};
use super::{Bytes, DebugInfo, Error};
use gimli::{AttributeValue, DebugLineOffset, LineProgramHeader, Reader as _, Section as _};
use std::rc::Rc;

/// Bytes of what a unit tells of its files: what is made of it is much larger.
const FILES_MAX: usize = 1 << 20;
/// Bytes of a unit's instructions for making rows.
const PROGRAM_MAX: usize = 1 << 24;
/// About how many steps it takes to read a byte of a list of files.
const FILE: usize = 8;

/// The name of a file, without its folder, and a line of it.
pub type Source = (Rc<str>, u64);

/// The rows of a unit.
#[derive(Debug, Default)]
pub struct Rows {
    /// In the order of where they begin.
    sequences: Vec<Sequence>,
    rows: Vec<Row>,
    /// By their numbers.
    files: Vec<Option<Rc<str>>>,
}

#[derive(Debug)]
struct Sequence {
    begin: u64,
    end: u64,
    /// Its first row, and the one behind its last.
    rows: (usize, usize),
}

#[derive(Debug)]
struct Row {
    address: u64,
    file: u64,
    line: u64,
}

impl Rows {
    /// The line that the instruction at `address` is of.
    pub fn at(&self, address: u64) -> Option<Source> {
        let after = self.sequences.partition_point(|s| s.begin <= address);
        let sequence = self.sequences.get(after.checked_sub(1)?)?;
        let rows = self.rows.get(sequence.rows.0..sequence.rows.1)?;
        let after = rows.partition_point(|row| row.address <= address);
        let row = rows.get(after.checked_sub(1)?)?;
        let source = self.source(row.file, row.line);
        source.filter(|_| address < sequence.end)
    }

    /// The line `line` of the unit's file of that number. The line 0 is none.
    pub fn source(&self, file: u64, line: u64) -> Option<Source> {
        let file = self.files.get(usize::try_from(file).ok()?)?.clone()?;
        (line > 0).then_some((file, line))
    }
}

impl DebugInfo {
    /// The rows of a unit.
    pub(super) fn rows(&self, unit: &Unit) -> Rows {
        let mut rows = Rows::default();
        // What is damaged has told what it has told.
        let _ = self.read_rows(unit, &mut rows);
        rows.sequences.sort_unstable_by_key(|s| s.begin);
        rows
    }

    fn read_rows(&self, unit: &Unit, rows: &mut Rows) -> Result<(), Error> {
        // The numbers of files are those of the program's rows, wherever the unit is.
        let unit = unit.skeleton.as_deref().unwrap_or(unit);
        let mut entries = unit.entries();
        let (_, root) = entries.next_dfs()?.ok_or(Error::Damaged)?;
        let Some(AttributeValue::DebugLineRef(offset)) = root.attr_value(gimli::DW_AT_stmt_list)?
        else {
            return Ok(());
        };
        self.weigh_files(&unit.part, offset)?;
        let lines = &unit.part.dwarf.debug_line;
        let program = lines.program(offset, unit.header.address_size(), None, None)?;
        let size = program.header().raw_program_buf().len();
        if size > PROGRAM_MAX {
            return Err(Error::Unsupported("a unit has too many lines"));
        }
        self.budget.spend(size)?;
        self.read_files(unit, program.header(), rows)?;
        let mut all = program.rows();
        let mut first = 0;
        while let Some((_, row)) = all.next_row()? {
            self.budget.keep(size_of::<Row>())?;
            if !row.end_sequence() {
                rows.rows.push(Row {
                    address: row.address(),
                    file: row.file_index(),
                    line: row.line().map_or(0, u64::from),
                });
                continue;
            }
            if let Some(begin) = rows.rows.get(first).map(|row| row.address) {
                rows.sequences.push(Sequence {
                    begin,
                    end: row.address(),
                    rows: (first, rows.rows.len()),
                });
            }
            first = rows.rows.len();
        }
        Ok(())
    }

    fn read_files(
        &self,
        unit: &Unit,
        header: &LineProgramHeader<Bytes>,
        rows: &mut Rows,
    ) -> Result<(), Error> {
        // They are counted from 0 or from 1, as the version has it.
        for number in 0..=header.file_names().len() as u64 {
            let path = header.file(number).map(|file| file.path_name());
            let path = path.and_then(|path| self.text(unit, path));
            let name = path.map(|path| Rc::from(path.rsplit('/').next().unwrap_or(&path)));
            let kept = name.as_ref().map_or(0, |name: &Rc<str>| name.len());
            self.budget.keep(size_of::<Option<Rc<str>>>() + kept)?;
            rows.files.push(name);
        }
        Ok(())
    }

    /// Counts what it costs to read a unit's list of files.
    fn weigh_files(&self, part: &Part, offset: DebugLineOffset) -> Result<(), Error> {
        let mut header = part.dwarf.debug_line.reader().clone();
        header.skip(offset.0)?;
        let (_, format) = header.read_initial_length()?;
        if header.read_u16()? >= 5 {
            let _sizes = header.read_u16()?;
        }
        let size = header.read_length(format)?;
        if size > FILES_MAX {
            return Err(Error::Unsupported("a unit has too many files"));
        }
        self.budget.spend(FILE.saturating_mul(size))
    }
}
