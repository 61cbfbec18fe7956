// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Macro variables such as `$1`, `$$1`, `$pid` and `$target`, which are replaced while the text is
//! read.

use crate::diag::{Diagnostic, Result};
use crate::source::Span;
use dtrace_files::nearest::nearest;
use std::cell::RefCell;
use std::collections::BTreeSet;

/// The values of macro variables.
#[derive(Clone, Debug, Default)]
pub struct Macros {
    /// `$0`, `$1`, …
    pub args: Vec<String>,
    /// Whether a missing argument is 0 (`$n`) or the empty string (`$$n`).
    pub default_args: bool,
    /// Named variables, such as `pid`.
    pub named: Vec<(String, i64)>,
    /// The arguments that the text has used so far.
    pub used: RefCell<BTreeSet<usize>>,
}

impl Macros {
    /// Returns the value of `$name`, or of `$$name` if `quoted`. Fails if it is not defined.
    pub fn value(&self, name: &str, quoted: bool, span: Span) -> Result<String> {
        let dollars = if quoted { "$$" } else { "$" };
        if let Ok(index) = name.parse::<usize>() {
            self.used.borrow_mut().insert(index);
            return match self.args.get(index) {
                Some(arg) => Ok(arg.clone()),
                None if self.default_args && quoted => Ok(String::new()),
                None if self.default_args => Ok("0".to_owned()),
                None => Err(Diagnostic::new(
                    "D_MACRO_UNDEF",
                    span,
                    format!("macro argument {dollars}{name} is not defined"),
                )),
            };
        }
        if let Some((_, value)) = self.named.iter().find(|(known, _)| known == name) {
            return Ok(value.to_string());
        }
        let error = Diagnostic::new(
            "D_MACRO_UNDEF",
            span,
            format!("macro variable {dollars}{name} is not defined"),
        );
        Err(
            match nearest(name, self.named.iter().map(|(known, _)| known.as_str())) {
                Some(known) => error.note(format!("did you mean `${known}`?")),
                None => error,
            },
        )
    }

    /// Fails if the text does not use all arguments, because the command line is most likely
    /// mistyped. The error names the last unused argument; its location is `end`, the end of the
    /// text.
    pub fn check_all_used(&self, end: Span) -> Result<()> {
        let used = self.used.borrow();
        let unused = (1..self.args.len())
            .rev()
            .find(|index| !used.contains(index));
        unused.map_or(Ok(()), |index| {
            let argument = &self.args[index];
            let message = format!("extraneous argument '{argument}' (${index} is not referenced)");
            Err(Diagnostic::new("D_MACRO_UNUSED", end, message))
        })
    }

    /// Replaces the macro variables in a probe description or a pragma.
    pub fn expand_description(&self, text: &str, span: Span) -> Result<String> {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            out.push_str(&rest[..at]);
            let name = rest[at..].trim_start_matches('$');
            let end = name
                .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
                .unwrap_or(name.len());
            out.push_str(&self.value(&name[..end], false, span)?);
            rest = &name[end..];
        }
        out.push_str(rest);
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_expanded() {
        let macros = Macros {
            args: vec!["script".into(), "malloc".into()],
            named: vec![("target".into(), 42)],
            ..Macros::default()
        };
        let expand = |text| macros.expand_description(text, Span::default());
        assert_eq!(
            expand("pid$target:a.out:$1:entry").unwrap(),
            "pid42:a.out:malloc:entry"
        );
        let error = expand("pid$traget:::").unwrap_err();
        assert_eq!(error.message, "macro variable $traget is not defined");
        assert_eq!(error.notes, ["did you mean `$target`?"]);
        assert_eq!(
            expand("$7:::").unwrap_err().message,
            "macro argument $7 is not defined"
        );
    }

    #[test]
    fn arguments_that_nobody_names_are_extraneous() {
        let macros = Macros {
            args: ["script", "a", "b", "c"].map(String::from).into(),
            ..Macros::default()
        };
        macros.value("2", true, Span::default()).unwrap();
        let unused = |macros: &Macros| macros.check_all_used(Span::default()).unwrap_err().message;
        assert_eq!(
            unused(&macros),
            "extraneous argument 'c' ($3 is not referenced)"
        );
        macros.value("3", false, Span::default()).unwrap();
        assert_eq!(
            unused(&macros),
            "extraneous argument 'a' ($1 is not referenced)"
        );
        macros.value("1", false, Span::default()).unwrap();
        macros.check_all_used(Span::default()).unwrap();
    }
}
