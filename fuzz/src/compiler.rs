// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The whole compiler: any text gives a program, or an error message with its location, and the
//! engine must accept every program.
//!
//! The engine may refuse a program for lack of room, but its verifier must accept the code.

use crate::common::machine::TestMachine;
use crate::common::{config, cpu, Steps, PROBE};
use crate::text::{macros, text};
use arbitrary::Unstructured;
use dtrace::compile::{Compiler, Settings};
use dtrace::disassemble;
use dtrace::dof;
use dtrace::fixture::Little;
use dtrace::program::Program;
use dtrace::source::Source;
use dtrace_engine::{Consumer, Enabling, Errno, Reason, Which};
use dtrace_uapi::limits::buffer_room;
use dtrace_uapi::option::Opt;

thread_local! {
    /// The world is the same for all inputs.
    static WORLD: Little = Little::default();
}

/// The first byte of the input selects a program made by choices, or text and tokens as they are.
pub fn compiler(data: &[u8]) {
    let Some((mode, data)) = data.split_first() else {
        return;
    };
    let text = match mode % 4 {
        0 => text(data),
        _ => match crate::program::program(&mut Unstructured::new(data)) {
            Ok(text) => text,
            Err(_) => return,
        },
    };
    WORLD.with(|world| compile(world, &Source::file("x.d", text)));
}

fn compile(world: &Little, source: &Source) {
    let settings = Settings {
        args: macros().args,
        macros: macros().named,
        argref: true,
        ..Settings::default()
    };
    match Compiler::new(world).compile(source, &settings) {
        Ok(program) => taken(source, &program),
        Err(error) => {
            let place = error.span;
            assert!(!error.message.is_empty());
            let shown = error.snippet(source);
            assert!(shown.is_empty() || shown.ends_with('\n'));
            assert!(place.start <= place.end && place.end as usize <= source.text.len());
        }
    }
}

/// Checks that the listing can be written, and that the engine accepts and runs the program.
fn taken(source: &Source, program: &Program) {
    let mut listing = Vec::new();
    disassemble::program(program, &mut listing).expect("a listing");
    let options = [
        (Opt::Bufsize, 1 << 14),
        (Opt::Aggsize, 1 << 14),
        (Opt::Specsize, 1 << 12),
        (Opt::Nspec, 2),
        (Opt::Dynvarsize, 1 << 14),
        (Opt::Destructive, 1),
    ];
    let image = dof::emit(program, &options);
    match run(&image) {
        Ok(()) => (),
        Err(reason) if reason.errno == Errno::E2BIG || reason.errno == Errno::ENOMEM => (),
        Err(reason) => panic!(
            "{reason}\n{}\n{}",
            source.text,
            String::from_utf8_lossy(&listing)
        ),
    }
}

fn run(image: &[u8]) -> Result<(), Reason> {
    let enabling = Enabling::parse(image)?;
    let consumer = Consumer::new(config())?;
    let mut ecbs = Vec::new();
    for id in consumer.add_enabling(&enabling)? {
        ecbs.push(consumer.bind(id, PROBE)?);
    }
    consumer.go()?;
    consumer.activate();
    let mut machine = TestMachine::default();
    machine
        .user
        .get_mut()
        .insert(100, b"of the user\0".to_vec());
    for ecb in ecbs.iter().chain(&ecbs) {
        consumer.fire(&cpu(0), *ecb, &machine);
    }
    for which in [Which::Principal, Which::Aggregation] {
        consumer.switch(&cpu(0), which, 1)?;
        consumer.snapshot(0, which, |snapshot| {
            assert!(snapshot.data.len() as u64 <= buffer_room(1 << 14))
        })?;
    }
    Ok(())
}
