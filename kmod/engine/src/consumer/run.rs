// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! All that firing needs, allocated in one go.
// Sizes of options, which are bounded when they are set, and of records, which `Layout` bounds.
#![allow(clippy::arithmetic_side_effects)]

use super::options::{Options, BUFFER_MAX};
use super::{Config, Control};
use crate::buf::aggregate::Aggregations;
use crate::buf::principal::{Policy, Principal, Reserve};
use crate::buf::Aside;
use crate::dif::env::{Core, Vm};
use crate::ecb::fire::Outputs;
use crate::ecb::{Act, Prepared};
use crate::error::{Errno, NoMem, Reason};
use crate::mem::alloc::Bytes;
use crate::mem::shared::Shared;
use crate::mem::sync::{PerCpu, TryLock};
use crate::mem::vec::Room;
use crate::mem::{Boxed, Vec};
use crate::spec::buffer::Pieces;
use crate::spec::Speculations;
use crate::var::dynamic::Dynamics;
use dtrace_uapi::limits::buffer_room;
use dtrace_uapi::option::{Opt, BUFRESIZE_AUTO, UNSET};

/// Scratch memory of a CPU, bytes, unless strings are very long.
const SCRATCH: usize = 128 << 10;
/// Strings of full size that scratch memory holds at least.
const SCRATCH_STRINGS: usize = 16;
/// Least buffer that halving ends at, bytes.
const BUFFER_MIN: usize = 4096;

/// What one CPU needs.
#[derive(Debug)]
pub struct CpuState {
    /// For programs.
    pub vm: Vm,
    /// For data.
    pub out: Outputs,
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
    /// What each CPU has; nothing where it is not traced.
    pub cpus: PerCpu<Option<Boxed<CpuState>>>,
    /// What was put aside, by CPU.
    pub sides: Vec<Option<Sides>>,
    /// Destructive actions are asked for.
    pub destructive: bool,
}

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
struct Sizes {
    principal: usize,
    aggregation: usize,
    dynamics: usize,
    /// Of one speculation.
    speculation: usize,
    /// How many of these.
    speculations: usize,
    reserve: Reserve,
    policy: Policy,
}

impl Sizes {
    fn new(options: &Options, needs: &Needs, demand: Demand) -> Result<Self, Reason> {
        let policy = Policy::from_option(options.get(Opt::Bufpolicy))
            .ok_or(Reason::invalid("no such policy").about(Opt::Bufpolicy.name()))?;
        let value = |opt| usize::try_from(options.get(opt)).unwrap_or(usize::MAX);
        let size = |opt, need: usize| if need == 0 { 0 } else { value(opt) };
        // Others are read before `END` fires, or let go of old records for it.
        let reserve = match policy {
            Policy::Fill => demand.end,
            Policy::Switch | Policy::Ring => Reserve::default(),
        };
        let (principal, aggregation) = (
            size(Opt::Bufsize, needs.record),
            size(Opt::Aggsize, needs.entry),
        );
        if reserve.charge > principal {
            return Err(END_TOO_BIG);
        }
        if demand.record > principal || needs.entry > aggregation & !7 {
            return Err(TOO_SMALL);
        }
        let speculation = size(Opt::Specsize, usize::from(needs.speculations));
        let speculations = size(Opt::Nspec, usize::from(needs.speculations));
        speculation
            .max(1)
            .checked_mul(speculations)
            .filter(|all| *all as u64 <= BUFFER_MAX)
            .ok_or_else(|| too_big(Opt::Nspec)(NoMem))?;
        Ok(Self {
            principal,
            aggregation,
            dynamics: if needs.dynamics {
                value(Opt::Dynvarsize)
            } else {
                0
            },
            speculation,
            speculations,
            reserve,
            policy,
        })
    }

