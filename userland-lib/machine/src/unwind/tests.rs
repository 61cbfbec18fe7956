// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Stops programs of this machine and walks their stacks. A walk that reaches the outermost frame
//! was right in each frame.

use super::stopped::Stopped;
use super::table_in;
use crate::symbols::mappings_of;
use dtrace_unwind::{Cfa, Ended, Table};
use object::{Object as _, ObjectSection as _};

#[test]
fn programs_are_walked_to_their_beginning() {
    for (command, least) in [
        ("exec cat", 4),
        ("read line", 6),
        (
            "exec perl -e 'sub f { return $_[0] ? f($_[0] - 1) : <STDIN> } f(20)'",
            8,
        ),
    ] {
        let mut program = Stopped::new(command);
        program.wait_for_input();
        program.stop();
        let (frames, ended) = program.walk();
        let names: Vec<_> = frames.into_iter().map(|(_, name)| name).collect();
        assert_eq!(ended, Ended::Outermost, "{command}: {names:?}");
        assert!(names.len() >= least, "{command}: {names:?}");
        let [first, .., last] = &names[..] else {
            panic!("{names:?}");
        };
        assert!(first.starts_with("libc"), "{command}: {names:?}");
        assert!(!last.starts_with("lib"), "{command}: {names:?}");
    }
}

/// libc is the largest library that every machine has.
#[test]
fn the_table_of_libc_is_small() {
    let maps = mappings_of(std::process::id()).unwrap();
    let libc = maps
        .iter()
        .find(|mapping| mapping.object().starts_with("libc.so"));
    let data = std::fs::read(&libc.unwrap().path).unwrap();
    let bytes = table_in(&data).unwrap();
    let table = Table::check(&bytes).unwrap();
    assert!(table.rows() > 10_000);
    assert!(bytes.len() <= 150 << 10);
}

/// The PLT stubs through which functions of other files are called push one word or none.
#[test]
fn the_linkers_stubs_have_a_rule() {
    let folder = std::env::temp_dir().join(format!("dtrace-stubs-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let source = "#include <unistd.h>\nint main(void) { return getppid() + getpid(); }\n";
    std::fs::write(folder.join("stubs.c"), source).unwrap();
    let build = "gcc -O1 -fcf-protection=none -Wl,-z,lazy -o stubs stubs.c";
    let mut shell = std::process::Command::new("sh");
    let built = shell.args(["-ec", build]).current_dir(&folder).status();
    assert!(built.unwrap().success());
    let data = std::fs::read(folder.join("stubs")).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let stubs = file.section_by_name(".plt").unwrap();
    let (offset, size) = stubs.file_range().unwrap();
    assert!(size >= 3 * 16, "{size}");
    let bytes = table_in(&data).unwrap();
    let table = Table::check(&bytes).unwrap();
    for at in offset + 16..offset + size {
        assert_eq!(table.rule(at).cfa, Cfa::Linkage(8, 11), "{at:#x}");
    }
}
