// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Reading of DOF images: untrusted bytes in, owned clauses and options out (INV-1).
//!
//! [`image`] checks header and section table once, so that all later code can request a section by
//! index, and gets either bytes that lie within the image or a reason. [`difo`] copies one DIF
//! object out, and applies relocations to the copy. The result shares nothing with the image, and
//! what was allocated for an image that turns out bad is freed with it.
// Arithmetic on offsets within an image of at most `DOF_MAX` bytes, after they have been checked.
#![allow(clippy::arithmetic_side_effects)]

pub mod difo;
pub mod image;

use crate::error::{Errno, Reason};
use crate::mem::{Boxed, Vec};
pub use difo::Difo;
use dtrace_uapi::action::Action;
use dtrace_uapi::dof::{
    self, ActDesc, EcbDesc, OptDesc, SecIdx, SecType, SECIDX_NONE, STRIDX_NONE,
};
use dtrace_uapi::interp;
use dtrace_uapi::ioctl::ProbeDesc;
use dtrace_uapi::limits::ACTIONS_MAX;
use dtrace_uapi::option::Opt;
use image::Image;
use zerocopy::FromZeros;

/// One action of a clause, as the image has it.
#[derive(Debug)]
pub struct ActionSpec {
    /// What to do.
    pub kind: Action,
    /// Its expression.
    pub difo: Option<Boxed<Difo>>,
    /// For an aggregation: the number of preceding actions that are its tuple.
    pub ntuple: u32,
    /// Its argument.
    pub arg: u64,
    /// A value of the consumer's, which is passed back to it.
    pub uarg: u64,
    /// The format of a printf-like action, without NUL.
    pub format: Option<Vec<u8>>,
}

/// One clause: its probes, its condition, its actions.
#[derive(Debug)]
pub struct Clause {
    /// Globs for the probes, or an id.
    pub probe: ProbeDesc,
    /// The condition.
    pub predicate: Option<Boxed<Difo>>,
    /// The actions, in order.
    pub actions: Vec<ActionSpec>,
    /// A value of the consumer's, which is passed back to it.
    pub uarg: u64,
}

impl ActionSpec {
    fn read(image: &Image<'_>, desc: &ActDesc, section: SecIdx) -> Result<Self, Reason> {
        let kind = Action::from_raw(desc.kind)
            .ok_or(Reason::section("unknown kind of action", section))?;
        let mut format = None;
        if kind.is_printf_like() && desc.strtab != SECIDX_NONE {
            let text = image.string(desc.strtab, desc.arg)?;
            image.spend(text.len())?;
            format = Some(Vec::copy_of(text)?);
        }
        let difo = match desc.difo {
            SECIDX_NONE => None,
            index => Some(Difo::read(image, index)?),
        };
        Ok(Self {
            kind,
            difo,
            ntuple: desc.ntuple,
            // A format's offset has no meaning outside of the image.
            arg: if kind.is_printf_like() { 0 } else { desc.arg },
            uarg: desc.uarg,
            format,
        })
    }
}

impl Clause {
    /// Whether it is a [walker](crate::interp).
    fn is_walker(&self) -> bool {
        let named = |name: &[u8], text: &[u8]| {
            name.strip_prefix(text)
                .is_some_and(|rest| rest.first() == Some(&0))
        };
        named(&self.probe.provider, interp::PROVIDER) && named(&self.probe.module, interp::MODULE)
    }

    fn read(image: &Image<'_>, index: SecIdx) -> Result<Self, Reason> {
        let desc: EcbDesc = image.head(index, SecType::EcbDesc)?;
        let mut this = Self {
            probe: read_probe(image, desc.probes)?,
            predicate: None,
            actions: Vec::new(),
            uarg: desc.uarg,
        };
        if desc.pred != SECIDX_NONE {
            this.predicate = Some(Difo::read(image, desc.pred)?);
        }
        if desc.actions != SECIDX_NONE {
            let descs: Vec<ActDesc> = image.table(desc.actions, SecType::ActDesc)?;
            if descs.len() > ACTIONS_MAX {
                return Err(Reason::new(Errno::E2BIG, "too many actions"));
            }
            for desc_of_action in descs.iter() {
                let action = ActionSpec::read(image, desc_of_action, desc.actions)?;
                this.actions.push(action)?;
            }
        }
        Ok(this)
    }
}

