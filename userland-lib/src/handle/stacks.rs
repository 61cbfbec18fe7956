// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Unwind tables for user stacks, made if a consumer records such stacks.
//!
//! When tracing starts, the tables of the watched processes' files are made before created
//! processes continue. For any other file the kernel requests the table when a stack first leads
//! into it. We serve these requests periodically; until then the kernel assumes that functions in
//! the file have frame pointers. A consumer that may not trace all processes cannot make tables and
//! uses those that others have made.

use super::names::Names;
use dtrace_compiler::options::Options;
use dtrace_compiler::program::Program;
use dtrace_consumer::device::Device;
use dtrace_machine::interp;
use dtrace_machine::symbols::{mappings_of, open_mapped, Backing};
use dtrace_machine::unwind::{self, Cache};
use dtrace_uapi::action::Action;
use dtrace_uapi::dif::{Instr, Op};
use dtrace_uapi::option::{Opt, USTACKMODE_FP};
use dtrace_uapi::subr::Subr;
use dtrace_uapi::var::Var;
use std::cell::OnceCell;
use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, Instant};

/// Longest time for which tables are made before records are read again.
const MOMENT: Duration = Duration::from_millis(50);

/// The state of unwind tables, and of what names in stacks need.
#[derive(Default)]
pub struct Stacks {
    /// Tables are made: a program needs them, and the kernel takes them.
    is_wanted: bool,
    /// User addresses are recorded.
    are_told: bool,
    /// Walkers are enabled.
    has_walkers: bool,
    /// The files whose tables [`prepare`](Self::prepare) has made.
    known: HashSet<Backing>,
    /// Tables are cached on disk.
    are_kept: bool,
    /// The cache, opened when the first table is made. `None` inside: it is off or cannot be used.
    cache: OnceCell<Option<Cache>>,
}

impl Stacks {
    /// Notes what an enabled program needs. `furnished` is the program as it was enabled, if it
    /// differs.
    pub fn add(&mut self, program: &Program, furnished: Option<&Program>, options: &Options) {
        self.has_walkers |= furnished.is_some();
        self.is_wanted |= by_table(options) && walks(program);
        self.are_told |= tells(program);
        self.are_kept = !options.compile.nounwindcache;
    }

    /// Returns the program with the walkers for interpreted code and with room for the frames that
    /// they find in its stacks. `None` if it needs none and is enabled as it is. The program was
    /// compiled for a `module` of this interface.
    pub fn furnish(&self, program: &Program, options: &Options, module: u32) -> Option<Program> {
        let in_values = in_values(options, module) && is_executed(program, makes_stack);
        let in_records = interprets(options) && is_done(program, is_user_stack);
        if !(in_values || in_records) {
            return None;
        }
        let frames = options.get(Opt::Ustackframes)?;
        let frames = u32::try_from(frames).unwrap_or(u32::MAX);
        Some(Program {
            clauses: interp::with_room(program, frames),
            // A consumer needs the walkers once.
            walkers: match self.has_walkers {
                true => Vec::new(),
                false => interp::walkers(),
            },
            ..Program::default()
        })
    }

    /// Prepares what names of recorded addresses need later: the mappings of processes that end, if
    /// user addresses are recorded, and the names of frames of interpreted code, if walkers are
    /// enabled.
    pub fn keep(&self, device: &dyn Device, names: &Names) -> io::Result<()> {
        if self.are_told {
            names.keep(device.remains()?);
        }
        if self.has_walkers {
            names.ask(device.frames());
        }
        Ok(())
    }

    /// Makes the tables of the files that a process has mapped as code.
    pub fn prepare(&mut self, device: &dyn Device, pid: u32) {
        let mappings = match self.is_wanted {
            true => mappings_of(pid).unwrap_or_default(),
            false => Vec::new(),
        };
        for mapping in mappings.iter().filter(|mapping| mapping.is_code) {
            let is_new = matches!(mapping.backing, Backing::File { .. })
                && self.known.insert(mapping.backing);
            if !(is_new && self.is_wanted) {
                continue;
            }
            if let Ok(file) = open_mapped(pid, mapping) {
                self.is_wanted = self.give(device, &file);
            }
        }
    }

    /// Makes the tables that the kernel requests, for [`MOMENT`] at most.
    pub fn serve(&mut self, device: &dyn Device) {
        let begin = Instant::now();
        while self.is_wanted && begin.elapsed() < MOMENT {
            match device.wanted() {
                Ok(Some(file)) => self.is_wanted = self.give(device, &file),
                Ok(None) => return,
                Err(error) => self.is_wanted = may_go_on(&error),
            }
        }
    }

    /// Makes the table of a file and gives it to the kernel; an empty one if the file has none.
    /// Returns whether another table may be made.
    fn give(&self, device: &dyn Device, file: &File) -> bool {
        let Ok(about) = file.metadata() else {
            return true;
        };
        let changed = (about.ctime() as u64)
            .wrapping_mul(1_000_000_000)
            .wrapping_add(about.ctime_nsec() as u64);
        let table = unwind::table_of(file, self.cache()).unwrap_or_default();
        let given = device.give_table(file, changed, &table);
        given.err().is_none_or(|error| may_go_on(&error))
    }

