// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Finds the instruction that a process executes when it has loaded or unloaded a library.
//!
//! For debuggers, the dynamic linker executes a certain instruction whenever its list of objects
//! changes: when it has mapped new objects and before their constructors run, and when it has
//! unmapped some. The instruction is the beginning of a function that the linker exports, so its
//! address is known before the linker has run. A linker that exports no such function writes the
//! address to a place that the program's dynamic section gives. A static program has neither, and
//! loads nothing.
//!
//! All this is the memory of the process and therefore untrusted. The kernel refuses an address
//! that is not code of the process.

use crate::symbols::{folder_of, mappings_of, Mapping};
use dtrace_objects::pid::Object;
use dtrace_objects::processes::ProcessSource;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

/// Name of the function in the linkers of the C libraries.
const TELLS: &str = "_dl_debug_state";
/// Tags in the auxiliary vector.
const AT_PHDR: u64 = 3;
const AT_PHNUM: u64 = 5;
const AT_BASE: u64 = 7;
/// Types of program headers.
const PT_DYNAMIC: u64 = 2;
const PT_PHDR: u64 = 6;
/// Tag of the linker's own structure (`r_debug`) in the dynamic section.
const DT_DEBUG: u64 = 21;
/// Most entries that are read from a table of the process.
const ENTRIES_MAX: u64 = 1024;
/// Offset of the class in an ELF header, which gives the size of a word.
const CLASS: usize = 4;

/// Returns the address at which the process `pid` signals changes of its libraries, if it has one.
pub fn tells_at<S: ProcessSource + ?Sized>(
    source: &S,
    pid: u32,
    objects: &[Object],
) -> io::Result<Option<u64>> {
    let memory = Memory::of(pid)?;
    let Some(base) = memory.auxiliary(AT_BASE).filter(|base| *base != 0) else {
        return Ok(None);
    };
    let mappings = mappings_of(pid)?;
    let linker = mappings.iter().find(|mapping| mapping.contains(base));
    let exported = linker.and_then(|linker| exported(source, objects, linker));
    Ok(exported.or_else(|| memory.written()))
}

fn exported<S: ProcessSource + ?Sized>(
    source: &S,
    objects: &[Object],
    linker: &Mapping,
) -> Option<u64> {
    let object = objects.iter().find(|object| object.path == linker.path)?;
    let code = source.code(object).ok()?;
    let function = code.function(TELLS)?;
    object.address(code.file_offset(function.address)?)
}

/// Memory of a process whose words have 4 or 8 bytes.
struct Memory {
    file: File,
    word: u64,
    vector: Vec<u64>,
}

impl Memory {
    fn of(pid: u32) -> io::Result<Self> {
        let mut head = [0; CLASS + 1];
        let folder = folder_of(pid);
        File::open(folder.join("exe"))?.read_exact(&mut head)?;
        let word = if head[CLASS] == 1 { 4 } else { 8 };
        let vector = std::fs::read(folder.join("auxv"))?;
        Ok(Self {
            file: File::open(folder.join("mem"))?,
            word,
            vector: words(&vector, word as usize),
        })
    }

    fn auxiliary(&self, tag: u64) -> Option<u64> {
        let mut pairs = self.vector.chunks_exact(2);
        pairs.find(|pair| pair[0] == tag).map(|pair| pair[1])
    }

    /// Reads `n` words from `address` on.
    fn read(&self, address: u64, n: u64) -> Option<Vec<u64>> {
        let mut bytes = vec![0; (n * self.word) as usize];
        self.file.read_exact_at(&mut bytes, address).ok()?;
        Some(words(&bytes, self.word as usize))
    }

    /// Returns the address that the linker has written to its `r_debug`, which the program's
    /// dynamic section refers to.
    fn written(&self) -> Option<u64> {
        let (headers, count) = (self.auxiliary(AT_PHDR)?, self.auxiliary(AT_PHNUM)?);
        let size = if self.word == 8 { 7 } else { 8 };
        let table = self.read(headers, size * count.min(ENTRIES_MAX))?;
        // The type is a 32-bit number, so half a word in 64-bit programs. The third word of a
        // header is the address in both classes.
        let kind = |header: &&[u64]| header[0] & 0xffff_ffff;
        let address = |header: &[u64]| header[2];
        let find = |wanted| {
            let mut headers = table.chunks_exact(size as usize);
            headers.find(|header| kind(header) == wanted).map(address)
        };
        // The difference between the actual and the linked address of the headers is the load bias.
        let bias = find(PT_PHDR).map_or(0, |at| headers.wrapping_sub(at));
        let dynamic = find(PT_DYNAMIC)?.wrapping_add(bias);
        let structure = (0..ENTRIES_MAX).find_map(|n| {
            let entry = self.read(dynamic.wrapping_add(2 * n * self.word), 2)?;
            (entry[0] == DT_DEBUG).then_some(entry[1])
        })?;
        // `r_debug` has the version (padded to a word), the list of objects, and the address.
        let known = self.read(structure, 3).filter(|_| structure != 0)?;
        Some(known[2]).filter(|address| *address != 0)
    }
}

fn words(bytes: &[u8], size: usize) -> Vec<u64> {
    let word = |bytes: &[u8]| {
        let mut long = [0; 8];
        long[..size].copy_from_slice(bytes);
        u64::from_le_bytes(long)
    };
    bytes.chunks_exact(size).map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{code, objects};
    use super::*;
    use crate::proc::Target;
    use dtrace_compiler::options::EvalTime;
    use dtrace_objects::pid;
    use dtrace_objects::processes::Nowhere;

    #[test]
    fn the_linker_tells_at_the_function_that_it_says_it_does() {
        let target = Target::create("sleep 60", &[], EvalTime::Main).unwrap();
        let objects = objects(target.pid()).unwrap();
        let memory = Memory::of(target.pid()).unwrap();
        let told = tells_at(&Real, target.pid(), &objects).unwrap();
        assert!(told.is_some());
        assert_eq!(told, memory.written());
        // Without symbols, the address that the linker wrote is used.
        assert_eq!(tells_at(&Nowhere, target.pid(), &objects).unwrap(), told);
    }

    #[test]
    fn before_the_linker_runs_its_symbols_tell() {
        let target = Target::create("sleep 60", &[], EvalTime::Exec).unwrap();
        let objects = objects(target.pid()).unwrap();
        assert_eq!(Memory::of(target.pid()).unwrap().written(), None);
        assert!(tells_at(&Real, target.pid(), &objects).unwrap().is_some());
    }

    struct Real;

    impl ProcessSource for Real {
        fn objects(&self, pid: u32) -> io::Result<Vec<Object>> {
            objects(pid)
        }

        fn code(&self, object: &Object) -> io::Result<pid::Code> {
            code(object)
        }
    }
}
