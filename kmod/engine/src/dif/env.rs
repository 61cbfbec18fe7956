// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The environment of a DIF program in one firing: memory, variables, the tuple stack.
//!
//! Every effect of every instruction is a method of [`Env`], so the back ends differ only in how
//! they decode. Loads from the engine's own addresses are indexes into its memory; all others go to
//! the [`Machine`]. Stores reach scratch memory and the values of variables, and nothing else.

use super::float::Float;
use super::program::Space;
use super::tokens::Tokens;
use super::view::View;
use crate::budget::{Budget, Spent, CALLED, FLOAT, PORTION};
use crate::ecb::rehearsal::Missing;
use crate::error::Trap;
use crate::interp::walk::Walk;
use crate::interp::Interp;
use crate::machine::{BadAddr, Machine, UserWalk};
use crate::mem::alloc::Bytes;
use crate::mem::shared::Shared;
use crate::mem::Vec;
use crate::spec::Speculations;
use crate::var::addr::{self, Region};
use crate::var::dynamic::{Dynamics, Recent, NAMES};
use core::cell::Cell;
use dtrace_uapi::dif::DIF_NTREGS;
use dtrace_uapi::fault::Fault;
use dtrace_uapi::types::{Epid, ProbeId};

/// State that all CPUs share while programs run.
#[derive(Debug)]
pub struct Core {
    /// The strings of all programs.
    pub strings: Vec<u8>,
    /// The block of globals.
    pub globals: Shared,
    /// Thread-locals and associative arrays.
    pub dynamics: Option<Dynamics>,
    /// Speculations, if a clause uses them.
    pub speculations: Option<Speculations>,
    /// Size of a string with its NUL, in bytes.
    pub strsize: usize,
    /// How user stacks are walked.
    pub ustacks: UserWalk,
    /// The kernel's state may be seen.
    pub kernel: bool,
    /// The kernel's memory may be read.
    pub kernel_memory: bool,
    /// All processes may be traced.
    pub all_users: bool,
    /// The memory of processes that may be traced may be read.
    pub user_memory: bool,
    /// Walkers and names, if user stacks are to have frames of interpreted code.
    pub interp: Option<Interp>,
}

/// An entry of the tuple stack.
#[derive(Clone, Copy, Debug, Default)]
pub struct Entry {
    /// The value, or the address of the data.
    pub value: u64,
    /// Size of the data by reference, in bytes.
    pub size: u64,
    /// What `value` is.
    pub kind: EntryKind,
}

/// The meaning of an entry's value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EntryKind {
    /// The value itself.
    #[default]
    Value,
    /// The address of data.
    Bytes,
    /// The address of a string.
    String,
}

/// The state of one CPU for running programs.
#[derive(Debug)]
pub struct Vm {
    /// Memory that lasts for one run of a clause. Programs reach only the part that is in use.
    pub scratch: Bytes,
    /// Number of bytes of it that are in use.
    pub used: usize,
    /// Number of bytes of it that a clause may [request explicitly](Self::ask).
    pub share: usize,
    /// Number of these bytes that are left.
    pub left: usize,
    /// The block of clause-locals.
    pub locals: Bytes,
    /// Temporary strings of subroutines, `strsize` bytes each.
    pub tmp: [Bytes; 2],
    /// The tuple stack.
    pub tuple: [Entry; DIF_NTREGS as usize],
    /// Number of its entries.
    pub ntuple: usize,
    /// The key of a dynamic variable.
    pub key: Vec<u64>,
    /// First of this CPU's free chunks of dynamic variables, as its number plus 1; 0 if there is
    /// none.
    pub free: u32,
    /// What is remembered of thread-local variables. Names beyond this number share places.
    pub recent: [Recent; NAMES],
    /// State of `rand()`.
    pub random: u64,
    /// What is left of the clause's budget.
    pub budget: Budget,
    /// Work, beyond its price, of a clause that has no budget, in units.
    pub toil: u64,
    /// Where `strtok()` goes on.
    pub tokens: Tokens,
    /// State of walkers, if user stacks are to have frames of interpreted code.
    pub walk: Option<Walk>,
}

