// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! DOF for an application (`dtrace -G`): the clauses of a program, and the sites of the probes that
//! it defines.
//!
//! The addresses of functions are left open. Either the linker fills them in, or, for an image that
//! no linker processes, relocations in the image name the functions.

use super::{emit_into, Image};
use crate::program::Program;
use dtrace_objects::usdt::{self, Provider, Site, MAKER};
use dtrace_uapi::dof::{self, Hdr, Probe, RelocDesc, RelocHdr, Sec, SecIdx, SecType, SECIDX_NONE};
use dtrace_uapi::option::Opt;
use dtrace_uapi::types::Attribute;
use std::collections::BTreeSet;
use zerocopy::FromBytes;

/// An image for a linker.
#[derive(Debug)]
pub struct Linkable {
    /// The image.
    pub bytes: Vec<u8>,
    /// The offsets of the functions' addresses in the image, and the functions' symbol names.
    pub addresses: Vec<(u64, String)>,
}

/// The purpose of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// Whether it will be linked; otherwise it names its functions itself.
    pub linked: bool,
    /// Whether to leave out the sections that are not loaded.
    pub strip: bool,
}

/// Emits the clauses of `program`, if it has any, and these sites of its probes. Fails if something
/// does not fit, or if the result could not be read back.
pub fn emit_for_application(
    program: &Program,
    options: &[(Opt, u64)],
    sites: &[Site],
    to: Use,
) -> Result<Linkable, String> {
    let mut image = Image::default();
    if !program.clauses.is_empty() || program.providers.is_empty() {
        emit_into(&mut image, program, options);
    }
    let mut tables = Vec::new();
    for provider in &program.providers {
        let own = sites.iter().filter(|site| site.provider == provider.name);
        let own: Vec<&Site> = own.collect();
        if !own.is_empty() {
            tables.push(image.provider(provider, &own, to.linked)?);
        }
    }
    if !to.strip {
        image.comment = format!("{MAKER}\0").into_bytes();
    }
    let bytes = image.finish();
    // A reader refuses an invalid image as a whole and silently.
    if !tables.is_empty() {
        usdt::dof::parse(&bytes, 0).map_err(|why| format!("DOF of it cannot be read: {why}"))?;
    }
    let mut addresses = Vec::new();
    for (table, symbols) in tables.iter().filter(|_| to.linked) {
        let at = size_of::<Hdr>() + *table as usize * size_of::<Sec>();
        let (sec, _) = Sec::read_from_prefix(&bytes[at..]).map_err(|_| "it is too large")?;
        for (n, symbol) in symbols.iter().enumerate() {
            addresses.push((sec.offset + address_of(n), (*symbol).to_owned()));
        }
    }
    Ok(Linkable { bytes, addresses })
}

/// Returns the offset of the address of probe `n` in a table of probes.
fn address_of(n: usize) -> u64 {
    (n * size_of::<Probe>() + std::mem::offset_of!(Probe, addr)) as u64
}

/// A string table without sharing, because some strings must be adjacent.
struct Texts(Vec<u8>);

impl Texts {
    fn add(&mut self, text: &str) -> u32 {
        let at = self.0.len() as u32;
        self.0.extend(text.bytes());
        self.0.push(0);
        at
    }

    /// Adds all strings, one after the other. Returns the offset of the first one.
    fn row<'t>(&mut self, texts: impl Iterator<Item = &'t str>) -> u32 {
        let at = self.0.len() as u32;
        texts.for_each(|text| {
            self.add(text);
        });
        at
    }
}

/// The section of a table of probes, and the linker symbol of each probe's function.
type Table<'s> = (SecIdx, Vec<&'s str>);

