// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The compared scenarios: the same task for each tracer, in the best form of its language.

use std::io;

use crate::calls;
use crate::loops::Operation;
use crate::tracer::Tracer;

/// How a scenario's number is computed from the measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Instructions that an event adds to the operation in which it happens.
    Probe,
    /// The same for events that do not match.
    Unseen,
    /// The same for events that are all printed.
    Printed,
    /// The same, plus what the tracer itself executes to print the event.
    WithConsumer,
    /// Instructions per sample, at this many samples a second.
    Sample(u32),
    /// The percentage of events that were not printed.
    Lost,
}

/// In a program's text: stands for the ID of the traced process.
const PROCESS: &str = "PID";

/// One row of the table.
pub struct Scenario {
    /// The number in docs/performance.md.
    pub id: &'static str,
    /// A short description.
    pub what: &'static str,
    /// The operation that is measured.
    pub operation: Operation,
    /// Events per turn of the operation.
    pub events: u32,
    pub figure: Figure,
    /// The program in D.
    d: &'static str,
    /// The program of bpftrace.
    bpftrace: &'static str,
    /// The goal.
    pub target: f64,
}

impl Scenario {
    /// The program for a tracer, and the process that it traces, if it traces one.
    pub fn program(&self, tracer: Tracer) -> io::Result<(String, Option<u32>)> {
        let program = match tracer {
            Tracer::Bpftrace => self.bpftrace,
            _ => self.d,
        };
        if !program.contains(PROCESS) {
            return Ok((program.to_owned(), None));
        }
        let others = if self.id == "S13m" { 99 } else { 0 };
        let process = calls::process(others)?;
        let program = program.replace(PROCESS, &process.to_string());
        Ok((program, Some(process)))
    }
}

macro_rules! scenarios {
    ($($id:literal $what:literal, $operation:ident / $events:literal, $figure:expr, $target:literal, $d:literal, $bpftrace:literal;)*) => {
        /// All rows, in order.
        pub const SCENARIOS: &[Scenario] = &[$(Scenario {
            id: $id,
            what: $what,
            operation: Operation::$operation,
            events: $events,
            figure: $figure,
            d: $d,
            bpftrace: $bpftrace,
            target: $target as f64,
        }),*];
    };
}

