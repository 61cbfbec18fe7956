// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The memory that firings need: what the CPUs share, and what each CPU has. It is allocated in one
//! go, and once more for each CPU that comes online later (INV-17).
//!
//! A machine may declare many more CPUs than it has, so a CPU that is not online has no memory
//! here. What a CPU is given is therefore kept as a [`Plan`]. A CPU that came online without its
//! memory, because there was not enough, counts the firings that it should have recorded.
// Arithmetic on sizes of options, which are bounded before they are used, and of records, which
// `Layout` bounds.
#![allow(clippy::arithmetic_side_effects)]

use super::options::{buffer_max, speculation_max, Options};
use super::{Config, Control};
use crate::buf::aggregate::Aggregations;
use crate::buf::principal::{Policy, Principal, Reserve};
use crate::buf::Aside;
use crate::dif::env::{Core, Vm};
use crate::ecb::fast::stacks::{Counted, COUNTED};
use crate::ecb::fast::Body;
use crate::ecb::output::Outputs;
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

/// Scratch memory of a CPU, in bytes, unless strings are very long.
const SCRATCH: usize = 128 << 10;
/// Minimum number of strings of full size that scratch memory holds.
const SCRATCH_STRINGS: usize = 16;
/// Halving leaves no less than this of a buffer, or of all speculations of a CPU, in bytes.
const BUFFER_MIN: usize = 4096;

/// The state of one CPU.
#[derive(Debug)]
pub struct CpuState {
    /// State of programs.
    pub vm: Vm,
    /// Buffers, and other memory of actions.
    pub out: Outputs,
    /// The consumer's work in the latest firing.
    pub work: Work,
}

/// Work of a consumer's heavy clauses in one firing on a CPU.
#[derive(Debug, Default)]
pub struct Work {
    /// The number of the firing.
    firing: u64,
    units: u64,
}

impl Work {
    /// Adds to the work in this firing; returns the sum, in units.
    pub fn add(&mut self, firing: u64, units: u64) -> u64 {
        self.units = self.of(firing).saturating_add(units);
        self.firing = firing;
        self.units
    }

    /// Returns the work in this firing, in units.
    pub fn of(&self, firing: u64) -> u64 {
        match self.firing == firing {
            true => self.units,
            false => 0,
        }
    }
}

/// The snapshots of a CPU.
#[derive(Debug)]
pub struct Sides {
    /// Of the principal buffer.
    pub principal: TryLock<Aside>,
    /// Of the aggregation buffer.
    pub aggregation: TryLock<Aside>,
}

/// The state of a consumer that has started.
#[derive(Debug)]
pub struct Run {
    /// State that all CPUs share.
    pub core: Core,
    /// The clauses.
    pub clauses: Vec<Boxed<Prepared>>,
    /// The state of each CPU; none for a CPU that is not traced or has not come online.
    pub cpus: PerCpu<CpuState>,
    /// The snapshots, by CPU.
    pub sides: Vec<Once<Sides>>,
    /// The option `destructive` is set.
    pub destructive: bool,
    /// Number of firings on CPUs that should have their memory, but have none.
    pub unbuffered: AtomicU64,
    /// Bytes that were paid for.
    paid: AtomicU64,
    plan: Plan,
}

impl Run {
    /// Gives `cpu` its memory, if it is traced and has none yet; `pay` is as for [`start`].
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
            // Takes the payment back. This cannot be refused, as it is less than was granted.
            Err(_) => drop(pay(paid)),
        }
        given
    }

    fn give(&self, cpu: usize) -> Result<(), Reason> {
        let sides = self.plan.sides()?;
        self.cpus.set(cpu, self.plan.state(&self.core, cpu)?);
        // After the state, because code that finds the snapshots relies on the state.
        if let Some(place) = self.sides.get(cpu) {
            let _ = place.set(sides);
        }
        Ok(())
    }

    /// Counts `n` firings on `cpu` whose state could not be entered, if the reason is that the CPU
    /// should have memory but has none.
    #[cold]
    pub fn miss(&self, cpu: usize, n: u64) {
        if self.plan.traces(cpu) && !self.cpus.has(cpu) {
            self.unbuffered.fetch_add(n, Ordering::Relaxed);
        }
    }
}

/// Asks for leave to have this much memory in all, in bytes, as far as its size depends on the
/// consumer's options; false if the consumer may not have it.
pub type Pay<'a> = &'a dyn Fn(u64) -> bool;

/// The consumer may not have the memory.
const UNPAID: Reason = Reason::new(Errno::ENOMEM, "more memory than the consumer may have");
/// A buffer has no room for what is to be recorded there. Users know the message by these words.
const TOO_SMALL: Reason = Reason::new(Errno::E2BIG, "Enabling exceeds size of buffer");
/// The same for the records of `END`, for which there must be room when the rest of the buffer is
/// full.
const END_TOO_BIG: Reason = Reason::new(
    Errno::ENOSPC,
    "END enablings exceed size of principal buffer",
);

