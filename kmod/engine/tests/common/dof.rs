// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! A writer of DOF images, section by section.

use dtrace_engine::dof::Difo;
use dtrace_uapi::action::Action;
use dtrace_uapi::dif::{DIF_NREGS, DIF_NTREGS, DIF_VERSION};
use dtrace_uapi::dof::{
    ActDesc, DifoHdr, EcbDesc, Hdr, OptDesc, ProbeDesc, Sec, SecType, ENCODE_LSB, ID_DIFIREG,
    ID_DIFTREG, ID_DIFVERS, ID_ENCODING, ID_MODEL, ID_VERSION, MAGIC, MODEL_LP64, SECF_LOAD,
    SECIDX_NONE, VERSION_2,
};
use dtrace_uapi::option::Opt;
use zerocopy::{Immutable, IntoBytes};

#[derive(Default)]
pub struct Image {
    pub secs: Vec<(Sec, Vec<u8>)>,
}

impl Image {
    pub fn section(&mut self, ty: SecType, align: u32, entsize: usize, data: &[u8]) -> u32 {
        let sec = Sec {
            ty: ty as u32,
            align,
            flags: if ty.is_loadable() { SECF_LOAD } else { 0 },
            entsize: entsize as u32,
            offset: 0,
            size: data.len() as u64,
        };
        self.secs.push((sec, data.to_vec()));
        self.secs.len() as u32 - 1
    }

    pub fn table<T: IntoBytes + Immutable>(&mut self, ty: SecType, entries: &[T]) -> u32 {
        let align = align_of::<T>() as u32;
        self.section(ty, align, size_of::<T>(), entries.as_bytes())
    }

    pub fn difo(&mut self, difo: &Difo) -> u32 {
        let words: Vec<u32> = difo.text.iter().map(|i| i.0).collect();
        let mut links = vec![self.table(SecType::Dif, &words)];
        if !difo.ints.is_empty() {
            links.push(self.table(SecType::Inttab, &difo.ints[..]));
        }
        if !difo.strings.is_empty() {
            links.push(self.section(SecType::Strtab, 1, 0, &difo.strings));
        }
        if !difo.vars.is_empty() {
            links.push(self.table(SecType::Vartab, &difo.vars[..]));
        }
        let mut data = DifoHdr { rtype: difo.rtype }.as_bytes().to_vec();
        data.extend(links.as_bytes());
        self.section(SecType::DifoHdr, 4, 0, &data)
    }

    /// Adds a clause with one probe description, `provider:::name`.
    pub fn clause(
        &mut self,
        provider: &str,
        name: &str,
        predicate: Option<&Difo>,
        actions: &[(Action, Option<&Difo>, u32, Option<&str>)],
    ) -> u32 {
        self.clause_at([provider, "", "", name], predicate, actions)
    }

    /// Adds a clause with one probe description: provider, module, function, name.
    pub fn clause_at(
        &mut self,
        probe: [&str; 4],
        predicate: Option<&Difo>,
        actions: &[(Action, Option<&Difo>, u32, Option<&str>)],
    ) -> u32 {
        let mut strings = vec![0];
        let [provider, module, func, name] = probe.map(|part| match part {
            "" => 0,
            _ => {
                let at = strings.len() as u32;
                strings.extend([part.as_bytes(), b"\0"].concat());
                at
            }
        });
        let strtab = self.section(SecType::Strtab, 1, 0, &strings);
        let desc = ProbeDesc {
            strtab,
            provider,
            module,
            func,
            name,
            id: 0,
        };
        let probes = self.section(SecType::ProbeDesc, 4, 0, desc.as_bytes());
        let pred = predicate.map_or(SECIDX_NONE, |difo| self.difo(difo));
        let mut descs = vec![];
        for (index, (kind, difo, ntuple, format)) in actions.iter().enumerate() {
            let strtab = format.map_or(SECIDX_NONE, |format| {
                self.section(SecType::Strtab, 1, 0, &[format.as_bytes(), b"\0"].concat())
            });
            descs.push(ActDesc {
                difo: difo.map_or(SECIDX_NONE, |difo| self.difo(difo)),
                strtab,
                kind: *kind as u32,
                ntuple: *ntuple,
                arg: 0,
                uarg: index as u64 + 1,
            });
        }
        let actions = match descs.is_empty() {
            true => SECIDX_NONE,
            false => self.table(SecType::ActDesc, &descs),
        };
        let ecb = EcbDesc {
            probes,
            pred,
            actions,
            pad: 0,
            uarg: 7,
        };
        self.section(SecType::EcbDesc, 8, 0, ecb.as_bytes())
    }

    pub fn option(&mut self, option: Opt, value: u64) -> u32 {
        let desc = OptDesc {
            option: option as u32,
            strtab: SECIDX_NONE,
            value,
        };
        self.table(SecType::OptDesc, &[desc])
    }

    /// Returns the header for the sections.
    pub fn header(&self) -> Hdr {
        let mut ident = [0; 16];
        ident[..4].copy_from_slice(&MAGIC);
        ident[ID_MODEL] = MODEL_LP64;
        ident[ID_ENCODING] = ENCODE_LSB;
        ident[ID_VERSION] = VERSION_2;
        ident[ID_DIFVERS] = DIF_VERSION;
        ident[ID_DIFIREG] = DIF_NREGS;
        ident[ID_DIFTREG] = DIF_NTREGS;
        Hdr {
            ident,
            hdrsize: size_of::<Hdr>() as u32,
            secsize: size_of::<Sec>() as u32,
            secnum: self.secs.len() as u32,
            secoff: size_of::<Hdr>() as u64,
            ..Hdr::default()
        }
    }

    /// Writes the image; `change` may modify its header first.
    pub fn write_with(&self, change: impl FnOnce(&mut Hdr)) -> Vec<u8> {
        let mut hdr = self.header();
        let mut at = size_of::<Hdr>() + self.secs.len() * size_of::<Sec>();
        let mut headers = vec![];
        let mut body = vec![];
        for (sec, data) in &self.secs {
            let aligned = at.next_multiple_of(sec.align.max(1) as usize);
            body.resize(body.len() + aligned - at, 0);
            at = aligned;
            let sec = Sec {
                offset: at as u64,
                ..*sec
            };
            headers.extend(sec.as_bytes());
            body.extend(data);
            at += data.len();
        }
        hdr.loadsz = at as u64;
        hdr.filesz = at as u64;
        change(&mut hdr);
        [hdr.as_bytes(), &headers, &body].concat()
    }

    pub fn write(&self) -> Vec<u8> {
        self.write_with(|_| {})
    }
}