impl Vm {
    /// Makes memory for programs of `core` whose keys have up to `key_words` words. Of `scratch`
    /// bytes they may request `share` explicitly.
    pub fn new(
        core: &Core,
        scratch: usize,
        share: usize,
        locals: usize,
        key_words: usize,
        seed: u64,
    ) -> Result<Self, crate::error::NoMem> {
        Ok(Self {
            scratch: Bytes::new(scratch)?,
            used: 0,
            share,
            left: share,
            locals: Bytes::new(locals)?,
            tmp: [Bytes::new(core.strsize)?, Bytes::new(core.strsize)?],
            tuple: [Entry::default(); DIF_NTREGS as usize],
            ntuple: 0,
            key: Vec::try_from_fn(key_words, |_| Ok::<_, crate::error::NoMem>(0))?,
            free: 0,
            recent: Default::default(),
            // Must not be 0, because the generator would stay at 0.
            random: seed | 1,
            budget: Budget::full(),
            toil: 0,
            tokens: Tokens::new(core.strsize)?,
            walk: core.interp.as_ref().map(Walk::new).transpose()?,
        })
    }

    /// Forgets what the last run of a clause left.
    #[inline(always)]
    pub fn reset(&mut self) {
        self.used = 0;
        self.left = self.share;
        self.ntuple = 0;
        self.budget = Budget::full();
    }

    /// Takes `size` bytes of scratch memory for a program that requests memory explicitly, as
    /// opposed to a string that needs some. Traps if there is no room.
    pub fn ask(&mut self, size: u64) -> Result<usize, Trap> {
        let left = usize::try_from(size)
            .ok()
            .and_then(|size| self.left.checked_sub(size))
            .ok_or(Trap::new(Fault::NoScratch, 0))?;
        let at = self.alloc(size)?;
        self.left = left;
        Ok(at)
    }

    /// Takes `size` bytes of scratch memory, aligned to 8; returns their offset. Traps if there is
    /// no room.
    pub fn alloc(&mut self, size: u64) -> Result<usize, Trap> {
        let at = self.used.next_multiple_of(8);
        let end = usize::try_from(size)
            .ok()
            .and_then(|size| at.checked_add(size))
            .filter(|end| *end <= self.scratch.len())
            .ok_or(Trap::new(Fault::NoScratch, 0))?;
        self.used = end;
        Ok(at)
    }
}

impl From<BadAddr> for Trap {
    fn from(bad: BadAddr) -> Self {
        Self::bad_addr(bad.0)
    }
}

/// Returns the length of the string at the beginning of `bytes`, without its NUL.
pub(super) fn until_nul(bytes: &[u8]) -> usize {
    bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len())
}

/// What the engine itself knows about a firing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// This CPU.
    pub cpu: usize,
    /// The enabled probe.
    pub epid: Epid,
    /// The probe.
    pub probe: ProbeId,
}

/// The environment of a program in one firing.
pub struct Env<'a, M> {
    /// The kernel.
    pub m: &'a M,
    /// State that all CPUs share.
    pub core: &'a Core,
    /// State of this CPU.
    pub vm: &'a mut Vm,
    /// The firing.
    pub at: At,
    /// In a rehearsal: nothing may have an effect beyond it, and missing user memory is noted here.
    pub rehearsal: Rehearsal<'a>,
}

/// Bytes that are loaded between two looks at the budget: the memory may be a device's, and slow.
const PIECE: usize = PORTION as usize;

/// Where a rehearsal notes missing memory; `None` outside of rehearsals.
pub type Rehearsal<'a> = Option<&'a Cell<Option<Missing>>>;

/// Loads user memory. A rehearsal notes memory that is missing.
pub fn user_load<M: Machine>(
    m: &M,
    rehearsal: Rehearsal<'_>,
    addr: u64,
    to: &mut [u8],
) -> Result<(), BadAddr> {
    let size = to.len();
    m.user_load(addr, to)
        .inspect_err(|_| note_missing(rehearsal, addr, size))
}

/// Loads a user string, and returns its length without NUL. A rehearsal notes memory that is
/// missing.
pub fn user_load_str<M: Machine>(
    m: &M,
    rehearsal: Rehearsal<'_>,
    addr: u64,
    to: &mut [u8],
) -> Result<usize, BadAddr> {
    let size = to.len();
    m.user_load_str(addr, to)
        .inspect_err(|_| note_missing(rehearsal, addr, size))
}

#[cold]
fn note_missing(rehearsal: Rehearsal<'_>, addr: u64, size: usize) {
    if let Some(missing) = rehearsal {
        missing.set(Some(Missing { addr, size }));
    }
}