impl Image {
    fn provider<'s>(
        &mut self,
        provider: &Provider,
        sites: &[&'s Site],
        linked: bool,
    ) -> Result<Table<'s>, &'static str> {
        let mut texts = Texts(vec![0]);
        let name = texts.add(&provider.name);
        let (mut probes, mut symbols) = (Vec::new(), Vec::new());
        let (mut arguments, mut fires, mut asks) = (Vec::new(), Vec::new(), Vec::new());
        for definition in &provider.probes {
            let shown = definition.shown();
            let own: Vec<&&Site> = sites.iter().filter(|site| site.probe == shown).collect();
            let mut functions: Vec<&'s str> = own.iter().map(|site| site.symbol.as_str()).collect();
            functions.sort_unstable();
            functions.dedup();
            if functions.is_empty() {
                continue;
            }
            let common = Probe {
                name: texts.add(&shown),
                nargv: texts.row(definition.parameters.iter().map(|p| p.in_dof())),
                xargv: texts.row(definition.arguments.iter().map(|(ty, _)| ty.as_str())),
                // Both counts fit in a byte: definitions are checked.
                nargc: definition.parameters.len() as u8,
                xargc: definition.arguments.len() as u8,
                argidx: arguments.len() as u32,
                ..Probe::default()
            };
            arguments.extend(definition.arguments.iter().map(|(_, index)| *index));
            for symbol in functions {
                let own = own.iter().filter(|site| site.symbol == symbol);
                let func = own.clone().next().map_or("", |site| &site.func);
                let func = Some(func).filter(|func| usdt::dof::is_function(func));
                // Several objects may contain the same function, of which one copy is kept, with
                // the same sites.
                let offsets = |asks: bool| {
                    let own = own.clone().filter(|site| site.asks == asks);
                    own.map(|site| site.offset).collect::<BTreeSet<u32>>()
                };
                let (begin, begin_asks) = (fires.len(), asks.len());
                fires.extend(offsets(false));
                asks.extend(offsets(true));
                let count = |count: usize| {
                    u16::try_from(count).map_err(|_| "a function has too many sites")
                };
                probes.push(Probe {
                    func: texts.add(func.unwrap_or_default()),
                    offidx: begin as u32,
                    noffs: count(fires.len() - begin)?,
                    enoffidx: begin_asks as u32,
                    nenoffs: count(asks.len() - begin_asks)?,
                    ..common
                });
                symbols.push(symbol);
            }
        }
        let relocations = symbols.iter().enumerate().map(|(n, symbol)| RelocDesc {
            name: if linked { 0 } else { texts.add(symbol) },
            ty: dof::RELO_SETX,
            offset: address_of(n),
            data: 0,
        });
        let relocations: Vec<RelocDesc> = relocations.collect();
        let strtab = self.section(SecType::Strtab, 1, 0, texts.0);
        let probes = self.table(SecType::Probes, &probes);
        let attributes = &provider.attributes;
        let head = dof::Provider {
            strtab,
            probes,
            prargs: self.table(SecType::Prargs, &arguments),
            proffs: self.table(SecType::Proffs, &fires),
            name,
            provattr: word(attributes.provider),
            modattr: word(attributes.module),
            funcattr: word(attributes.func),
            nameattr: word(attributes.name),
            argsattr: word(attributes.args),
            prenoffs: match asks.is_empty() {
                true => SECIDX_NONE,
                false => self.table(SecType::Prenoffs, &asks),
            },
        };
        // The section is a single structure, not a table.
        self.whole(SecType::Provider, &head);
        if !linked {
            let relsec = self.table(SecType::Reltab, &relocations);
            let head = RelocHdr {
                strtab,
                relsec,
                tgtsec: probes,
            };
            self.whole(SecType::UrelHdr, &head);
        }
        Ok((probes, symbols))
    }
}