/// What the principal buffer of each CPU must hold at least.
#[derive(Clone, Copy, Default)]
pub(super) struct Demand {
    /// Charge of the largest record, in bytes.
    pub record: usize,
    /// The records of `END`.
    pub end: Reserve,
}

/// Sizes and features that the clauses need.
#[derive(Default)]
struct Needs {
    record: usize,
    entry: usize,
    key: usize,
    keys: usize,
    dynamics: bool,
    speculations: bool,
    /// A clause counts by user stacks.
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
            needs.stacks |= matches!(&clause.body, Body::CountByStack(count) if count.is_user());
            for action in clause.actions.iter() {
                if let Act::Aggregate(aggregate) = &action.act {
                    // An entry is aligned, and has an index entry.
                    needs.entry = needs.entry.max(aggregate.size.next_multiple_of(8) + 16);
                    needs.key = needs.key.max(aggregate.key_size);
                    needs.keys = needs.keys.max(aggregate.keys.len());
                }
            }
        }
        needs
    }
}

/// Sizes of the memory to allocate, in bytes.
#[derive(Debug)]
struct Sizes {
    principal: usize,
    aggregation: usize,
    dynamics: usize,
    /// Size of one speculation.
    speculation: usize,
    /// Number of speculations.
    speculations: usize,
    /// Minimum size of the principal buffer.
    record: usize,
    reserve: Reserve,
    policy: Policy,
}

impl Sizes {
    /// Returns the sizes that `options` request. None may be greater than `most`, and that of one
    /// speculation not greater than `speculation`. A size that is greater is halved with `auto`
    /// until it is not, and otherwise refused (`E2BIG`).
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
        // The size of each of `count` buffers.
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
        // Buffers of other policies are read before `END` fires, or drop old records for it.
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

    /// Halves the size that takes the most memory, among those that may be smaller; false if none
    /// may.
    fn halve(&mut self, needs: &Needs) -> bool {
        let least = self.record.max(self.reserve.charge);
        let mut sizes = [
            (&mut self.principal, 1, least),
            // The size is rounded down to a multiple of 8.
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

/// Returns the reason for a lack of memory for `option`.
fn too_big(option: Opt) -> impl Fn(NoMem) -> Reason {
    move |none| Reason::from(none).about(option.name())
}

/// What each CPU is given.
#[derive(Debug)]
struct Plan {
    /// The only CPU that is traced, if the option `cpu` names one.
    only: Option<usize>,
    /// CPUs are numbered from 0 to `ncpus` - 1.
    ncpus: usize,
    seed: u64,
    secret: u64,
    sizes: Sizes,
    strsize: usize,
    /// Maximum size of a key of a dynamic variable, in bytes; 0 if there are none.
    key_size: usize,
    /// Size of the globals, in bytes.
    globals: usize,
    /// Size of the names of interpreted frames, in bytes.
    names: usize,
    scratch: usize,
    /// Part of the scratch memory that programs may request explicitly, in bytes, if it is limited.
    share: Option<usize>,
    locals: usize,
    key: usize,
    keys: usize,
    aggregations: usize,
    /// Number of stacks whose entries are remembered.
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

    /// Returns the memory of a CPU, in bytes, as far as it depends on options.
    fn memory_of_cpu(&self) -> u64 {
        let sizes = &self.sizes;
        // Two halves of each buffer; the buckets take at most an eighth of a half.
        let principal = 2 * buffer_room(sizes.principal as u64);
        let aggregation = (2 * sizes.aggregation + sizes.aggregation / 8) as u64;
        let speculation = Pieces::memory(sizes.speculations, sizes.speculation) as u64;
        // Two temporary strings, and two strings of `strtok()`.
        let strings = 4 * self.strsize;
        let tables =
            (self.aggregations + self.keys) * size_of::<u64>() + self.stacks * size_of::<Counted>();
        let keys = self.key_size + self.key;
        let rest = self.scratch + self.locals + keys + strings + tables;
        principal + aggregation + speculation + rest as u64
    }

    /// Returns the memory of `cpus` CPUs and of what they share, in bytes.
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
            // If the option `scratchsize` is set, the lack of memory is attributed to it.
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

/// The parts of a [`Run`], except those that are moved out of the control path.
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

/// Allocates everything for `control`'s clauses, and moves the clauses in; on an error `control` is
/// as it was. A CPU gets its memory if it is online, as `there` says, or if the option `cpu` names
/// it. If the option `bufresize` allows it, sizes are halved until there is enough memory and `pay`
/// agrees to all of it.
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
    // Asked once, so that a CPU that comes online meanwhile does not change the answer.
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
