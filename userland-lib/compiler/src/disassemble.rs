// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Disassembles a program as `dtrace -S` shows it: for each clause, the DIF of its predicate and
//! its actions.

use crate::program::{Difo, Program};
use dtrace_uapi::disasm::Listing;
use std::io::{self, Write};

/// Writes the listing of `program`.
pub fn program(program: &Program, out: &mut dyn Write) -> io::Result<()> {
    for clause in &program.clauses {
        if let Some(predicate) = &clause.predicate {
            writeln!(out, "\nDisassembly of predicate of {}", clause.probes)?;
            write!(out, "{}", listing(predicate))?;
        }
        for (index, action) in clause.actions.iter().enumerate() {
            if let Some(code) = &action.difo {
                let number = index + 1;
                writeln!(
                    out,
                    "\nDisassembly of action #{number} ({:?}) of {}",
                    action.kind, clause.probes
                )?;
                write!(out, "{}", listing(code))?;
            }
        }
    }
    Ok(())
}

/// Returns the code of one object with its tables, as text.
pub fn listing(difo: &Difo) -> String {
    let text: Vec<u32> = difo.text.iter().map(|instr| instr.0).collect();
    let listing = Listing {
        text: &text,
        ints: &difo.ints,
        strings: &difo.strings,
        vars: &difo.vars,
        rtype: difo.rtype,
    };
    listing.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{ActionDesc, Clause};
    use crate::source::Span;
    use dtrace_objects::pattern::ProbePattern;
    use dtrace_uapi::action::Action;
    use dtrace_uapi::dif::Instr;

    #[test]
    fn each_object_stands_under_its_clause() {
        let code = || {
            Some(Difo {
                text: vec![Instr(0x2300_0001)],
                ..Difo::default()
            })
        };
        let action = ActionDesc {
            kind: Action::Difexpr,
            difo: code(),
            format: None,
            ntuple: 0,
            arg: 0,
            uarg: 1,
        };
        let clause = Clause {
            probes: ProbePattern {
                name: "BEGIN".into(),
                ..ProbePattern::default()
            },
            predicate: code(),
            actions: vec![
                action.clone(),
                ActionDesc {
                    difo: None,
                    ..action.clone()
                },
                action,
            ],
            number: 0,
            span: Span::default(),
        };
        let mut out = Vec::new();
        program(
            &Program {
                clauses: vec![clause],
                ..Program::default()
            },
            &mut out,
        )
        .unwrap();
        let text = String::from_utf8(out).unwrap();
        let heads: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("Disassembly"))
            .collect();
        assert_eq!(
            heads,
            [
                "Disassembly of predicate of :::BEGIN",
                "Disassembly of action #1 (Difexpr) of :::BEGIN",
                "Disassembly of action #3 (Difexpr) of :::BEGIN"
            ]
        );
        assert_eq!(text.matches("ret ").count(), 3, "{text}");
    }
}
