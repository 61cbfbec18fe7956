// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Emits a program as a DOF image, the form in which the kernel accepts it.
//!
//! An image is a header, the table of section headers, and the sections' data. Sections refer to
//! each other by index, so each is written after those that it refers to. Equal DIF objects, which
//! are frequent in clauses with several probe descriptions, and equal parts of them are written
//! once.

mod application;
#[cfg(test)]
mod calls_tests;

pub use application::{emit_for_application, Linkable, Use};

use crate::program::{ActionDesc, Clause, Difo, Program};
use dtrace_uapi::dif::{DIF_NREGS, DIF_NTREGS, DIF_VERSION};
use dtrace_uapi::dof::{
    ActDesc, DifoHdr, EcbDesc, Hdr, Images, OptDesc, ProbeDesc, Sec, SecIdx, SecType, StrIdx,
    ENCODE_LSB, ENCODE_MSB, ID_DIFIREG, ID_DIFTREG, ID_DIFVERS, ID_ENCODING, ID_MODEL, ID_VERSION,
    MAGIC, MODEL_LP64, SECF_LOAD, SECIDX_NONE, VERSION_2,
};
use dtrace_uapi::option::Opt;
use std::collections::HashMap;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Emits `program` and the kernel's options as a DOF image.
///
/// The image contains an `ECBDESC` for each clause in order, walkers last, and an `OPTDESC` if
/// there are options.
pub fn emit(program: &Program, options: &[(Opt, u64)]) -> Vec<u8> {
    let mut image = Image::default();
    emit_into(&mut image, program, options);
    image.finish()
}

fn emit_into(image: &mut Image, program: &Program, options: &[(Opt, u64)]) {
    // All strings of the program are in one table, which must be complete before anything refers to
    // it.
    let mut strings = Strings::default();
    for clause in program.clauses.iter().chain(&program.walkers) {
        strings.add_clause(clause);
    }
    let strtab = image.section(SecType::Strtab, 1, 0, strings.bytes.clone());
    for clause in program.clauses.iter().chain(&program.walkers) {
        image.clause(clause, strtab, &strings);
    }
    if !options.is_empty() {
        let table: Vec<OptDesc> = options
            .iter()
            .map(|&(option, value)| OptDesc {
                option: option as u32,
                strtab: SECIDX_NONE,
                value,
            })
            .collect();
        image.table(SecType::OptDesc, &table);
    }
}

/// Emits an image that enables nothing and carries `text`, which the kernel does not load.
pub fn emit_comment(text: &[u8]) -> Vec<u8> {
    let image = Image {
        comment: text.to_vec(),
        ..Image::default()
    };
    image.finish()
}

/// Returns the comments of the consecutive images in `file`, up to the first invalid one.
pub fn comments(file: &[u8]) -> Vec<&[u8]> {
    Images::new(file)
        .map_while(Result::ok)
        .flat_map(|image| sections(image, SecType::Comments))
        .collect()
}

/// Returns the options that an image sets. Skips unknown options and damaged parts.
pub fn options(image: &[u8]) -> Vec<(Opt, u64)> {
    let descs = sections(image, SecType::OptDesc)
        .flat_map(|table| table.chunks_exact(size_of::<OptDesc>()))
        .filter_map(|bytes| OptDesc::read_from_bytes(bytes).ok());
    descs
        .filter_map(|desc| Some((Opt::from_raw(desc.option)?, desc.value)))
        .collect()
}

/// Returns the data of an image's sections of one type.
fn sections(image: &[u8], wanted: SecType) -> impl Iterator<Item = &[u8]> {
    let slice = |offset: u64, size: u64| {
        let start = usize::try_from(offset).ok()?;
        image.get(start..start.checked_add(usize::try_from(size).ok()?)?)
    };
    let table = Hdr::read_from_prefix(image).ok().and_then(|(hdr, _)| {
        let size = u64::from(hdr.secnum) * size_of::<Sec>() as u64;
        slice(hdr.secoff, size)
    });
    let secs = table.unwrap_or_default().chunks_exact(size_of::<Sec>());
    let secs = secs.filter_map(|bytes| Sec::read_from_bytes(bytes).ok());
    let secs = secs.filter(move |sec| sec.ty == wanted as u32);
    secs.filter_map(move |sec| slice(sec.offset, sec.size))
}

