// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Valid images that request as much as is allowed, or a little more.
//!
//! Their clauses are compiled once, each at `BEGIN`, and then moved to other probes: single clauses
//! and thousands of them, with any combination of options.

use dtrace::dof;
use dtrace::pattern::ProbePattern;
use dtrace::program::{Clause, Difo, Program};
use dtrace::source::Span;
use dtrace_uapi::action::Action;
use dtrace_uapi::dif::{Instr, Op};
use dtrace_uapi::option::Opt;
use dtrace_uapi::types::DifType;
use dtrace_uapi::var::Var;
use qemu_tests::program::{self, pattern};
use qemu_tests::random::Random;

/// The declarations that the clauses use.
const VARIABLES: &str =
    "int g; string h; self int n; this string s; this int i; this int n; this char *p;\n";

/// Clauses that do little.
const LIGHT: &[&str] = &[
    "{ @c = count(); }",
    "{ @k[pid, execname, probefunc] = count(); }",
    "{ @q = quantize(timestamp); @l = llquantize(arg0, 10, 0, 6, 20); }",
    "{ @d = stddev(arg1); @m = max(arg0); }",
    "{ trace(pid); trace(execname); trace(timestamp); }",
    "{ printf(\"%d %s %s\\n\", uid, probefunc, execname); }",
    "/arg0 == 4711/ { trace(arg1); }",
    "/pid != $pid/ { @other[uid, pid] = count(); }",
    "{ self->t = timestamp; self->n++; }",
    "/self->t/ { @s = avg(timestamp - self->t); self->t = 0; }",
    "{ kept[tid, timestamp] = vtimestamp; }",
    "{ named[execname, probefunc] = walltimestamp; }",
    "{ self->spec = speculation(); }",
    "/self->spec/ { speculate(self->spec); trace(timestamp); trace(execname); }",
    "/self->spec/ { commit(self->spec); self->spec = 0; }",
    "/self->spec/ { discard(self->spec); self->spec = 0; }",
    "{ trace(*(int *)8); }",
    "{ trace(copyinstr(arg0)); }",
    "{ tracemem(copyin(arg1, 64), 64); }",
    "{ ustack(5); }",
    "{ @u[ustack(20)] = count(); }",
    "{ usym(arg0); }",
    "{ stack(5); }",
    "{ trace(ppid); trace(ucaller); trace(errno); }",
    "{ g++; h = strjoin(h, execname); }",
];

/// Clauses that do as much as a clause may.
const HEAVY: &[&str] = &[
    "{ ustack(1000); }",
    "{ @h[ustack(500), ustack(400), execname] = count(); }",
    "{ this->s = strjoin(execname, probefunc); this->s = strjoin(this->s, this->s); this->s = strjoin(this->s, this->s); \
       this->s = strjoin(this->s, this->s); this->s = strjoin(this->s, this->s); this->s = strjoin(this->s, this->s); \
       this->s = strjoin(this->s, this->s); this->s = strjoin(this->s, this->s); this->s = strjoin(this->s, this->s); \
       this->s = strjoin(this->s, this->s); @i = sum(strstr(this->s, \"no such text\") == NULL); }",
    "{ this->s = strjoin(this->s, execname); big[tid, timestamp, this->s] = this->s; }",
    "{ @b[this->s, execname, probefunc, probemod, probename] = quantize(tid); }",
    "{ this->p = (char *)alloca(65536); bcopy(this->p, this->p + 32768, 32768); bcopy(this->p + 32768, this->p, 32768); }",
    "{ tracemem(alloca(8192), 8192); }",
    "{ this->s = cleanpath(this->s); this->s = dirname(this->s); trace(strtok(this->s, \"abc\")); }",
    "{ printf(\"%s %s %s %s\\n\", this->s, execname, this->s, strjoin(this->s, this->s)); }",
    "{ trace(copyinstr(arg0, 65536)); trace(copyinstr(arg1, 65536)); }",
    "{ tracemem(copyin(arg1, 16384), 16384); }",
    "{ trace(json(\"{\\\"a\\\":[[[[[[[[1]]]]]]]]}\", \"a[0][0][0][0]\")); trace(strtoll(this->s)); }",
];