/// As [`user_load`], and pays for it from `budget`, a piece at a time.
pub fn user_load_paid<M: Machine>(
    m: &M,
    rehearsal: Rehearsal<'_>,
    budget: &mut Budget,
    addr: u64,
    to: &mut [u8],
) -> Result<(), Trap> {
    let whole = to.len();
    if whole <= PIECE {
        budget.pay(m, whole)?;
        return Ok(user_load(m, rehearsal, addr, to)?);
    }
    in_pieces(m, budget, addr, to, |at, piece| {
        m.user_load(at, piece).map_err(|_| {
            note_missing(rehearsal, addr, whole);
            Trap::bad_addr(addr)
        })
    })
}

/// Has `load` fill `to` from `addr`, a piece at a time, and pays for it from `budget`.
fn in_pieces<M: Machine>(
    m: &M,
    budget: &mut Budget,
    addr: u64,
    to: &mut [u8],
    load: impl Fn(u64, &mut [u8]) -> Result<(), Trap>,
) -> Result<(), Trap> {
    let before = budget.begin(to.len())?;
    let loaded = to.chunks_mut(PIECE).enumerate().try_for_each(|(n, piece)| {
        budget.did(m, || piece.len())?;
        load(addr.wrapping_add(n.wrapping_mul(PIECE) as u64), piece)
    });
    budget.finish(before);
    loaded
}

