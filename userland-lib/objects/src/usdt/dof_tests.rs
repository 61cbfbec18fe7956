// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Images of programs, valid and invalid ones. [`good`] is made by hand here and equals the fuzz
//! target's corpus.

use super::dof::{parse, parse_all};
use super::Note;
use dtrace_uapi::dof::{self, Hdr, Probe, Provider, RelocDesc, RelocHdr, Sec, SecType};
use dtrace_uapi::process::{ANSWER, FLOAT, NO_REGISTER, NUMBER, VECTOR};
use zerocopy::IntoBytes;

const TEXT: &str = "\0shop\0sold__out\0main\0int\0char *\0double\0long\0char *\0int\0";
const SHOP: u32 = 1;
const SOLD: u32 = 6;
const MAIN: u32 = 16;
const NATIVE: u32 = 21;
const SEEN: u32 = 44;

/// The indices of the sections.
const STRTAB: usize = 0;
const PROBES: usize = 1;
const PRARGS: usize = 2;
const PROFFS: usize = 3;
const PRENOFFS: usize = 4;
const PROVIDER: usize = 5;
const RELTAB: usize = 6;
const URELHDR: usize = 7;

/// The parts of an image.
#[derive(Clone)]
struct Parts {
    hdr: Hdr,
    secs: [Sec; 8],
    probe: Probe,
    provider: Provider,
    reloc: RelocDesc,
    relocs: RelocHdr,
    args: [u8; 4],
    sites: [u32; 2],
    asks: [u32; 1],
}

impl Parts {
    /// `shop:::sold-out(int, char *, double, long)`, seen as `char *, int`, with two sites and one
    /// is-enabled site in `main`.
    fn new(version: u8) -> Self {
        let mut ident = [0; 16];
        ident[..4].copy_from_slice(&dof::MAGIC);
        ident[dof::ID_MODEL] = dof::MODEL_LP64;
        ident[dof::ID_ENCODING] = dof::ENCODE_LSB;
        ident[dof::ID_VERSION] = version;
        let hdr = Hdr {
            ident,
            hdrsize: size_of::<Hdr>() as u32,
            secsize: size_of::<Sec>() as u32,
            secnum: 8,
            secoff: size_of::<Hdr>() as u64,
            ..Hdr::default()
        };
        Self {
            hdr,
            secs: Self::sections(),
            probe: Probe {
                addr: 0x100,
                func: MAIN,
                name: SOLD,
                nargv: NATIVE,
                xargv: SEEN,
                nargc: 4,
                xargc: 2,
                argidx: 1,
                offidx: 0,
                noffs: 2,
                enoffidx: 0,
                nenoffs: 1,
                ..Probe::default()
            },
            provider: Provider {
                strtab: STRTAB as u32,
                probes: PROBES as u32,
                prargs: PRARGS as u32,
                proffs: PROFFS as u32,
                name: SHOP,
                provattr: 0x0507_0300,
                prenoffs: PRENOFFS as u32,
                ..Provider::default()
            },
            reloc: RelocDesc {
                ty: dof::RELO_SETX,
                ..RelocDesc::default()
            },
            relocs: RelocHdr {
                strtab: STRTAB as u32,
                relsec: RELTAB as u32,
                tgtsec: PROBES as u32,
            },
            args: [9, 1, 0, 9],
            sites: [0x10, 0x20],
            asks: [0x8],
        }
    }

    fn sections() -> [Sec; 8] {
        let types = [
            SecType::Strtab,
            SecType::Probes,
            SecType::Prargs,
            SecType::Proffs,
            SecType::Prenoffs,
            SecType::Provider,
            SecType::Reltab,
            SecType::UrelHdr,
        ];
        types.map(|ty| Sec {
            ty: ty as u32,
            align: 8,
            flags: dof::SECF_LOAD,
            ..Sec::default()
        })
    }

    /// Returns the image. `spoil` changes the parts after all offsets and sizes are set.
    fn image(mut self, spoil: impl Fn(&mut Self)) -> Vec<u8> {
        let contents = |this: &Self| -> [Vec<u8>; 8] {
            [
                TEXT.as_bytes().to_vec(),
                this.probe.as_bytes().to_vec(),
                this.args.to_vec(),
                this.sites.as_bytes().to_vec(),
                this.asks.as_bytes().to_vec(),
                this.provider.as_bytes().to_vec(),
                this.reloc.as_bytes().to_vec(),
                this.relocs.as_bytes().to_vec(),
            ]
        };
        let mut at = size_of::<Hdr>() + 8 * size_of::<Sec>();
        let all = contents(&self);
        for (sec, bytes) in self.secs.iter_mut().zip(all) {
            sec.offset = at as u64;
            sec.size = bytes.len() as u64;
            at = (at + bytes.len()).next_multiple_of(8);
        }
        self.hdr.loadsz = at as u64;
        self.hdr.filesz = at as u64;
        spoil(&mut self);
        let mut image = [self.hdr.as_bytes(), self.secs.as_bytes()].concat();
        for bytes in contents(&self) {
            image.extend(bytes);
            image.resize(image.len().next_multiple_of(8), 0);
        }
        image
    }
}