/// Probes that the fuzzer's own processes pass, and root's too.
const PASSAGES: &[&str] = &[
    "syscall::getppid:entry",
    "syscall::getppid:return",
    "syscall::read:entry",
    "syscall::read:return",
    "syscall::sched_yield:entry",
    "syscall::clock_nanosleep:return",
    "syscall::ioctl:entry",
    "syscall::close:return",
];
const OWN: &[&str] = &["dtrace:::BEGIN", "dtrace:::END", "dtrace:::ERROR"];
const TIMED: &[&str] = &[
    "profile:::tick-97",
    "profile:::profile-97",
    "profile:::tick-10ms",
    "profile:::tick-1s",
    "profile:::profile-1",
    "profile:::profile-497",
    "profile:::tick-997",
    "profile:::profile-997",
];
const WIDE: &[&str] = &[
    "syscall:::entry",
    "syscall:::return",
    "syscall:::",
    "syscall::*get*:",
    "*:::BEGIN",
    ":::END",
    "sys*::[a-m]*:entry",
    "profile:::",
    "nonesuch:::",
];
/// Descriptions that match little, but take long to match.
const GLOBS: &[&str] = &[
    "::*a*e*i*o*u*q:",
    "syscall::*[!0-9]*[!a]*[!b]*[!c]*[!d]*q*x*:",
    "*:*:*[abcdefghijklmnopqrstuvwxyz]*[0123456789]*[ABCDEFGHIJKLMNOPQRSTUVWXYZ]*:*",
    "::*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*zz:entry",
    "*[!p]*::*x*x*x*x*x:*[e]*[n]*[t]*[r]*[y]",
];

/// An image, and what else is needed to use it.
pub struct Image {
    /// The DOF.
    pub bytes: Vec<u8>,
    /// One of the probe descriptions in it.
    pub probe: ProbePattern,
}

/// Generates images for a user.
pub struct Maker {
    light: Vec<Clause>,
    heavy: Vec<Clause>,
    exit: Vec<Clause>,
    /// Whether the user may trace only processes of his own. Otherwise the user is root, whose
    /// requests are all granted, so root's images are harmless ones.
    is_member: bool,
}

impl Maker {
    /// Compiles the clauses. `own` is a process of the user.
    pub fn new(own: u32, is_member: bool) -> Result<Self, String> {
        let all = LIGHT.iter().chain(HEAVY).chain(&["{ exit(0); }"]);
        let text: String = all
            .map(|clause| format!("BEGIN {}\n", clause.replace("$pid", &own.to_string())))
            .collect();
        let mut light = program::clauses(&format!("{VARIABLES}{text}"))?;
        // A clause with a loop or a condition may become several.
        let source = |clause: &Clause| (clause.number >> dtrace::program::PART_BITS) as usize;
        let first = light.first().map_or(0, source);
        let at = |n: usize, clauses: &[Clause]| {
            let begins = clauses
                .iter()
                .position(|clause| source(clause) - first >= n);
            begins.unwrap_or(clauses.len())
        };
        let exit = light.split_off(at(LIGHT.len() + HEAVY.len(), &light));
        let mut heavy = light.split_off(at(LIGHT.len(), &light));
        if exit.is_empty() || heavy.len() < HEAVY.len() || light.len() < LIGHT.len() {
            return Err(format!(
                "clauses: {} {} {}",
                light.len(),
                heavy.len(),
                exit.len()
            ));
        }
        heavy.extend(endless(&light));
        Ok(Self {
            light,
            heavy,
            exit,
            is_member,
        })
    }

