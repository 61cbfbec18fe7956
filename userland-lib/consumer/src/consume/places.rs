// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The source locations of faults and of statements.
//!
//! The kernel reports a fault by the enabled probe, the number of the action and the offset in its
//! DIF. The description of the enabled probe has the number of its clause, and the offset leads to
//! the expression from which the instruction was compiled. A record names its statement by number.

use dtrace_compiler::program::Program;
use dtrace_compiler::source::{Origin, Source, Span};
use std::fmt;
use std::rc::Rc;

/// The source locations of the instructions and statements of all compiled programs.
#[derive(Debug, Default)]
pub struct Places {
    clauses: Vec<Clause>,
    /// Programs with their first statement's number, in the order of these numbers.
    programs: Vec<(u64, Rc<Source>, Vec<Span>)>,
}

/// A place in a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The script's name; `None` for a program given as an argument.
    pub file: Option<String>,
    /// The line, counted from 1.
    pub line: u32,
    /// The column, in characters, counted from 1.
    pub column: u32,
    /// The text there, on one line.
    pub text: String,
    /// Whether the program has one line only, so that its number says nothing.
    is_only_line: bool,
}

impl Place {
    /// Returns the place of `span`; `None` if there is no text.
    fn of(source: &Source, span: Span) -> Option<Self> {
        let words: Vec<&str> = source.slice(span).split_whitespace().collect();
        let text = words.join(" ");
        if text.is_empty() {
            return None;
        }
        let at = source.position(span.start);
        Some(Self {
            file: match &source.origin {
                Origin::File(name) | Origin::Library(name) => Some(name.clone()),
                Origin::Argument => None,
            },
            line: at.line,
            column: at.column,
            text,
            is_only_line: !source.text.trim_end().contains('\n'),
        })
    }
}

impl fmt::Display for Place {
    /// Shows the script's name and line, and the text. A program given as an argument has no name,
    /// and no line number either if it has only one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, text) = (self.line, &self.text);
        match &self.file {
            Some(name) => write!(f, "{name}:{line}: {text}"),
            None if self.is_only_line => f.write_str(text),
            None => write!(f, "line {line}: {text}"),
        }
    }
}

#[derive(Debug)]
struct Clause {
    number: u64,
    source: Rc<Source>,
    /// The locations of the predicate's instructions.
    predicate: Vec<Span>,
    /// The locations of each action's instructions.
    actions: Vec<Vec<Span>>,
}

impl Places {
    /// Adds the clauses of `program`, which was compiled from `source`.
    pub fn add(&mut self, source: &Source, program: &Program) {
        let source = Rc::new(source.clone());
        let spans = program.spans.clone();
        let programs = (program.first_uarg, Rc::clone(&source), spans);
        self.programs.push(programs);
        for clause in &program.clauses {
            let spans = |difo: &Option<dtrace_compiler::program::Difo>| {
                let difo = difo.as_ref();
                difo.map(|difo| difo.spans.clone()).unwrap_or_default()
            };
            let actions = clause.actions.iter();
            self.clauses.push(Clause {
                number: clause.number,
                source: Rc::clone(&source),
                predicate: spans(&clause.predicate),
                actions: actions.map(|action| spans(&action.difo)).collect(),
            });
        }
    }

    /// Returns the source of the instruction at `offset` bytes in the DIF of action number `action`
    /// (from 1; 0 is the predicate) of clause number `clause`. `None` if nothing is known of that
    /// instruction.
    pub fn find(&self, clause: u64, action: u64, offset: u64) -> Option<Place> {
        let clause = self.clauses.iter().find(|known| known.number == clause)?;
        let spans = match action.checked_sub(1) {
            None => &clause.predicate,
            Some(index) => clause.actions.get(usize::try_from(index).ok()?)?,
        };
        let span = *spans.get(usize::try_from(offset / 4).ok()?)?;
        Place::of(&clause.source, span)
    }

    /// Returns the source of the statement number `uarg`; `None` if it is not known.
    pub fn statement(&self, uarg: u64) -> Option<Place> {
        let programs = self.programs.iter().rev();
        let mut programs = programs.skip_while(|(first, ..)| *first > uarg);
        let (first, source, spans) = programs.next()?;
        let span = spans.get(usize::try_from(uarg - first).ok()?)?;
        Place::of(source, *span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dtrace_compiler::compile::{Compiler, Settings};
    use dtrace_objects::processes::Nowhere;

    #[test]
    fn an_instruction_has_the_place_of_what_it_was_made_for() {
        let source = Source::file(
            "x.d",
            "BEGIN\n{\n\ttrace(1);\n\ttrace(*(int *)\n\t    0x10);\n}\n",
        );
        let program = Compiler::new(&Nowhere)
            .compile(&source, &Settings::default())
            .expect("a program");
        let mut places = Places::default();
        places.add(&source, &program);
        let clause = &program.clauses[0];
        let spans = &clause.actions[1].difo.as_ref().expect("code").spans;
        let load = spans
            .iter()
            .position(|span| source.slice(*span).starts_with('*'))
            .expect("a load");
        assert_eq!(
            places
                .find(clause.number, 2, 4 * load as u64)
                .map(|place| (place.to_string(), place.column)),
            Some(("x.d:4: *(int *) 0x10".to_owned(), 8))
        );
        let statement = |number| places.statement(program.first_uarg + number);
        let second = statement(1).expect("a place");
        assert_eq!(second.file.as_deref(), Some("x.d"));
        assert_eq!((second.line, second.column), (4, 2));
        assert_eq!(second.text, "trace(*(int *) 0x10)");
        assert_eq!(statement(2), None);
        assert_eq!(places.statement(0), None);
        for (action, offset) in [(0, 0), (3, 0), (2, 400), (u64::MAX, 0)] {
            assert_eq!(places.find(clause.number, action, offset), None);
        }
        assert_eq!(places.find(clause.number + 1, 2, 0), None);
    }
}
