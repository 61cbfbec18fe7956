// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Determines how far a process runs before tracing begins.
//!
//! A created process is stopped at its exec. A user who traces a program is usually not interested
//! in the work of the dynamic linker and of the initializers, so by default the process runs on to
//! its `main()`. This needs no symbols: the kernel gives the program's entry point, and the code
//! there does nothing but call the C library with `main` as the first argument. A program that
//! begins differently, because it is not a C program, stays at that call.
//!
//! Invariant: the process is stopped before and after, and its text is unchanged.

use crate::symbols::mappings_of;
use dtrace_compiler::options::EvalTime;
use dtrace_files::arch::stopped;
use nix::sys::ptrace::{self, AddressType};
use nix::sys::signal::Signal;
use nix::sys::wait::{waitpid, WaitStatus};
use nix::unistd::Pid;
use std::fs;
use std::io;
use std::ops::Range;

/// Tag of the program's entry point in the auxiliary vector.
const AT_ENTRY: u64 = 9;
/// Upper limit of the size of the code that calls the C library, in bytes.
const START_SIZE: u64 = 64;
/// Most instructions of that code that are executed.
const START_STEPS: usize = 40;

/// Lets `pid`, which is stopped at its exec, run until `until`. `Postinit` and `Main` are the same
/// point. A process of a machine whose registers are not known stays at its exec.
pub fn run(pid: Pid, until: EvalTime) -> io::Result<()> {
    if until == EvalTime::Exec || !stopped::IS_KNOWN {
        return Ok(());
    }
    let vector = fs::read(format!("/proc/{pid}/auxv"))?;
    let Some(entry) = entry(&vector) else {
        // A 32-bit program stays at its exec, because its auxiliary vector has smaller words.
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

/// Returns the program's entry point from its auxiliary vector; `None` for a 32-bit program.
fn entry(vector: &[u8]) -> Option<u64> {
    let word = |bytes: &[u8]| bytes.try_into().map(u64::from_ne_bytes).unwrap_or(0);
    let mut pairs = vector.chunks_exact(16).map(|pair| pair.split_at(8));
    let found = pairs.find(|(tag, _)| word(tag) == AT_ENTRY);
    found.map(|(_, value)| word(value))
}

/// Returns the address ranges of the program's own code.
fn text_of_program(pid: Pid) -> io::Result<Vec<Range<u64>>> {
    let program = fs::read_link(format!("/proc/{pid}/exe"))?;
    let program = program.to_string_lossy();
    let number = u32::try_from(pid.as_raw()).map_err(io::Error::other)?;
    let mappings = mappings_of(number)?.into_iter();
    let code = mappings.filter(|mapping| mapping.is_code && mapping.path == program);
    Ok(code.map(|mapping| mapping.start..mapping.end).collect())
}

/// Lets the process run until it reaches the instruction at `address`, which is not executed.
fn run_to(pid: Pid, address: u64) -> io::Result<()> {
    let place = address as AddressType;
    let original = ptrace::read(pid, place)?;
    ptrace::write(pid, place, stopped::stopping(original))?;
    ptrace::cont(pid, None)?;
    await_stop(pid)?;
    ptrace::write(pid, place, original)?;
    // The breakpoint has advanced the program counter by one byte.
    stopped::set_pc(pid, address)?;
    Ok(())
}

/// Waits until the process stops with `SIGTRAP`. Other signals are delivered to it.
fn await_stop(pid: Pid) -> io::Result<()> {
    loop {
        match waitpid(pid, None)? {
            WaitStatus::Stopped(_, Signal::SIGTRAP) => return Ok(()),
            WaitStatus::Stopped(_, signal) => ptrace::cont(pid, signal)?,
            // A process that was seized also reports stops that we did not cause.
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

    /// Creates a process that runs until `until`, and returns it and its mappings.
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