    /// Generates the next image. `prey`: a process of the user that has probes. `hoards`: the image
    /// requests much memory.
    pub fn image(&self, random: &mut Random, prey: u32, hoards: bool) -> Image {
        let kinds = if self.is_member { 20 } else { 8 };
        let mut clauses = match random.below(kinds) {
            _ if hoards => self.life_of_a_speculation(random),
            0..=4 => self.some(random, false, 6),
            5..=7 => {
                let probe = pattern(&format!("pid{prey}:::"));
                let n = 1 + random.below(3);
                self.at(random, &probe, false, n)
            }
            8..=10 => self.some(random, true, 4),
            11 | 12 => self.many(random),
            13 | 14 => {
                let (probe, n) = (pattern(random.choose(WIDE)), 1 + random.below(5));
                self.at(random, &probe, false, n)
            }
            15 => {
                let n = random.choose(&[1, 2, 30, 1000, 8000]);
                let globs = (0..n).map(|_| pattern(random.choose(GLOBS)));
                let globs: Vec<_> = globs.collect();
                let mut clauses = self.some(random, false, 2);
                for glob in &globs {
                    clauses.extend(self.at(random, glob, false, 1));
                }
                clauses
            }
            16 => self.made_to_order(random),
            _ => self.life_of_a_speculation(random),
        };
        if random.one_in(40) {
            clauses.extend(put(&self.exit, &pattern("profile:::tick-1s")));
        }
        let probe = clauses.first().map(|clause| clause.probes.clone());
        let program = Program {
            clauses,
            first_uarg: 1,
            ..Program::default()
        };
        Image {
            bytes: dof::emit(&program, &self.options(random, hoards)),
            probe: probe.unwrap_or_default(),
        }
    }

    /// Some clauses at some probes.
    fn some(&self, random: &mut Random, heavy: bool, most: usize) -> Vec<Clause> {
        let mut clauses = Vec::new();
        for _ in 0..1 + random.below(most) {
            let probe = probe(random);
            let heavy = heavy && random.one_in(2);
            clauses.extend(self.at(random, &probe, heavy, 1));
        }
        clauses
    }

    /// `n` clauses at one probe.
    fn at(&self, random: &mut Random, probe: &ProbePattern, heavy: bool, n: usize) -> Vec<Clause> {
        let from = if heavy { &self.heavy } else { &self.light };
        let chosen = (0..n).map(|_| from[random.below(from.len())].clone());
        put(&chosen.collect::<Vec<_>>(), probe)
    }

    /// Many copies of one clause, at a probe that other processes pass too.
    fn many(&self, random: &mut Random) -> Vec<Clause> {
        let probe = match random.one_in(3) {
            true => pattern(random.choose(OWN)),
            false => pattern(random.choose(PASSAGES)),
        };
        let heavy = random.one_in(4);
        let n = random.choose(&[100, 1000, 4000, 15_000]);
        let from = if heavy { &self.heavy } else { &self.light };
        let one = from[random.below(from.len())].clone();
        put(&vec![one; n], &probe)
    }

    /// Descriptions of many timers, most of which have to be created.
    fn made_to_order(&self, random: &mut Random) -> Vec<Clause> {
        let n = random.choose(&[3, 40, 1000, 6000]);
        let first = 1 + random.below(100_000);
        let one = &self.light[random.below(self.light.len())];
        let probes = (first..first + n).map(|n| pattern(&format!("profile:::tick-{n}ms")));
        probes
            .flat_map(|probe| put(std::slice::from_ref(one), &probe))
            .collect()
    }

    /// Clauses that begin, fill, commit and discard speculations, at one probe and at others.
    fn life_of_a_speculation(&self, random: &mut Random) -> Vec<Clause> {
        let begin = LIGHT.iter().position(|text| text.contains("speculation()"));
        let parts = begin.and_then(|at| self.light.get(at..at + 4));
        let mut clauses = Vec::new();
        for part in parts.unwrap_or_default() {
            for _ in 0..random.choose(&[1, 1, 1, 2, 20]) {
                let probe = match random.one_in(2) {
                    true => pattern("syscall::getppid:entry"),
                    false => probe(random),
                };
                clauses.extend(put(std::slice::from_ref(part), &probe));
            }
        }
        clauses
    }