fn good(version: u8) -> Vec<u8> {
    Parts::new(version).image(|_| ())
}

/// The places of a site's arguments: `[base, value, is_loaded, size, is_signed]`.
fn places(note: &Note) -> Vec<Option<[i64; 5]>> {
    let place = |operand: &Option<super::Operand>| {
        let arg = operand.as_ref()?.arg;
        let is_vector = arg.base >= VECTOR && arg.base != NO_REGISTER;
        assert_eq!(arg.form, if is_vector { FLOAT } else { NUMBER });
        Some([
            i64::from(arg.base),
            arg.value as i64,
            i64::from(arg.is_loaded),
            i64::from(arg.size),
            i64::from(arg.is_signed),
        ])
    };
    note.arguments.iter().map(place).collect()
}

#[test]
fn a_good_image_has_its_sites() {
    let notes = parse(&good(2), 0x40_0000).expect("a good image");
    let addresses: Vec<u64> = notes.iter().map(|note| note.address).collect();
    assert_eq!(addresses, [0x40_0110, 0x40_0120, 0x40_0108]);
    let first = &notes[0];
    assert_eq!(
        (&*first.provider, &*first.name, &*first.func),
        ("shop", "sold-out", "main")
    );
    // Consumers see the program's second parameter first, then the first.
    assert_eq!(
        places(first),
        [Some([6, 0, 0, 8, 0]), Some([7, 0, 0, 4, 1])]
    );
    let types = |own: &str, seen: &str| (own.to_owned(), seen.to_owned());
    assert_eq!(
        first.types,
        [types("char *", "char *"), types("int", "int")]
    );
    let attributes = first.attributes.expect("attributes").provider;
    assert_eq!(
        (attributes.name, attributes.data, attributes.class),
        (5, 7, 3)
    );
    assert!(!first.asks && notes[2].asks);
    // The result register itself is the answer.
    let answer = notes[2].arguments[0].expect("an answer").arg;
    assert_eq!((answer.base, answer.form), (0, ANSWER));
}

#[test]
fn since_version_3_the_answer_has_an_address() {
    let notes = parse(&good(3), 0).expect("a good image");
    assert_eq!(places(&notes[2]), [Some([7, 0, 0, 8, 0])]);
}

#[test]
fn before_version_2_nobody_asks() {
    let image = Parts::new(1).image(|parts| {
        parts.probe.nenoffs = 0;
        parts.secs[PROVIDER].size = 40;
    });
    assert_eq!(parse(&image, 0).expect("a good image").len(), 2);
    assert!(parse(&good(1), 0).is_err());
}

#[test]
fn what_is_on_the_stack_is_found_there() {
    let text = |types: &[&str]| types.iter().map(|ty| format!("{ty}\0")).collect::<String>();
    let types = text(&[
        "int", "int", "int", "int", "int", "int", "double", "short", "uint8_t",
    ]);
    let mut image = Parts::new(2).image(|parts| {
        parts.args = [6, 7, 8, 5];
        parts.probe.argidx = 0;
        parts.probe.nargc = 9;
        parts.probe.xargc = 4;
        // The strings are appended behind the end.
        parts.probe.nargv = TEXT.len() as u32;
        parts.probe.xargv = TEXT.len() as u32;
        parts.secs[STRTAB].offset = parts.hdr.loadsz;
        parts.secs[STRTAB].size = (TEXT.len() + types.len()) as u64;
        parts.hdr.loadsz += parts.secs[STRTAB].size;
    });
    image.extend(TEXT.bytes().chain(types.bytes()));
    let notes = parse(&image, 0).expect("a good image");
    assert_eq!(
        places(&notes[0]),
        [
            Some([i64::from(VECTOR), 0, 0, 8, 0]),
            Some([4, 0, 1, 2, 1]),
            Some([4, 8, 1, 1, 0]),
            Some([9, 0, 0, 4, 1]),
        ]
    );
}

