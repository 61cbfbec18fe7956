// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Builds the requests that have the kernel make probes in a process: names, and addresses in its
//! memory.

use super::{Kind, Place};
use crate::pattern::ADDRESS;
use crate::usdt::{Note, Point};
use dtrace_uapi::process::{self, Arg, Probe, NO_REGISTER};
use std::collections::HashMap;

/// Most instructions whose probes are made by one call. During a call other callers wait, and the
/// kernel allocates memory for all instructions of the call.
const CALL: usize = 1 << 14;

/// Splits `places` into parts for one call each. A function is not split unless it is too large for
/// one call.
pub fn parts(mut places: &[Place]) -> impl Iterator<Item = &[Place]> {
    std::iter::from_fn(move || {
        let mut sites = 0;
        let fitting = places.iter().take_while(|place| {
            sites += place.sites.len();
            sites <= CALL
        });
        let most = fitting.count().max(1).min(places.len());
        // A cut is allowed only between places of different functions.
        let is_begun = |at: &usize| {
            let beside = (places.get(at - 1), places.get(*at));
            !matches!(beside, (Some(one), Some(other)) if one.function == other.function)
        };
        let end = (1..=most).rev().find(is_begun).unwrap_or(most);
        let (part, rest) = places.split_at_checked(end).filter(|_| end > 0)?;
        places = rest;
        Some(part)
    })
}

/// Probes of one process in the form that the kernel takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The probes.
    pub probes: Vec<Probe>,
    /// Addresses of their instructions.
    pub sites: Vec<u64>,
    /// Their names, each terminated by NUL.
    pub text: Vec<u8>,
    /// Arguments of USDT probes.
    pub args: Vec<Arg>,
    /// For each probe, the index of its place.
    places: Vec<usize>,
}

impl Request {
    /// Builds the request for `places`. Places whose code the process has not mapped are left out.
    pub fn new(places: &[Place]) -> Self {
        let mut this = Self::default();
        let mut names = HashMap::new();
        for (at, place) in places.iter().enumerate() {
            if this.add(place, &mut names).is_some() {
                this.places.push(at);
            }
        }
        this
    }

    fn add<'p>(&mut self, place: &'p Place, names: &mut HashMap<&'p str, u32>) -> Option<()> {
        let kind = match place.kind {
            Kind::Entry => process::ENTRY,
            Kind::Return => process::RETURN,
            Kind::Offset(_) if &*place.func == ADDRESS => process::ADDRESS,
            Kind::Offset(_) if place.function.is_empty() => process::LINE,
            Kind::Offset(_) => process::OFFSET,
        };
        let mapped = place.sites.iter().map(|site| place.object.address(*site));
        let sites: Vec<u64> = mapped.collect::<Option<_>>()?;
        let start = match kind {
            process::ADDRESS | process::LINE => 0,
            _ => place.object.address(place.function.start)?,
        };
        let probe = Probe {
            kind,
            module: self.name(&place.object.name, names),
            func: self.name(&place.func, names),
            name: self.own_name(place.kind),
            start,
            size: place.function.end - place.function.start,
            first: self.sites.len() as u32,
            nsites: sites.len() as u32,
            ..Probe::default()
        };
        self.probes.push(probe);
        self.sites.extend(sites);
        Some(())
    }

    /// Builds the request for USDT probes. Those whose code the process has not mapped are left
    /// out.
    pub fn of_points(points: &[Point]) -> Self {
        let mut this = Self::default();
        let mut names = HashMap::new();
        for (at, point) in points.iter().enumerate() {
            if this.add_point(point, &mut names).is_some() {
                this.places.push(at);
            }
        }
        this
    }

    fn add_point<'p>(&mut self, point: &'p Point, names: &mut HashMap<&'p str, u32>) -> Option<()> {
        // Sites at which the program only tests whether the probe is enabled must be the last.
        let mut notes: Vec<&Note> = point.notes.iter().collect();
        notes.sort_by_key(|note| note.asks);
        let asks = notes.iter().filter(|note| note.asks).count();
        let mapped = notes.iter().map(|note| point.object.address(note.offset));
        let sites: Vec<u64> = mapped.collect::<Option<_>>()?;
        // An argument that the note of a site lacks is 0 there.
        let nargs = notes.iter().map(|note| note.arguments.len()).max()?;
        let first_arg = self.args.len() as u32;
        for (note, site) in notes.iter().zip(&sites) {
            // All addresses of a file are shifted by the same amount when it is mapped.
            let moved = site.wrapping_sub(note.address);
            for n in 0..nargs {
                let operand = note.arguments.get(n).copied().flatten();
                self.args.push(match operand {
                    Some(operand) if operand.is_of_file => Arg {
                        value: operand.arg.value.wrapping_add(moved),
                        ..operand.arg
                    },
                    Some(operand) => operand.arg,
                    None => Arg {
                        base: NO_REGISTER,
                        index: NO_REGISTER,
                        size: 8,
                        ..Arg::default()
                    },
                });
            }
        }
        let probe = Probe {
            kind: process::USDT,
            module: self.name(&point.object.name, names),
            func: self.name(&point.func, names),
            name: self.name(&point.name, names),
            provider: self.name(&point.provider, names),
            first: self.sites.len() as u32,
            nsites: sites.len() as u32,
            nargs: nargs as u32,
            first_arg,
            asks: asks as u32,
            semaphore: notes.iter().map(|note| note.semaphore).max()?,
            start: u64::from(point.registration),
            ..Probe::default()
        };
        self.probes.push(probe);
        self.sites.extend(sites);
        Some(())
    }

    /// Returns the offset of a name in the text. Each name is stored once.
    fn name<'p>(&mut self, name: &'p str, names: &mut HashMap<&'p str, u32>) -> u32 {
        if let Some(at) = names.get(name) {
            return *at;
        }
        let at = self.append(name);
        names.insert(name, at);
        at
    }

    fn own_name(&mut self, kind: Kind) -> u32 {
        self.append(&kind.to_string())
    }

    fn append(&mut self, name: &str) -> u32 {
        let at = self.text.len() as u32;
        self.text.extend(name.bytes());
        self.text.push(0);
        at
    }

    /// Returns the index of the place that has the instruction `site`, an index from the kernel.
    pub fn place_of(&self, site: u32) -> Option<usize> {
        let is_of = |probe: &Probe| (probe.first..probe.first + probe.nsites).contains(&site);
        let probe = self.probes.iter().position(is_of)?;
        self.places.get(probe).copied()
    }
}
