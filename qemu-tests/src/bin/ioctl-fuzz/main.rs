// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Uses `/dev/dtrace`, and the device with which programs register their probes, in ways that no
//! program does. Runs in the VM as root: `ioctl-fuzz SEED SEQUENCES`, or `ioctl-fuzz SEED
//! SECONDSs`; a third argument is the number of the first sequence.
//!
//! A sequence uses a few files: it opens them, passes images (`dtrace_fuzz::live`), starts, reads,
//! describes, stops and closes, in this order or in any other, with arguments that are right,
//! nearly right, or wrong in size, place and content. A sequence is determined by the seed and its
//! number alone, so `ioctl-fuzz SEED 1 N` repeats sequence N. The program `ioctls`
//! (cases/framework/ioctls.c) executes the steps and counts their results. The kernel's checkers
//! judge, and the kernel's log contains the numbers of the sequences.

mod helper;
mod probes;

use dtrace_fuzz::live;
use dtrace_uapi::dof::Hdr;
use dtrace_uapi::ioctl::{
    self, AggDesc, AnonDesc, ArgDesc, BufDesc, Conf, Enable, EprobeDesc, FmtDesc, ProbeDesc,
    ProviderDesc, Reason, ReplDesc, Status,
};
use qemu_tests::random::Random;
use std::io::{self, BufWriter, Write};
use std::mem::offset_of;
use std::ops::Range;
use std::process::{ChildStdin, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// What `ioctls` does for a step.
#[derive(Clone, Copy)]
enum What {
    Open,
    Close,
    Call,
    Both,
    Map,
    Read,
    Write,
    Poll,
    Fork,
    Info,
    Work,
    Note,
}

/// Where an address in an argument points: the image at the start or the end of its area; the same
/// for the room for answers; read-only memory; unmapped memory; a number; an offset into the image
/// at the start of its area.
#[derive(Clone, Copy)]
enum Target {
    Image,
    ImageEdge,
    Room,
    RoomEdge,
    Constant,
    Nowhere,
    Number,
    Inside,
}

/// The `place` of an argument that is passed as a number.
const RAW: u8 = 4;
/// The number of files.
const FILES: usize = 4;
/// The most bytes of an argument that `ioctls` takes.
const LONGEST: usize = 8192;
/// After how many sequences the number is written to the kernel's log.
const NOTES: u64 = 100;

/// One step, in the form that `ioctls` reads.
struct Step {
    what: What,
    file: u8,
    place: u8,
    cmd: u32,
    raw: u64,
    argument: Vec<u8>,
    fixes: Vec<(usize, Target, u64)>,
    image: Vec<u8>,
}

impl Step {
    fn new(what: What, file: usize) -> Self {
        Self {
            what,
            file: file as u8,
            place: 0,
            cmd: 0,
            raw: 0,
            argument: Vec::new(),
            fixes: Vec::new(),
            image: Vec::new(),
        }
    }

    fn call(file: usize, cmd: u32, argument: Vec<u8>) -> Self {
        Self {
            cmd,
            argument,
            ..Self::new(What::Call, file)
        }
    }

    fn write(&self, to: &mut impl Write) -> io::Result<()> {
        to.write_all(&[
            self.what as u8,
            self.file,
            self.place,
            self.fixes.len() as u8,
        ])?;
        to.write_all(&self.cmd.to_ne_bytes())?;
        to.write_all(&(self.argument.len() as u32).to_ne_bytes())?;
        to.write_all(&(self.image.len() as u32).to_ne_bytes())?;
        to.write_all(&self.raw.to_ne_bytes())?;
        to.write_all(&self.argument)?;
        for (offset, target, number) in &self.fixes {
            to.write_all(&(*offset as u16).to_ne_bytes())?;
            to.write_all(&(*target as u16).to_ne_bytes())?;
            to.write_all(&[0; 4])?;
            to.write_all(&number.to_ne_bytes())?;
        }
        to.write_all(&self.image)
    }
}

/// The steps of one sequence.
struct Sequence {
    random: Random,
    steps: Vec<Step>,
    images: u64,
    /// The process that executes the steps.
    own: u32,
    /// Another process, and the range of its program's code.
    process: u32,
    text: Range<u64>,
}

impl Sequence {
    fn new(seed: u64, number: u64, [own, process]: [u32; 2], text: &Range<u64>) -> Self {
        let mut this = Self {
            own,
            process,
            text: text.clone(),
            random: Random::of(seed, number),
            steps: Vec::new(),
            images: 0,
        };
        let file = this.random.below(FILES);
        this.steps.push(Step::new(What::Open, file));
        if this.random.one_in(3) {
            for _ in 0..4 + this.random.below(20) {
                let file = this.random.below(FILES);
                this.anything(file);
            }
        } else {
            this.life(file);
        }
        for file in 0..FILES {
            this.steps.push(Step::new(What::Close, file));
        }
        this
    }

    /// Adds what a consumer does, with a step of another kind now and then.
    fn life(&mut self, file: usize) {
        for _ in 0..1 + self.random.below(3) {
            self.enable(file);
            self.now_and_then(file);
        }
        self.simple(file, ioctl::GO, 4);
        for _ in 0..1 + self.random.below(4) {
            self.steps.push(Step::new(What::Work, file));
            self.now_and_then(file);
            for cmd in [ioctl::BUFSNAP, ioctl::AGGSNAP] {
                self.snapshot(file, cmd);
            }
            self.describe(file);
            self.simple(file, ioctl::STATUS, size_of::<Status>());
        }
        self.simple(file, ioctl::STOP, 4);
        self.snapshot(file, ioctl::BUFSNAP);
        self.now_and_then(file);
    }

    fn now_and_then(&mut self, file: usize) {
        if self.random.one_in(2) {
            let other = self.random.below(FILES);
            let file = self.random.choose(&[file, file, other]);
            self.anything(file);
        }
    }

    fn anything(&mut self, file: usize) {
        match self.random.below(18) {
            0 | 1 => self.enable(file),
            2 => self.simple(file, ioctl::GO, 4),
            3 => self.simple(file, ioctl::STOP, 4),
            4 => {
                let of = [ioctl::BUFSNAP, ioctl::AGGSNAP];
                let cmd = self.random.choose(&of);
                self.snapshot(file, cmd);
            }
            5 | 6 => self.describe(file),
            7 => self.look_up(file),
            8 => self.replicate(file),
            9 => self.texts(file),
            10 => {
                let of = [
                    (ioctl::STATUS, size_of::<Status>()),
                    (ioctl::STATUS_THIRD, ioctl::STATUS_THIRD_SIZE),
                    (ioctl::STATUS_SECOND, ioctl::STATUS_SECOND_SIZE),
                    (ioctl::STATUS_FIRST, ioctl::STATUS_FIRST_SIZE),
                    (ioctl::STATUS_COMMON, ioctl::STATUS_COMMON_SIZE),
                    (ioctl::CONF, size_of::<Conf>()),
                    (ioctl::REASON, size_of::<Reason>()),
                ];
                let (cmd, size) = self.random.choose(&of);
                self.simple(file, cmd, size);
            }
            11 => {
                // A call that does not exist, or an existing one with another size or direction.
                let known = self
                    .random
                    .choose(&[ioctl::STATUS, ioctl::BUFSNAP, ioctl::CONF]);
                let cmd = known ^ 1 << self.random.below(32);
                let random = self.random.next() as u32;
                let cmd = self.random.choose(&[cmd, random]);
                let size = self.random.below(512);
                self.simple(file, cmd, size);
            }
            12 => self.make_probes(file),
            14 => self.register(file),
            13 => {
                let of = [What::Open, What::Close, What::Fork, What::Work];
                let what = self.random.choose(&of);
                self.steps.push(Step::new(what, file));
            }
            _ => {
                let of = [What::Map, What::Read, What::Write, What::Poll, What::Info];
                let what = self.random.choose(&of);
                let raw = self.random.number();
                let step = Step::new(what, file);
                self.steps.push(Step { raw, ..step });
            }
        }
    }

    /// Adds a call: often unchanged, otherwise with the argument elsewhere or with other bytes, and
    /// sometimes twice at a time.
    fn add(&mut self, mut step: Step) {
        if self.random.one_in(6) {
            step.place = 1 + self.random.below(4) as u8;
            if step.place == RAW {
                step.raw = self.random.number();
            }
        }
        if self.random.one_in(8) && !step.argument.is_empty() {
            for _ in 0..1 + self.random.below(4) {
                let at = self.random.below(step.argument.len());
                step.argument[at] = self.random.number() as u8;
            }
        }
        if self.random.one_in(10) {
            step.what = What::Both;
        }
        step.argument.truncate(LONGEST);
        self.steps.push(step);
    }

    fn simple(&mut self, file: usize, cmd: u32, size: usize) {
        let argument = self.random.bytes(size);
        self.add(Step::call(file, cmd, argument));
    }

    /// Adds an address for the answers.
    fn room(&mut self, step: &mut Step, offset: usize) {
        let of = [
            Target::Room,
            Target::Room,
            Target::Room,
            Target::RoomEdge,
            Target::Constant,
            Target::Nowhere,
            Target::Number,
        ];
        let target = self.random.choose(&of);
        let number = self.random.number();
        step.fixes.push((offset, target, number));
    }

    fn enable(&mut self, file: usize) {
        let size = 8 + self.random.below(400);
        let image = live::image(&self.random.bytes(size));
        // Skip images that would stop the machine or take seconds.
        if !live::harmless(&image) || image.len() > 8 * 4096 {
            return;
        }
        self.images += 1;
        let mut step = Step::call(file, ioctl::ENABLE, vec![0; size_of::<Enable>()]);
        let of = [Target::Image, Target::ImageEdge];
        let mut target = self.random.choose(&of);
        if self.random.one_in(20) {
            target = self.random.choose(&[Target::Nowhere, Target::Number]);
        }
        let number = self.random.number();
        step.fixes.push((offset_of!(Enable, dof), target, number));
        step.image = image;
        self.add(step);
    }

    fn snapshot(&mut self, file: usize, cmd: u32) {
        let mut argument = vec![0; size_of::<BufDesc>()];
        let size = match self.random.one_in(4) {
            true => self.random.number(),
            // As much as a buffer holds.
            false => 200 << 10,
        };
        put(
            &mut argument,
            offset_of!(BufDesc, size),
            &size.to_ne_bytes(),
        );
        let cpu = match self.random.one_in(6) {
            true => self.random.number() as u32,
            false => self.random.below(2) as u32,
        };
        put(&mut argument, offset_of!(BufDesc, cpu), &cpu.to_ne_bytes());
        let mut step = Step::call(file, cmd, argument);
        self.room(&mut step, offset_of!(BufDesc, data));
        self.add(step);
    }

    /// Adds a query about something enabled, by its number.
    fn describe(&mut self, file: usize) {
        // Leaves space for `records` records behind the header.
        let records = self.random.below(64);
        let id = match self.random.one_in(6) {
            true => self.random.number() as u32,
            false => 1 + self.random.below(4) as u32,
        };
        let (cmd, size, id_at, count_at) = match self.random.below(2) {
            0 => (
                ioctl::EPROBE,
                size_of::<EprobeDesc>(),
                offset_of!(EprobeDesc, epid),
                offset_of!(EprobeDesc, nrecs),
            ),
            _ => (
                ioctl::AGGDESC,
                size_of::<AggDesc>(),
                offset_of!(AggDesc, id),
                offset_of!(AggDesc, nrecs),
            ),
        };
        let mut argument = vec![0; size + records * size_of::<ioctl::RecDesc>()];
        let count = match self.random.one_in(6) {
            true => self.random.number() as i32,
            false => records as i32,
        };
        put(&mut argument, id_at, &id.to_ne_bytes());
        put(&mut argument, count_at, &count.to_ne_bytes());
        self.add(Step::call(file, cmd, argument));
    }

    /// Adds a query about probes, providers and arguments.
    fn look_up(&mut self, file: usize) {
        match self.random.below(3) {
            0 => {
                let mut argument = self.random.bytes(size_of::<ProviderDesc>());
                let name = self
                    .random
                    .choose(&["fbt", "syscall", "profile", "", "nonesuch"]);
                text(&mut argument, offset_of!(ProviderDesc, name), name);
                self.add(Step::call(file, ioctl::PROVIDER, argument));
            }
            1 => {
                let mut argument = self.probe();
                let id = self.random.number() as u32;
                put(&mut argument, offset_of!(ProbeDesc, id), &id.to_ne_bytes());
                let cmd = self.random.choose(&[ioctl::PROBES, ioctl::PROBEMATCH]);
                self.add(Step::call(file, cmd, argument));
            }
            _ => {
                let mut argument = vec![0; size_of::<ArgDesc>()];
                let (id, ndx) = (
                    self.random.below(60_000) as u32,
                    self.random.number() as i32,
                );
                put(&mut argument, offset_of!(ArgDesc, id), &id.to_ne_bytes());
                put(&mut argument, offset_of!(ArgDesc, ndx), &ndx.to_ne_bytes());
                self.add(Step::call(file, ioctl::PROBEARG, argument));
            }
        }
    }

    /// A description of one function's probes.
    fn probe(&mut self) -> Vec<u8> {
        let mut argument = vec![0; size_of::<ProbeDesc>()];
        let provider = self
            .random
            .choose(&["fbt", "syscall", "", "f*", "nonesuch"]);
        let func = self
            .random
            .choose(&["getppid", "vfs_read", "nonesuch", "vfs_rea[cd]"]);
        text(&mut argument, offset_of!(ProbeDesc, provider), provider);
        text(&mut argument, offset_of!(ProbeDesc, func), func);
        argument
    }

    fn replicate(&mut self, file: usize) {
        let mut argument = self.probe();
        argument.extend(self.probe());
        debug_assert_eq!(argument.len(), size_of::<ReplDesc>());
        // Added unchanged, because with a changed byte it might match all functions.
        self.steps
            .push(Step::call(file, ioctl::REPLICATE, argument.clone()));
        // Removes what was copied to the second description.
        let to = argument.split_off(size_of::<ProbeDesc>());
        self.steps.push(Step::call(file, ioctl::RETRACT, to));
    }

    /// Adds a query with an answer of variable length: formats, options, the anonymous enabling.
    fn texts(&mut self, file: usize) {
        let size = self.random.number();
        match self.random.below(3) {
            0 => {
                let mut argument = vec![0; size_of::<FmtDesc>()];
                let (length, format) = (size as i32, self.random.below(4) as u16);
                put(
                    &mut argument,
                    offset_of!(FmtDesc, length),
                    &length.to_ne_bytes(),
                );
                put(
                    &mut argument,
                    offset_of!(FmtDesc, format),
                    &format.to_ne_bytes(),
                );
                let mut step = Step::call(file, ioctl::FORMAT, argument);
                self.room(&mut step, offset_of!(FmtDesc, string));
                self.add(step);
            }
            1 => {
                let mut argument = vec![0; 4096];
                let room = self.random.choose(&[size, 4096]);
                put(&mut argument, offset_of!(Hdr, loadsz), &room.to_ne_bytes());
                self.add(Step::call(file, ioctl::DOFGET, argument));
            }
            _ => {
                let mut argument = vec![0; size_of::<AnonDesc>()];
                put(
                    &mut argument,
                    offset_of!(AnonDesc, size),
                    &size.to_ne_bytes(),
                );
                let mut step = Step::call(file, ioctl::ANONGET, argument);
                self.room(&mut step, offset_of!(AnonDesc, data));
                self.add(step);
            }
        }
    }
}

fn put(to: &mut [u8], at: usize, bytes: &[u8]) {
    to[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Writes a string and its NUL.
fn text(to: &mut [u8], at: usize, text: &str) {
    put(to, at, text.as_bytes());
    put(to, at + text.len(), &[0]);
}

/// When to stop.
enum Extent {
    Sequences(u64),
    Time(Duration),
}

impl Extent {
    fn parse(text: &str) -> Option<Self> {
        match text.strip_suffix('s') {
            Some(seconds) => Some(Self::Time(Duration::from_secs(seconds.parse().ok()?))),
            None => Some(Self::Sequences(text.parse().ok()?)),
        }
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let (seed, extent, first) = match args.as_slice() {
        [seed, extent] => (seed.parse().ok(), Extent::parse(extent), Some(0)),
        [seed, extent, first] => (seed.parse().ok(), Extent::parse(extent), first.parse().ok()),
        _ => (None, None, None),
    };
    let (Some(seed), Some(extent), Some(first)) = (seed, extent, first) else {
        eprintln!("usage: ioctl-fuzz SEED SEQUENCES|SECONDSs [FIRST]");
        return ExitCode::from(2);
    };
    match fuzz(seed, &extent, first) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("ioctl-fuzz: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Generates the sequences and has them executed; returns whether `ioctls` found no fault.
fn fuzz(seed: u64, extent: &Extent, first: u64) -> io::Result<bool> {
    let start = Instant::now();
    let mut prey = Command::new("sleep").arg("infinity").spawn()?;
    let text = probes::text_of(prey.id())?;
    let mut done = Command::new("ioctls").stdin(Stdio::piped()).spawn()?;
    let pipe = done.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let mut pipe = BufWriter::new(pipe);
    let (mut number, mut images, mut steps) = (first, 0, 0);
    loop {
        let on = match extent {
            Extent::Sequences(n) => number - first < *n,
            Extent::Time(limit) => start.elapsed() < *limit,
        };
        if !on {
            break;
        }
        if number % NOTES == 0 {
            note(
                &mut pipe,
                &format!("ioctl-fuzz: seed {seed}, sequence {number}"),
            )?;
        }
        let sequence = Sequence::new(seed, number, [done.id(), prey.id()], &text);
        for step in &sequence.steps {
            step.write(&mut pipe)?;
        }
        images += sequence.images;
        steps += sequence.steps.len();
        number += 1;
    }
    drop(pipe);
    let status = done.wait()?;
    prey.kill()?;
    prey.wait()?;
    println!(
        "seed {seed}: {} sequences of {steps} steps, {images} images, {} s",
        number - first,
        start.elapsed().as_secs()
    );
    Ok(status.success())
}

fn note(pipe: &mut BufWriter<ChildStdin>, text: &str) -> io::Result<()> {
    let mut step = Step::new(What::Note, 0);
    step.argument = text.as_bytes().to_vec();
    step.write(pipe)
}