scenarios! {
    "S1" "system calls by execname", Getppid / 1, Figure::Probe, 200,
        "syscall:::entry { @[execname] = count(); }",
        "tracepoint:raw_syscalls:sys_enter { @[comm] = count(); }";
    "S2" "one system call: that call", Getppid / 1, Figure::Probe, 120,
        "syscall::getppid:entry { @ = count(); }",
        "tracepoint:syscalls:sys_enter_getppid { @ = count(); }";
    "S2o" "one system call: another call", Read / 1, Figure::Unseen, 0,
        "syscall::getppid:entry { @ = count(); }",
        "tracepoint:syscalls:sys_enter_getppid { @ = count(); }";
    "S3" "function entry, count", Read / 1, Figure::Probe, 110,
        "fbt::vfs_read:entry { @ = count(); }",
        "fentry:vfs_read { @ = count(); }";
    "S4" "entry and return, quantize", Read / 1, Figure::Probe, 400,
        "fbt::vfs_read:entry { self->ts = timestamp; } \
         fbt::vfs_read:return /self->ts/ { @ = quantize(timestamp - self->ts); self->ts = 0; }",
        "fentry:vfs_read { @ts[tid] = nsecs; } \
         fexit:vfs_read /@ts[tid]/ { @ = hist(nsecs - @ts[tid]); delete(@ts, tid); }";
    "S4c" "function return, count", Read / 1, Figure::Probe, 150,
        "fbt::vfs_read:return { @ = count(); }",
        "fexit:vfs_read { @ = count(); }";
    "S5" "function entry, predicate false", Read / 1, Figure::Unseen, 85,
        "fbt::vfs_read:entry /pid == 0/ { @ = count(); }",
        "fentry:vfs_read /pid == 0/ { @ = count(); }";
    "S6" "printf, three ints and a string", Read / 1, Figure::Printed, 200,
        "fbt::vfs_read:entry { printf(\"%d %d %d %s\\n\", pid, tid, cpu, execname); }",
        "fentry:vfs_read { printf(\"%d %d %d %s\\n\", pid, tid, cpu, comm); }";
    "S6c" "the same with the consumer", Read / 1, Figure::WithConsumer, 1200,
        "fbt::vfs_read:entry { printf(\"%d %d %d %s\\n\", pid, tid, cpu, execname); }",
        "fentry:vfs_read { printf(\"%d %d %d %s\\n\", pid, tid, cpu, comm); }";
    "S6b" "the same, lost of a hundred", Read / 1, Figure::Lost, 0,
        "fbt::vfs_read:entry /execname == \"bench\"/ { printf(\"%d %d %d %s\\n\", pid, tid, cpu, execname); }",
        "fentry:vfs_read /comm == \"bench\"/ { printf(\"%d %d %d %s\\n\", pid, tid, cpu, comm); }";
    "S7" "function entry, by stack", Read / 1, Figure::Probe, 2000,
        "fbt::vfs_read:entry { @[stack()] = count(); }",
        "fentry:vfs_read { @[kstack] = count(); }";
    "S8" "openat by path", Open / 1, Figure::Probe, 700,
        "syscall::openat:entry { @[copyinstr(arg1)] = count(); }",
        "tracepoint:syscalls:sys_enter_openat { @[str(args.filename)] = count(); }";
    "S9" "1,120 functions, per hit", Read / 1, Figure::Probe, 110,
        "fbt::vfs_*:entry, fbt::ext4_*:entry, fbt::tcp_*:entry { @ = count(); }",
        "kprobe:vfs_*, kprobe:ext4_*, kprobe:tcp_* { @ = count(); }";
    "S10" "time off the processor, per switch", Switch / 2, Figure::Probe, 500,
        "sched:::off-cpu { self->ts = timestamp; } \
         sched:::on-cpu /self->ts/ { @ = sum(timestamp - self->ts); self->ts = 0; }",
        "tracepoint:sched:sched_switch { @ts[args.prev_pid] = nsecs; \
         if (@ts[args.next_pid]) { @ = sum(nsecs - @ts[args.next_pid]); delete(@ts, args.next_pid); } }";
    "S10c" "switches, count", Switch / 2, Figure::Probe, 150,
        "sched:::off-cpu { @ = count(); }",
        "tracepoint:sched:sched_switch { @ = count(); }";
    "S11" "block requests, start and done", Block / 1, Figure::Probe, 300,
        "io:::start, io:::done { @ = count(); }",
        "tracepoint:block:block_io_start, tracepoint:block:block_io_done { @ = count(); }";
    "S13" "call in a process, count", Marked / 1, Figure::Probe, 680,
        "pidPID::marked:entry { @ = count(); }",
        "uprobe:/proc/PID/exe:marked { @ = count(); }";
    "S13p" "the same, where it begins with push", Pushing / 1, Figure::Probe, 680,
        "pidPID::pushing:entry { @ = count(); }",
        "uprobe:/proc/PID/exe:pushing { @ = count(); }";
    "S13q" "call and return, quantize", Marked / 1, Figure::Probe, 2050,
        "pidPID::marked:entry { self->ts = timestamp; } \
         pidPID::marked:return /self->ts/ { @ = quantize(timestamp - self->ts); self->ts = 0; }",
        "uprobe:/proc/PID/exe:marked { @ts[tid] = nsecs; } \
         uretprobe:/proc/PID/exe:marked /@ts[tid]/ { @ = hist(nsecs - @ts[tid]); delete(@ts, tid); }";
    "S13r" "the same, where it begins with push", Pushing / 1, Figure::Probe, 2050,
        "pidPID::pushing:entry { self->ts = timestamp; } \
         pidPID::pushing:return /self->ts/ { @ = quantize(timestamp - self->ts); self->ts = 0; }",
        "uprobe:/proc/PID/exe:pushing { @ts[tid] = nsecs; } \
         uretprobe:/proc/PID/exe:pushing /@ts[tid]/ { @ = hist(nsecs - @ts[tid]); delete(@ts, tid); }";
    "S13n" "1,000 functions of a process", Marked / 1, Figure::Probe, 680,
        "pidPID::many_*:entry, pidPID::marked:entry { @ = count(); }",
        "uprobe:/proc/PID/exe:many_*, uprobe:/proc/PID/exe:marked { @ = count(); }";
    "S13m" "the same of one of a hundred", Marked / 1, Figure::Probe, 680,
        "pidPID::many_*:entry, pidPID::marked:entry { @ = count(); }",
        "uprobe:/proc/PID/exe:many_*, uprobe:/proc/PID/exe:marked { @ = count(); }";
    "S13s" "a program's own probe, by argument", Telling / 1, Figure::Probe, 900,
        "benchPID:::told { @[arg0] = count(); }",
        "usdt:/proc/PID/exe:bench:told { @[arg0] = count(); }";
    "S13u" "call in a process, by 8 frames", Nested / 1, Figure::Probe, 3000,
        "pidPID::inner:entry { @[ustack(8)] = count(); }",
        "uprobe:/proc/PID/exe:inner { @[ustack(8)] = count(); }";
    "S13f" "the same with frame pointers", Framed / 1, Figure::Probe, 1200,
        "pidPID::framed_inner:entry { @[ustack(8)] = count(); }",
        "uprobe:/proc/PID/exe:framed_inner { @[ustack(8)] = count(); }";
    "S14" "samples by stack", Compute / 1, Figure::Sample(997), 2500,
        "profile-997 { @[stack()] = count(); }",
        "profile:hz:997 { @[kstack] = count(); }";
}
