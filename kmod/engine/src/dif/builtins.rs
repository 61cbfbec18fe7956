// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Built-in variables: the state that the machine knows, as numbers, as strings in scratch memory,
//! or written directly to where it is recorded.

use super::env::{until_nul, At, Env};
use super::program::Quick;
use crate::budget::{FRAME, USER_FRAME};
use crate::error::Trap;
use crate::machine::{BadAddr, Machine};
use crate::mem::alloc::Bytes;
use crate::var::addr::{self, Region};
use dtrace_uapi::fault::Fault;
use dtrace_uapi::var::Var;

/// Number of frames that are walked to find a caller.
const CALLER: u32 = 2;

/// Reads a built-in variable that cannot fault, except an argument in memory that cannot be loaded.
#[inline(always)]
pub fn quick<M: Machine>(m: &M, at: At, var: Quick) -> Result<u64, BadAddr> {
    Ok(match var {
        Quick::Arg(n) => return m.arg(n),
        Quick::Pid => u64::from(m.pid()),
        Quick::Timestamp => m.timestamp(),
        Quick::Tid => u64::from(m.tid()),
        Quick::Cpu => at.cpu as u64,
        Quick::Id => u64::from(at.probe),
        Quick::Epid => u64::from(at.epid),
        other => less_quick(m, other),
    })
}

#[inline(never)]
fn less_quick<M: Machine>(m: &M, var: Quick) -> u64 {
    match var {
        Quick::Ppid => u64::from(m.ppid()),
        Quick::Uid => u64::from(m.uid()),
        Quick::Gid => u64::from(m.gid()),
        Quick::Errno => m.errno() as u64,
        Quick::Vtimestamp => m.vtimestamp(),
        Quick::Walltimestamp => m.walltimestamp(),
        Quick::Ipl => u64::from(m.ipl()),
        // `quick` reads the others.
        _ => 0,
    }
}

impl<M: Machine> Env<'_, M> {
    /// Reads a quick built-in variable.
    #[inline(always)]
    pub fn quick(&self, var: Quick) -> Result<u64, Trap> {
        Ok(quick(self.m, self.at, var)?)
    }

    /// Reads a built-in variable. A string is put into scratch memory, and its address is returned.
    #[inline]
    pub fn builtin(&mut self, var: Var) -> Result<u64, Trap> {
        match Quick::new(var) {
            Some(quick) => self.quick(quick),
            None => self.slow_builtin(var),
        }
    }

    fn slow_builtin(&mut self, var: Var) -> Result<u64, Trap> {
        let m = self.m;
        Ok(match var {
            Var::Curthread => {
                self.check_kernel()?;
                m.curthread()
            }
            Var::Caller => {
                self.check_kernel()?;
                self.walk(CALLER, FRAME, m.caller())?
            }
            Var::Stackdepth => {
                self.check_kernel()?;
                let depth = m.stackdepth();
                self.walk(depth, FRAME, u64::from(depth))?
            }
            Var::Ucaller => {
                self.check_user()?;
                self.walk(CALLER, USER_FRAME, m.ucaller(self.core.ustacks))?
            }
            Var::Ustackdepth => {
                self.check_user()?;
                let depth = m.ustackdepth(self.core.ustacks);
                self.walk(depth, USER_FRAME, u64::from(depth))?
            }
            Var::Execname
            | Var::Zonename
            | Var::Probeprov
            | Var::Probemod
            | Var::Probefunc
            | Var::Probename => self.builtin_in_scratch(var)?,
            Var::Execargs => self.execargs()?,
            // Arrays are not scalars, and quick variables do not get here.
            _ => return Err(Trap::new(Fault::IllOp, var as u64)),
        })
    }

    /// Takes the cost of `frames` frames, which were walked for `value`, and of one more from the
    /// budget. Returns `value`.
    fn walk(&mut self, frames: u32, each: usize, value: u64) -> Result<u64, Trap> {
        let units = (frames as usize).saturating_add(1).saturating_mul(each);
        self.pay(units)?;
        Ok(value)
    }

    /// Calls `read` with the text of a built-in string, without NUL.
    #[inline]
    pub fn with_builtin_str<R>(&self, var: Var, read: impl FnOnce(&[u8]) -> R) -> R {
        match var {
            Var::Execname => {
                let name = self.m.execname();
                let len = until_nul(&name);
                read(name.get(..len).unwrap_or(&[]))
            }
            Var::Probeprov => read(self.m.probe().provider),
            Var::Probemod => read(self.m.probe().module),
            Var::Probefunc => read(self.m.probe().func),
            Var::Probename => read(self.m.probe().name),
            // `zonename`: there is one zone, the whole system.
            _ => read(b"global"),
        }
    }

    fn builtin_in_scratch(&mut self, var: Var) -> Result<u64, Trap> {
        let len = self
            .with_builtin_str(var, <[u8]>::len)
            .min(self.core.strsize.saturating_sub(1));
        let at = self.vm.alloc((len as u64).saturating_add(1))?;
        let end = at.saturating_add(len);
        let mut scratch = core::mem::replace(&mut self.vm.scratch, Bytes::empty());
        self.with_builtin_str(var, |text| {
            if let (Some(to), Some(from)) = (scratch.get_mut(at..end), text.get(..len)) {
                to.copy_from_slice(from);
            }
        });
        if let Some(nul) = scratch.get_mut(end) {
            *nul = 0;
        }
        self.vm.scratch = scratch;
        Ok(addr::make(Region::Scratch, at))
    }

    /// Returns element `n` of a built-in array.
    pub fn array(&mut self, var: Var, n: u64) -> Result<u64, Trap> {
        let value = self.array_element(var, n);
        self.m.settle();
        value
    }

    #[inline(always)]
    fn array_element(&mut self, var: Var, n: u64) -> Result<u64, Trap> {
        match var {
            Var::Args => Ok(self.m.arg(n)?),
            Var::Regs => {
                self.check_kernel()?;
                self.m.reg(n).ok_or(Trap::new(Fault::IllOp, n))
            }
            Var::Uregs => {
                self.check_user()?;
                self.m.ureg(n).ok_or(Trap::new(Fault::IllOp, n))
            }
            Var::Walk => self.walk_element(n),
            _ => Err(Trap::new(Fault::IllOp, n)),
        }
    }
}
