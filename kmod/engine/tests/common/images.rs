// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Checks of DOF images, whole and damaged ones.

use super::asm::{asm, asm_with, int, string, var};
use super::dof::Image;
use super::machine::TestMachine;
use super::{config, cpu, Steps, PROBE};
use dtrace_engine::mem::alloc::live;
use dtrace_engine::{Consumer, Enabling};
use dtrace_uapi::action::Action;
use dtrace_uapi::option::Opt;

/// Returns an image with something of every kind.
pub fn sample() -> Image {
    sample_at(["syscall", "", "", "entry"], ["fbt", "", "", ""])
}

/// Returns the same image with other probe descriptions: provider, module, function, name.
pub fn sample_at(first: [&str; 4], second: [&str; 4]) -> Image {
    let mut image = Image::default();
    image.option(Opt::Strsize, 128);
    let name = asm_with("ldgs execname, %r1\n ret %r1", string(), &[]);
    let sum = asm_with(
        "ldgs 0x500, %r1\n setx 3, %r2\n add %r1, %r2, %r1\n stgs %r1, 0x500\n ret %r1",
        int(8),
        &[var(0x500, 0, int(8))],
    );
    let pid = asm("ldgs pid, %r1\n setx 5, %r2\n cmp %r1, %r2\n be 6\n setx 1, %r1\n ba 7\n mov %r0, %r1\n ret %r1");
    image.clause_at(
        first,
        Some(&pid),
        &[
            (Action::Printf, Some(&sum), 0, Some("%d\n")),
            (Action::Difexpr, Some(&name), 0, None),
            (Action::Count, None, 1, None),
        ],
    );
    image.clause_at(second, None, &[]);
    image
}

/// Parses an image and runs it if it is accepted. Nothing may panic, and no memory may remain
/// allocated. Returns whether it was accepted.
pub fn try_image(bytes: &[u8]) -> bool {
    let before = live();
    let accepted = (|| {
        let e = Enabling::parse(bytes)?;
        let consumer = Consumer::new(config())?;
        let mut ecbs = vec![];
        for id in consumer.add_enabling(&e)? {
            ecbs.push(consumer.bind(id, PROBE)?);
        }
        consumer.set_option(Opt::Bufsize, 65536)?;
        consumer.set_option(Opt::Aggsize, 65536)?;
        consumer.set_option(Opt::Dynvarsize, 65536)?;
        consumer.go()?;
        consumer.activate();
        let m = TestMachine::default();
        for ecb in ecbs.iter().chain(&ecbs) {
            consumer.fire(&cpu(0), *ecb, &m);
        }
        Ok::<_, dtrace_engine::Reason>(())
    })()
    .is_ok();
    assert_eq!(live(), before);
    accepted
}
