// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Cleans a consumer's dynamic variables and speculations while it traces, which the engine leaves
//! to one that may wait.

use super::shared::Consumer;
use crate::sys::periodic::{Periodic, Task};
use crate::sys::{clock, crosscall, rculist};
use dtrace_uapi::limits::{CLEANRATE_DEFAULT, CLEANRATE_MAX, CLEANRATE_MIN};
use dtrace_uapi::option::{Opt, UNSET};
use kernel::prelude::*;
use kernel::sync::{Arc, Mutex};

/// Serialises the visits to a consumer's buffers by
/// [`crosscall::on_cpu`](crate::sys::crosscall::on_cpu): those of control calls and of the cleaner.
pub type Visits = Mutex<()>;

/// Cleans the speculations that several CPUs may have recorded into.
pub fn clean_speculations(consumer: &Consumer, visits: &Visits) {
    let _visit = visits.lock();
    consumer
        .engine
        .clean_speculations(clock::monotonic, |cpu, visit| {
            crosscall::on_cpu(cpu as u32, visit).is_ok()
        });
}

/// Cleans a consumer's dynamic variables and speculations, every `cleanrate` ns while it traces.
pub struct Cleaning {
    consumer: Arc<Consumer>,
    visits: Arc<Visits>,
    rate: u64,
}

/// A running [`Cleaning`]. Dropping it ends it.
pub type Cleaner = Pin<KBox<Periodic<Cleaning>>>;

impl Task for Cleaning {
    fn run(&mut self) -> u64 {
        self.consumer.engine.clean(rculist::synchronize);
        clean_speculations(&self.consumer, &self.visits);
        self.rate
    }
}

impl Cleaning {
    /// Starts for a consumer that begins to trace.
    pub fn start(consumer: &Arc<Consumer>, visits: &Arc<Visits>) -> Result<Cleaner> {
        let rate = match consumer.engine.option(Opt::Cleanrate) {
            UNSET => CLEANRATE_DEFAULT,
            rate => rate.clamp(CLEANRATE_MIN, CLEANRATE_MAX),
        };
        let cleaning = Self {
            consumer: consumer.clone(),
            visits: visits.clone(),
            rate,
        };
        KBox::pin_init(Periodic::start(rate, cleaning), GFP_KERNEL)
    }
}
