// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! A file that processes have mapped, and the names in it.
//!
//! blazesym reads the symbol tables through a memory mapping, so anyone who truncates the file
//! meanwhile would terminate us with SIGBUS. It therefore gets a copy of any file that users other
//! than root can write to, and nothing if that file is too large. Addresses without a symbol there
//! are looked up in a file's other sources of function names (see `elf`), which are read once, for
//! the first such address. A function of which only the bounds are known is named by its address in
//! the file.

use super::inlines::Inlines;
use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};
use dtrace_files::dwarf::Inlined;
use dtrace_files::elf::{self, separate, Function};
use dtrace_files::names::{printable, shortened};
use dtrace_files::outside::{self, is_stored, path_of};
use object::{Object as _, ReadCache};
use std::cell::OnceCell;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::rc::Rc;

/// Maximum size of a file that is read, in bytes.
pub const FILE_MAX: u64 = 1 << 30;
/// Maximum length of a name in bytes, at least as long as any name that people write.
const NAME_MAX: usize = 4096;
/// Maximum size of a separate debug file, in bytes.
const SEPARATE_MAX: u64 = 1 << 28;
/// Maximum size of a file that is copied for blazesym, in bytes.
const COPY_MAX: u64 = 1 << 28;
/// The mode bits that allow users other than the owner to write to a file.
const WRITABLE: u32 = 0o022;
/// Maximum length of a valid build ID, in bytes.
const BUILD_ID_MAX: usize = 64;

/// Copies a file into memory that only this process can access.
fn copy(file: &File) -> io::Result<File> {
    outside::in_memory(c"image", &outside::read(file, COPY_MAX)?)
}

/// Returns a symbol's name as it is kept: printable and of limited length.
fn said(name: &str) -> String {
    printable(shortened(name, NAME_MAX)).into_owned()
}

/// An open file.
#[derive(Debug)]
pub struct Image {
    file: File,
    /// Where the first process that mapped the file saw it.
    path: String,
    /// Functions that blazesym does not name, sorted by address, one name each.
    others: OnceCell<Vec<Function>>,
    texts: OnceCell<Vec<elf::Text>>,
    inlines: Inlines,
    build_id: OnceCell<Option<Rc<str>>>,
    copy: OnceCell<Option<File>>,
}

impl Image {
    /// Creates an image of a file that was mapped from `path`.
    pub fn new(file: File, path: &str) -> Self {
        Self {
            file,
            path: path.to_owned(),
            others: OnceCell::new(),
            texts: OnceCell::new(),
            inlines: Inlines::default(),
            build_id: OnceCell::new(),
            copy: OnceCell::new(),
        }
    }

    /// Returns the file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns the build ID in hexadecimal digits.
    pub fn build_id(&self) -> Option<Rc<str>> {
        let read = || {
            self.is_small().then_some(())?;
            let cache = ReadCache::new(&self.file);
            let file = object::File::parse(&cache).ok()?;
            let id = file.build_id().ok()??;
            let is_one = (1..=BUILD_ID_MAX).contains(&id.len());
            is_one.then(|| separate::hexadecimal(id).into())
        };
        self.build_id.get_or_init(read).clone()
    }

    /// Returns the function or the variable at a place of the file, and the distance from its
    /// start.
    pub fn name(&self, symbolizer: &Symbolizer, place: Input<u64>) -> Option<(String, u64)> {
        let other = || self.other_name(self.address(place)?);
        let Some(steady) = self.steady() else {
            return other();
        };
        let mut elf = Elf::new(path_of(steady));
        // The ELF symbol tables name functions; reading DWARF for the same names would cost
        // seconds.
        elf.debug_syms = false;
        let found = symbolizer.symbolize_single(&Source::Elf(elf), place);
        let Ok(found) = found else {
            return other();
        };
        match found {
            // The names of a library's symbol versions are symbols at address 0. They would match
            // every address that no function contains.
            Symbolized::Sym(symbol) if symbol.addr == 0 => other(),
            // The function of a symbol without a size may have ended long before.
            Symbolized::Sym(symbol) if symbol.size.is_none() && symbol.offset > 0 => {
                let offset = symbol.offset as u64;
                let nearer = other().filter(|(_, other)| *other < offset);
                nearer.or_else(|| Some((said(&symbol.name), offset)))
            }
            Symbolized::Sym(symbol) => Some((said(&symbol.name), symbol.offset as u64)),
            Symbolized::Unknown(_) => other(),
        }
    }

