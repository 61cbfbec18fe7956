// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Runs many cases in one machine.
//!
//! Each case has a directory in the run directory: its command and limit go in, its output and
//! status come back. The guest works through them in order. If the machine dies, or does not end a
//! case that exceeds its limit, the case that ran at that time is blamed, and the remaining cases
//! continue in another machine. One kind of death is not the kernel's fault: a breakpoint that the
//! emulator executed but that memory does not contain. Then the case runs once more, alone in a
//! machine whose processors take turns, where this cannot happen.
//!
//! The computer itself may stand still, because it is suspended or migrated, while its clock goes
//! on. The guest sees all that time pass at once: limits expire, and the deadman kills consumers.
//! The case that ran then runs once more.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use crate::accel::Accel;
use crate::console;
use crate::vm::{read_lossy, Order, Setup, Vm, POLL};

/// How long a machine may take until its first case begins. An emulated one on a busy computer
/// takes a minute; on rare occasions a boot hangs.
const BOOT: Duration = Duration::from_secs(90);
/// After this many machines in a row that did not start, the remaining cases are given up.
const STARTS: u32 = 2;
/// How much longer than a case's limit the guest may take to report the timeout, which it enforces
/// itself.
const GRACE: Duration = Duration::from_secs(20);
/// Such a gap between two looks at a machine means that the computer stood still. Load alone does
/// not delay a sleeping thread that long.
const STANDSTILL: Duration = Duration::from_secs(15);

/// What the machine does for one case.
#[derive(Clone, Debug)]
pub struct Work {
    /// The case's name.
    pub name: String,
    /// The text that bash runs.
    pub command: String,
    /// How long it may take before it is ended.
    pub limit: Duration,
    /// The machine cannot be used after it: the next case gets another ([`crate::blocks`]).
    pub last: bool,
}

/// The results of a case.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The exit status; 124, 137 or 143 if the limit ended it.
    pub status: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// The kernel's message about a program that died of a breakpoint.
    pub trapped: Option<String>,
    /// How long it took.
    pub took: Duration,
}

impl Outcome {
    /// Whether its time limit ended it: 124 is timeout(1)'s status, 137 and 143 are those of a
    /// process that it killed.
    pub fn timed_out(&self) -> bool {
        matches!(self.status, 124 | 137 | 143)
    }
}

/// How a case ended: an outcome, which the caller judges, or a report on what the case did to the
/// machine.
pub type Ending = Result<Outcome, String>;

/// Runs the cases. Calls `report` with each ending as it comes, and with the case's index in
/// `cases`. `runner` is a script that works through the cases in the machine in place of init.
pub fn run(
    setup: &Setup,
    runner: Option<&str>,
    cases: &[Work],
    report: &mut dyn FnMut(usize, Ending),
) -> io::Result<()> {
    let mut next = 0;
    let mut again = false;
    let mut idle = 0;
    while next < cases.len() {
        let before = next;
        let mut setup = setup.clone();
        let mut some = cases;
        if again {
            setup.accel = Some(Accel::TcgTurns);
            some = &cases[..=next];
        }
        let mut machine = Machine::boot(&setup, runner, some, next)?;
        let parting = machine.follow(some, &mut next, report)?;
        again = parting == Parting::StaleCode;
        machine.end(next == some.len())?;
        idle = if next == before && parting == Parting::Over {
            idle + 1
        } else {
            0
        };
        if idle == STARTS {
            let log = console::excerpt(&machine.log);
            for at in next..cases.len() {
                report(at, Err(format!("the machine did not start\n{log}")));
            }
            return Ok(());
        }
    }
    Ok(())
}

/// Why a machine is left. Only with `Over` the case that ran has been reported; otherwise it runs
/// once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parting {
    /// The cases are done, or the machine has ended.
    Over,
    /// The emulator failed.
    StaleCode,
    /// The computer stood still.
    StoodStill,
}

/// When the harness last looked at a machine.
struct Look {
    since: Instant,
    clock: SystemTime,
}

impl Look {
    fn now() -> Self {
        Self {
            since: Instant::now(),
            clock: SystemTime::now(),
        }
    }

    /// How long ago that was. Uses both clocks, because what held the computer up determines which
    /// of them went on.
    fn ago(&self) -> Duration {
        let by_clock = self.clock.elapsed().unwrap_or_default();
        self.since.elapsed().max(by_clock)
    }
}

struct Machine {
    setup: Setup,
    vm: Vm,
    dir: PathBuf,
    log: String,
    kept: PathBuf,
}

impl Machine {
    /// Boots a machine for the cases from `first` on.
    fn boot(setup: &Setup, runner: Option<&str>, cases: &[Work], first: usize) -> io::Result<Self> {
        let dir = setup.run_dir("cases")?;
        if let Some(text) = runner {
            fs::write(dir.join("runner"), text)?;
        }
        for (at, case) in cases.iter().enumerate().skip(first) {
            let of = case_dir(&dir, at, case);
            fs::create_dir_all(&of)?;
            fs::write(of.join("command"), &case.command)?;
            let limit = setup.limit(case.limit).as_secs();
            fs::write(of.join("limit"), format!("{limit}\n"))?;
        }
        let vm = Vm::boot(setup, &dir, &Order::Cases)?;
        let kept = setup.build.join("console-failed");
        Ok(Self {
            setup: setup.clone(),
            vm,
            dir,
            log: String::new(),
            kept,
        })
    }

