// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Unwind tables for user stacks, valid and invalid.

use crate::open;
use dtrace::device::Device;
use dtrace::unwind;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;

const EINVAL: i32 = 22;
const EEXIST: i32 = 17;
const ENOSPC: i32 = 28;
const E2BIG: i32 = 7;
const ESTALE: i32 = 116;
/// The module parameter that limits the memory of unwind tables.
const ROOM: &str = "/sys/module/dtrace/parameters/unwind_tables";

/// Checks that damaged and oversized tables are refused, and that a file has only one table.
pub fn tables() -> Result<(), String> {
    let device = open()?;
    let file = |path: &str| File::open(path).map_err(|error| format!("{path}: {error}"));
    let (program, folder) = (file("/proc/self/exe")?, file("/")?);
    let table = unwind::table_of(&program, None).ok_or("no table")?;
    let changed = |file: &File| {
        let about = file.metadata().expect("an open file");
        (about.ctime() * 1_000_000_000 + about.ctime_nsec()) as u64
    };
    let refused = |file: &File, table: &[u8]| {
        let given = device.give_table(file, changed(file), table);
        given
            .err()
            .and_then(|error: io::Error| error.raw_os_error())
    };
    ensure!(
        matches!(device.wanted(), Ok(None)),
        "a file is wanted that no stack leads into"
    );
    // The number of the first page, at offset 8, may have any value.
    for (n, at) in [0, 4, 6, 7, 12, 16, 20, 24].into_iter().enumerate() {
        let mut damaged = table.clone();
        damaged[at] ^= 0x40;
        ensure!(
            refused(&program, &damaged) == Some(EINVAL),
            "damage {n} is taken"
        );
        let reason = device.reason();
        ensure!(reason.contains("damaged"), "damage {n}: {reason}");
    }
    let short = &table[..table.len() - 1];
    ensure!(refused(&program, short) == Some(EINVAL), "a part is taken");
    let large = vec![0; (64 << 20) + 1];
    ensure!(
        refused(&program, &large) == Some(E2BIG),
        "too much is taken"
    );
    ensure!(
        refused(&folder, &table) == Some(EINVAL),
        "a folder has a table"
    );
    let given = device.give_table(&program, changed(&program) + 1, &table);
    ensure!(
        given.is_err_and(|error| error.raw_os_error() == Some(ESTALE)),
        "a table of what the file was"
    );
    let room = std::fs::read_to_string(ROOM).map_err(|error| error.to_string())?;
    let set = |room: &str| std::fs::write(ROOM, room).map_err(|error| error.to_string());
    set("100")?;
    let found = refused(&program, &table);
    set(room.trim())?;
    ensure!(found == Some(ENOSPC), "no room: {found:?}");
    let found = refused(&program, &table);
    ensure!(matches!(found, None | Some(EEXIST)), "a table: {found:?}");
    let found = refused(&program, &table);
    ensure!(found == Some(EEXIST), "a second one: {found:?}");
    remains(&device)
}

/// Checks that no mappings are noted of a living process, or of one without records.
fn remains(device: &dyn Device) -> Result<(), String> {
    let remains = device.remains().map_err(|error| error.to_string())?;
    let remains = remains.ok_or("nobody notes mappings")?;
    let mut child = std::process::Command::new("true")
        .spawn()
        .map_err(|error| error.to_string())?;
    let ended = child.id();
    child.wait().map_err(|error| error.to_string())?;
    for pid in [std::process::id(), ended, 0, u32::MAX] {
        for after in [0, 1, u64::MAX - 1, u64::MAX] {
            let found = remains.next(pid, after);
            ensure!(matches!(found, Ok(None)), "{pid} after {after}: {found:?}");
        }
    }
    Ok(())
}
