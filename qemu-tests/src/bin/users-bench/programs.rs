// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a member may have a firing do: each kind of work, as much of it as fits into a clause, in
//! as many clauses and tracings as it takes to reach the limits.

/// What is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meets {
    /// A process of the member, in its system calls.
    Calls,
    /// Whatever runs, by timers.
    Ticks,
    /// Another user's process, in its system calls.
    Others,
}

/// One row.
pub struct Row {
    pub id: &'static str,
    /// A description for people.
    pub what: &'static str,
    pub meets: Meets,
    pub tracings: u32,
    /// Returns the program of each tracing.
    pub program: fn() -> String,
}

/// All rows, in order.
pub const ROWS: &[Row] = &[
    row("U1", "clocks, in a ring", 8, || {
        format!(
            "{RING}{}",
            clauses(20, &"trace(walltimestamp); ".repeat(400))
        )
    }),
    row("U2", "strings that are compared", 4, || {
        texts("32k", 8, "@ = sum(strstr(hay, needle) == NULL);")
    }),
    row("U3", "user memory that is copied", 8, || {
        let copy = "this->p = copyin(uregs[R_RSP] & ~4095UL, 4096); ".repeat(16);
        format!(
            "#pragma D option scratchsize=128k\n{}",
            clauses(40, &format!("{copy} @ = sum(this->p != NULL);"))
        )
    }),
    row("U4", "user memory that is loaded", 8, || {
        let sum = ["(copyinstr(uregs[R_RIP], 8) == \"\") "; 200].join("+ ");
        clauses(20, &format!("@ = sum({sum});"))
    }),
    row("U5", "variables of threads", 8, || {
        let assign: String = (0..50)
            .map(|n| format!("self->v{n} = timestamp; "))
            .collect();
        format!(
            "#pragma D option dynvarsize=256k\n{}",
            clauses(100, &assign)
        )
    }),
    row("U6", "keys of an aggregation", 2, || {
        texts("4k", 200, "@[hay, needle, hay, needle] = quantize(arg0);")
    }),
    row("U7", "small records that go for large ones", 4, || {
        let small = "syscall::getpid:entry /execname == \"users-bench\"/ { trace(0); }\n";
        let large = texts("32k", 100, "trace(\"\"); trace(\"\");");
        format!("{RING}{large}{small}")
    }),
    row("U8", "stacks of 100 frames", 8, || {
        clauses(200, "@[ustack(100)] = count();")
    }),
    row("U9", "speculations", 4, || {
        let speculate = "#pragma D option nspec=64\n#pragma D option specsize=256k\n";
        let rest: String = (0..100)
            .map(|_| format!("{AT} {{ speculate(self->s); trace(hay); }}\n{AT} {{ commit(self->s); self->s = speculation(); }}\n"))
            .collect();
        let first = texts("16k", 1, "self->s = speculation();");
        format!("{RING}{speculate}{first}{rest}")
    }),
    row("U10", "magnitudes", 4, || {
        let quantize: String = (0..30)
            .map(|n| format!("@a{n} = llquantize(arg0 + 999999999, 10, 0, 15, 100); "))
            .collect();
        clauses(100, &quantize)
    }),
    row("U11", "faults", 8, || {
        let fault = clauses(500, "trace(*(int *)copyin(0, 4));");
        format!("{RING}{fault}{}", "ERROR { @ = count(); }\n".repeat(200))
    }),
    row("U12", "texts that are taken apart", 4, || {
        let text =
            "this->t = strjoin(substr(hay, 1), basename(hay)); this->u = strtok(this->t, \"x\"); ";
        let value = "this->v = json(\"{\\\"a\\\":{\\\"b\\\":[1,2,3]}}\", \"a.b[2]\"); ";
        texts(
            "16k",
            60,
            &format!("{text}{value}@ = sum(this->v != NULL);"),
        )
    }),
    row("U15", "bytes that are looked for", 4, || {
        let find = "@ = sum((strstr(hay, \"1\") == NULL) + (strchr(hay, '1') == NULL)); ";
        texts("32k", 60, find)
    }),
    row("U16", "letters that are changed", 4, || {
        texts("32k", 60, "@ = sum(strlen(toupper(hay))); ")
    }),
    row("U17", "texts of JSON", 4, || {
        let value = "@ = sum(json(strjoin(\"{\\\"a\\\": \\\"\", hay), \"b\") == NULL); ";
        texts("32k", 60, value)
    }),
    row("U18", "paths", 4, || {
        let path =
            "@ = sum(strlen(cleanpath(hay)) + strlen(dirname(hay)) + strlen(strtok(hay, \"1\"))); ";
        texts("32k", 40, path)
    }),
    Row {
        meets: Meets::Ticks,
        ..row("U13", "timers", 2, || {
            // Timer probes that take more than an eighth of the time in a second are ended.
            let tick = "profile-7 { @ = sum(strstr(hay, needle) == NULL); }\n";
            format!("{}{tick}", strings("32k"))
        })
    },
    Row {
        meets: Meets::Others,
        ..row("U14", "60 tracings of 100 clauses passed by", 60, || {
            format!(
                "#pragma D option aggsize=16k\n#pragma D option bufsize=16k\n{}",
                clauses(100, "@ = count();")
            )
        })
    },
];

const fn row(id: &'static str, what: &'static str, tracings: u32, program: fn() -> String) -> Row {
    Row {
        id,
        what,
        meets: Meets::Calls,
        tracings,
        program,
    }
}

/// The return of the system call: at its entry, clauses that load the process' memory are rehearsed
/// in a firing of their own. The predicate keeps the tracing programs from being held by it.
const AT: &str = "syscall::getppid:return /execname == \"users-bench\"/";

/// In a ring buffer there is always room for a record.
const RING: &str = "#pragma D option bufpolicy=ring\n#pragma D option bufsize=256k\n";

/// `n` clauses with this body.
fn clauses(n: usize, body: &str) -> String {
    format!("{AT} {{ {body} }}\n").repeat(n)
}

/// `n` clauses with this body, for strings of that size.
fn texts(size: &str, n: usize, body: &str) -> String {
    format!("{}{}", strings(size), clauses(n, body))
}

/// Declares a long string and one that it does not contain.
fn strings(size: &str) -> String {
    let length = size.trim_end_matches('k').parse::<usize>().unwrap_or(1) * 1000 - 100;
    let (hay, needle) = ("0".repeat(length), "0".repeat(90));
    format!("#pragma D option strsize={size}\ninline string hay = \"{hay}\"; inline string needle = \"{needle}1\";\n")
}
