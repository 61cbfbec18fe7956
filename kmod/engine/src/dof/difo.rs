// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! A DIF object as the image has it: text, integers, strings and variables, not verified yet.

use super::image::Image;
use crate::error::{Errno, Reason};
use crate::mem::{Boxed, Vec};
use dtrace_uapi::dif::Instr;
use dtrace_uapi::dof::{DifoHdr, RelocDesc, RelocHdr, SecIdx, SecType, RELO_NONE, RELO_SETX};
use dtrace_uapi::limits::DIFO_MAX;
use dtrace_uapi::types::{DifType, DifVar};

/// A DIF object.
#[derive(Debug, Default)]
pub struct Difo {
    /// Instructions.
    pub text: Vec<Instr>,
    /// The integers that `setx` refers to.
    pub ints: Vec<u64>,
    /// The strings that `sets` refers to, each ending with NUL.
    pub strings: Vec<u8>,
    /// The variables that it uses.
    pub vars: Vec<DifVar>,
    /// The type of what it returns.
    pub rtype: DifType,
}

/// The section links of a DIFO header, each at most once.
#[derive(Default)]
struct Links {
    text: Option<SecIdx>,
    ints: Option<SecIdx>,
    strings: Option<SecIdx>,
    vars: Option<SecIdx>,
    types: Option<SecIdx>,
    reloc: Option<SecIdx>,
}

impl Links {
    fn read(image: &Image<'_>, header: SecIdx) -> Result<Self, Reason> {
        let data = image.data(header, SecType::DifoHdr)?;
        let raw = data.get(size_of::<DifoHdr>()..).unwrap_or(&[]);
        if raw.len() % size_of::<SecIdx>() != 0 {
            return Err(Reason::section("bad size of a DIFO header", header));
        }
        let mut links = Self::default();
        for word in raw.chunks_exact(size_of::<SecIdx>()) {
            let index = word.try_into().map_or(u32::MAX, u32::from_ne_bytes);
            let slot = match image.kind(index) {
                Some(SecType::Dif) => &mut links.text,
                Some(SecType::Inttab) => &mut links.ints,
                Some(SecType::Strtab) => &mut links.strings,
                Some(SecType::Vartab) => &mut links.vars,
                Some(SecType::Typtab) => &mut links.types,
                Some(SecType::UrelHdr | SecType::KrelHdr) => &mut links.reloc,
                Some(SecType::Xltab) => {
                    return Err(Reason::section(
                        "translators are to be resolved by the consumer",
                        index,
                    ))
                }
                Some(_) => return Err(Reason::section("DIFO cannot link to this section", index)),
                None => {
                    return Err(Reason::section(
                        "link to a section that does not exist or is not loaded",
                        index,
                    ))
                }
            };
            if slot.replace(index).is_some() {
                return Err(Reason::section(
                    "DIFO links to two sections of one type",
                    index,
                ));
            }
        }
        Ok(links)
    }
}

/// Applies the relocations of section `header` to `out`, the integers of a DIFO. The kernel
/// resolves no names: the consumer has done that, and left addends for the kernel to add.
fn relocate(
    image: &Image<'_>,
    header: SecIdx,
    ints: Option<SecIdx>,
    out: &mut [u64],
) -> Result<(), Reason> {
    let ty = image.kind(header).unwrap_or(SecType::KrelHdr);
    let head: RelocHdr = image.head(header, ty)?;
    image.header(head.strtab, SecType::Strtab)?;
    if Some(head.tgtsec) != ints {
        return Err(Reason::section(
            "relocation of something else than the DIFO's integers",
            header,
        ));
    }
    let relocs: Vec<RelocDesc> = image.table(head.relsec, SecType::Reltab)?;
    for reloc in relocs.iter() {
        image.string(head.strtab, u64::from(reloc.name))?;
        match reloc.ty {
            RELO_NONE => {}
            RELO_SETX => {
                let word = usize::try_from(reloc.offset / 8)
                    .ok()
                    .filter(|_| reloc.offset % 8 == 0)
                    .and_then(|word| out.get_mut(word))
                    .ok_or(Reason::section(
                        "relocation out of its target's range",
                        head.relsec,
                    ))?;
                *word = word.wrapping_add(reloc.data);
            }
            _ => return Err(Reason::section("unknown type of relocation", head.relsec)),
        }
    }
    Ok(())
}

impl Difo {
    /// Copies the DIF object with header `header`, and applies its relocations.
    pub fn read(image: &Image<'_>, header: SecIdx) -> Result<Boxed<Self>, Reason> {
        let head: DifoHdr = image.head(header, SecType::DifoHdr)?;
        let links = Links::read(image, header)?;
        let text = links
            .text
            .ok_or(Reason::section("DIFO without instructions", header))?;
        if image.data(text, SecType::Dif)?.len() > DIFO_MAX {
            return Err(Reason::new(Errno::E2BIG, "DIFO is too big"));
        }
        let words: Vec<u32> = image.table(text, SecType::Dif)?;
        let mut this = Self {
            text: Vec::try_from_fn(words.len(), |i| {
                Ok::<_, Reason>(Instr(words.get(i).copied().unwrap_or(0)))
            })?,
            rtype: head.rtype,
            ..Self::default()
        };
        if let Some(ints) = links.ints {
            this.ints = image.table(ints, SecType::Inttab)?;
        }
        if let Some(strings) = links.strings {
            let data = image.data(strings, SecType::Strtab)?;
            image.spend(data.len())?;
            this.strings = Vec::copy_of(data)?;
        }
        if let Some(vars) = links.vars {
            this.vars = image.table(vars, SecType::Vartab)?;
        }
        if let Some(reloc) = links.reloc {
            relocate(image, reloc, links.ints, &mut this.ints)?;
        }
        Ok(Boxed::new(this)?)
    }
}
