// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Memory that a program can read by address.

use super::env::{until_nul, Core};
use crate::error::Trap;
use crate::machine::Machine;
use crate::mem::shared::Shared;
use crate::var::addr::{self, Region};
use dtrace_uapi::fault::Fault;

/// The readable memory: the engine's and, by way of the machine, the kernel's.
pub struct View<'a, M> {
    pub(super) m: &'a M,
    pub(super) core: &'a Core,
    pub(super) scratch: &'a [u8],
    pub(super) locals: &'a [u8],
}

/// A part of the engine's memory, from an address to the end of its region.
enum Own<'a> {
    Plain(&'a [u8]),
    Shared(&'a Shared, usize),
}

impl<'a, M: Machine> View<'a, M> {
    fn own(&self, at: u64) -> Option<Own<'a>> {
        let (region, offset) = addr::split(at)?;
        let plain = |bytes: &'a [u8]| bytes.get(offset..).map(Own::Plain);
        match region {
            Region::Scratch => plain(self.scratch),
            Region::Locals => plain(self.locals),
            Region::Strings => plain(&self.core.strings),
            Region::Globals => Some(Own::Shared(&self.core.globals, offset)),
            Region::Dynamics => self
                .core
                .dynamics
                .as_ref()
                .map(|d| Own::Shared(d.values(), offset)),
        }
    }

    /// Copies `out.len()` bytes from `at`. The engine's own memory is always readable, the kernel's
    /// only with the right to it.
    pub fn read(&self, at: u64, out: &mut [u8]) -> Result<(), Trap> {
        if addr::is_own(at) {
            let good = self.read_own(at, out);
            self.m.settle();
            return match good {
                true => Ok(()),
                false => Err(Trap::bad_addr(at)),
            };
        }
        if !self.core.kernel_memory {
            return Err(Trap::new(Fault::Kpriv, at));
        }
        self.m.settle();
        Ok(self.m.load(at, out)?)
    }

    #[inline(always)]
    fn read_own(&self, at: u64, out: &mut [u8]) -> bool {
        match self.own(at) {
            Some(Own::Plain(bytes)) => match bytes.get(..out.len()) {
                Some(from) => {
                    out.copy_from_slice(from);
                    true
                }
                None => false,
            },
            Some(Own::Shared(shared, offset)) => shared.read(offset, out),
            None => false,
        }
    }

    /// Copies a string from `at`, as much as fits. Returns its length without NUL.
    pub fn read_str(&self, at: u64, out: &mut [u8]) -> Result<usize, Trap> {
        if addr::is_own(at) {
            let len = self.read_own_str(at, out);
            self.m.settle();
            return len.ok_or(Trap::bad_addr(at));
        }
        if !self.core.kernel_memory {
            return Err(Trap::new(Fault::Kpriv, at));
        }
        self.m.settle();
        Ok(self.m.load_str(at, out)?.min(out.len()))
    }

    fn read_own_str(&self, at: u64, out: &mut [u8]) -> Option<usize> {
        let own = self.own(at)?;
        self.m.settle();
        match own {
            Own::Plain(bytes) => {
                let bytes = bytes.get(..out.len()).unwrap_or(bytes);
                let len = until_nul(bytes);
                if let (Some(to), Some(from)) = (out.get_mut(..len), bytes.get(..len)) {
                    to.copy_from_slice(from);
                }
                Some(len)
            }
            Own::Shared(shared, offset) if offset <= shared.size() => {
                Some(shared.read_str(offset, out))
            }
            Own::Shared(..) => None,
        }
    }
}
