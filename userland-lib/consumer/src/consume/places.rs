// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The source locations of faults.
//!
//! The kernel reports a fault by the enabled probe, the number of the action and the offset in its
//! DIF. The description of the enabled probe has the number of its clause, and the offset leads to
//! the expression from which the instruction was compiled.

use dtrace_compiler::program::Program;
use dtrace_compiler::source::{Origin, Source, Span};
use std::rc::Rc;

/// The source locations of the instructions of all compiled programs.
#[derive(Debug, Default)]
pub struct Places {
    clauses: Vec<Clause>,
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
    /// (from 1; 0 is the predicate) of clause number `clause`: the script's name and line, and the
    /// expression. A program given as an argument has no name, and no line number either if it has
    /// only one line. `None` if nothing is known of that instruction.
    pub fn find(&self, clause: u64, action: u64, offset: u64) -> Option<String> {
        let clause = self.clauses.iter().find(|known| known.number == clause)?;
        let spans = match action.checked_sub(1) {
            None => &clause.predicate,
            Some(index) => clause.actions.get(usize::try_from(index).ok()?)?,
        };
        let span = *spans.get(usize::try_from(offset / 4).ok()?)?;
        let words: Vec<&str> = clause.source.slice(span).split_whitespace().collect();
        let expression = words.join(" ");
        if expression.is_empty() {
            return None;
        }
        let line = clause.source.position(span.start).line;
        Some(match &clause.source.origin {
            Origin::File(name) | Origin::Library(name) => format!("{name}:{line}: {expression}"),
            Origin::Argument if clause.source.text.trim_end().contains('\n') => {
                format!("line {line}: {expression}")
            }
            Origin::Argument => expression,
        })
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
            places.find(clause.number, 2, 4 * load as u64).as_deref(),
            Some("x.d:4: *(int *) 0x10")
        );
        for (action, offset) in [(0, 0), (3, 0), (2, 400), (u64::MAX, 0)] {
            assert_eq!(places.find(clause.number, action, offset), None);
        }
        assert_eq!(places.find(clause.number + 1, 2, 0), None);
    }
}
