// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Measures the cost of unwind tables in milliseconds: compiled from a file, compiled and stored in
//! the cache, and read from the cache. Prints the minimum of several rounds. The arguments are the
//! names of the files.

use dtrace::unwind::{table_of, Cache};
use std::fs::{self, File};
use std::io;
use std::time::Instant;

const ROUNDS: u32 = 9;

fn main() -> io::Result<()> {
    let folder = std::env::temp_dir().join(format!("dtrace-cost-{}", std::process::id()));
    println!(
        "{:>10} {:>10} {:>10} {:>10}",
        "bytes", "made", "kept", "found"
    );
    for path in std::env::args().skip(1) {
        let file = File::open(&path)?;
        let (mut made, mut kept, mut found) = (f64::MAX, f64::MAX, f64::MAX);
        let mut size = 0;
        for _ in 0..ROUNDS {
            fs::create_dir(&folder)?;
            let cache = Cache::below(&folder);
            for (cache, least) in [
                (None, &mut made),
                (cache.as_ref(), &mut kept),
                (cache.as_ref(), &mut found),
            ] {
                let begin = Instant::now();
                size = table_of(&file, cache).map_or(0, |table| table.len());
                *least = least.min(begin.elapsed().as_secs_f64() * 1e3);
            }
            fs::remove_dir_all(&folder)?;
        }
        println!("{size:>10} {made:>10.3} {kept:>10.3} {found:>10.3} {path}");
    }
    Ok(())
}
