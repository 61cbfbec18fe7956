// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Compares walks of computing programs, stopped at arbitrary instructions, with those of libdw
//! (elfutils' `eu-stack`) at the same instructions.

use super::stopped::{Stopped, FRAMES_MAX};
use std::process::Command;
use std::time::Duration;

/// Programs that compute until they are killed, in C, C++ and assembler. Some are interpreters,
/// some have threads or signals, one is static, one calls the vDSO.
const PROGRAMS: &[(&str, &str)] = &[
    ("bash", r#"exec bash -c 'f() { local x=$1; ((x)) && f $((x - 1)); y=${y:0:9}$x; }; while :; do f 20; done'"#),
    ("dash", r#"f() { [ $1 = 0 ] || f $(($1 - 1)); y=${1%1}; }; while :; do f 20; done"#),
    ("perl", r#"exec perl -e 'sub f { my $n = shift; $n ? f($n - 1) : join ",", sort map { s/a/b/r } 1..50 } f(30) while 1'"#),
    ("python", r#"exec python3 -c '
import json, re
def f(n): return f(n - 1) if n else re.sub("a+", "b", json.dumps(list(range(50))))
while True: f(20)'"#),
    ("awk", r#"exec awk 'function f(n) { return n ? f(n - 1) : sprintf("%d", n) } BEGIN { while (1) x = length(f(20) x) % 10 }'"#),
    ("bc", "exec bc <<end\nwhile (1) x = sqrt(2.000001) * 3^99\nend"),
    ("xz", "exec xz -9 -T2 -c /dev/urandom"),
    ("gzip", "exec gzip -9 -c /dev/urandom"),
    ("sha256", "exec openssl dgst -sha256 /dev/zero"),
    ("aes", "exec openssl enc -aes-128-cbc -pbkdf2 -k x -in /dev/zero -out /dev/null"),
    ("gcc", "exec $(gcc -print-prog-name=cc1) -quiet -O2 - -o /dev/null <$SOURCES/many.c"),
    ("clang", "exec clang-19 -O2 -c -o /dev/null $SOURCES/many.c"),
    ("static", "exec busybox sh -c 'f() { [ $1 = 0 ] || f $(($1 - 1)); y=${1%1}; }; while :; do f 20; done'"),
    ("chains", "exec $SOURCES/chains"),
];

/// A source file that takes a compiler minutes.
const MANY: &str = "
#define A(n) int f##n(int *p, int k) { for (int i = 0; i < k; i++) p[i] += p[i * n % k] * n; return p[n % k] ? f##n(p + 1, k - 1) : k; }
#define B(n) A(n##0) A(n##1) A(n##2) A(n##3) A(n##4) A(n##5) A(n##6) A(n##7) A(n##8) A(n##9)
#define C(n) B(n##0) B(n##1) B(n##2) B(n##3) B(n##4) B(n##5) B(n##6) B(n##7) B(n##8) B(n##9)
#define D(n) C(n##0) C(n##1) C(n##2) C(n##3) C(n##4) C(n##5) C(n##6) C(n##7) C(n##8) C(n##9)
D(1) D(2) D(3) D(4)
";

/// A program whose functions have frames of all kinds.
const CHAINS: &str = r#"
#include <alloca.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#define KEPT __attribute__((noinline, noclone))
static volatile long sink;
KEPT void last(void) { struct timespec t; for (int i = 0; i < 20; i++) { clock_gettime(CLOCK_MONOTONIC, &t); sink += t.tv_nsec; } }
KEPT void deep(int n) { if (n) deep(n - 1); else last(); sink++; }
KEPT void fills(size_t n) { char *p = alloca(n); memset(p, n, n); deep(3); sink += p[n / 2]; }
KEPT void aligns(void) { char room[256] __attribute__((aligned(64))); memset(room, 1, sizeof(room)); fills(sink % 999 + 1); sink += room[9]; }
static int compare(const void *a, const void *b) { aligns(); return *(int *)a - *(int *)b; }
static void handler(int n) { deep(n % 7); }
int main(void)
{
	struct itimerval often = { { 0, 2000 }, { 0, 2000 } };
	signal(SIGALRM, handler);
	setitimer(ITIMER_REAL, &often, NULL);
	for (;;) {
		int numbers[] = { 5, 4, 3, 2, 1 };
		qsort(numbers, 5, sizeof(int), compare);
	}
}
"#;

/// Returns libdw's walk of the first thread of a process: the instruction pointers of its frames,
/// innermost first.
fn by_libdw(pid: nix::unistd::Pid) -> Vec<u64> {
    let frames = FRAMES_MAX.to_string();
    let mut command = Command::new("eu-stack");
    let output = command
        .args(["-q", "-n", &frames, "-p", &pid.to_string()])
        .output();
    let text = String::from_utf8(output.expect("eu-stack").stdout).unwrap();
    let first = format!("TID {pid}:");
    let lines = text.lines().skip_while(|line| *line != first).skip(1);
    let frames = lines.take_while(|line| line.starts_with('#'));
    frames
        .filter_map(|line| u64::from_str_radix(line.split_once("0x")?.1.get(..16)?, 16).ok())
        .collect()
}

/// Compares `samples` samples of one program. Returns their number and a description of each one
/// that differs.
fn compare(command: &str, samples: usize) -> (usize, Vec<String>) {
    let mut program = Stopped::new(command);
    std::thread::sleep(Duration::from_millis(300));
    let mut differ = Vec::new();
    for n in 0..samples {
        std::thread::sleep(Duration::from_micros(500 + 617 * (n as u64 % 11)));
        program.stop();
        let (ours, ended) = program.walk();
        let theirs = by_libdw(program.pid());
        let addresses: Vec<u64> = ours.iter().map(|(address, _)| *address).collect();
        if addresses != theirs {
            let same = addresses
                .iter()
                .zip(&theirs)
                .take_while(|(a, b)| a == b)
                .count();
            let names: Vec<&str> = ours
                .iter()
                .take(same + 1)
                .map(|(_, name)| name.as_str())
                .collect();
            let tail = |all: &[u64]| {
                all.get(same)
                    .map_or("end".to_owned(), |at| format!("{at:#x}"))
            };
            differ.push(format!(
                "{same} frames, then {} {ended:?}, libdw {}: {names:?}",
                tail(&addresses),
                tail(&theirs)
            ));
        }
        program.go_on();
    }
    (samples, differ)
}

#[test]
fn stacks_are_as_libdw_has_them() {
    check(1_000);
}

/// Takes minutes: `make test-programs PROGRAM=stacks`.
#[test]
#[ignore = "takes minutes"]
fn many_stacks_are_as_libdw_has_them() {
    check(10_000);
}

/// Compares at least `samples` stacks, spread over all programs. Up to 0.5% may differ.
fn check(samples: usize) {
    let folder =
        std::env::temp_dir().join(format!("dtrace-libdw-{samples}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("many.c"), MANY).unwrap();
    std::fs::write(folder.join("chains.c"), CHAINS).unwrap();
    let build = "gcc -O2 -fomit-frame-pointer -fno-optimize-sibling-calls -o chains chains.c";
    let built = Command::new("sh")
        .args(["-ec", build])
        .current_dir(&folder)
        .status();
    assert!(built.unwrap().success());
    let each = samples.div_ceil(PROGRAMS.len());
    let (mut all, mut different) = (0, 0);
    let mut report = String::new();
    for (name, command) in PROGRAMS {
        let command = command.replace("$SOURCES", folder.to_str().unwrap());
        let (count, differ) = compare(&command, each);
        all += count;
        different += differ.len();
        for line in &differ {
            report.push_str(&format!("{name}: {line}\n"));
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(
        different * 1000 <= all * 5,
        "{different} of {all} differ:\n{report}"
    );
}
