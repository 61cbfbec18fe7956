// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The cleaner of speculations: does what [`spec`](crate::spec) leaves to be done on several CPUs.

use super::Consumer;
use crate::ecb::speculate;
use crate::mem::sync::Cpu;

impl Consumer {
    /// Ends the speculations that were committed or discarded while several CPUs may have recorded
    /// into them. To be called every `cleanrate`, and once after [`stop`](Self::stop). Does nothing
    /// while another cleaning is under way. `on_cpu` runs its argument on that CPU, or on behalf of
    /// an offline one, and returns whether it did. If it could not, a later call ends the
    /// speculations. `now` returns the time on the CPU that it is called on.
    pub fn clean_speculations(
        &self,
        now: impl Fn() -> u64 + Sync,
        mut on_cpu: impl FnMut(usize, &mut (dyn FnMut(&Cpu) + Send)) -> bool,
    ) {
        let (Some(run), Some(_cleaning)) = (self.run.get(), self.cleaning.take()) else {
            return;
        };
        let Some(all) = &run.core.speculations else {
            return;
        };
        if !all.begin_cleaning() {
            return;
        }
        let last = self.is_over();
        let mut everywhere = true;
        for cpu in (0..self.config.ncpus).filter(|cpu| run.cpus.has(*cpu)) {
            let mut from = Some(1);
            while let Some(id) = from {
                let mut done = false;
                let ran = on_cpu(cpu, &mut |cpu| {
                    if let Some(mut state) = run.cpus.enter(cpu) {
                        let size_at = |record: &[u8]| self.size_at(record);
                        from = speculate::clean(all, &mut state.out, now(), last, id, size_at);
                        self.note_full(&mut state.out);
                        done = true;
                    }
                });
                if !(ran && done) {
                    everywhere = false;
                    break;
                }
            }
        }
        if everywhere {
            all.end_cleaning();
        }
    }
}
