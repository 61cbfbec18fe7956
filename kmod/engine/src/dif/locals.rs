// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Thread-local variables that are numbers, for code that reads and assigns them without a program.
//!
//! Neither can fault: a variable that was never assigned is 0, and one for which there is no room
//! is dropped, and counted. A clause usually works on one of them, `/self->t/ { @ = sum(timestamp -
//! self->t); self->t = 0; }`, so the place of the last one is remembered until it is assigned. No
//! other thread of execution moves it meanwhile, because its key names the thread that runs.

use super::env::Vm;
use super::program::Dyn;
use crate::machine::Machine;
use crate::var::dynamic::{Assigned, Dynamics, Place, NAMES};

/// Such a thread-local variable: the first word of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Local(u64);

impl Local {
    /// Returns the thread-local variable that `var` is, if it is one and a number.
    pub fn of(var: Dyn) -> Option<Self> {
        (var.thread && !var.array && var.by_ref.is_none()).then(|| Self(var.name()))
    }

    /// Returns which of the CPU's [`Recent`](crate::var::dynamic::Recent) is for its name.
    #[inline(always)]
    fn slot(self) -> usize {
        self.0 as usize % NAMES
    }
}

/// The running thread's variables, in one firing.
pub struct Locals<'a> {
    cpu: usize,
    /// The second word of the thread's keys.
    thread: u64,
    /// `None` if the clause has no dynamic variables; then every variable is 0.
    dynamics: Option<&'a Dynamics>,
    vm: &'a mut Vm,
    /// The variable that was looked up last, and its place.
    last: Option<(Local, Place)>,
}

impl<'a> Locals<'a> {
    /// Gives access to the variables of `m`'s thread, on CPU `cpu`.
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

    /// Returns the place of `local`.
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

    /// Returns its value.
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

    /// Assigns a value; 0 deletes the variable.
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

    /// Counts the cost of a search for a chunk that found none on any CPU.
    #[cold]
    fn dropped(&mut self, dynamics: &Dynamics) {
        let units = dynamics.units_of_drop() as u64;
        self.vm.toil = self.vm.toil.saturating_add(units);
    }

    /// Deletes the variable, which makes it 0.
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
