// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! All that firing needs: what CPUs share and what each has, allocated in one go, and once more for each CPU that comes later.
//!
//! A machine may promise many more CPUs than it has, so that those have nothing which are not there. What a CPU is given is therefore
//! kept as a [`Plan`]. A CPU that came without being given anything, for want of memory, counts what it should have recorded.
// Sizes of options, which are bounded when they are set, and of records, which `Layout` bounds.
#![allow(clippy::arithmetic_side_effects)]

use super::options::{buffer_max, speculation_max, Options};
use super::{Config, Control};
use crate::buf::aggregate::Aggregations;
use crate::buf::principal::{Policy, Principal, Reserve};
use crate::buf::Aside;
use crate::dif::env::{Core, Vm};
use crate::ecb::fire::Outputs;
use crate::ecb::stacks::{Counted, COUNTED};
use crate::ecb::{Act, Prepared};
use crate::error::{Errno, NoMem, Reason};
use crate::interp::Interp;
use crate::machine::UserWalk;
use crate::mem::alloc::Bytes;
use crate::mem::shared::Shared;
use crate::mem::sync::{Once, PerCpu, Slot, TryLock};
use crate::mem::vec::Room;
use crate::mem::{Boxed, Vec};
use crate::spec::buffer::Pieces;
use crate::spec::Speculations;
use crate::var::dynamic::Dynamics;
use core::sync::atomic::{AtomicU64, Ordering};
use dtrace_uapi::limits::buffer_room;
use dtrace_uapi::option::{Opt, BUFRESIZE_AUTO, UNSET};

/// Scratch memory of a CPU, bytes, unless strings are very long.
const SCRATCH: usize = 128 << 10;
/// Strings of full size that scratch memory holds at least.
const SCRATCH_STRINGS: usize = 16;
/// Least buffer, or all speculations of a CPU, that halving ends at, bytes.
const BUFFER_MIN: usize = 4096;

/// What one CPU needs.
#[derive(Debug)]
pub struct CpuState {
    /// For programs.
    pub vm: Vm,
    /// For data.
    pub out: Outputs,
    /// What the consumer has done in a firing.
    pub work: Work,
}

/// What a consumer's heavy clauses have done in one firing on a CPU.
#[derive(Debug, Default)]
pub struct Work {
    /// Which.
    firing: u64,
    units: u64,
}

impl Work {
    /// Adds to what was done in this firing; returns the sum.
    pub fn add(&mut self, firing: u64, units: u64) -> u64 {
        self.units = self.of(firing).saturating_add(units);
        self.firing = firing;
        self.units
    }

    /// What was done in this firing.
    pub fn of(&self, firing: u64) -> u64 {
        match self.firing == firing {
            true => self.units,
            false => 0,
        }
    }
}

/// The halves that were put aside.
#[derive(Debug)]
pub struct Sides {
    /// Of the principal buffer.
    pub principal: TryLock<Aside>,
    /// Of the aggregation buffer.
    pub aggregation: TryLock<Aside>,
}

/// A consumer that may fire.
#[derive(Debug)]
pub struct Run {
    /// What all CPUs share.
    pub core: Core,
    /// The clauses.
    pub clauses: Vec<Boxed<Prepared>>,
    /// What each CPU has; nothing where it is not traced, or not there.
    pub cpus: PerCpu<CpuState>,
    /// What was put aside, by CPU.
    pub sides: Vec<Once<Sides>>,
    /// Destructive actions are asked for.
    pub destructive: bool,
    /// Firings on CPUs that have nothing, but should.
    pub unbuffered: AtomicU64,
    /// What was paid for, bytes.
    paid: AtomicU64,
    plan: Plan,
}

impl Run {
    /// Gives `cpu` what it needs, if it is to be traced and has it not yet; `pay` as for [`start`].
    pub fn admit(&self, cpu: usize, pay: Pay<'_>) -> Result<(), Reason> {
        if !self.plan.traces(cpu) || self.cpus.has(cpu) {
            return Ok(());
        }
        let paid = self.paid.load(Ordering::Relaxed);
        let more = paid.saturating_add(self.plan.memory_of_cpu());
        if !pay(more) {
            return Err(UNPAID);
        }
        let given = self.give(cpu);
        match given {
            Ok(()) => self.paid.store(more, Ordering::Relaxed),
            // Less than it may have.
            Err(_) => drop(pay(paid)),
        }
        given
    }