/// A string table whose first entry is the empty string.
struct Strings {
    bytes: Vec<u8>,
    offsets: HashMap<Vec<u8>, StrIdx>,
}

impl Default for Strings {
    fn default() -> Self {
        Self {
            bytes: vec![0],
            offsets: HashMap::from([(Vec::new(), 0)]),
        }
    }
}

impl Strings {
    fn add(&mut self, text: &[u8]) {
        if !self.offsets.contains_key(text) {
            self.offsets
                .insert(text.to_owned(), self.bytes.len() as StrIdx);
            self.bytes.extend_from_slice(text);
            self.bytes.push(0);
        }
    }

    fn add_clause(&mut self, clause: &Clause) {
        let probes = &clause.probes;
        for part in [&probes.provider, &probes.module, &probes.func, &probes.name] {
            self.add(part.as_bytes());
        }
        for format in clause
            .actions
            .iter()
            .filter_map(|action| action.format.as_deref())
        {
            self.add(format);
        }
    }

    fn offset(&self, text: impl AsRef<[u8]>) -> StrIdx {
        self.offsets[text.as_ref()]
    }
}

/// An image under construction: complete sections, with the offset of each within the data.
#[derive(Default)]
struct Image {
    headers: Vec<Sec>,
    data: Vec<u8>,
    /// The comment, which follows the loaded part.
    comment: Vec<u8>,
    /// Sections that may be referred to more than once, by type and bytes.
    shared: HashMap<(u32, Vec<u8>), SecIdx>,
}

impl Image {
    /// Adds a section. Its offset is relative to the data until [`finish`](Self::finish).
    fn section(&mut self, ty: SecType, align: u32, entsize: u32, bytes: Vec<u8>) -> SecIdx {
        self.data
            .resize(self.data.len().next_multiple_of(align as usize), 0);
        self.headers.push(Sec {
            ty: ty as u32,
            align,
            flags: SECF_LOAD,
            entsize,
            offset: self.data.len() as u64,
            size: bytes.len() as u64,
        });
        self.data.extend_from_slice(&bytes);
        (self.headers.len() - 1) as SecIdx
    }

    /// Adds a section with entries of one type.
    fn table<T: IntoBytes + Immutable>(&mut self, ty: SecType, entries: &[T]) -> SecIdx {
        let (align, size) = (align_of::<T>() as u32, size_of::<T>() as u32);
        self.section(ty, align, size, entries.as_bytes().to_vec())
    }

    /// Adds a section that is a single structure.
    fn whole<T: IntoBytes + Immutable>(&mut self, ty: SecType, thing: &T) -> SecIdx {
        self.section(ty, align_of::<T>() as u32, 0, thing.as_bytes().to_vec())
    }

    fn clause(&mut self, clause: &Clause, strtab: SecIdx, strings: &Strings) {
        let probes = &clause.probes;
        let desc = ProbeDesc {
            strtab,
            provider: strings.offset(&probes.provider),
            module: strings.offset(&probes.module),
            func: strings.offset(&probes.func),
            name: strings.offset(&probes.name),
            id: probes.id,
        };
        let desc = self.table(SecType::ProbeDesc, &[desc]);
        let pred = clause
            .predicate
            .as_ref()
            .map_or(SECIDX_NONE, |difo| self.difo(difo));
        let actions: Vec<ActDesc> = clause
            .actions
            .iter()
            .map(|action| self.action(action, strtab, strings))
            .collect();
        let actions = match actions.as_slice() {
            [] => SECIDX_NONE,
            actions => self.table(SecType::ActDesc, actions),
        };
        let ecb = EcbDesc {
            probes: desc,
            pred,
            actions,
            pad: 0,
            uarg: clause.number,
        };
        self.table(SecType::EcbDesc, &[ecb]);
    }

    fn action(&mut self, action: &ActionDesc, strtab: SecIdx, strings: &Strings) -> ActDesc {
        // Only printf-like actions have their format in `arg`. A stack has its depth there, even if
        // it is the first argument of a format.
        let format = action.format.as_ref();
        let (strtab, arg) = match format.filter(|_| action.kind.is_printf_like()) {
            Some(format) => (strtab, strings.offset(format).into()),
            None => (SECIDX_NONE, action.arg),
        };
        ActDesc {
            difo: action
                .difo
                .as_ref()
                .map_or(SECIDX_NONE, |difo| self.difo(difo)),
            strtab,
            kind: action.kind as u32,
            ntuple: action.ntuple,
            arg,
            uarg: action.uarg,
        }
    }

