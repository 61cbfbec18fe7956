// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Running a tracing, and reading what it recorded.
//!
//! `BEGIN` is fired while the consumer is warming up, when the engine lets nothing else in; so it is before everything, on one
//! CPU, whose number `GO` gives. `END` is fired when no other probe records any more: `STOP` drains first, and waits until
//! every CPU has left the firing that it was in.
//!
//! A buffer is switched on its own CPU, in the place of probe context, so that no firing is in the middle of it.

use super::calls::Answer;
use super::device::Open;
use super::ecb;
use super::fire::{Args, FireArgs};
use super::machine::KernelMachine;
use super::probe::ProbeRef;
use super::text::{refuse, Refusal};
use super::user;
use crate::sys::percpu::CpuGuard;
use crate::sys::{clock, crosscall, rculist};
use dtrace_engine::consumer::Which;
use dtrace_engine::Activity;
use dtrace_uapi::ioctl::{BufDesc, Status};
use dtrace_uapi::option::{Opt, UNSET};
use kernel::prelude::*;

impl Open {
    /// Starts the tracing.
    pub fn go(&self, arg: u64) -> Answer {
        self.consumer.tracer.engine.go()?;
        let cpu = self.fire_end(self.consumer.framework.ends.begin)?;
        self.consumer.tracer.engine.activate();
        user::put(arg, &cpu)?;
        Ok(0)
    }

    /// Ends the tracing.
    pub fn stop(&self, arg: u64) -> Answer {
        let engine = &self.consumer.tracer.engine;
        if !matches!(engine.activity(), Activity::Active | Activity::Draining) {
            return Err(Refusal::new(EINVAL, "the tracing is not running"));
        }
        engine.drain();
        rculist::synchronize();
        let cpu = self.fire_end(self.consumer.framework.ends.end)?;
        engine.stop();
        rculist::synchronize();
        user::put(arg, &cpu)?;
        Ok(0)
    }

    /// What happened so far.
    pub fn status(&self, arg: u64) -> Answer {
        let status: Status = self.consumer.tracer.engine.status()?;
        user::put(arg, &status)?;
        Ok(0)
    }

    /// Switches a buffer and copies out what it held.
    pub fn bufsnap(&self, arg: u64, which: Which) -> Answer {
        let mut desc: BufDesc = user::get(arg)?;
        let engine = &self.consumer.tracer.engine;
        let size = match which {
            Which::Principal => Opt::Bufsize,
            Which::Aggregation => Opt::Aggsize,
        };
        let size = engine.option(size);
        if size != UNSET && desc.size < size {
            return Err(Refusal::new(EINVAL, "less room than the buffer is large"));
        }
        let mut switched = Ok(());
        crosscall::on_cpu(desc.cpu, &mut |cpu| {
            switched = engine.switch(cpu, which, clock::monotonic());
        })?;
        switched?;
        engine.snapshot(desc.cpu as usize, which, |snapshot| {
            if desc.size < snapshot.data.len() as u64 {
                return Err(refuse(EINVAL));
            }
            user::put(desc.data, snapshot.data)?;
            desc.size = snapshot.data.len() as u64;
            desc.errors = snapshot.errors;
            desc.drops = snapshot.drops;
            desc.oldest = snapshot.oldest;
            desc.timestamp = snapshot.timestamp;
            Ok(())
        })??;
        user::put(arg, &desc)?;
        Ok(0)
    }

    /// Fires `BEGIN` or `END` for this consumer alone, on this CPU, whose number it gives.
    fn fire_end(&self, probe: ProbeRef) -> Result<u32> {
        let guard = CpuGuard::enter().ok_or(EBUSY)?;
        let args = FireArgs::new(Args::Words(&[]));
        ecb::fire_for(
            &guard,
            &self.consumer.tracer,
            &KernelMachine::new(&guard, probe, &args),
        );
        Ok(guard.cpu().index() as u32)
    }
}