    /// Returns the functions inlined at `offset` of the file, innermost first. Results that are not
    /// cached are looked up only if `has_room` returns true.
    pub fn inlined(&self, offset: u64, has_room: impl FnOnce() -> bool) -> Rc<[Inlined]> {
        let Some(address) = self.address(Input::FileOffset(offset)) else {
            return Rc::default();
        };
        (self.inlines).at(&self.file, &self.path, address, has_room)
    }

    /// Returns the approximate memory that the debugging information takes, in bytes.
    pub fn inlines_kept(&self) -> u64 {
        self.inlines.kept()
    }

    /// Returns the file if only root can change it, else a copy of it. `None` if it cannot be
    /// copied.
    fn steady(&self) -> Option<&File> {
        let about = self.file.metadata().ok()?;
        let is_roots = about.uid() == 0 && about.mode() & WRITABLE == 0 && is_stored(&self.file);
        let copy = || copy(&self.file).ok();
        match is_roots {
            true => Some(&self.file),
            false => self.copy.get_or_init(copy).as_ref(),
        }
    }

    fn is_small(&self) -> bool {
        outside::check(&self.file, FILE_MAX).is_ok()
    }

    /// Returns the file's address for a place. File offsets outside of its code have none.
    fn address(&self, place: Input<u64>) -> Option<u64> {
        match place {
            Input::VirtOffset(address) => Some(address),
            Input::FileOffset(offset) => {
                let texts = self.texts.get_or_init(|| self.read_texts());
                texts.iter().find_map(|text| {
                    let within = offset.checked_sub(text.offset)?;
                    (within < text.size).then(|| text.address.wrapping_add(within))
                })
            }
            Input::AbsAddr(_) => None,
        }
    }

    fn read_texts(&self) -> Vec<elf::Text> {
        let cache = ReadCache::new(&self.file);
        let file = (self.is_small()).then(|| object::File::parse(&cache).ok());
        file.flatten()
            .map_or_else(Vec::new, |file| elf::texts(&file))
    }

    fn other_name(&self, address: u64) -> Option<(String, u64)> {
        let functions = self.others.get_or_init(|| self.read());
        let after = functions.partition_point(|f| f.address <= address);
        let function = functions.get(after.checked_sub(1)?)?;
        let offset = address - function.address;
        (offset < function.size).then(|| (function.name.clone(), offset))
    }

    fn read(&self) -> Vec<Function> {
        if !self.is_small() {
            return Vec::new();
        }
        let cache = ReadCache::new(&self.file);
        let Ok(file) = object::File::parse(&cache) else {
            return Vec::new();
        };
        let mut functions = self.separate(&file);
        if self.steady().is_none() {
            functions.extend(elf::functions(file.symbols(), NAME_MAX));
        }
        // blazesym names nothing at all in a file that has packed names (`.gnu_debugdata`).
        functions.extend(elf::functions(file.dynamic_symbols(), NAME_MAX));
        functions.extend(elf::packed::functions(&file, NAME_MAX));
        functions.retain(|function| function.size > 0);
        functions.extend(elf::frames::functions(&file, &functions));
        elf::sort(&mut functions);
        functions.dedup_by_key(|function| function.address);
        functions
    }

