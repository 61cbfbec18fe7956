// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The measured loops, over one operation of the kernel or one call in another program, and the
//! cost of a turn.
//!
//! In a machine whose clock counts instructions, a nanosecond is an instruction. The timer's
//! interrupts and the tracer's own work fall into some rounds and not into others, so the cheapest
//! of many short rounds is the cost of a turn by itself. Two threads that wake each other are
//! different: the scheduler has several paths for them, and each round may take any of them, so the
//! median counts there.
//!
//! The loop pauses between rounds, so that a tracer that reads its buffers periodically does so
//! before they are full, and no round is cheap because its events were dropped.

use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::parent_id;
use std::process::Command;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use crate::calls;

use rustix::fs::OFlags;
use rustix::pipe::pipe;

const ROUNDS: u32 = 200;
/// A hundred rounds with their pauses take more than a second.
const PAUSE: Duration = Duration::from_millis(10);

/// The operation that a turn of a loop executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// getppid(2), which does almost nothing.
    Getppid,
    /// read(2) of one byte of /dev/zero.
    Read,
    /// stat(2) of a file that does not exist.
    Stat,
    /// openat(2) of a file that does not exist, with a path of 27 characters.
    Open,
    /// Two threads that wake each other through pipes: two context switches per turn.
    Switch,
    /// A block read that bypasses the page cache, from a device that does nothing.
    Block,
    /// Instructions in user space.
    Compute,
    /// A call of a function of another program that begins with `endbr64`.
    Marked,
    /// A call of one that begins with `push`.
    Pushing,
    /// A call of one that contains a USDT probe.
    Telling,
    /// A call of a function below calls of seven others, in another process, without frame
    /// pointers.
    Nested,
    /// The same with frame pointers.
    Framed,
}

/// On a file system in memory, because the timing of a disk or a host is not repeatable.
const MISSING: &str = "/dev/shm/this/is-not/there!";
const DEVICE: &str = "/dev/nullb0";
const BLOCK: usize = 4096;

impl Operation {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Getppid => "getppid",
            Self::Read => "read",
            Self::Stat => "stat",
            Self::Open => "openat",
            Self::Switch => "switch",
            Self::Block => "block read",
            Self::Compute => "compute",
            Self::Marked => "marked",
            Self::Pushing => "pushing",
            Self::Telling => "telling",
            Self::Nested => "nested",
            Self::Framed => "framed",
        }
    }

    /// How many turns a round has; fewer if a turn is long, because there must be many short
    /// rounds.
    pub fn turns(self) -> u32 {
        match self {
            Self::Switch | Self::Block => 25,
            Self::Compute => 1,
            _ => 100,
        }
    }

    /// How many turns a measurement has.
    pub fn all(self) -> u32 {
        ROUNDS * self.turns()
    }

    /// Prepares what the operation needs.
    pub fn prepare(self) -> io::Result<Loop> {
        match self {
            Self::Marked | Self::Pushing | Self::Telling | Self::Nested | Self::Framed => {
                Ok(Loop::There(self.name()))
            }
            _ => self.here().map(Loop::Here),
        }
    }

    fn here(self) -> io::Result<Box<dyn FnMut() -> io::Result<()>>> {
        Ok(match self {
            Self::Getppid => Box::new(|| {
                black_box(parent_id());
                Ok(())
            }),
            Self::Read => {
                let mut zero = File::open("/dev/zero")?;
                let mut byte = [0u8; 1];
                Box::new(move || zero.read(black_box(&mut byte)).map(drop))
            }
            Self::Stat => Box::new(|| {
                let _missing = black_box(std::fs::metadata(MISSING));
                Ok(())
            }),
            Self::Open => Box::new(|| {
                let _missing = black_box(File::open(MISSING));
                Ok(())
            }),
            Self::Switch => {
                let (mut request, mut reply) = partner()?;
                let mut byte = [0u8; 1];
                Box::new(move || {
                    request.write_all(&byte)?;
                    reply.read_exact(&mut byte)
                })
            }
            Self::Block => {
                let loaded = Command::new("modprobe").arg("null_blk").status()?;
                if !loaded.success() {
                    return Err(io::Error::other("null_blk does not load"));
                }
                let mut device = OpenOptions::new()
                    .read(true)
                    .custom_flags(OFlags::DIRECT.bits() as i32)
                    .open(DEVICE)?;
                let mut room = vec![0u8; 2 * BLOCK];
                let start = room.as_ptr().align_offset(BLOCK);
                Box::new(move || {
                    device.seek(SeekFrom::Start(0))?;
                    device.read_exact(&mut room[start..start + BLOCK])
                })
            }
            Self::Compute => Box::new(|| {
                let mut sum = 0u64;
                for n in 0..1_000_000u64 {
                    sum = black_box(sum.wrapping_mul(31).wrapping_add(n));
                }
                black_box(sum);
                Ok(())
            }),
            Self::Marked | Self::Pushing | Self::Telling | Self::Nested | Self::Framed => {
                unreachable!("another program does it")
            }
        })
    }
}

/// A prepared operation.
pub enum Loop {
    /// Executes one turn.
    Here(Box<dyn FnMut() -> io::Result<()>>),
    /// The function of the other program that executes it.
    There(&'static str),
}

impl Loop {
    /// Returns how long `turns` turns take.
    pub fn run(&mut self, turns: u32) -> io::Result<Duration> {
        match self {
            Self::Here(turn) => {
                let start = Instant::now();
                for _ in 0..turns {
                    turn()?;
                }
                Ok(start.elapsed())
            }
            Self::There(function) => calls::run(function, turns),
        }
    }
}

/// Starts a thread that answers each byte with a byte. Returns the ends of the pipes to it and from
/// it.
fn partner() -> io::Result<(File, File)> {
    let ((theirs, request), (reply, answer)) = (pipe()?, pipe()?);
    let (mut theirs, mut answer) = (File::from(theirs), File::from(answer));
    thread::spawn(move || {
        let mut byte = [0u8; 1];
        while theirs.read_exact(&mut byte).is_ok() && answer.write_all(&byte).is_ok() {}
    });
    Ok((File::from(request), File::from(reply)))
}

/// What the turns of one measurement cost, in instructions.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// One turn in the representative round: the cheapest, or the median of switches.
    pub usual: f64,
    /// All turns, with everything else that ran meanwhile, but without the pauses.
    pub total: f64,
}

/// Measures an operation.
pub fn measure(operation: Operation) -> io::Result<Cost> {
    let mut turn = operation.prepare()?;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        sleep(PAUSE);
        let took = turn.run(operation.turns())?;
        rounds.push(took.as_nanos() as f64 / f64::from(operation.turns()));
    }
    let total = rounds.iter().sum::<f64>() * f64::from(operation.turns());
    rounds.sort_by(f64::total_cmp);
    let counts = match operation {
        Operation::Switch => rounds.len() / 2,
        _ => 0,
    };
    Ok(Cost {
        usual: rounds[counts],
        total,
    })
}