    /// A combination of options: small values, the largest that are allowed, or any.
    fn options(&self, random: &mut Random, hoards: bool) -> Vec<(Opt, u64)> {
        const M: u64 = 1 << 20;
        let strsize = random.choose(&[64, 256, 256, 4096, 32 << 10, (64 << 10) + 1]);
        let mut options = vec![(Opt::Strsize, strsize)];
        let mode = random.below(if self.is_member { 10 } else { 6 });
        match mode {
            0..=5 if !hoards => {
                let size =
                    |random: &mut Random| random.choose(&[64 << 10, 256 << 10, M]).max(strsize * 6);
                options.push((Opt::Bufsize, size(random)));
                options.push((Opt::Aggsize, size(random)));
                options.push((Opt::Dynvarsize, size(random)));
                options.push((Opt::Nspec, random.choose(&[1, 4, 64])));
                options.push((Opt::Specsize, random.choose(&[8 << 10, 64 << 10])));
            }
            0..=8 => {
                let size = |random: &mut Random| random.choose(&[4 * M, 8 * M, 16 * M - 8, 16 * M]);
                options.push((Opt::Bufsize, size(random)));
                options.push((Opt::Aggsize, size(random)));
                options.push((Opt::Dynvarsize, size(random)));
                let nspec = random.choose(&[1, 16, 256, 4096]);
                options.push((Opt::Nspec, nspec));
                options.push((Opt::Specsize, 16 * M / nspec));
                options.push((Opt::Scratchsize, random.choose(&[M, 4 * M])));
                options.push((Opt::Cleanrate, 1));
            }
            _ => {
                for option in [
                    Opt::Bufsize,
                    Opt::Aggsize,
                    Opt::Dynvarsize,
                    Opt::Specsize,
                    Opt::Nspec,
                    Opt::Cleanrate,
                ] {
                    let value = random.choose(&[
                        0,
                        1,
                        8,
                        4096,
                        65_536,
                        M,
                        16 * M,
                        16 * M + 1,
                        1 << 31,
                        1 << 40,
                        u64::MAX,
                    ]);
                    options.push((option, value));
                }
                options.push((Opt::Scratchsize, random.number()));
                options.push((Opt::Ustackframes, random.number()));
            }
        }
        if random.one_in(3) {
            options.push((Opt::Bufpolicy, random.choose(&[0, 0, 1, 2, 3])));
        }
        if random.one_in(4) {
            options.push((Opt::Bufresize, random.choose(&[0, 1])));
            options.push((Opt::Ustackmode, random.choose(&[0, 1, 2, 3])));
        }
        options
    }
}

/// Clauses that run until the limit ends them: one that counts, and one that loads built-in
/// variables.
fn endless(some: &[Clause]) -> Vec<Clause> {
    let texts = [
        vec![
            Instr::indexed(Op::Setx, 0, 1),
            Instr::indexed(Op::Setx, 0, 2),
            Instr::fmt(Op::Add, 1, 2, 2),
            Instr::branch(Op::Loop, 2),
            Instr::fmt(Op::Ret, 0, 0, 0),
        ],
        vec![
            Instr::indexed(Op::Ldgs, Var::Timestamp as u16, 1),
            Instr::indexed(Op::Ldgs, Var::Execname as u16, 2),
            Instr::branch(Op::Loop, 0),
            Instr::fmt(Op::Ret, 0, 0, 0),
        ],
    ];
    let traced = some.iter().find_map(|clause| {
        let action = clause.actions.first()?;
        Some(clause).filter(|_| action.kind == Action::Difexpr)
    });
    let clauses = texts.into_iter().filter_map(|text| {
        let mut clause = traced?.clone();
        clause.predicate = None;
        clause.actions.truncate(1);
        let difo = Difo {
            spans: vec![Span::default(); text.len()],
            text,
            ints: vec![1],
            strings: vec![0],
            rtype: DifType {
                size: 8,
                ..DifType::default()
            },
            ..Difo::default()
        };
        clause.actions.first_mut()?.difo = Some(difo);
        Some(clause)
    });
    clauses.collect()
}

/// A probe for a clause.
fn probe(random: &mut Random) -> ProbePattern {
    let from = match random.below(8) {
        0 | 1 => OWN,
        2 => TIMED,
        _ => PASSAGES,
    };
    pattern(random.choose(from))
}

/// A probe description to which clauses are to be replicated.
pub fn another(random: &mut Random) -> ProbePattern {
    match random.below(8) {
        0 => pattern(random.choose(WIDE)),
        1 => pattern(random.choose(GLOBS)),
        _ => probe(random),
    }
}

/// The clauses at another probe.
fn put(clauses: &[Clause], probe: &ProbePattern) -> Vec<Clause> {
    let put = clauses.iter().map(|clause| Clause {
        probes: probe.clone(),
        ..clause.clone()
    });
    put.collect()
}
