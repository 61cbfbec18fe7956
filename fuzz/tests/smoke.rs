// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Runs every target on its corpus and on a fixed sequence of some thousand mutations of it.

use dtrace_fuzz::{target, TARGETS};
use std::path::Path;

/// A simple generator of pseudorandom numbers, whose quality does not matter.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % below.max(1)
    }

    /// Returns `input` with a few bytes changed, removed, inserted or duplicated.
    fn mutate(&mut self, input: &[u8]) -> Vec<u8> {
        let mut out = input.to_vec();
        for _ in 0..=self.next(6) {
            let at = self.next(out.len() + 1);
            let to = at + self.next(out.len() + 1 - at);
            match self.next(5) {
                0 => drop(out.drain(at..to)),
                1 => drop(out.splice(at..at, out[at..to].to_vec())),
                2 => out.extend((0..self.next(40)).map(|_| self.next(256) as u8)),
                _ if at < out.len() => out[at] = self.next(256) as u8,
                _ => out.push(self.next(256) as u8),
            }
            out.truncate(4096);
        }
        out
    }
}

fn smoke(name: &str) {
    let target = target(name).expect("a target");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(name);
    let entries = folder.read_dir().expect("a corpus");
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    let inputs: Vec<Vec<u8>> = files
        .iter()
        .map(|file| std::fs::read(file).expect("an input"))
        .collect();
    assert!(!inputs.is_empty());
    for input in &inputs {
        (target.run)(input);
    }
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for _ in 0..target.smoke {
        let which = numbers.next(inputs.len());
        (target.run)(&numbers.mutate(&inputs[which]));
    }
}

#[test]
fn every_target_has_a_test() {
    let here = include_str!("smoke.rs");
    for target in TARGETS {
        assert!(here.contains(&format!("smoke(\"{}\")", target.name)));
    }
}

#[test]
fn lexer() {
    smoke("lexer");
}

#[test]
fn parser() {
    smoke("parser");
}

#[test]
fn compiler() {
    smoke("compiler");
}

#[test]
fn usdt() {
    smoke("usdt");
}

#[test]
fn programs() {
    smoke("programs");
}

#[test]
fn dof() {
    smoke("dof");
}

#[test]
fn dif() {
    smoke("dif");
}

#[test]
fn buffers() {
    smoke("buffers");
}

#[test]
fn dynamics() {
    smoke("dynamics");
}

#[test]
fn unwind() {
    smoke("unwind");
}

#[test]
fn frames() {
    smoke("frames");
}

#[test]
fn dwarf() {
    smoke("dwarf");
}

#[test]
fn ctf() {
    smoke("ctf");
}

#[test]
fn instructions() {
    smoke("instructions");
}

#[test]
fn assembly() {
    smoke("assembly");
}
