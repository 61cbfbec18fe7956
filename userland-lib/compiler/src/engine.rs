// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The kernel's half, for tests that compare the compiler's rules with the engine's.

use dtrace_engine::{Config, Consumer, Features, Privileges};

/// Makes a consumer that may do everything.
pub fn consumer() -> Consumer {
    let config = Config {
        ncpus: 1,
        privileges: Privileges::ALL,
        features: Features {
            signals: true,
            ustack: true,
            breakpoint: true,
            panic: true,
            chill: true,
            user_store: true,
            regs: true,
            uregs: true,
        },
        begin: 1,
        end: 2,
        error: 3,
        seed: 1,
        secret: 1,
        is_killed: || false,
    };
    Consumer::new(config).expect("memory")
}
