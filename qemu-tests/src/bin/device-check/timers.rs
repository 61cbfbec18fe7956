// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Timer probes: `device-check timers NAME COUNT...` enables COUNT clauses at the probe
//! `profile:::NAME`, prints the result, and continues with the next pair. It keeps what was enabled
//! until its standard input ends.

use super::programs::{clause, counted, image};
use super::{await_end, open, refusal};
use dtrace::device::{DevDtrace, Device};
use std::io;

/// Enables the clauses that the arguments describe.
pub fn all(args: &[String]) -> Result<(), String> {
    let device = open()?;
    for one in args.chunks(2) {
        println!("{}", asked(&device, one)?);
    }
    await_end(&mut io::stdin().lock())
}

fn asked(device: &DevDtrace, args: &[String]) -> Result<String, String> {
    let [name, count] = args else {
        return Err("usage: device-check timers NAME COUNT...".to_owned());
    };
    let count: usize = count.parse().map_err(|e| format!("{count}: {e}"))?;
    let probe = format!("profile:::{name}");
    let clauses = (0..count).map(|_| clause(&probe, vec![counted()]));
    Ok(match device.enable(&image(clauses.collect())) {
        Ok(made) => format!("{made} made"),
        Err(error) => refusal(device, &error),
    })
}
