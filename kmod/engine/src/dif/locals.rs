// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Thread-locals that are numbers, for those who read and assign them without a program.
//!
//! Neither can fault: what was never assigned is 0, and what there is no room for is dropped, and counted. A clause is about one
//! of them as a rule, `/self->t/ { @ = sum(timestamp - self->t); self->t = 0; }`, so where the last one was found is remembered
//! until it is assigned. Nobody else moves it meanwhile: its key names the thread that runs.

use super::env::Vm;
use super::program::Dyn;
use crate::machine::Machine;
use crate::var::dynamic::{Assigned, Dynamics, Place, NAMES};

/// Such a thread-local: what its key begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Local(u64);

impl Local {
    /// The thread-local that `var` is, if it is a number.
    pub fn of(var: Dyn) -> Option<Self> {
        (var.thread && !var.array && var.by_ref.is_none()).then(|| Self(var.name()))
    }

    /// Which of the CPU's [`Recent`](crate::var::dynamic::Recent) is about its name.
    #[inline(always)]
    fn slot(self) -> usize {
        self.0 as usize % NAMES
    }
}

/// The running thread's variables, in one firing.
pub struct Locals<'a> {
    cpu: usize,
    /// What the thread's keys end with.
    thread: u64,
    /// Nothing, and then every variable is 0, where the clause has none.
    dynamics: Option<&'a Dynamics>,
    vm: &'a mut Vm,
    /// The last one that was looked for, and where it is.
    last: Option<(Local, Place)>,
}

impl<'a> Locals<'a> {
    /// Those of `m`'s thread, on CPU `cpu`.
    #[inline(always)]
    pub fn new<M: Machine>(
        m: &M,
        cpu: usize,
        dynamics: Option<&'a Dynamics>,
        vm: &'a mut Vm,
    ) -> Self {
        Self {
            cpu,
            thread: dynamics.map_or(0, |_| m.thread_key()),
            dynamics,
            vm,
            last: None,
        }
    }

    /// Where `local` is.
    #[inline(always)]
    fn place(&mut self, dynamics: &Dynamics, local: Local) -> Place {
        match self.last {
            Some((last, place)) if last == local => place,
            _ => {
                let key = [local.0, self.thread];
                let place = match self.vm.recent.get_mut(local.slot()) {
                    Some(recent) => dynamics.place(&key, recent),
                    None => Place::Nowhere,
                };
                self.last = Some((local, place));
                place
            }
        }
    }

    /// Its value.
    #[inline(always)]
    pub fn load(&mut self, local: Local) -> u64 {
        let Some(dynamics) = self.dynamics else {
            return 0;
        };
        match self.place(dynamics, local) {
            Place::Chunk(chunk) => dynamics.word(chunk),
            Place::Aside(_) | Place::Nowhere => 0,
        }
    }

    /// Gives it a value.
    #[inline(always)]
    pub fn store(&mut self, local: Local, value: u64) {
        if value == 0 {
            self.delete(local);
            return;
        }
        let Some(dynamics) = self.dynamics else {
            return;
        };
        let place = self.place(dynamics, local);
        self.last = None;
        let key = [local.0, self.thread];
        let Vm { recent, free, .. } = &mut *self.vm;
        if let Some(recent) = recent.get_mut(local.slot()) {
            match dynamics.assign(place, self.cpu, free, &key, recent, value) {
                Assigned::Kept(chunk) => dynamics.set_word(chunk, value),
                Assigned::Made(_) => {}
                Assigned::Dropped => self.dropped(dynamics),
            }
        }
    }

    /// There was no chunk, which was looked for on all CPUs.
    #[cold]
    fn dropped(&mut self, dynamics: &Dynamics) {
        let units = dynamics.units_of_drop() as u64;
        self.vm.toil = self.vm.toil.saturating_add(units);
    }

    /// Makes it 0, which is to delete it.
    #[inline(always)]
    pub fn delete(&mut self, local: Local) {
        let Some(dynamics) = self.dynamics else {
            return;
        };
        let place = self.place(dynamics, local);
        self.last = None;
        if let Some(recent) = self.vm.recent.get_mut(local.slot()) {
            dynamics.delete(place, self.cpu, recent);
        }
    }
}