    /// Returns the functions that a separate debug file names.
    fn separate<'a>(&self, program: &object::File<'a, &'a ReadCache<&'a File>>) -> Vec<Function> {
        let has_symbols = |file: &object::File<'_>| file.symbols().next().is_some();
        let folder = Path::new(separate::FOLDER);
        let Ok(about) = self.file.metadata() else {
            return Vec::new();
        };
        let place = (self.path.as_str(), about.uid());
        let found = separate::find(folder, program, place, SEPARATE_MAX, has_symbols);
        let Some((bytes, _)) = found else {
            return Vec::new();
        };
        let Ok(file) = object::File::parse(&*bytes) else {
            return Vec::new();
        };
        let mut functions = elf::functions(file.symbols(), NAME_MAX);
        elf::measure(&mut functions, &file);
        functions
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::ObjectSymbol as _;
    use std::fs;
    use std::process::Command;

    /// Builds a library with a function that it does not export and runs `commands` on it. Returns
    /// the names of both functions in the file `bare`, and the address of `hidden`.
    fn names(name: &str, commands: &str) -> ([Option<(String, u64)>; 2], u64) {
        let folder =
            std::env::temp_dir().join(format!("dtrace-image-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let source = "__attribute__((noinline)) static int hidden(int n) { __asm__ volatile(\"\"); return n + 1; }\n\
             int shown(int n) { return hidden(n) * hidden(n + 1); }\n";
        fs::write(folder.join("lib.c"), source).unwrap();
        let build = "gcc -O1 -shared -fPIC -Wl,--build-id=0x0123456789abcdef -o whole lib.c && objcopy --only-keep-debug whole names && strip -o bare whole";
        for command in [build, commands] {
            let mut shell = Command::new("sh");
            let done = shell.args(["-ec", command]).current_dir(&folder).status();
            assert!(done.expect("a shell").success(), "{command}");
        }
        let whole = fs::read(folder.join("whole")).unwrap();
        let whole = object::File::parse(&*whole).unwrap();
        let address = |name| {
            whole
                .symbols()
                .find(|s| s.name() == Ok(name))
                .unwrap()
                .address()
        };
        let path = folder.join("bare");
        let image = Image::new(File::open(&path).unwrap(), path.to_str().unwrap());
        let symbolizer = Symbolizer::builder().enable_demangling(false).build();
        let named = ["shown", "hidden"]
            .map(|name| image.name(&symbolizer, Input::VirtOffset(address(name) + 1)));
        assert_eq!(image.build_id().as_deref(), Some("0123456789abcdef"));
        fs::remove_dir_all(&folder).unwrap();
        (named, address("hidden"))
    }

    #[test]
    fn a_stripped_file_names_functions_by_what_is_left() {
        let name = |name: &str| Some((name.to_owned(), 1));
        let (named, hidden) = names("frames", "true");
        assert_eq!(named, [name("shown"), name(&format!("{hidden:#x}"))]);
        let (named, _) = names("link", "objcopy --add-gnu-debuglink=names bare");
        assert_eq!(named, [name("shown"), name("hidden")]);
        let pack = "xz names && objcopy --add-section .gnu_debugdata=names.xz bare";
        let (named, _) = names("packed", pack);
        assert_eq!(named, [name("shown"), name("hidden")]);
    }

    /// A debug file of another build is not used, and a file without `.eh_frame` has no bounds of
    /// functions either.
    #[test]
    fn another_files_names_are_not_this_ones() {
        let other = "objcopy --add-gnu-debuglink=names bare && echo >>names";
        let (named, hidden) = names("other", other);
        assert_eq!(named[1], Some((format!("{hidden:#x}"), 1)));
        let (named, _) = names("nothing", "strip -R .eh_frame -R .eh_frame_hdr bare");
        assert_eq!(named, [Some(("shown".to_owned(), 1)), None]);
    }

    /// A function written in assembler has no size, and does not name everything that follows it.
    #[test]
    fn a_symbol_without_a_size_ends_where_another_function_begins() {
        let source = "echo '.text; .globl bare_start; .type bare_start,@function; bare_start: nop' >start.s && \
             gcc -O1 -shared -fPIC -Wl,--build-id=0x0123456789abcdef -o whole2 start.s lib.c && strip -o bare whole2 && \
             cp whole2 whole && objdump -t whole2 | grep -q bare_start";
        let (named, hidden) = names("sizes", source);
        assert_eq!(named[1], Some((format!("{hidden:#x}"), 1)));
    }

    /// Anyone who can write to a file may truncate it while it is mapped.
    #[test]
    fn a_file_that_is_shortened_has_the_names_that_it_had() {
        let folder = std::env::temp_dir().join(format!("symbols-short-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("lib");
        let mut source = String::new();
        // More than a page of symbols.
        for n in 0..2000 {
            source += &format!("int function_{n}(void) {{ return {n}; }}\n");
        }
        fs::write(folder.join("lib.c"), source).unwrap();
        let build = "gcc -shared -fPIC -o lib lib.c && chmod 666 lib";
        let mut shell = Command::new("sh");
        let done = shell.args(["-ec", build]).current_dir(&folder).status();
        assert!(done.expect("a shell").success());
        let image = Image::new(File::open(&path).unwrap(), path.to_str().unwrap());
        let bytes = fs::read(&path).unwrap();
        let program = object::File::parse(&*bytes).unwrap();
        let symbolizer = Symbolizer::builder().enable_demangling(false).build();
        let mut all: Vec<_> = program.symbols().collect();
        all.retain(|s| s.name().is_ok_and(|name| name.starts_with("function_")));
        assert_eq!(all.len(), 2000);
        for (n, symbol) in all.iter().enumerate() {
            let name = image.name(&symbolizer, Input::VirtOffset(symbol.address()));
            assert_eq!(name, Some((symbol.name().unwrap().to_owned(), 0)));
            if n == 0 {
                let file = File::options().write(true).open(&path).unwrap();
                file.set_len(4096).unwrap();
            }
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_is_no_program_has_no_names() {
        let image = Image::new(File::open("/etc/passwd").unwrap(), "/etc/passwd");
        let symbolizer = Symbolizer::new();
        assert_eq!(image.name(&symbolizer, Input::FileOffset(10)), None);
        assert_eq!(image.build_id(), None);
    }
}
