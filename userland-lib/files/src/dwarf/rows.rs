// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Finds the source line of an instruction.
//!
//! The compiler emits rows of address, file and line, in sequences of ascending addresses. An
//! instruction belongs to the last row whose address is not greater than its own. The rows of a
//! unit are read once. Code that the linker discarded has sequences too, at low addresses that may
//! coincide with those of other code. So the sequence with the greatest beginning that is not
//! greater than the address decides.

use super::part::{Part, Unit};
use super::{Bytes, DebugInfo, Error};
use gimli::{AttributeValue, DebugLineOffset, LineProgramHeader, Reader as _, Section as _};
use std::rc::Rc;

/// Most bytes of a unit's file table. The parsed table is much larger.
const FILES_MAX: usize = 1 << 20;
/// Most bytes of a unit's line program.
const PROGRAM_MAX: usize = 1 << 24;
/// Approximate number of steps to read a byte of a file table.
const FILE: usize = 8;

/// Base name of a file, and a line in it.
pub type Source = (Rc<str>, u64);

/// The rows of a unit.
#[derive(Debug, Default)]
pub struct Rows {
    /// Sorted by beginning.
    sequences: Vec<Sequence>,
    rows: Vec<Row>,
    /// Indexed by the compiler's file number.
    files: Vec<Option<Rc<str>>>,
}

#[derive(Debug)]
struct Sequence {
    begin: u64,
    end: u64,
    /// Index of the first row, and the index after the last.
    rows: (usize, usize),
}

#[derive(Debug)]
struct Row {
    address: u64,
    file: u64,
    line: u64,
}

impl Rows {
    /// Returns the source line of the instruction at `address`.
    pub fn at(&self, address: u64) -> Option<Source> {
        let after = self.sequences.partition_point(|s| s.begin <= address);
        let sequence = self.sequences.get(after.checked_sub(1)?)?;
        let rows = self.rows.get(sequence.rows.0..sequence.rows.1)?;
        let after = rows.partition_point(|row| row.address <= address);
        let row = rows.get(after.checked_sub(1)?)?;
        let source = self.source(row.file, row.line);
        source.filter(|_| address < sequence.end)
    }

    /// Returns line `line` of the file with this number. Line 0 means that there is no line.
    pub fn source(&self, file: u64, line: u64) -> Option<Source> {
        let file = self.files.get(usize::try_from(file).ok()?)?.clone()?;
        (line > 0).then_some((file, line))
    }
}

impl DebugInfo {
    /// Reads the rows of a unit.
    pub(super) fn rows(&self, unit: &Unit) -> Rows {
        let mut rows = Rows::default();
        // Keep what was read before the damage.
        let _ = self.read_rows(unit, &mut rows);
        rows.sequences.sort_unstable_by_key(|s| s.begin);
        rows
    }

    fn read_rows(&self, unit: &Unit, rows: &mut Rows) -> Result<(), Error> {
        // A split unit uses the line program, and so the file numbers, of its skeleton.
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
        // Depending on the version, files are counted from 0 or from 1; cover both.
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

    /// Charges the budget for reading a unit's file table.
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
