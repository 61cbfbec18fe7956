// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! `dtrace -l`.

use crate::args::Args;
use crate::report;
use crate::tell::tell;
use crate::trace::{compile, prepare};
use crate::Failure;
use dtrace::handle::{probes, KernelWorld};
use dtrace::list;
use dtrace::pattern::ProbePattern;
use dtrace::render::json;
use std::io::{self, BufWriter, Write};

/// Lists the probes that the command line describes. Returns the exit status.
pub fn run(args: &Args, world: &KernelWorld<'_>) -> Result<u8, Failure> {
    // The details of a process's probes are read from the process, which the handle keeps stopped.
    // The handle must therefore live until all rows are printed.
    let _handle;
    let mut is_json = report::is_json(args);
    let patterns = if args.programs.is_empty() {
        vec![ProbePattern::default()]
    } else {
        let (mut handle, read) = prepare(args, world)?;
        let programs = compile(args, &mut handle, read)?;
        is_json = handle.options.consumer.oformat.is_json();
        _handle = handle;
        programs
            .into_iter()
            .flat_map(|compiled| compiled.program.clauses)
            .map(|clause| clause.probes)
            .collect()
    };
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout());
    if !is_json {
        list::header(&mut out)?;
    }
    for pattern in &patterns {
        let mut any = false;
        for probe in probes(world.device(), pattern) {
            any = true;
            if is_json {
                list::json(&mut out, args.verbose.then_some(world), &probe)?;
                continue;
            }
            list::row(&mut out, &probe)?;
            if args.verbose {
                list::details(&mut out, world, &probe)?;
            }
        }
        if !any {
            let message = format!("failed to match {pattern}: No probe matches description");
            if is_json {
                out.write_all(&json::error(&message))?;
            }
            out.flush()?;
            tell(message);
        }
    }
    out.flush()?;
    Ok(0)
}