fn word(attribute: Attribute) -> u32 {
    u32::from_be_bytes([attribute.name, attribute.data, attribute.class, 0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use dtrace_objects::usdt::{Definition, Form, Parameter, ATTRIBUTES};

    fn shop() -> Provider {
        let parameter = |ty: &str, form| Parameter {
            ty: ty.to_owned(),
            form,
        };
        let definition = |name: &str, parameters, arguments: &[(&str, u8)]| Definition {
            name: name.to_owned(),
            parameters,
            arguments: arguments
                .iter()
                .map(|(ty, n)| ((*ty).to_owned(), *n))
                .collect(),
        };
        let sold = vec![
            parameter("price_t", Form::Int(4, true)),
            parameter("char *", Form::Pointer),
            parameter("double", Form::Float(8)),
        ];
        Provider {
            name: "shop".to_owned(),
            probes: vec![
                definition("open", Vec::new(), &[]),
                definition("never", Vec::new(), &[]),
                definition(
                    "sold__out",
                    sold,
                    &[("char *", 1), ("price_t", 0), ("double", 2)],
                ),
            ],
            attributes: ATTRIBUTES,
        }
    }

    fn site(probe: &str, func: &str, offset: u32, asks: bool) -> Site {
        Site {
            provider: "shop".to_owned(),
            probe: probe.to_owned(),
            func: func.to_owned(),
            symbol: format!("{func}'s"),
            is_local: false,
            group: None,
            offset,
            asks,
        }
    }

    fn program() -> Program {
        Program {
            providers: vec![shop()],
            ..Program::default()
        }
    }

    fn sites() -> Vec<Site> {
        vec![
            site("sold-out", "main", 0x10, false),
            site("open", "main", 0x20, false),
            site("sold-out", "other", 0x30, false),
            site("sold-out", "main", 0x40, true),
            // Of a function that two objects contain.
            site("sold-out", "main", 0x10, false),
        ]
    }

    /// Returns the notes in the image, as `name func address asks`.
    fn found(bytes: &[u8], base: u64) -> Vec<String> {
        let notes = usdt::dof::parse(bytes, base).expect("a good image");
        let text = |note: &usdt::Note| {
            let asks = if note.asks { " asks" } else { "" };
            format!("{} {} {:#x}{asks}", note.name, note.func, note.address)
        };
        notes.iter().map(text).collect()
    }

    const LINKED: Use = Use {
        linked: true,
        strip: false,
    };

    #[test]
    fn what_is_written_is_read() {
        let mut made = emit_for_application(&program(), &[], &sites(), LINKED).unwrap();
        let names: Vec<&str> = made.addresses.iter().map(|(_, name)| &**name).collect();
        assert_eq!(names, ["main's", "main's", "other's"]);
        for (at, name) in &made.addresses {
            let address: u64 = if name == "other's" { 0x2000 } else { 0x1000 };
            made.bytes[*at as usize..][..8].copy_from_slice(&address.to_le_bytes());
        }
        let expected = [
            "open main 0x1020",
            "sold-out main 0x1010",
            "sold-out main 0x1040 asks",
            "sold-out other 0x2030",
        ];
        assert_eq!(found(&made.bytes, 0), expected);
        // The address from which the image was registered makes no difference.
        assert_eq!(found(&made.bytes, 0x7000_0000), expected);
        let notes = usdt::dof::parse(&made.bytes, 0).unwrap();
        let types: Vec<_> = notes[1]
            .types
            .iter()
            .map(|(own, seen)| (&**own, &**seen))
            .collect();
        // A type name that a reader could take for a larger type is replaced by a base type.
        assert_eq!(
            types,
            [
                ("char *", "char *"),
                ("int", "price_t"),
                ("double", "double")
            ]
        );
        assert_eq!(notes[1].attributes, None);
    }

    #[test]
    fn an_image_that_is_not_linked_names_its_functions() {
        let to = Use {
            linked: false,
            ..LINKED
        };
        let made = emit_for_application(&program(), &[], &sites(), to).unwrap();
        assert!(made.addresses.is_empty());
        assert_eq!(found(&made.bytes, 0x1000)[..1], ["open main 0x1020"]);
        let has = |text: &[u8]| made.bytes.windows(text.len()).any(|bytes| bytes == text);
        assert!(has(b"\0main's\0") && has(b"\0other's\0"));
    }

    #[test]
    fn what_nobody_loads_is_left_out() {
        let made = |strip| {
            let to = Use { strip, ..LINKED };
            emit_for_application(&program(), &[], &sites(), to)
                .unwrap()
                .bytes
        };
        let [whole, bare] = [false, true].map(made);
        assert_eq!(
            super::super::comments(&whole),
            [format!("{MAKER}\0").as_bytes()]
        );
        assert!(super::super::comments(&bare).is_empty() && bare.len() < whole.len());
        assert_eq!(found(&whole, 0), found(&bare, 0));
    }

    #[test]
    fn sites_are_as_many_as_there_is_room_for() {
        let many: Vec<Site> = (0..=0x1_0000)
            .map(|n| site("open", "main", n, false))
            .collect();
        let made = |sites: &[Site]| emit_for_application(&program(), &[], sites, LINKED);
        assert!(made(&many[..0xffff]).is_ok());
        assert_eq!(
            made(&many[..0x1_0000]).err().as_deref(),
            Some("a function has too many sites")
        );
    }

    #[test]
    fn a_function_whose_name_cannot_be_said_has_none() {
        let odd = ["f".repeat(192), "größe".to_owned(), "a/b".to_owned()];
        let mut sites = sites();
        sites.extend(odd.iter().map(|func| site("open", func, 0x20, false)));
        let made = emit_for_application(&program(), &[], &sites, LINKED).unwrap();
        let found = found(&made.bytes, 0);
        let unnamed = found.iter().filter(|site| *site == "open  0x20").count();
        assert_eq!((found.len(), unnamed), (4 + odd.len(), odd.len()));
    }

    #[test]
    fn what_nobody_could_read_is_told() {
        let mut program = program();
        program.providers[0].probes[0].parameters = vec![Parameter {
            ty: format!("struct {} *", "s".repeat(200)),
            form: Form::Pointer,
        }];
        let made = emit_for_application(&program, &[], &sites(), LINKED);
        let why = "DOF of it cannot be read: a type is none";
        assert_eq!(made.err().as_deref(), Some(why));
        let many = (0..40).map(|n| Provider {
            name: format!("shop{n}s"),
            ..shop()
        });
        program.providers = many.collect();
        let sites = program.providers.iter().map(|provider| Site {
            provider: provider.name.clone(),
            ..site("open", "main", 0, false)
        });
        let sites: Vec<Site> = sites.collect();
        let made = emit_for_application(&program, &[], &sites, LINKED);
        let why = "DOF of it cannot be read: too many providers";
        assert_eq!(made.err().as_deref(), Some(why));
    }
}