    /// Reports endings until the cases are done or the machine has ended.
    fn follow(
        &mut self,
        cases: &[Work],
        next: &mut usize,
        report: &mut dyn FnMut(usize, Ending),
    ) -> io::Result<Parting> {
        let mut since = Instant::now();
        let mut look = Look::now();
        let mut begun = BTreeMap::new();
        while let Some(case) = cases.get(*next) {
            let dir = case_dir(&self.dir, *next, case);
            if let Some(status) = status(&dir) {
                let took = begun.get(next).unwrap_or(&since).elapsed();
                report(*next, self.ending(&dir, status, took));
                *next += 1;
                since = Instant::now();
                continue;
            }
            let started = dir.join("started").exists();
            if started {
                begun.entry(*next).or_insert_with(Instant::now);
            }
            let usual = if started { case.limit + GRACE } else { BOOT };
            let limit = self.setup.limit(usual);
            let waited = begun.get(next).unwrap_or(&since).elapsed();
            if self.vm.running()? && waited <= limit {
                sleep(POLL);
                if look.ago() > STANDSTILL {
                    eprintln!("{}: once more, for the computer stood still", case.name);
                    return Ok(Parting::StoodStill);
                }
                look = Look::now();
                continue;
            }
            if status(&dir).is_some() {
                continue;
            }
            self.log = self.vm.console();
            if started && self.emulator_failed() {
                self.keep(&dir, &self.log);
                eprintln!("{}: once more, for the emulator ran stale code", case.name);
                return Ok(Parting::StaleCode);
            }
            if started {
                report(*next, Err(self.blame(case, &dir)));
                *next += 1;
            }
            return Ok(Parting::Over);
        }
        Ok(Parting::Over)
    }

    fn ending(&self, dir: &Path, status: i32, took: Duration) -> Ending {
        let log = self.vm.console();
        if let Some(line) = console::trouble_in_case(&log, &dir_name(dir)) {
            self.keep(dir, &log);
            return Err(format!(
                "the kernel complained: {line}\n{}",
                console::excerpt(&log)
            ));
        }
        Ok(Outcome {
            status,
            stdout: read_lossy(&dir.join("stdout")),
            stderr: read_lossy(&dir.join("stderr")),
            trapped: console::trapped_in_case(&log, &dir_name(dir)).map(str::to_owned),
            took,
        })
    }

    fn emulator_failed(&self) -> bool {
        self.vm.may_run_stale_code() && console::stale_breakpoint(&self.log)
    }

    /// The report on a case that took the machine down.
    fn blame(&self, case: &Work, dir: &Path) -> String {
        self.keep(dir, &self.log);
        let what = if console::dead(&self.log) {
            "the kernel died"
        } else {
            "the machine hung or ended"
        };
        format!(
            "{what} during {}\n{}\n--- standard output\n{}---",
            case.name,
            console::excerpt(&self.log),
            read_lossy(&dir.join("stdout"))
        )
    }

    /// Saves the console's log of a failure in the build folder.
    fn keep(&self, dir: &Path, log: &str) {
        let file = self.kept.join(format!("{}.log", dir_name(dir)));
        // Errors are ignored: the report has the excerpt in any case.
        let _ = fs::create_dir_all(&self.kept).and_then(|()| fs::write(file, log));
    }

    /// Ends the machine; waits for it to power off if its work is done.
    fn end(&mut self, done: bool) -> io::Result<()> {
        if done {
            self.vm.wait_status(GRACE)?;
            self.vm.stop();
        } else {
            self.vm.kill();
        }
        fs::remove_dir_all(&self.dir)
    }
}

/// The directory's name contains the index, which orders the cases; it is also the case's name in
/// the console's log.
fn case_dir(dir: &Path, at: usize, case: &Work) -> PathBuf {
    let flat = case.name.replace('/', "-");
    dir.join("cases").join(format!("{at:04}-{flat}"))
}

/// The status of the case, once its line is complete.
fn status(dir: &Path) -> Option<i32> {
    read_lossy(&dir.join("status"))
        .strip_suffix('\n')?
        .parse()
        .ok()
}

fn dir_name(dir: &Path) -> String {
    dir.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standstill_shows_on_either_clock() {
        let before = STANDSTILL + Duration::from_secs(1);
        let moved = Look {
            clock: SystemTime::now() - before,
            ..Look::now()
        };
        assert!(moved.ago() > STANDSTILL);
        let suspended = Look {
            since: Instant::now() - before,
            ..Look::now()
        };
        assert!(suspended.ago() > STANDSTILL);
    }

    #[test]
    fn a_clock_that_is_put_back_is_no_standstill() {
        let put_back = Look {
            clock: SystemTime::now() + 2 * STANDSTILL,
            ..Look::now()
        };
        // Load may delay this, but not for an hour.
        assert!(put_back.ago() < Duration::from_secs(3600));
    }
}