/// The expected error, and the change of an image that causes it.
type Spoilt = (&'static str, fn(&mut Parts));

#[test]
fn what_is_not_well_formed_is_refused() {
    let bad: &[Spoilt] = &[
        ("it is no DOF", |p| p.hdr.ident[0] = 0),
        ("its data model is not known", |p| p.hdr.ident[4] = 3),
        ("its order of bytes or its flags are not known", |p| {
            p.hdr.ident[5] = dof::ENCODE_MSB
        }),
        ("its order of bytes or its flags are not known", |p| {
            p.hdr.ident[15] = 1
        }),
        ("its order of bytes or its flags are not known", |p| {
            p.hdr.flags = 1
        }),
        ("its version is not known", |p| p.hdr.ident[6] = 4),
        ("its size is wrong", |p| p.hdr.loadsz += 8),
        ("its size is wrong", |p| p.hdr.loadsz = u64::MAX),
        ("its table of sections is wrong", |p| p.hdr.secsize = 31),
        ("it has too many sections", |p| p.hdr.secnum = u32::MAX),
        ("a section is outside of it", |p| p.hdr.secnum = 100),
        ("its table of sections is cut off", |p| {
            p.hdr.secoff = u64::MAX
        }),
        ("its table of sections is cut off", |p| {
            p.hdr.secsize = u32::MAX
        }),
        ("a section is outside of it", |p| {
            p.secs[PROBES].size = u64::MAX
        }),
        ("a section is outside of it", |p| {
            p.secs[PROBES].offset = u64::MAX
        }),
        ("a section is missing", |p| p.provider.strtab = 99),
        ("a section is missing", |p| {
            p.provider.probes = STRTAB as u32
        }),
        ("a section is missing", |p| p.secs[PROFFS].flags = 0),
        ("a section is missing", |p| p.relocs.relsec = 99),
        ("a section is missing", |p| p.relocs.tgtsec = 99),
        ("a head of relocations is cut off", |p| {
            p.secs[URELHDR].size = 4
        }),
        ("a relocation is of a kind that is not known", |p| {
            p.reloc.ty = 7
        }),
        ("a relocation is outside of its section", |p| {
            p.reloc.offset = 41
        }),
        ("a relocation is outside of its section", |p| {
            p.reloc.offset = u64::MAX
        }),
        ("a provider is cut off", |p| p.secs[PROVIDER].size = 43),
        ("a provider's name is none", |p| p.provider.name = 0),
        ("a provider's name is none", |p| {
            p.provider.name = NATIVE + 4
        }),
        ("a string is outside of its table", |p| {
            p.provider.name = u32::MAX
        }),
        ("a string does not end", |p| p.secs[STRTAB].size = 3),
        ("a probe's name is none", |p| p.probe.name = 0),
        ("a string does not end", |p| p.probe.nargc = 200),
        ("a type is none", |p| p.probe.xargv = 0),
        ("an argument is outside of its table", |p| {
            p.probe.argidx = u32::MAX
        }),
        ("an argument is none", |p| p.probe.argidx = 2),
        ("a site is outside of its table", |p| {
            p.probe.offidx = u32::MAX
        }),
        ("a site is outside of its table", |p| {
            p.probe.noffs = u16::MAX
        }),
        ("a site is outside of its table", |p| p.probe.nenoffs = 2),
        ("a site is outside of its table", |p| {
            p.provider.prenoffs = dof::SECIDX_NONE
        }),
    ];
    for (n, (why, spoil)) in bad.iter().enumerate() {
        let image = Parts::new(2).image(spoil);
        assert_eq!(parse(&image, 0).err(), Some(*why), "{n}");
    }
}

#[test]
fn an_image_that_is_cut_off_is_refused() {
    let image = good(2);
    for len in 0..image.len() {
        assert!(parse(&image[..len], 0).is_err(), "{len}");
    }
}

#[test]
fn what_an_image_makes_of_us_is_bounded() {
    // Many probes share one table of 65,535 sites.
    let mut image = Parts::new(2).image(|parts| {
        parts.probe.noffs = u16::MAX;
        parts.secs[PROFFS].offset = parts.hdr.loadsz;
        parts.secs[PROFFS].size = 4 * 65_536;
        parts.hdr.loadsz += parts.secs[PROFFS].size;
        parts.secs[PROBES].offset = parts.hdr.loadsz;
        parts.secs[PROBES].size = 48 * 100;
        parts.hdr.loadsz += parts.secs[PROBES].size;
    });
    let at = size_of::<Hdr>() + 8 * size_of::<Sec>() + TEXT.len().next_multiple_of(8);
    let probe = image[at..at + 48].to_vec();
    image.resize(image.len() + 4 * 65_536, 0);
    for _ in 0..100 {
        image.extend(&probe);
    }
    assert_eq!(parse(&image, 0).err(), Some("too many sites"));
}

#[test]
fn images_of_a_file_follow_one_another() {
    let two = [good(2), good(3)].concat();
    assert_eq!(parse_all(&two).len(), 6);
    let mut damaged = two.clone();
    damaged[good(2).len()] = 0;
    assert_eq!(parse_all(&damaged).len(), 3);
    assert_eq!(parse_all(&two[1..]).len(), 0);
}

/// The fuzz target starts from the valid images.
#[test]
fn the_corpus_is_good() {
    for (name, version) in [("two", 2), ("three", 3)] {
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/programs");
        let path = std::path::Path::new(corpus).join(name);
        assert!(
            std::fs::read(path).expect("a corpus") == good(version),
            "{name}"
        );
    }
}
