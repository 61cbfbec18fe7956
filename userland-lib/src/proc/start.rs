// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! How far a created process runs before tracing begins.
//!
//! It is stopped at its exec. A user who traces what a program does wants neither the dynamic linker's work nor the
//! initializers' in the way, so by default the process goes on to its `main()`. No symbol is needed to find it: the
//! kernel tells where the program begins, and what begins there does nothing but hand `main` to the C library as the
//! first argument of a call. A program that begins otherwise (one that is not C's) stays at that call.
//!
//! Invariant: the process is stopped before and after, and its text is as it was.

use crate::arch::stopped;
use crate::options::EvalTime;
use crate::symbols::mappings_of;
use nix::sys::ptrace::{self, AddressType};
use nix::sys::signal::Signal;
use nix::sys::wait::{waitpid, WaitStatus};
use nix::unistd::Pid;
use std::fs;
use std::io;
use std::ops::Range;

/// The tag of the program's first instruction in the auxiliary vector.
const AT_ENTRY: u64 = 9;
/// The code that calls the C library is shorter than this, bytes.
const START_SIZE: u64 = 64;
/// Instructions of that code at most.
const START_STEPS: usize = 40;

/// Lets `pid`, stopped at its exec, run until `until`.
pub fn run(pid: Pid, until: EvalTime) -> io::Result<()> {
    if until == EvalTime::Exec {
        return Ok(());
    }
    let vector = fs::read(format!("/proc/{pid}/auxv"))?;
    let Some(entry) = entry(&vector) else {
        // A program of 32 bits, whose vector has other words, stays where it is.
        return Ok(());
    };
    run_to(pid, entry)?;
    if until == EvalTime::Preinit {
        return Ok(());
    }
    for _ in 0..START_STEPS {
        ptrace::step(pid, None)?;
        await_stop(pid)?;
        if !(entry..entry + START_SIZE).contains(&stopped::pc(pid)?) {
            let program = text_of_program(pid)?;
            let main = stopped::first_argument(pid)?;
            if program.iter().any(|range| range.contains(&main)) {
                run_to(pid, main)?;
            }
            break;
        }
    }
    Ok(())
}

/// The program's first instruction, as the kernel has told the process in its auxiliary vector.
fn entry(vector: &[u8]) -> Option<u64> {
    let word = |bytes: &[u8]| bytes.try_into().map(u64::from_ne_bytes).unwrap_or(0);
    let mut pairs = vector.chunks_exact(16).map(|pair| pair.split_at(8));
    let found = pairs.find(|(tag, _)| word(tag) == AT_ENTRY);
    found.map(|(_, value)| word(value))
}

/// The addresses of the program's own code.
fn text_of_program(pid: Pid) -> io::Result<Vec<Range<u64>>> {
    let program = fs::read_link(format!("/proc/{pid}/exe"))?;
    let program = program.to_string_lossy();
    let number = u32::try_from(pid.as_raw()).map_err(io::Error::other)?;
    let mappings = mappings_of(number)?.into_iter();
    let code = mappings.filter(|mapping| mapping.is_code && mapping.path == program);
    Ok(code.map(|mapping| mapping.start..mapping.end).collect())
}

/// Lets the process run to the instruction at `address`, which is not executed.
fn run_to(pid: Pid, address: u64) -> io::Result<()> {
    let place = address as AddressType;
    let original = ptrace::read(pid, place)?;
    ptrace::write(pid, place, stopped::stopping(original))?;
    ptrace::cont(pid, None)?;
    await_stop(pid)?;
    ptrace::write(pid, place, original)?;
    stopped::set_pc(pid, address)?;
    Ok(())
}

/// Waits until the process stops for us; signals are its own business.
fn await_stop(pid: Pid) -> io::Result<()> {
    loop {
        match waitpid(pid, None)? {
            WaitStatus::Stopped(_, Signal::SIGTRAP) => return Ok(()),
            WaitStatus::Stopped(_, signal) => ptrace::cont(pid, signal)?,
            // One that was taken tells of stops that are none of ours.
            WaitStatus::PtraceEvent(..) => ptrace::cont(pid, None)?,
            other => {
                return Err(io::Error::other(format!(
                    "the process did not get to its main(): {other:?}"
                )))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Target;
    use super::*;

    /// The mappings of a process that was created to run `until`.
    fn mappings(until: EvalTime) -> (Target, String) {
        let target = Target::create("cat /dev/null", &[], until).unwrap();
        let maps = fs::read_to_string(format!("/proc/{}/maps", target.pid())).unwrap();
        (target, maps)
    }

    #[test]
    fn the_linker_has_done_its_work_before_the_program_begins() {
        assert!(!mappings(EvalTime::Exec).1.contains("libc.so"));
        for until in [EvalTime::Preinit, EvalTime::Postinit, EvalTime::Main] {
            let (target, maps) = mappings(until);
            assert!(maps.contains("libc.so"), "{until:?}: {maps}");
            let pid = Pid::from_raw(i32::try_from(target.pid()).unwrap());
            let at = stopped::pc(pid).unwrap();
            let text = text_of_program(pid).unwrap();
            assert!(text.iter().any(|range| range.contains(&at)), "{until:?}");
            let vector = fs::read(format!("/proc/{pid}/auxv")).unwrap();
            let is_entry = Some(at) == entry(&vector);
            assert_eq!(is_entry, until == EvalTime::Preinit, "{until:?}");
        }
    }

    #[test]
    fn a_vector_of_narrow_words_tells_nothing() {
        let narrow = [6u32, 4096, 9, 0x0804_8000, 0, 0].map(u32::to_ne_bytes);
        assert_eq!(entry(narrow.as_flattened()), None);
        let wide = [6u64, 4096, 9, 0x40_1000, 0, 0].map(u64::to_ne_bytes);
        assert_eq!(entry(wide.as_flattened()), Some(0x40_1000));
    }

    #[test]
    fn a_process_goes_on_as_if_nothing_had_been() {
        for until in [EvalTime::Preinit, EvalTime::Main] {
            let mut target = Target::create("sh -c 'exit 5'", &[], until).unwrap();
            target.release().unwrap();
            let ended = loop {
                if let Some(ended) = target.ended().unwrap() {
                    break ended;
                }
                std::thread::yield_now();
            };
            assert_eq!(ended.ending, super::super::Ending::Status(5), "{until:?}");
        }
    }
}
