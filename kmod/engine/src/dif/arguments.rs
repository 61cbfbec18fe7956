// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The arguments of processes, as one string with blanks between them.
//!
//! Those of the current process are loaded from its own memory; memory that cannot be loaded is a
//! fault. Those of another process are loaded while that process may execute another program or
//! end. So they are used only if the process has the same address space, with its arguments at the
//! same place, afterwards (INV-18). If they are not available, the name of the process stands for
//! them.

use super::env::{until_nul, Env};
use crate::error::Trap;
use crate::machine::{BadAddr, Machine};
use crate::var::addr::{self, Region};

/// Minimum size of a piece of another process's memory that is looked up at a time, in bytes: a
/// page of x86.
const PAGE: usize = 4096;
/// Units of looking up a page before and after it is read: a dozen loads.
const PAGE_UNITS: usize = 1 << 8;

impl<M: Machine> Env<'_, M> {
    /// Returns the arguments of the current process. A kernel thread has none.
    pub fn execargs(&mut self) -> Result<u64, Trap> {
        self.check_user()?;
        let (begin, end) = self.m.user_args().unwrap_or_default();
        let len = self.arguments_len(begin, end);
        Ok(self.join(len, |m, text| m.user_load(begin, text))??)
    }

    /// Returns the arguments of the process of the thread whose `task_struct` is at `task`, or its
    /// name.
    pub fn taskargs(&mut self, task: u64) -> Result<u64, Trap> {
        self.check_kernel_memory()?;
        let before = self.vm.used;
        if let Some(text) = self.remote_arguments(task)? {
            return Ok(text);
        }
        self.vm.used = before;
        let name = self.m.task_name(task)?;
        let len = until_nul(&name).min(self.core.strsize.saturating_sub(1));
        Ok(self.join(len, |_, text| {
            text.iter_mut().zip(name).for_each(|(to, from)| *to = from);
            Ok(())
        })??)
    }

    /// Returns the arguments of another process, if they are available.
    fn remote_arguments(&mut self, task: u64) -> Result<Option<u64>, Trap> {
        let Some(args) = self.m.task_args(task)? else {
            return Ok(None);
        };
        let len = self.arguments_len(args.begin, args.end);
        if len == 0 {
            return Ok(None);
        }
        let pages = len.div_ceil(PAGE).saturating_add(1);
        self.pay(pages.saturating_mul(PAGE_UNITS))?;
        let text = self.join(len, |m, text| m.remote_load(args.mm, args.begin, text))?;
        let still = self.m.task_args(task)? == Some(args);
        Ok(text.ok().filter(|_| still))
    }

    /// Returns the length of the arguments from `begin` to `end` without the last one's NUL,
    /// limited to what fits into a string.
    fn arguments_len(&self, begin: u64, end: u64) -> usize {
        let len = usize::try_from(end.saturating_sub(begin)).unwrap_or(usize::MAX);
        len.saturating_sub(1)
            .min(self.core.strsize.saturating_sub(1))
    }

    /// Has `load` put `len` bytes into scratch memory, and replaces NULs by blanks. Returns the
    /// address. The inner error is that of `load`.
    fn join(
        &mut self,
        len: usize,
        load: impl FnOnce(&M, &mut [u8]) -> Result<(), BadAddr>,
    ) -> Result<Result<u64, BadAddr>, Trap> {
        let at = self.vm.alloc((len as u64).saturating_add(1))?;
        self.pay(len)?;
        let text = self.vm.scratch.get_mut(at..at.saturating_add(len));
        let text = text.unwrap_or(&mut []);
        // Without arguments there may be no process memory to read.
        if !text.is_empty() {
            if let Err(bad) = load(self.m, text) {
                return Ok(Err(bad));
            }
        }
        for byte in text.iter_mut().filter(|byte| **byte == 0) {
            *byte = b' ';
        }
        if let Some(nul) = self.vm.scratch.get_mut(at.saturating_add(len)) {
            *nul = 0;
        }
        Ok(Ok(addr::make(Region::Scratch, at)))
    }
}
