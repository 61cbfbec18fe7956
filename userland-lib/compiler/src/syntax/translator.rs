// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Translators: `translator output < input name > { member = expression; … };`

use super::ast::Translator;
use super::parser::Parser;
use crate::diag::Result;

impl Parser<'_> {
    /// Parses a translator. The current token must be its keyword.
    pub(super) fn translator(&mut self) -> Result<Translator> {
        let start = self.span;
        self.advance()?;
        let output = self.type_name()?;
        self.expect("<")?;
        let input = self.type_name()?;
        self.expect(">")?;
        self.expect("{")?;
        let mut members = Vec::new();
        while !self.at("}") {
            let name = self.ident()?;
            self.expect("=")?;
            let value = self.assignment()?;
            self.expect(";")?;
            members.push((name, value));
        }
        self.advance()?;
        if !self.at(";") {
            return Err(self.unexpected());
        }
        let span = start.to(self.last);
        self.leave_tokens();
        Ok(Translator {
            output,
            input,
            members,
            span,
        })
    }
}