    /// Adds a section that is part of a DIF object, unless there is one with the same bytes.
    fn shared<T: IntoBytes + Immutable>(&mut self, ty: SecType, entries: &[T]) -> SecIdx {
        let identity = (ty as u32, entries.as_bytes().to_vec());
        if let Some(&section) = self.shared.get(&identity) {
            return section;
        }
        let section = match ty {
            SecType::Strtab => self.section(ty, 1, 0, identity.1.clone()),
            SecType::DifoHdr => self.section(ty, 4, 0, identity.1.clone()),
            _ => self.table(ty, entries),
        };
        self.shared.insert(identity, section);
        section
    }

    /// Adds a DIF object: its sections and the header that refers to them.
    fn difo(&mut self, difo: &Difo) -> SecIdx {
        let text: Vec<u32> = difo.text.iter().map(|instr| instr.0).collect();
        let mut links = vec![self.shared(SecType::Dif, &text)];
        if !difo.ints.is_empty() {
            links.push(self.shared(SecType::Inttab, &difo.ints));
        }
        if !difo.strings.is_empty() {
            links.push(self.shared(SecType::Strtab, &difo.strings));
        }
        if !difo.vars.is_empty() {
            links.push(self.shared(SecType::Vartab, &difo.vars));
        }
        let mut head = DifoHdr { rtype: difo.rtype }.as_bytes().to_vec();
        head.extend_from_slice(links.as_bytes());
        self.shared(SecType::DifoHdr, &head)
    }

