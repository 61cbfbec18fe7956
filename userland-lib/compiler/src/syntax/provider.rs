// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Providers that applications define: `provider name { probe name(parameters) : (arguments); … };`
//!
//! The parameters are what the application passes; the arguments are what programs see. Without a
//! list of arguments the two are the same.

use super::ast::{ProbeDefinition, Provider};
use super::parser::Parser;
use crate::diag::Result;

impl Parser<'_> {
    /// Parses a provider. The current token must be its keyword.
    pub(super) fn provider(&mut self) -> Result<Provider> {
        let start = self.span;
        self.advance()?;
        let name = self.ident()?;
        self.expect("{")?;
        let mut probes = Vec::new();
        while !self.at("}") {
            probes.push(self.probe_definition()?);
        }
        self.advance()?;
        if !self.at(";") {
            return Err(self.unexpected());
        }
        let span = start.to(self.last);
        self.leave_tokens();
        Ok(Provider { name, probes, span })
    }

    fn probe_definition(&mut self) -> Result<ProbeDefinition> {
        let start = self.span;
        if !self.eat_word("probe")? {
            return Err(self.unexpected());
        }
        let name = self.ident()?;
        self.expect("(")?;
        let (parameters, _) = self.parameters(")")?;
        let arguments = if self.eat(":")? {
            self.expect("(")?;
            Some(self.parameters(")")?.0)
        } else {
            None
        };
        self.expect(";")?;
        Ok(ProbeDefinition {
            name,
            parameters,
            arguments,
            span: start.to(self.last),
        })
    }
}