fn read_probe(image: &Image<'_>, index: SecIdx) -> Result<ProbeDesc, Reason> {
    let desc: dof::ProbeDesc = image.head(index, SecType::ProbeDesc)?;
    let mut out = ProbeDesc::new_zeroed();
    out.id = desc.id;
    let parts = [
        (desc.provider, &mut out.provider[..]),
        (desc.module, &mut out.module[..]),
        (desc.func, &mut out.func[..]),
        (desc.name, &mut out.name[..]),
    ];
    for (offset, to) in parts {
        if offset == STRIDX_NONE {
            continue;
        }
        let from = image.string(desc.strtab, u64::from(offset))?;
        match to.get_mut(..from.len()) {
            Some(head) => head.copy_from_slice(from),
            None => return Err(Reason::section("name of a probe is too long", index)),
        }
        if to.last().is_some_and(|b| *b != 0) {
            return Err(Reason::section("name of a probe is too long", index));
        }
    }
    Ok(out)
}

fn read_options(image: &Image<'_>, index: SecIdx, out: &mut Vec<(Opt, u64)>) -> Result<(), Reason> {
    let descs: Vec<OptDesc> = image.table(index, SecType::OptDesc)?;
    for desc in descs.iter() {
        let option = Opt::from_raw(desc.option).ok_or(Reason::section("unknown option", index))?;
        if desc.strtab != SECIDX_NONE {
            return Err(Reason::section("options have no strings", index).about(option.name()));
        }
        if desc.value == dtrace_uapi::option::UNSET {
            return Err(Reason::section("option is set to nothing", index).about(option.name()));
        }
        out.push((option, desc.value))?;
    }
    Ok(())
}

/// What a DOF image requests.
#[derive(Debug, Default)]
pub struct Enabling {
    clauses: Vec<Clause>,
    walkers: Vec<Clause>,
    options: Vec<(Opt, u64)>,
    memory: usize,
}

/// Maximum memory of a copied byte of the image, in bytes: the copy and its prepared form together.
const PREPARED: usize = 16;
/// Additional memory of a clause or an action, in bytes.
const ACTION: usize = 1024;

impl Enabling {
    /// Reads an image.
    ///
    /// Errors: `E2BIG` if the image or a part of it is too big or has too many actions, `ENOMEM`,
    /// and `EINVAL` with a reason for all else.
    pub fn parse(image: &[u8]) -> Result<Self, Reason> {
        let image = Image::new(image)?;
        let mut this = Self::default();
        let mut actions = 0usize;
        for index in 0..image.sections() {
            match image.kind(index) {
                Some(SecType::EcbDesc) => {
                    let clause = Clause::read(&image, index)?;
                    actions = actions.saturating_add(clause.actions.len().max(1));
                    if actions > ACTIONS_MAX {
                        return Err(Reason::new(Errno::E2BIG, "too many actions"));
                    }
                    match clause.is_walker() {
                        true => this.walkers.push(clause)?,
                        false => this.clauses.push(clause)?,
                    }
                }
                Some(SecType::OptDesc) => read_options(&image, index, &mut this.options)?,
                _ => {}
            }
        }
        this.memory = actions
            .saturating_mul(ACTION)
            .saturating_add(image.spent().saturating_mul(PREPARED));
        Ok(this)
    }

    /// Returns the maximum memory that it takes, with its prepared form, in bytes.
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// Returns the clauses, in the order of the program.
    pub fn clauses(&self) -> &[Clause] {
        &self.clauses
    }

    /// Returns the walkers, which belong to no probe.
    pub fn walkers(&self) -> &[Clause] {
        &self.walkers
    }

    /// Returns the options that the image sets, in order.
    pub fn options(&self) -> &[(Opt, u64)] {
        &self.options
    }
}