    fn cache(&self) -> Option<&Cache> {
        let open = || self.are_kept.then(Cache::usual)?;
        self.cache.get_or_init(open).as_ref()
    }
}

/// Whether values of user stacks have room for frames of interpreted code. A module of an interface
/// before 5 gives them none.
pub fn in_values(options: &Options, module: u32) -> bool {
    module >= 5 && interprets(options)
}

/// Whether user stacks have frames of interpreted code.
fn interprets(options: &Options) -> bool {
    !options.compile.no_interp && !options.is_on(Opt::Noloops) && by_table(options)
}

/// Whether user stacks are walked by tables.
fn by_table(options: &Options) -> bool {
    options.get(Opt::Ustackmode) != Some(USTACKMODE_FP)
}

/// Whether to go on after the kernel has not taken a table. Not if it knows no tables or we lack
/// the right.
fn may_go_on(error: &io::Error) -> bool {
    let kind = error.kind();
    kind != io::ErrorKind::Unsupported && kind != io::ErrorKind::PermissionDenied
}

/// Whether a program uses user stacks, or built-in variables that the kernel finds by walking them.
fn walks(program: &Program) -> bool {
    let is_built_in = |var| matches!(var, Some(Var::Ustackdepth | Var::Ucaller));
    takes_stacks(program)
        || is_executed(program, |instruction| {
            instruction.op() == Some(Op::Ldgs) && is_built_in(Var::from_raw(instruction.index()))
        })
}

/// Whether a program records user addresses to be shown by name.
fn tells(program: &Program) -> bool {
    takes_stacks(program)
        || is_done(program, |kind| {
            matches!(kind, Action::Usym | Action::Umod | Action::Uaddr)
        })
}

/// Whether a program records user stacks or uses them as values.
fn takes_stacks(program: &Program) -> bool {
    is_done(program, is_user_stack) || is_executed(program, makes_stack)
}

fn is_user_stack(kind: Action) -> bool {
    matches!(kind, Action::Ustack | Action::Jstack)
}

fn makes_stack(instruction: &Instr) -> bool {
    instruction.op() == Some(Op::Call) && Subr::from_raw(instruction.index()) == Some(Subr::Ustack)
}

fn is_done(program: &Program, is_it: impl Fn(Action) -> bool) -> bool {
    let mut actions = program.clauses.iter().flat_map(|clause| &clause.actions);
    actions.any(|action| is_it(action.kind))
}

fn is_executed(program: &Program, is_it: impl Fn(&Instr) -> bool) -> bool {
    program.clauses.iter().any(|clause| {
        let difos = (clause.actions.iter()).filter_map(|action| action.difo.as_ref());
        let mut instructions = difos.chain(&clause.predicate).flat_map(|difo| &difo.text);
        instructions.any(&is_it)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dtrace_compiler::options::Setter;
    use dtrace_uapi::ioctl::INTERFACE;

    fn compiled(text: &str) -> Program {
        let source = dtrace_compiler::source::Source::argument(text);
        let settings = dtrace_compiler::compile::Settings::default();
        let compiled = dtrace_compiler::compile::Compiler::new(&dtrace_objects::processes::Nowhere)
            .compile(&source, &settings);
        compiled.unwrap()
    }

    #[test]
    fn walkers_come_with_the_first_user_stack() {
        let (mut stacks, mut options) = (Stacks::default(), Options::default());
        let walkers = |stacks: &mut Stacks, options: &Options, text| {
            let program = compiled(text);
            let furnished = stacks.furnish(&program, options, INTERFACE);
            stacks.add(&program, furnished.as_ref(), options);
            furnished.map(|furnished| furnished.walkers.len())
        };
        // Recorded single addresses and kernel stacks have no frames of interpreted code.
        let text = "BEGIN { usym(arg0); stack(); x = stack(3); }";
        assert_eq!(walkers(&mut stacks, &options, text), None);
        let all = interp::walkers().len();
        let value = compiled("BEGIN { x = ustack(3); }");
        let furnished = |module| stacks.furnish(&value, &options, module);
        assert!(furnished(INTERFACE).is_some_and(|program| program.walkers.len() == all));
        assert!(furnished(4).is_none());
        let stack = "BEGIN { ustack(); }";
        assert_eq!(walkers(&mut stacks, &options, stack), Some(all));
        assert_eq!(walkers(&mut stacks, &options, stack), Some(0));
        for (name, value) in [
            ("ustackinterp", "off"),
            ("ustackmode", "fp"),
            ("noloops", "on"),
        ] {
            options = Options::default();
            options.set(name, Some(value), Setter::User).unwrap();
            let fresh = &mut Stacks::default();
            assert_eq!(walkers(fresh, &options, stack), None, "{name}");
            let value = "BEGIN { x = ustack(3); }";
            assert_eq!(walkers(fresh, &options, value), None, "{name}");
        }
    }

    #[test]
    fn tables_are_kept_unless_that_is_switched_off() {
        let mut options = Options::default();
        let mut stacks = Stacks::default();
        stacks.add(&Program::default(), None, &options);
        assert!(stacks.are_kept);
        let off = options.set("nounwindcache", None, Setter::Pragma);
        assert_eq!(off, Ok(()));
        stacks.add(&Program::default(), None, &options);
        assert!(!stacks.are_kept);
        assert!(stacks.cache().is_none());
    }
}
