// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Anonymous tracing: programs become the [file](crate::anon) for the next boot, and this consumer
//! claims what the kernel has recorded since it booted.

use super::{Error, Handle};
use crate::anon::{self, Meaning};
use dtrace_compiler::dof;
use dtrace_compiler::program::Program;
use dtrace_compiler::statement::{AggVarId, Statement};
use dtrace_consumer::consume::Places;
use dtrace_uapi::action::Action;
use dtrace_uapi::option::Opt;
use nix::errno::Errno;
use std::io;

/// The aggregations of a program: variable, function and the function's argument.
pub(super) fn aggregations(
    program: &Program,
) -> impl Iterator<Item = (AggVarId, Action, u64)> + '_ {
    let actions = program.clauses.iter().flat_map(|clause| &clause.actions);
    actions.filter_map(|action| match program.statement(action.uarg) {
        Some(Statement::Aggregate { var, .. }) if action.kind.is_aggregation() => {
            Some((*var, action.kind, action.arg))
        }
        _ => None,
    })
}

impl Handle<'_> {
    /// Returns the file that makes the kernel trace `programs`, which this handle has compiled,
    /// from the next boot on.
    pub fn anonymous(&mut self, programs: &[&Program]) -> Result<Vec<u8>, Error> {
        let destructive = programs.iter().any(|program| program.is_destructive);
        if destructive && !self.options.is_on(Opt::Destructive) {
            return Err(Error::Destructive);
        }
        let faults = self.error_clause()?;
        let mut options = self.options.for_kernel();
        options.retain(|(opt, _)| *opt != Opt::Grabanon);
        let programs = programs.iter().copied().chain([&faults]);
        let variables = self.consumer.aggregations().named();
        let meaning = Meaning {
            variables: variables
                .map(|(var, known)| (var, known.name().to_owned(), known.keys().to_vec()))
                .collect(),
            options: self.options.saved(),
            statements: self.statements.clone(),
            aggregations: programs
                .clone()
                .flat_map(aggregations)
                .map(|(var, func, arg)| (var, func as u32, arg))
                .collect(),
        };
        let images = programs.map(|program| dof::emit(program, &options));
        Ok(anon::write(images, &meaning))
    }

    /// Claims the anonymous state and returns the CPU that fired its `BEGIN`. Its programs and
    /// options replace ours, except options that may change at any time and were set here.
    pub(super) fn claim(&mut self) -> Result<u32, Error> {
        let grab = dof::emit(&Program::default(), &[(Opt::Grabanon, 1)]);
        let device = self.device();
        device.enable(&grab).map_err(|error| self.refused(error))?;
        let cpu = device.go().map_err(|error| self.not_claimed(error))?;
        let meaning = anon::read(&device.anonymous()?)?;
        self.options.adopt(&meaning.options);
        self.statements = meaning.statements;
        // The source places of programs compiled here belong to other statement numbers.
        self.places = Places::default();
        for (var, func, arg) in meaning.aggregations {
            if let Some(func) = Action::from_raw(func).filter(|func| func.is_aggregation()) {
                self.consumer.declare(var, func, arg);
            }
        }
        for (var, name, keys) in &meaning.variables {
            self.consumer.describe(*var, name, keys);
        }
        Ok(cpu)
    }

    fn not_claimed(&self, error: io::Error) -> Error {
        match error.raw_os_error().map(Errno::from_raw) {
            Some(Errno::ENOENT) => Error::NoAnonymous,
            Some(Errno::EALREADY) => Error::OwnProbes,
            _ => self.refused(error),
        }
    }
}