    fn give(&self, cpu: usize) -> Result<(), Reason> {
        let sides = self.plan.sides()?;
        self.cpus.set(cpu, self.plan.state(&self.core, cpu)?);
        // After that: who finds them finds the state too.
        if let Some(place) = self.sides.get(cpu) {
            let _ = place.set(sides);
        }
        Ok(())
    }

    /// Counts a firing on `cpu`, which could not be entered, where that is for want of what it was to be given.
    #[cold]
    pub fn miss(&self, cpu: usize) {
        if self.plan.traces(cpu) && !self.cpus.has(cpu) {
            self.unbuffered.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Says how much memory a consumer is about to have for what depends on its options, bytes; false where it may not.
pub type Pay<'a> = &'a dyn Fn(u64) -> bool;

/// Nobody pays for the memory.
const UNPAID: Reason = Reason::new(Errno::ENOMEM, "more memory than the consumer may have");
/// A buffer has no room for what is to be recorded there: users know it by these words.
const TOO_SMALL: Reason = Reason::new(Errno::E2BIG, "Enabling exceeds size of buffer");
/// The same of what `END` is to record when the rest of the buffer is full.
const END_TOO_BIG: Reason = Reason::new(
    Errno::ENOSPC,
    "END enablings exceed size of principal buffer",
);

/// What the principal buffer of each CPU is to hold at least.
#[derive(Clone, Copy, Default)]
pub(super) struct Demand {
    /// What the greatest record is charged.
    pub record: usize,
    /// The records of `END`.
    pub end: Reserve,
}

/// Sizes that the clauses ask for.
#[derive(Default)]
struct Needs {
    record: usize,
    entry: usize,
    key: usize,
    keys: usize,
    dynamics: bool,
    speculations: bool,
    /// Stacks of programs are counted by.
    stacks: bool,
}

impl Needs {
    fn of(control: &Control) -> Self {
        let mut needs = Self {
            dynamics: control.shared.table.has_dynamics(),
            speculations: control.shared.speculates,
            ..Self::default()
        };
        for clause in control.clauses.iter() {
            needs.record = needs.record.max(clause.size);
            needs.stacks |= clause.tally_stack.is_some_and(|tally| tally.is_user());
            for action in clause.actions.iter() {
                if let Act::Aggregate(aggregate) = &action.act {
                    // With its index, and aligned.
                    needs.entry = needs.entry.max(aggregate.size.next_multiple_of(8) + 16);
                    needs.key = needs.key.max(aggregate.key_size);
                    needs.keys = needs.keys.max(aggregate.keys.len());
                }
            }
        }
        needs
    }
}

/// Sizes that memory is asked for.
#[derive(Debug)]
struct Sizes {
    principal: usize,
    aggregation: usize,
    dynamics: usize,
    /// Of one speculation.
    speculation: usize,
    /// How many of these.
    speculations: usize,
    /// The least principal buffer.
    record: usize,
    reserve: Reserve,
    policy: Policy,
}

impl Sizes {
    /// The sizes that `options` ask for. None is greater than `most`: with `auto` they are halved until they are not.
    fn new(
        options: &Options,
        needs: &Needs,
        demand: Demand,
        most: u64,
        speculation: usize,
        auto: bool,
    ) -> Result<Self, Reason> {
        let policy = Policy::from_option(options.get(Opt::Bufpolicy))
            .ok_or(Reason::invalid("no such policy").about(Opt::Bufpolicy.name()))?;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        // Of `count` buffers of this size.
        let size = |opt: Opt, used: bool, count: usize| {
            if !used {
                return Ok(0);
            }
            let most = match opt {
                Opt::Specsize => speculation.min(most / count.max(1)),
                _ => most,
            };
            let mut size = usize::try_from(options.get(opt)).unwrap_or(usize::MAX);
            while size > most {
                if !auto {
                    return Err(Reason::new(Errno::E2BIG, "size is too big").about(opt.name()));
                }
                size /= 2;
            }
            Ok(size)
        };
        // Others are read before `END` fires, or let go of old records for it.
        let reserve = match policy {
            Policy::Fill => demand.end,
            Policy::Switch | Policy::Ring => Reserve::default(),
        };
        let speculations = match needs.speculations {
            true => usize::try_from(options.get(Opt::Nspec)).unwrap_or(usize::MAX),
            false => 0,
        };
        let sizes = Self {
            principal: size(Opt::Bufsize, needs.record != 0, 1)?,
            aggregation: size(Opt::Aggsize, needs.entry != 0, 1)?,
            dynamics: size(Opt::Dynvarsize, needs.dynamics, 1)?,
            speculation: size(Opt::Specsize, needs.speculations, speculations)?,
            speculations,
            record: demand.record,
            reserve,
            policy,
        };
        if reserve.charge > sizes.principal {
            return Err(END_TOO_BIG);
        }
        if demand.record > sizes.principal || needs.entry > sizes.aggregation & !7 {
            return Err(TOO_SMALL);
        }
        Ok(sizes)
    }

    /// Halves the size that takes the most memory of those that may be smaller; false where none may.
    fn halve(&mut self, needs: &Needs) -> bool {
        let least = self.record.max(self.reserve.charge);
        let mut sizes = [
            (&mut self.principal, 1, least),
            // Entries are aligned.
            (&mut self.aggregation, 1, needs.entry.saturating_add(7)),
            (&mut self.dynamics, 1, 0),
            (&mut self.speculation, self.speculations, needs.record),
        ];
        let greatest = sizes
            .iter_mut()
            .filter(|(size, count, least)| {
                **size / 2 >= *least && (**size / 2).saturating_mul(*count) >= BUFFER_MIN
            })
            .max_by_key(|(size, count, _)| size.saturating_mul(*count));
        match greatest {
            Some((size, ..)) => {
                **size /= 2;
                true
            }
            None => false,
        }
    }
}

/// There is no memory for what `option` asks for.
fn too_big(option: Opt) -> impl Fn(NoMem) -> Reason {
    move |none| Reason::from(none).about(option.name())
}

/// What each CPU is given.
#[derive(Debug)]
struct Plan {
    /// The only CPU that is traced.
    only: Option<usize>,
    /// CPUs are numbered from 0 to below this.
    ncpus: usize,
    seed: u64,
    secret: u64,
    sizes: Sizes,
    strsize: usize,
    /// Bytes of the greatest key of a dynamic variable, 0 where there are none.
    key_size: usize,
    /// Bytes of globals.
    globals: usize,
    /// Bytes of the names of interpreted frames.
    names: usize,
    scratch: usize,
    /// Of the scratch memory, what programs may ask for, where there is a limit.
    share: Option<usize>,
    locals: usize,
    key: usize,
    keys: usize,
    aggregations: usize,
    /// How many stacks' entries are remembered.
    stacks: usize,
}

impl Plan {
    fn new(
        config: &Config,
        control: &Control,
        needs: &Needs,
        demand: Demand,
        auto: bool,
    ) -> Result<Self, Reason> {
        let set = |opt| Some(control.options.raw(opt)).filter(|value| *value != UNSET);
        let only = set(Opt::Cpu).map(|cpu| usize::try_from(cpu).unwrap_or(usize::MAX));
        if only.is_some_and(|cpu| cpu >= config.ncpus) {
            return Err(Reason::invalid("no such CPU").about(Opt::Cpu.name()));
        }
        let most = buffer_max(&config.privileges);
        let strsize = control.options.get(Opt::Strsize) as usize;
        let share = set(Opt::Scratchsize).map(|share| share as usize);
        let speculation = speculation_max(&config.privileges);
        let sizes = Sizes::new(&control.options, needs, demand, most, speculation, auto)?;
        Ok(Self {
            only,
            ncpus: config.ncpus,
            seed: config.seed,
            secret: config.secret,
            key_size: match needs.dynamics {
                true => 16 + control.shared.key_size,
                false => 0,
            },
            sizes,
            strsize,
            globals: control.shared.table.globals_size(),
            names: Interp::memory(&control.walkers),
            scratch: SCRATCH.max(strsize * SCRATCH_STRINGS) + share.unwrap_or(0),
            share,
            locals: control.shared.table.locals_size(),
            key: needs.key.next_multiple_of(8),
            keys: needs.keys,
            aggregations: control.shared.aggregations as usize,
            stacks: if needs.stacks { COUNTED } else { 0 },
        })
    }

    /// What a CPU is given, bytes, as far as it depends on options.
    fn memory_of_cpu(&self) -> u64 {
        let sizes = &self.sizes;
        // Two halves of each; buckets are an eighth of one at most.
        let principal = 2 * buffer_room(sizes.principal as u64);
        let aggregation = (2 * sizes.aggregation + sizes.aggregation / 8) as u64;
        let speculation = Pieces::memory(sizes.speculations, sizes.speculation) as u64;
        // Of two strings each: pieces of strings, and those that are taken apart.
        let strings = 4 * self.strsize;
        let tables =
            (self.aggregations + self.keys) * size_of::<u64>() + self.stacks * size_of::<Counted>();
        let rest = self.scratch + self.locals + self.key + strings + tables;
        principal + aggregation + speculation + rest as u64
    }

    /// The same for so many CPUs, and what they share.
    fn memory(&self, cpus: u64) -> u64 {
        let dynamics = match self.key_size {
            0 => 0,
            key => Dynamics::memory(self.sizes.dynamics, key),
        };
        let shared = dynamics + self.globals + self.names;
        let each = self.memory_of_cpu();
        each.saturating_mul(cpus).saturating_add(shared as u64)
    }

    fn traces(&self, cpu: usize) -> bool {
        cpu < self.ncpus && self.only.is_none_or(|only| only == cpu)
    }

    fn sides(&self) -> Result<Boxed<Sides>, Reason> {
        let sizes = &self.sizes;
        Ok(Boxed::new(Sides {
            principal: Aside::new(buffer_room(sizes.principal as u64) as usize)
                .map_err(too_big(Opt::Bufsize))?,
            aggregation: Aside::new(sizes.aggregation & !7).map_err(too_big(Opt::Aggsize))?,
        })?)
    }

    #[inline(never)]
    fn state(&self, core: &Core, cpu: usize) -> Result<Boxed<Slot<CpuState>>, Reason> {
        let room = Room::new()?;
        let sizes = &self.sizes;
        let share = self.share.unwrap_or(usize::MAX);
        let key_words = core.dynamics.as_ref().map_or(2, |d| d.key_words().max(2));
        let seed = (cpu as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let seed = self.seed.wrapping_add(seed);
        let vm = Vm::new(core, self.scratch, share, self.locals, key_words, seed);
        Ok(room.fill(Slot::new(CpuState {
            // Of what it needs for programs, only this much is asked for.
            vm: vm.map_err(|none| match self.share {
                None => Reason::from(none),
                Some(_) => too_big(Opt::Scratchsize)(none),
            })?,
            out: Outputs {
                principal: Principal::new(sizes.principal, sizes.policy, sizes.reserve)
                    .map_err(too_big(Opt::Bufsize))?,
                aggregations: Aggregations::new(sizes.aggregation, self.secret)
                    .map_err(too_big(Opt::Aggsize))?,
                pieces: Pieces::new(sizes.speculations, sizes.speculation)
                    .map_err(too_big(Opt::Specsize))?,
                key: Bytes::new(self.key)?,
                used: Vec::try_from_fn(self.keys, |_| Ok::<_, NoMem>(0))?,
                slots: Vec::try_from_fn(self.aggregations, |_| Ok::<_, NoMem>(0))?,
                stacks: Vec::try_from_fn(self.stacks, |_| Ok::<_, NoMem>(Counted::default()))?,
                chill: (0, 0),
            },
            work: Work::default(),
        })))
    }
}

/// Everything but what is moved out of the control path's hands.
struct Parts {
    core: Core,
    cpus: PerCpu<CpuState>,
    sides: Vec<Once<Sides>>,
    room: Room<Run>,
}

#[inline(never)]
fn allocate(
    config: &Config,
    control: &Control,
    needs: &Needs,
    plan: &Plan,
    begins: &[bool],
) -> Result<Parts, Reason> {
    let sizes = &plan.sizes;
    let table = &control.shared.table;
    let dynamics = if needs.dynamics {
        // Two words before the tuple: the variable and the thread.
        let key = 16 + control.shared.key_size;
        let value = table.data_max();
        let bare = table.bare_max(control.shared.key_size);
        let all = Dynamics::new(
            sizes.dynamics,
            key,
            value,
            bare,
            config.ncpus,
            config.secret,
        );
        let all = all.map_err(|reason| reason.about(Opt::Dynvarsize.name()))?;
        if all.is_empty() {
            return Err(TOO_SMALL);
        }
        Some(all)
    } else {
        None
    };
    let speculations = match needs.speculations {
        true => Some(Speculations::new(sizes.speculations)?),
        false => None,
    };
    let core = Core {
        strings: Vec::new(),
        globals: Shared::new(table.globals_size())?,
        dynamics,
        speculations,
        strsize: control.options.get(Opt::Strsize) as usize,
        ustacks: UserWalk::of(control.options.get(Opt::Ustackmode)),
        kernel: config.privileges.kernel,
        kernel_memory: config.privileges.kernel_memory,
        all_users: config.privileges.all_users,
        user_memory: config.privileges.user_memory,
        interp: Interp::of(&control.walkers, config.seed)?,
    };
    let begun = |(cpu, begins): (usize, &bool)| begins.then_some(cpu);
    let begun = || begins.iter().enumerate().filter_map(begun);
    let sides = Vec::try_from_fn(config.ncpus, |_| Ok::<_, NoMem>(Once::new()))?;
    for place in begun().filter_map(|cpu| sides.get(cpu)) {
        let _ = place.set(plan.sides()?);
    }
    let cpus = PerCpu::new(config.ncpus)?;
    for cpu in begun() {
        cpus.set(cpu, plan.state(&core, cpu)?);
    }
    Ok(Parts {
        core,
        cpus,
        sides,
        room: Room::new()?,
    })
}

/// Allocates everything for `control`'s clauses and moves them in; on an error `control` is as it was. CPUs have what they need
/// that are `there`, and one that is asked for by its number. Where the option `bufresize` allows it, sizes are halved until there
/// is memory enough, and `pay` agrees to all of it.
pub(super) fn start(
    config: &Config,
    control: &mut Control,
    demand: Demand,
    there: &dyn Fn(usize) -> bool,
    pay: Pay<'_>,
) -> Result<Boxed<Run>, Reason> {
    let needs = Needs::of(control);
    let auto = control.options.get(Opt::Bufresize) == BUFRESIZE_AUTO;
    let mut plan = Plan::new(config, control, &needs, demand, auto)?;
    // Asked once: not who comes meanwhile.
    let begins = |cpu| plan.traces(cpu) && (plan.only.is_some() || there(cpu));
    let begins = Vec::try_from_fn(config.ncpus, |cpu| Ok::<_, NoMem>(begins(cpu)))?;
    let cpus = begins.iter().filter(|begins| **begins).count();
    let (mut parts, paid) = loop {
        let memory = plan.memory(cpus as u64);
        let all = match pay(memory) {
            true => allocate(config, control, &needs, &plan, &begins),
            false => Err(UNPAID),
        };
        match all {
            Ok(parts) => break (parts, memory),
            Err(e) if e.errno == Errno::ENOMEM && auto && plan.sizes.halve(&needs) => {}
            Err(e) => return Err(e),
        }
    };
    let sizes = &plan.sizes;
    let got = [
        (Opt::Bufsize, needs.record != 0, sizes.principal),
        (Opt::Aggsize, needs.entry != 0, sizes.aggregation),
        (Opt::Dynvarsize, needs.dynamics, sizes.dynamics),
        (Opt::Specsize, needs.speculations, sizes.speculation),
    ];
    for (option, _, size) in got.iter().filter(|(_, used, _)| *used) {
        control.options.replace(*option, *size as u64);
    }
    parts.core.strings = core::mem::take(&mut control.shared.strings);
    if let Some(interp) = &mut parts.core.interp {
        interp.walkers = core::mem::take(&mut control.walkers);
    }
    Ok(parts.room.fill(Run {
        core: parts.core,
        clauses: core::mem::take(&mut control.clauses),
        cpus: parts.cpus,
        sides: parts.sides,
        destructive: control.options.flag(Opt::Destructive),
        unbuffered: AtomicU64::new(0),
        paid: AtomicU64::new(paid),
        plan,
    }))
}
