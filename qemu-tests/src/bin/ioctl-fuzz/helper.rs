// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The helper device: DOF that a program registers, with right or wrong headers, section offsets
//! and addresses; removals by number; and a consumer that asks what is registered. The module does
//! not check whether the rest of an image means anything.

use super::{Sequence, Step, Target, What};
use dtrace_uapi::dof::{self, Hdr, Sec};
use dtrace_uapi::ioctl::{self, DofHelper, Registered};
use std::mem::offset_of;
use zerocopy::{FromZeros, IntoBytes};

/// The `place` of an open step that opens the helper device.
pub const DEVICE: u8 = 1;

impl Sequence {
    /// Adds calls of a program, with a file that is opened on the helper device for them, and of a
    /// consumer.
    pub fn register(&mut self, file: usize) {
        let consumer = (file + 1) % super::FILES;
        self.steps.push(Step {
            place: DEVICE,
            ..Step::new(What::Open, file)
        });
        for _ in 0..1 + self.random.below(6) {
            match self.random.below(6) {
                0 => self.add_header(file),
                1 | 2 => self.add_object(file),
                3 => self.by_number(file, ioctl::HELPER_LOOK),
                4 => self.by_number(file, ioctl::HELPER_REMOVE),
                _ => self.ask(consumer),
            }
        }
    }

    /// Adds an image with its header, whose address is the argument of the call.
    fn add_header(&mut self, file: usize) {
        let image = self.object();
        let call = self.classic(ioctl::HELPER_ADD, 1);
        self.add(Step::call(file, call, image));
    }

    /// Adds an image to which the argument points.
    fn add_object(&mut self, file: usize) {
        let mut object = DofHelper::new_zeroed();
        let names: [&[u8]; 4] = [b"fuzzed", b"", b"a/b:c", &[0xff; 64]];
        let name = self.random.choose(&names);
        object.module[..name.len()].copy_from_slice(name);
        object.addr = self.random.number();
        let call = self.classic(ioctl::HELPER_ADDDOF, 3);
        let mut step = Step::call(file, call, object.as_bytes().to_vec());
        let target = match self.random.one_in(8) {
            true => self.random.choose(&[
                Target::Nowhere,
                Target::Constant,
                Target::Number,
                Target::Room,
            ]),
            false => self.random.choose(&[Target::Image, Target::ImageEdge]),
        };
        let number = self.random.number();
        step.fixes
            .push((offset_of!(DofHelper, dof), target, number));
        step.image = self.object();
        self.images += 1;
        self.add(step);
    }

    /// The number of a call, or the number of illumos for it.
    fn classic(&mut self, call: u32, number: u32) -> u32 {
        let classic = ioctl::HELPER_CLASSIC | number;
        self.random.choose(&[call, call, classic])
    }

    /// Adds a call whose argument is a number: of a registration, or an address.
    fn by_number(&mut self, file: usize, call: u32) {
        let raw = match self.random.one_in(2) {
            true => self.random.number(),
            false => 1 + self.random.below(20) as u64,
        };
        let call = match call {
            ioctl::HELPER_REMOVE => self.classic(call, 2),
            _ => call,
        };
        self.steps.push(Step {
            place: super::RAW,
            raw,
            ..Step::call(file, call, Vec::new())
        });
    }

    /// Adds a consumer's query of what a process has registered.
    fn ask(&mut self, file: usize) {
        let mut request = Registered::new_zeroed();
        request.pid = self.random.choose(&[self.own, self.own, self.process, 0]) as i32;
        request.generation = self.random.below(20) as u32;
        request.size = match self.random.one_in(4) {
            true => self.random.number(),
            false => 4096,
        };
        let mut step = Step::call(file, ioctl::REGISTERED, request.as_bytes().to_vec());
        self.room(&mut step, offset_of!(Registered, data));
        self.add(step);
    }

    /// Generates DOF with some sections of a program's probes, often valid.
    fn object(&mut self) -> Vec<u8> {
        let count = self.random.below(6);
        let data = 64 + count * size_of::<Sec>();
        let length = 64 * count;
        let mut header = Hdr::new_zeroed();
        header.ident[..4].copy_from_slice(&dof::MAGIC);
        header.ident[4..8].copy_from_slice(&[dof::MODEL_LP64, 1, 2, 2]);
        header.hdrsize = size_of::<Hdr>() as u32;
        header.secsize = size_of::<Sec>() as u32;
        header.secnum = count as u32;
        header.secoff = size_of::<Hdr>() as u64;
        header.loadsz = (data + length) as u64;
        header.filesz = header.loadsz;
        let mut image = header.as_bytes().to_vec();
        for n in 0..count {
            let mut section = Sec::new_zeroed();
            section.ty = 8 + self.random.below(20) as u32;
            section.align = 8;
            section.flags = 1;
            section.offset = (data + 64 * n) as u64;
            section.size = 64;
            if self.random.one_in(8) {
                section.offset = self.random.number();
            }
            if self.random.one_in(8) {
                section.size = self.random.number();
            }
            image.extend(section.as_bytes());
        }
        image.extend(self.random.bytes(length));
        if self.random.one_in(4) {
            let at = self.random.below(image.len());
            image[at] = self.random.number() as u8;
        }
        image
    }
}