    /// Halves the greatest size that may be; false where none may.
    fn halve(&mut self, needs: &Needs) -> bool {
        let halves = |size: usize, need: usize| size / 2 >= need.max(BUFFER_MIN);
        let mut sizes = [
            (&mut self.principal, needs.record),
            (&mut self.aggregation, needs.entry),
            (&mut self.dynamics, 0),
            (&mut self.speculation, needs.record),
        ];
        let greatest = sizes
            .iter_mut()
            .filter(|(size, need)| halves(**size, *need))
            .max_by_key(|(size, _)| **size);
        match greatest {
            Some((size, _)) => {
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

#[inline(never)]
fn make_cpu(
    index: usize,
    config: &Config,
    core: &Core,
    control: &Control,
    needs: &Needs,
    sizes: &Sizes,
) -> Result<Boxed<CpuState>, Reason> {
    let mut scratch = SCRATCH.max(core.strsize * SCRATCH_STRINGS);
    let mut share = usize::MAX;
    if control.options.raw(Opt::Scratchsize) != UNSET {
        share = control.options.get(Opt::Scratchsize) as usize;
        scratch += share;
    }
    let key_words = core.dynamics.as_ref().map_or(2, |d| d.key_words().max(2));
    let seed = config
        .seed
        .wrapping_add((index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let locals = control.shared.table.locals_size();
    let room = Room::new()?;
    Ok(room.fill(CpuState {
        vm: Vm::new(core, scratch, share, locals, key_words, seed).map_err(|none| {
            // Of what it needs for programs, only this much is asked for.
            match share {
                usize::MAX => Reason::from(none),
                _ => too_big(Opt::Scratchsize)(none),
            }
        })?,
        out: Outputs {
            principal: Principal::new(sizes.principal, sizes.policy, sizes.reserve)
                .map_err(too_big(Opt::Bufsize))?,
            aggregations: Aggregations::new(sizes.aggregation).map_err(too_big(Opt::Aggsize))?,
            pieces: Pieces::new(sizes.speculations, sizes.speculation)
                .map_err(too_big(Opt::Specsize))?,
            key: Bytes::new(needs.key.next_multiple_of(8))?,
            used: Vec::try_from_fn(needs.keys, |_| Ok::<_, NoMem>(0))?,
            slots: Vec::try_from_fn(control.shared.aggregations as usize, |_| Ok::<_, NoMem>(0))?,
            chill: (0, 0),
        },
    }))
}

/// Everything but what is moved out of the control path's hands.
struct Parts {
    core: Core,
    cpus: PerCpu<Option<Boxed<CpuState>>>,
    sides: Vec<Option<Sides>>,
    room: Room<Run>,
}

#[inline(never)]
fn allocate(
    config: &Config,
    control: &Control,
    needs: &Needs,
    sizes: &Sizes,
    traced: &dyn Fn(usize) -> bool,
) -> Result<Parts, Reason> {
    let table = &control.shared.table;
    let dynamics = if needs.dynamics {
        // Two words before the tuple: the variable and the thread.
        let key = 16 + control.shared.key_size;
        let value = table.data_max();
        let bare = table.bare_max(control.shared.key_size);
        let all = Dynamics::new(sizes.dynamics, key, value, bare, config.ncpus);
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
        kernel: config.privileges.kernel,
        all_users: config.privileges.all_users,
        user: config.user,
    };
    let sides = Vec::try_from_fn(config.ncpus, |cpu| {
        if !traced(cpu) {
            return Ok::<_, Reason>(None);
        }
        Ok(Some(Sides {
            principal: Aside::new(buffer_room(sizes.principal as u64) as usize)
                .map_err(too_big(Opt::Bufsize))?,
            aggregation: Aside::new(sizes.aggregation & !7).map_err(too_big(Opt::Aggsize))?,
        }))
    })?;
    let cpus = PerCpu::new::<Reason>(config.ncpus, |cpu| {
        if !traced(cpu) {
            return Ok(None);
        }
        make_cpu(cpu, config, &core, control, needs, sizes).map(Some)
    })?;
    Ok(Parts {
        core,
        cpus,
        sides,
        room: Room::new()?,
    })
}

/// Allocates everything for `control`'s clauses and moves them in; on an error `control` is as it was. Where the option
/// `bufresize` allows it, sizes are halved until there is memory enough.
pub(super) fn start(
    config: &Config,
    control: &mut Control,
    demand: Demand,
) -> Result<Boxed<Run>, Reason> {
    let only = control.options.raw(Opt::Cpu);
    if only != UNSET && only >= config.ncpus as u64 {
        return Err(Reason::invalid("no such CPU").about(Opt::Cpu.name()));
    }
    let traced = |cpu: usize| only == UNSET || only == cpu as u64;
    let needs = Needs::of(control);
    let mut sizes = Sizes::new(&control.options, &needs, demand)?;
    let auto = control.options.get(Opt::Bufresize) == BUFRESIZE_AUTO;
    let mut parts = loop {
        match allocate(config, control, &needs, &sizes, &traced) {
            Ok(parts) => break parts,
            Err(e) if e.errno == Errno::ENOMEM && auto && sizes.halve(&needs) => {}
            Err(e) => return Err(e),
        }
    };
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
    Ok(parts.room.fill(Run {
        core: parts.core,
        clauses: core::mem::take(&mut control.clauses),
        cpus: parts.cpus,
        sides: parts.sides,
        destructive: control.options.flag(Opt::Destructive),
    }))
}
