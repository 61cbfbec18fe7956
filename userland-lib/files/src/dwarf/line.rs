// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Finds the addresses where the instructions of a source line begin.
//!
//! The compiler emits rows of address, file and line. A line may begin at several addresses,
//! because it was inlined or because its parts are apart. Only rows that begin a statement count.
//! Of several such rows with the same address only the last counts, so that an address belongs to
//! one line. Consecutive rows of the same line count as one place.

use super::part::{Header, Unit};
use super::{Bytes, DebugInfo, Error};
use gimli::{LineProgramHeader, LineRow, UnitType};
use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;

/// Most file names that are kept to suggest one if the user misspelled it.
const FILES_MAX: usize = 1 << 16;

/// Where a line is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// Addresses in the file's numbering.
    pub addresses: BTreeSet<u64>,
    /// Whether a source file of the given name exists.
    pub has_file: bool,
    /// The line with instructions that is nearest to the requested one; of two equally near, the
    /// later.
    pub nearest: Option<u64>,
    /// Base names of the source files that were seen.
    pub files: HashSet<String>,
}

impl DebugInfo {
    /// Finds the line `line` of the source file `file`, which is a path or the last components of
    /// one.
    pub fn lines(&self, file: &str, line: u64) -> Lines {
        let mut lines = Lines::default();
        let mut programs = HashSet::new();
        // Type units refer to the line program of the unit that they belong to.
        let is_type = |header: &&Header| matches!(header.type_(), UnitType::Type { .. });
        for header in self.units.iter().filter(|header| !is_type(header)) {
            let Ok(unit) = self.with_lines(header) else {
                continue;
            };
            let Some(program) = &unit.line_program else {
                continue;
            };
            // Each part has a section of lines of its own.
            let place = (Rc::as_ptr(&unit.part), program.header().offset().0);
            if programs.insert(place) {
                // Keep what was found before the damage.
                let _ = self.lines_of(&unit, file, line, &mut lines);
            }
        }
        lines
    }

    fn with_lines(&self, header: &Header) -> Result<Unit, Error> {
        let abbreviations = self.abbreviations(header)?;
        let (dwarf, own) = (&header.part.dwarf, header.header.clone());
        Ok(Unit {
            unit: gimli::Unit::new_with_abbreviations(dwarf, own, abbreviations)?,
            part: header.part.clone(),
            skeleton: None,
        })
    }

    fn lines_of(&self, unit: &Unit, file: &str, line: u64, lines: &mut Lines) -> gimli::Result<()> {
        let Some(program) = unit.line_program.clone() else {
            return Ok(());
        };
        let numbers = self.files(unit, program.header(), file, lines);
        if numbers.is_empty() {
            return Ok(());
        }
        lines.has_file = true;
        let mut rows = program.rows();
        let mut statement: Option<LineRow> = None;
        let mut was_there = false;
        while let Some((_, row)) = rows.next_row()? {
            let passed = |last: &LineRow| row.end_sequence() || last.address() != row.address();
            if let Some(last) = statement.filter(passed) {
                was_there =
                    numbers.contains(&last.file_index()) && lines.take(&last, line, was_there);
                statement = None;
            }
            if row.end_sequence() {
                was_there = false;
            } else if row.is_stmt() {
                statement = Some(*row);
            }
        }
        Ok(())
    }

    /// Returns the numbers that the unit's rows use for the file.
    fn files(
        &self,
        unit: &Unit,
        header: &LineProgramHeader<Bytes>,
        file: &str,
        lines: &mut Lines,
    ) -> HashSet<u64> {
        // Files are counted from 1 in version 4 and from 0 in version 5, where the first file is
        // listed twice.
        let first = u64::from(header.version() <= 4);
        let mut numbers = HashSet::new();
        for (entry, number) in header.file_names().iter().zip(first..) {
            let Some(name) = self.text(unit, entry.path_name()) else {
                continue;
            };
            let folder = entry.directory(header);
            let folder = folder.and_then(|folder| self.text(unit, folder));
            let path = match folder {
                Some(folder) => format!("{folder}/{name}"),
                None => name.clone(),
            };
            let ends = path.strip_suffix(file);
            if ends.is_some_and(|rest| rest.is_empty() || rest.ends_with('/')) {
                numbers.insert(number);
            }
            if lines.files.len() < FILES_MAX {
                let name = name.rsplit('/').next().unwrap_or(&name);
                lines.files.insert(name.to_owned());
            }
        }
        numbers
    }
}

impl Lines {
    /// Evaluates a row of the file. Returns whether it belongs to the line. `was_there` says
    /// whether the previous statement did; then the row begins no new place.
    fn take(&mut self, row: &LineRow, line: u64, was_there: bool) -> bool {
        let Some(own) = row.line().map(std::num::NonZeroU64::get) else {
            return false;
        };
        let distance = |own: u64| (own.abs_diff(line), own < line);
        let known = self.nearest.map(distance);
        if known.is_none_or(|known| distance(own) < known) {
            self.nearest = Some(own);
        }
        if own == line && !was_there {
            self.addresses.insert(row.address());
        }
        own == line
    }
}
