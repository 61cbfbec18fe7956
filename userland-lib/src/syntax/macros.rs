// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Macro variables: `$1`, `$$1`, `$pid`, `$target` and their kin, replaced while the text is read.

use crate::diag::{nearest, Diagnostic, Result};
use crate::source::Span;

/// What macro variables stand for.
#[derive(Clone, Debug, Default)]
pub struct Macros {
    /// `$0`, `$1`, …
    pub args: Vec<String>,
    /// Whether a missing argument is 0 or the empty string.
    pub default_args: bool,
    /// Named variables.
    pub named: Vec<(String, i64)>,
}

impl Macros {
    /// The text that `$name` stands for, or `$$name` where `quoted`.
    pub fn value(&self, name: &str, quoted: bool, span: Span) -> Result<String> {
        if let Ok(index) = name.parse::<usize>() {
            return match self.args.get(index) {
                Some(arg) => Ok(arg.clone()),
                None if self.default_args && quoted => Ok(String::new()),
                None if self.default_args => Ok("0".to_owned()),
                None => Err(Diagnostic::new(
                    "D_MACRO_UNDEF",
                    span,
                    format!("macro argument ${name} is not defined"),
                )),
            };
        }
        if let Some((_, value)) = self.named.iter().find(|(known, _)| known == name) {
            return Ok(value.to_string());
        }
        let error = Diagnostic::new(
            "D_MACRO_UNDEF",
            span,
            format!("macro variable ${name} is not defined"),
        );
        Err(
            match nearest(name, self.named.iter().map(|(known, _)| known.as_str())) {
                Some(known) => error.note(format!("did you mean `${known}`?")),
                None => error,
            },
        )
    }

    /// Replaces the macro variables in a probe description.
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
}