impl<M: Machine> Env<'_, M> {
    /// Takes `units` from the clause's budget.
    #[inline(always)]
    pub fn pay(&mut self, units: usize) -> Result<(), Spent> {
        self.vm.budget.pay(self.m, units)
    }

    /// Returns the memory that programs can read.
    pub fn view(&self) -> View<'_, M> {
        View {
            m: self.m,
            core: self.core,
            scratch: self.vm.scratch.get(..self.vm.used).unwrap_or(&[]),
            locals: &self.vm.locals,
        }
    }

    /// Copies bytes from memory that the program can read, and pays for them, a piece at a time.
    pub fn read_paid(&mut self, from: u64, to: &mut [u8]) -> Result<(), Trap> {
        if to.len() <= PIECE {
            self.pay(to.len())?;
            return self.view().read(from, to);
        }
        let Vm {
            scratch,
            used,
            locals,
            budget,
            ..
        } = &mut *self.vm;
        let view = View {
            m: self.m,
            core: self.core,
            scratch: scratch.get(..*used).unwrap_or(&[]),
            locals,
        };
        in_pieces(self.m, budget, from, to, |at, piece| view.read(at, piece))
    }

    /// Copies the string at `at` to temporary buffer `slot`. Returns its length, at most `limit`
    /// and less than `strsize`.
    pub fn fetch(&mut self, at: u64, slot: usize, limit: usize) -> Result<usize, Trap> {
        self.fetch_most(at, slot, self.core.strsize.saturating_sub(1).min(limit))
    }

    /// Copies the part of the string at `at` that may be searched to temporary buffer `slot`.
    /// Returns its length, up to `strsize`: only a value needs room for its NUL.
    pub fn fetch_text(&mut self, at: u64, slot: usize) -> Result<usize, Trap> {
        self.fetch_most(at, slot, self.core.strsize)
    }

    fn fetch_most(&mut self, at: u64, slot: usize, most: usize) -> Result<usize, Trap> {
        let Vm {
            scratch,
            used,
            locals,
            tmp,
            budget,
            ..
        } = &mut *self.vm;
        let view = View {
            m: self.m,
            core: self.core,
            scratch: scratch.get(..*used).unwrap_or(&[]),
            locals,
        };
        let Some(out) = tmp.get_mut(slot) else {
            return Ok(0);
        };
        let room = out.len().min(most);
        let read = view.read_str(at, out.get_mut(..room).unwrap_or(&mut []));
        // A load that faults may have read as much as this.
        budget.pay(self.m, *read.as_ref().unwrap_or(&room))?;
        read
    }

    /// Returns what [`fetch`](Self::fetch) copied.
    pub fn fetched(&self, slot: usize, len: usize) -> &[u8] {
        self.vm
            .tmp
            .get(slot)
            .and_then(|b| b.get(..len))
            .unwrap_or(&[])
    }

    /// Loads `size` bytes from the engine's memory.
    fn load_own(&self, size: u8, at: u64) -> Result<u64, Trap> {
        let mut word = [0; 8];
        self.view()
            .read(at, word.get_mut(..usize::from(size)).unwrap_or(&mut []))?;
        Ok(widen(size, word))
    }

    fn load_user(&self, size: u8, at: u64) -> Result<u64, Trap> {
        self.check_user_memory()?;
        let mut word = [0u8; 8];
        let n = usize::from(size);
        let to = word.get_mut(..n).unwrap_or(&mut []);
        user_load(self.m, self.rehearsal, at, to)?;
        Ok(widen(size, word))
    }

    /// Loads `size` bytes at `at`.
    #[inline]
    pub fn load(&self, space: Space, size: u8, signed: bool, at: u64) -> Result<u64, Trap> {
        if M::STRICT_ALIGN && at & u64::from(size).wrapping_sub(1) != 0 {
            return Err(Trap::new(Fault::BadAlign, at));
        }
        let value = match space {
            Space::User => self.load_user(size, at)?,
            _ if addr::is_own(at) => self.load_own(size, at)?,
            Space::Restricted => return Err(Trap::new(Fault::Kpriv, at)),
            Space::Kernel => match size {
                1 => u64::from(self.m.load_u8(at)?),
                2 => u64::from(self.m.load_u16(at)?),
                4 => u64::from(self.m.load_u32(at)?),
                _ => self.m.load_u64(at)?,
            },
        };
        Ok(match (signed, size) {
            (true, 1) => value as i8 as u64,
            (true, 2) => value as i16 as u64,
            (true, 4) => value as i32 as u64,
            _ => value,
        })
    }

    /// Computes an operation on floating-point numbers, and pays for it.
    pub fn float(&mut self, float: Float, a: u64, b: u64) -> Result<u64, Trap> {
        self.pay(FLOAT)?;
        Ok(float.compute(a, b))
    }

    /// Writes `from` to `at`, which must be scratch memory or a variable's value.
    pub fn write(&mut self, at: u64, from: &[u8]) -> Result<(), Trap> {
        let good = match addr::split(at).filter(|_| addr::is_own(at)) {
            Some((Region::Scratch, offset)) => {
                let used = self.vm.used;
                let allocated = self.vm.scratch.get_mut(..used).unwrap_or(&mut []);
                write_plain(self.m, allocated, offset, from)
            }
            Some((Region::Locals, offset)) => {
                write_plain(self.m, &mut self.vm.locals, offset, from)
            }
            // A rehearsal checks the address, and writes nothing.
            Some((Region::Globals | Region::Dynamics, _)) if self.rehearsal.is_some() => {
                self.writable(at, 0)
            }
            Some((Region::Globals, offset)) => {
                write_shared(self.m, &self.core.globals, offset, from)
            }
            Some((Region::Dynamics, offset)) => self
                .core
                .dynamics
                .as_ref()
                .is_some_and(|d| write_shared(self.m, d.values(), offset, from)),
            _ => false,
        };
        match good {
            true => Ok(()),
            false => Err(Trap::bad_addr(at)),
        }
    }

    /// Whether [`write`](Self::write) may write `size` bytes, up to 8, to `at`: memory that can be
    /// read there, except the strings.
    #[cold]
    fn writable(&self, at: u64, size: usize) -> bool {
        let mut word = [0; 8];
        let there = word.get_mut(..size).unwrap_or(&mut []);
        match addr::split(at).filter(|_| addr::is_own(at)) {
            Some((Region::Strings, _)) | None => false,
            Some(_) => self.view().read(at, there).is_ok(),
        }
    }

    /// Stores the low `size` bytes of `value` at `at`.
    pub fn store(&mut self, size: u8, at: u64, value: u64) -> Result<(), Trap> {
        if at & u64::from(size).wrapping_sub(1) != 0 {
            // An address that cannot be written to at all is reported as bad, and not as badly
            // aligned.
            return Err(match self.writable(at, usize::from(size)) {
                true => Trap::new(Fault::BadAlign, at),
                false => Trap::bad_addr(at),
            });
        }
        match size {
            1 => self.write(at, &(value as u8).to_ne_bytes()),
            2 => self.write(at, &(value as u16).to_ne_bytes()),
            4 => self.write(at, &(value as u32).to_ne_bytes()),
            _ => self.write(at, &value.to_ne_bytes()),
        }
    }

    /// Copies `size` bytes, or a string of up to `size` with its NUL, from `from` to `to`.
    pub fn copy(&mut self, from: u64, to: u64, size: usize, string: bool) -> Result<(), Trap> {
        // Copies in pieces through a temporary buffer, because both ends may lie in the same
        // memory. If the destination is the higher address, begins at the end: otherwise the pieces
        // would overwrite what is still to be read. A string is copied from its beginning, because
        // only reading tells where it ends.
        let backwards = !string && to > from;
        let mut done = 0;
        while done < size {
            let Vm {
                scratch,
                used,
                locals,
                tmp: [tmp, _],
                budget,
                ..
            } = &mut *self.vm;
            let view = View {
                m: self.m,
                core: self.core,
                scratch: scratch.get(..*used).unwrap_or(&[]),
                locals,
            };
            let n = tmp.len().min(size.saturating_sub(done));
            let skip = match backwards {
                true => size.saturating_sub(done).saturating_sub(n),
                false => done,
            } as u64;
            let at = from.wrapping_add(skip);
            let piece = tmp.get_mut(..n).unwrap_or(&mut []);
            if n == 0 {
                break;
            }
            let read = match string {
                true => view.read_str(at, piece),
                false => view.read(at, piece).map(|()| n),
            };
            if read.is_err() {
                // A load that faults may have read as much as this.
                budget.pay(self.m, n)?;
            }
            let len = read?;
            let (len, last) = match piece.get_mut(len) {
                // The NUL ends the copy. If the string fills the destination, its last byte becomes
                // a NUL (below).
                Some(end) => {
                    *end = 0;
                    (len.saturating_add(1), true)
                }
                // The piece is full, as it always is unless a string is copied.
                None => (len, false),
            };
            if string && done.saturating_add(len) == size {
                if let Some(end) = piece.last_mut() {
                    *end = 0;
                }
            }
            budget.pay(self.m, len.max(CALLED))?;
            let tmp = core::mem::replace(&mut self.vm.tmp[0], Bytes::empty());
            let wrote = self.write(to.wrapping_add(skip), tmp.get(..len).unwrap_or(&[]));
            self.vm.tmp[0] = tmp;
            wrote?;
            if last {
                break;
            }
            done = done.saturating_add(n);
        }
        Ok(())
    }

    /// Traps if the consumer may not trace the current process.
    #[inline]
    pub fn check_user(&self) -> Result<(), Trap> {
        if !(self.core.all_users || self.m.owned()) {
            return Err(Trap::new(Fault::Upriv, 0));
        }
        self.m.settle();
        Ok(())
    }

    /// Traps if the consumer may not load the memory of the current process, which needs a right of
    /// its own.
    #[inline]
    pub fn check_user_memory(&self) -> Result<(), Trap> {
        match self.core.user_memory {
            true => self.check_user(),
            false => Err(Trap::new(Fault::Upriv, 0)),
        }
    }

    pub(crate) fn check_kernel_memory(&self) -> Result<(), Trap> {
        self.refuse_unless(self.core.kernel_memory)
    }

    pub(crate) fn check_kernel(&self) -> Result<(), Trap> {
        self.refuse_unless(self.core.kernel)
    }

    fn refuse_unless(&self, may: bool) -> Result<(), Trap> {
        if !may {
            return Err(Trap::new(Fault::Kpriv, 0));
        }
        self.m.settle();
        Ok(())
    }

    /// Compares two strings. The result is less than, equal to or greater than 0.
    pub fn compare(&mut self, a: u64, b: u64) -> Result<i64, Trap> {
        // NULL is not a string, and less than any string.
        if a == 0 || b == 0 {
            return Ok((a != 0).cmp(&(b != 0)) as i64);
        }
        let na = self.fetch(a, 0, usize::MAX)?;
        let nb = self.fetch(b, 1, usize::MAX)?;
        let order = self.fetched(0, na).cmp(self.fetched(1, nb));
        Ok(order as i64)
    }
}

fn write_shared<M: Machine>(m: &M, mem: &Shared, offset: usize, from: &[u8]) -> bool {
    let fits = mem.lies_within(offset, from.len());
    m.settle();
    fits && mem.write(offset, from)
}

fn write_plain<M: Machine>(m: &M, mem: &mut [u8], offset: usize, from: &[u8]) -> bool {
    match offset
        .checked_add(from.len())
        .and_then(|end| mem.get_mut(offset..end))
    {
        Some(to) => {
            m.settle();
            to.copy_from_slice(from);
            true
        }
        None => false,
    }
}

/// Returns the number in the first `size` bytes of `word`.
fn widen(size: u8, word: [u8; 8]) -> u64 {
    match size {
        1 => u64::from(word[0]),
        2 => u64::from(u16::from_ne_bytes([word[0], word[1]])),
        4 => u64::from(u32::from_ne_bytes([word[0], word[1], word[2], word[3]])),
        _ => u64::from_ne_bytes(word),
    }
}
