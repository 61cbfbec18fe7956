// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Requests for probes in a process, valid and invalid. The process sleeps, so it does not matter
//! what becomes of its code.

use super::{Sequence, Step, Target};
use dtrace_uapi::ioctl;
use dtrace_uapi::process::{Arg, Probe, Probes, USDT};
use qemu_tests::random::Random;
use std::io;
use std::mem::offset_of;
use std::ops::Range;
use std::time::Duration;
use zerocopy::IntoBytes;

impl Sequence {
    /// Adds a call that creates some probes.
    pub fn make_probes(&mut self, file: usize) {
        let (nprobes, nsites, nargs) = (
            self.random.below(5),
            self.random.below(6),
            self.random.below(9),
        );
        let mut first = 0;
        let mut image = Vec::new();
        for _ in 0..nprobes {
            let count = self.random.choose(&[1, 1, 1, 2, 0]);
            let number = |random: &mut Random, usual: u32| match random.one_in(12) {
                true => random.number() as u32,
                false => usual,
            };
            let random = &mut self.random;
            let name = random.below(40) as u32;
            let kind = random.below(6) as u32;
            let probe = Probe {
                kind: number(random, kind),
                module: number(random, name),
                func: number(random, name / 2),
                name: number(random, name / 3),
                start: random.number(),
                size: random.number(),
                first: number(random, first),
                nsites: number(random, count),
                provider: number(random, 0),
                nargs: number(random, u32::from(kind == USDT)),
                first_arg: number(random, 0),
                asks: 0,
                // Always 0: with a wrong address the module would change the program's memory.
                semaphore: 0,
            };
            first += count;
            image.extend(probe.as_bytes());
        }
        let sites = image.len();
        for _ in 0..nsites {
            let address = match self.random.one_in(4) {
                true => self.random.number(),
                false => self.text.start + self.random.next() % (self.text.end - self.text.start),
            };
            image.extend(address.to_ne_bytes());
        }
        let args = image.len();
        image.extend(self.random.bytes(nargs * size_of::<Arg>()));
        let text = image.len();
        image.extend(b"fuzzed\0");
        for _ in 0..40 {
            let c = self.random.choose(b"abc/*:\0\0\n\xff");
            image.push(c);
        }
        let pid = self
            .random
            .choose(&[self.process, self.process, self.process, 0, 1, u32::MAX]);
        let mut request = Probes {
            pid: pid as i32,
            nprobes: nprobes as u32,
            nsites: nsites as u32,
            text_size: (image.len() - text) as u32,
            nargs: nargs as u32,
            ..Probes::default()
        };
        if self.random.one_in(6) {
            let wrong = self.random.number() as u32;
            let field = self.random.below(4);
            let fields = [
                &mut request.nprobes,
                &mut request.nsites,
                &mut request.text_size,
                &mut request.nargs,
            ];
            *fields.into_iter().nth(field).expect("one of four") = wrong;
        }
        let mut step = Step::call(file, ioctl::MAKEPROBES, request.as_bytes().to_vec());
        for (field, at) in [
            (offset_of!(Probes, probes), 0),
            (offset_of!(Probes, sites), sites),
            (offset_of!(Probes, args), args),
            (offset_of!(Probes, text), text),
        ] {
            let target = match self.random.one_in(12) {
                true => self
                    .random
                    .choose(&[Target::Nowhere, Target::Constant, Target::Number]),
                false => Target::Inside,
            };
            step.fixes.push((field, target, at as u64));
        }
        step.image = image;
        self.add(step);
    }
}

/// The address range of a process' code, once it has executed sleep(1).
pub fn text_of(pid: u32) -> io::Result<Range<u64>> {
    for _ in 0..100 {
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps"))?;
        let is_code = |line: &&str| line.contains(" r-xp ") && line.ends_with("/sleep");
        let range = maps.lines().find(is_code).and_then(|line| {
            let (start, end) = line.split(' ').next()?.split_once('-')?;
            let number = |text| u64::from_str_radix(text, 16).ok();
            Some(number(start)?..number(end)?)
        });
        match range {
            Some(range) => return Ok(range),
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    }
    Err(io::Error::other("sleep(1) does not begin"))
}
