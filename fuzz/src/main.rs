// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Runs the target that `DTRACE_FUZZ_TARGET` names under libFuzzer.
#![no_main]

use dtrace_fuzz::{target, Target};
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

static TARGET: OnceLock<&Target> = OnceLock::new();

fn chosen() -> &'static Target {
    let name = std::env::var("DTRACE_FUZZ_TARGET").unwrap_or_default();
    match target(&name) {
        Some(target) => target,
        None => panic!("DTRACE_FUZZ_TARGET names no target: {name:?}"),
    }
}

fuzz_target!(|data: &[u8]| (TARGET.get_or_init(chosen).run)(data));