    fn finish(mut self) -> Vec<u8> {
        if !self.comment.is_empty() {
            self.headers.push(Sec {
                ty: SecType::Comments as u32,
                align: 1,
                flags: 0,
                entsize: 0,
                offset: self.data.len() as u64,
                size: self.comment.len() as u64,
            });
        }
        let head = size_of::<Hdr>() + self.headers.len() * size_of::<Sec>();
        // The largest alignment of any section: aligned data stays aligned behind the headers.
        let head = head.next_multiple_of(8);
        for header in &mut self.headers {
            header.offset += head as u64;
        }
        let size = (head + self.data.len()) as u64;
        let mut ident = [0; 16];
        ident[..MAGIC.len()].copy_from_slice(&MAGIC);
        ident[ID_MODEL] = MODEL_LP64;
        ident[ID_ENCODING] = if cfg!(target_endian = "big") {
            ENCODE_MSB
        } else {
            ENCODE_LSB
        };
        ident[ID_VERSION] = VERSION_2;
        ident[ID_DIFVERS] = DIF_VERSION;
        ident[ID_DIFIREG] = DIF_NREGS;
        ident[ID_DIFTREG] = DIF_NTREGS;
        let hdr = Hdr {
            ident,
            hdrsize: size_of::<Hdr>() as u32,
            secsize: size_of::<Sec>() as u32,
            secnum: self.headers.len() as u32,
            secoff: size_of::<Hdr>() as u64,
            loadsz: size,
            filesz: size + self.comment.len() as u64,
            ..Hdr::default()
        };
        let mut image = hdr.as_bytes().to_vec();
        image.extend_from_slice(self.headers.as_bytes());
        image.resize(head, 0);
        image.extend_from_slice(&self.data);
        image.extend_from_slice(&self.comment);
        image
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Span;
    use dtrace_objects::pattern::ProbePattern;
    use dtrace_uapi::action::Action;
    use dtrace_uapi::dif::{Instr, Op};

    fn sections(image: &[u8]) -> Vec<(Sec, &[u8])> {
        let (hdr, rest) = Hdr::read_from_prefix(image).expect("a header");
        assert_eq!(
            (hdr.loadsz, hdr.filesz),
            (image.len() as u64, image.len() as u64)
        );
        let bytes = &rest[..hdr.secnum as usize * size_of::<Sec>()];
        let read = |sec: &[u8]| Sec::read_from_bytes(sec).expect("a section header");
        bytes
            .chunks(size_of::<Sec>())
            .map(read)
            .map(|sec| {
                assert_eq!(sec.offset % u64::from(sec.align), 0);
                (sec, &image[sec.offset as usize..][..sec.size as usize])
            })
            .collect()
    }

    fn difo(value: u64) -> Difo {
        Difo {
            text: vec![Instr::indexed(Op::Setx, 0, 1), Instr::fmt(Op::Ret, 0, 0, 1)],
            ints: vec![value],
            ..Difo::default()
        }
    }

    fn clause(func: &str, value: u64) -> Clause {
        let action = ActionDesc {
            kind: Action::Printf,
            difo: Some(difo(value)),
            format: Some("%d\n".into()),
            ntuple: 0,
            arg: 0,
            uarg: 1,
        };
        Clause {
            probes: ProbePattern {
                provider: "syscall".into(),
                func: func.into(),
                ..ProbePattern::default()
            },
            predicate: None,
            actions: vec![action],
            number: 0,
            span: Span::default(),
        }
    }

    #[test]
    fn sections_are_aligned_and_linked() {
        let program = Program {
            clauses: vec![clause("read", 1)],
            ..Program::default()
        };
        let image = emit(&program, &[(Opt::Bufsize, 4096)]);
        let sections = sections(&image);
        let types: Vec<_> = sections
            .iter()
            .map(|(sec, _)| SecType::from_raw(sec.ty))
            .collect();
        use SecType::*;
        let expected = [
            Strtab, ProbeDesc, Dif, Inttab, DifoHdr, ActDesc, EcbDesc, OptDesc,
        ];
        assert_eq!(types, expected.map(Some));
        let ecb = super::EcbDesc::read_from_bytes(sections[6].1).expect("an ECB");
        assert_eq!((ecb.probes, ecb.pred, ecb.actions), (1, SECIDX_NONE, 5));
        let action = super::ActDesc::read_from_bytes(sections[5].1).expect("an action");
        assert_eq!((action.difo, action.strtab), (4, 0));
        assert!(sections[0].1[action.arg as usize..].starts_with(b"%d\n\0"));
    }

    #[test]
    fn options_are_read_back_as_far_as_they_are_whole() {
        let set = [(Opt::Bufsize, 4096), (Opt::Scratchsize, 77)];
        let image = emit(&Program::default(), &set);
        assert_eq!(options(&image), set);
        for end in 0..image.len() {
            assert!(options(&image[..end]).len() <= set.len());
        }
        assert!(options(&emit(&Program::default(), &[])).is_empty());
    }

    #[test]
    fn equal_parts_of_objects_are_written_once() {
        let clauses = vec![clause("read", 1), clause("write", 1), clause("open", 2)];
        let image = emit(
            &Program {
                clauses,
                ..Program::default()
            },
            &[],
        );
        let count = |ty: SecType| {
            sections(&image)
                .iter()
                .filter(|(sec, _)| sec.ty == ty as u32)
                .count()
        };
        assert_eq!((count(SecType::Dif), count(SecType::Inttab)), (1, 2));
        assert_eq!(count(SecType::DifoHdr), 2);
        assert_eq!(count(SecType::EcbDesc), 3);
    }

    #[test]
    fn a_stack_that_a_format_prints_has_its_depth() {
        let source = crate::source::Source::argument("BEGIN { printf(\"%k\", ustack(2, 8)); }");
        let settings = crate::compile::Settings::default();
        let mut compiler = crate::compile::Compiler::new(&dtrace_objects::processes::Nowhere);
        let program = compiler.compile(&source, &settings).expect("a program");
        let enabling = dtrace_engine::Enabling::parse(&emit(&program, &[])).expect("an image");
        let action = &enabling.clauses()[0].actions[0];
        let arg = dtrace_uapi::action::ustack_arg(2, 8);
        assert_eq!((action.kind, action.arg), (Action::Ustack, arg));
    }

    #[test]
    fn an_empty_clause_has_no_actions() {
        let clauses = vec![Clause {
            actions: vec![],
            ..clause("read", 1)
        }];
        let image = emit(
            &Program {
                clauses,
                ..Program::default()
            },
            &[],
        );
        let (_, bytes) = *sections(&image).last().expect("the ECB is last");
        let ecb = EcbDesc::read_from_bytes(bytes).expect("an ECB");
        assert_eq!(ecb.actions, SECIDX_NONE);
    }
}
