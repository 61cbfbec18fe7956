// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! A DOF image whose header and section table have been checked.
//!
//! Invariant: every section that the kernel loads lies within the image, at an offset aligned as
//! its header says. If it is not empty, it overlaps neither the header nor the section table nor
//! another section. A string table that is not empty ends with NUL.

use crate::error::{Errno, NoMem, Reason};
use crate::mem::sort::sort;
use crate::mem::Vec;
use core::cell::Cell;
use dtrace_uapi::dif::{DIF_NREGS, DIF_NTREGS, DIF_VERSION};
use dtrace_uapi::dof::{self, Hdr, Sec, SecIdx, SecType};
use dtrace_uapi::limits::DOF_MAX;
use zerocopy::FromBytes;

/// A checked image.
#[derive(Debug)]
pub struct Image<'a> {
    bytes: &'a [u8],
    sections: Vec<Sec>,
    budget: Cell<usize>,
}

/// Maximum number of bytes that are copied out of an image's sections. Many actions may share one
/// section, so otherwise a small image could need any amount of memory.
const COPIED_MAX: usize = 4 * DOF_MAX;

const HDR: usize = size_of::<Hdr>();
const SEC: usize = size_of::<Sec>();

/// Checks what the header says about itself, and whether this kernel can read such an image.
fn check_header(hdr: &Hdr, len: usize) -> Result<(), &'static str> {
    let id = &hdr.ident;
    let model = if cfg!(target_pointer_width = "64") {
        dof::MODEL_LP64
    } else {
        dof::MODEL_ILP32
    };
    let encoding = if cfg!(target_endian = "little") {
        dof::ENCODE_LSB
    } else {
        dof::ENCODE_MSB
    };
    let checks = [
        (id[..4] == dof::MAGIC, "bad magic"),
        (id[dof::ID_MODEL] == model, "bad data model"),
        (id[dof::ID_ENCODING] == encoding, "bad byte order"),
        (
            matches!(id[dof::ID_VERSION], dof::VERSION_1 | dof::VERSION_2),
            "unknown version of DOF",
        ),
        (id[dof::ID_DIFVERS] == DIF_VERSION, "unknown version of DIF"),
        (
            id[dof::ID_DIFIREG] <= DIF_NREGS,
            "too many integer registers",
        ),
        (
            id[dof::ID_DIFTREG] <= DIF_NTREGS,
            "too many tuple registers",
        ),
        (
            id[dof::ID_PAD..].iter().all(|b| *b == 0),
            "padding of the identification is not zero",
        ),
        (hdr.flags == 0, "unknown flags"),
        (hdr.hdrsize as usize == HDR, "bad size of the header"),
        (hdr.secsize != 0, "size of section headers is zero"),
        (hdr.secsize as usize == SEC, "bad size of section headers"),
        (
            hdr.loadsz >= HDR as u64,
            "loaded size is less than the header",
        ),
        (
            hdr.filesz >= hdr.loadsz,
            "file size is less than the loaded size",
        ),
        (hdr.loadsz <= len as u64, "image is truncated"),
        (hdr.secoff % 8 == 0, "section headers are misaligned"),
        (
            hdr.secoff >= HDR as u64,
            "section headers overlap the header",
        ),
        (
            u64::from(hdr.secnum)
                .checked_mul(SEC as u64)
                .and_then(|size| size.checked_add(hdr.secoff))
                .is_some_and(|end| end <= hdr.loadsz),
            "section headers are truncated",
        ),
    ];
    match checks.iter().find(|(good, _)| !good) {
        Some((_, text)) => Err(text),
        None => Ok(()),
    }
}

/// Checks one section's header against an image of `loadsz` bytes. `table` is the range of offsets
/// of the section table.
fn check_section(
    sec: &Sec,
    ty: Option<SecType>,
    loadsz: u64,
    table: (u64, u64),
) -> Result<(), &'static str> {
    let Some(ty) = ty else {
        return Err("unknown type of section");
    };
    if matches!(ty, SecType::Provider | SecType::Probes) {
        return Err("providers are for helpers, not for enablings");
    }
    if sec.flags & !dof::SECF_LOAD != 0 {
        return Err("unknown flags of a section");
    }
    if sec.flags & dof::SECF_LOAD == 0 {
        return if ty.is_loadable() {
            Err("loadable section without the load flag")
        } else {
            Ok(())
        };
    }
    if !ty.is_loadable() {
        return Err("section that cannot be loaded has the load flag");
    }
    if !sec.align.is_power_of_two() {
        return Err("bad alignment of a section");
    }
    if sec.offset & u64::from(sec.align).wrapping_sub(1) != 0 {
        return Err("misaligned section");
    }
    let end = sec.offset.checked_add(sec.size);
    if end.is_none_or(|end| end > loadsz) {
        return Err("section out of the image's range");
    }
    if sec.size > 0 {
        let end = end.unwrap_or(u64::MAX);
        if sec.offset < HDR as u64 || (sec.offset < table.1 && end > table.0) {
            return Err("section overlaps the headers");
        }
    }
    Ok(())
}

impl<'a> Image<'a> {
    /// Checks an image. Bytes behind the loaded part are ignored.
    pub fn new(bytes: &'a [u8]) -> Result<Self, Reason> {
        if bytes.len() > DOF_MAX {
            return Err(Reason::new(Errno::E2BIG, "image is too big"));
        }
        let (hdr, _) = Hdr::read_from_prefix(bytes)
            .map_err(|_| Reason::invalid("image is shorter than its header"))?;
        if hdr.loadsz > DOF_MAX as u64 {
            return Err(Reason::new(Errno::E2BIG, "image is too big"));
        }
        check_header(&hdr, bytes.len()).map_err(Reason::invalid)?;
        let bytes = bytes.get(..hdr.loadsz as usize).unwrap_or(&[]);
        let table = (hdr.secoff, hdr.secoff + u64::from(hdr.secnum) * SEC as u64);

        let mut sections = Vec::with_capacity(hdr.secnum as usize)?;
        let headers = bytes.get(table.0 as usize..table.1 as usize).unwrap_or(&[]);
        for (index, raw) in headers.chunks_exact(SEC).enumerate() {
            let sec = Sec::read_from_bytes(raw)
                .map_err(|_| Reason::invalid("section headers are truncated"))?;
            let ty = SecType::from_raw(sec.ty);
            check_section(&sec, ty, hdr.loadsz, table)
                .map_err(|text| Reason::section(text, index as u32))?;
            let data = bytes.get(sec.offset as usize..(sec.offset.wrapping_add(sec.size)) as usize);
            if ty == Some(SecType::Strtab)
                && data.is_none_or(|data| data.last().is_some_and(|b| *b != 0))
            {
                return Err(Reason::section("unterminated string table", index as u32));
            }
            sections.push(sec)?;
        }
        let this = Self {
            bytes,
            sections,
            budget: Cell::new(COPIED_MAX),
        };
        this.check_overlaps()?;
        Ok(this)
    }

    /// Refuses sections that share bytes.
    fn check_overlaps(&self) -> Result<(), Reason> {
        let mut order = Vec::with_capacity(self.sections.len())?;
        for (index, sec) in self.sections.iter().enumerate() {
            if sec.flags & dof::SECF_LOAD != 0 && sec.size > 0 {
                order.push((sec.offset, sec.offset + sec.size, index as u32))?;
            }
        }
        sort(&mut order, |a, b| a < b);
        let mut last = 0;
        for (begin, end, index) in order.iter() {
            if *begin < last {
                return Err(Reason::section("section overlaps another", *index));
            }
            last = *end;
        }
        Ok(())
    }

    /// Returns the number of sections.
    pub fn sections(&self) -> u32 {
        self.sections.len() as u32
    }

    /// Returns the header of section `index`, if it is loaded and of type `ty`.
    pub fn header(&self, index: SecIdx, ty: SecType) -> Result<&Sec, Reason> {
        let sec = self.sections.get(index as usize).ok_or(Reason::section(
            "link to a section that does not exist",
            index,
        ))?;
        if sec.ty != ty as u32 {
            return Err(Reason::section("link to a section of another type", index));
        }
        if sec.flags & dof::SECF_LOAD == 0 {
            return Err(Reason::section(
                "link to a section that is not loaded",
                index,
            ));
        }
        Ok(sec)
    }

    /// Returns the type of section `index`, if it exists and is loaded.
    pub fn kind(&self, index: SecIdx) -> Option<SecType> {
        let sec = self.sections.get(index as usize)?;
        SecType::from_raw(sec.ty).filter(|_| sec.flags & dof::SECF_LOAD != 0)
    }

    /// Returns the data of section `index` of type `ty`.
    pub fn data(&self, index: SecIdx, ty: SecType) -> Result<&'a [u8], Reason> {
        let sec = self.header(index, ty)?;
        let end = sec.offset.wrapping_add(sec.size) as usize;
        Ok(self.bytes.get(sec.offset as usize..end).unwrap_or(&[]))
    }

    /// Counts `bytes` that are copied out of the image. `E2BIG` if that is too much in all.
    pub fn spend(&self, bytes: usize) -> Result<(), Reason> {
        match self.budget.get().checked_sub(bytes) {
            Some(left) => {
                self.budget.set(left);
                Ok(())
            }
            None => Err(Reason::new(
                Errno::E2BIG,
                "actions share sections too often",
            )),
        }
    }

    /// Returns the number of bytes that were copied.
    pub fn spent(&self) -> usize {
        COPIED_MAX.saturating_sub(self.budget.get())
    }

    /// Returns the first `T` of section `index` of type `ty`.
    pub fn head<T: FromBytes>(&self, index: SecIdx, ty: SecType) -> Result<T, Reason> {
        T::read_from_prefix(self.data(index, ty)?)
            .map(|(head, _)| head)
            .map_err(|_| Reason::section("truncated section", index))
    }

    /// Returns the entries of table `index` of type `ty`.
    pub fn table<T: FromBytes>(&self, index: SecIdx, ty: SecType) -> Result<Vec<T>, Reason> {
        let sec = self.header(index, ty)?;
        let data = self.data(index, ty)?;
        if sec.entsize as usize != size_of::<T>() {
            return Err(Reason::section("bad size of a table's entries", index));
        }
        if data.len() % size_of::<T>() != 0 {
            return Err(Reason::section(
                "size is not a multiple of the entries' size",
                index,
            ));
        }
        self.spend(data.len())?;
        let mut out = Vec::with_capacity(data.len() / size_of::<T>())?;
        for raw in data.chunks_exact(size_of::<T>()) {
            out.push(T::read_from_bytes(raw).map_err(|_| NoMem)?)?;
        }
        Ok(out)
    }

    /// Returns the string at `offset` of string table `index`, without its NUL. Its length is
    /// charged, because any number of places may refer to one long string.
    pub fn string(&self, index: SecIdx, offset: u64) -> Result<&'a [u8], Reason> {
        let data = self.data(index, SecType::Strtab)?;
        let rest = usize::try_from(offset)
            .ok()
            .and_then(|offset| data.get(offset..))
            .filter(|rest| !rest.is_empty())
            .ok_or(Reason::section("string out of its table's range", index))?;
        let end = rest.iter().position(|b| *b == 0).unwrap_or(rest.len());
        self.spend(end)?;
        Ok(rest.get(..end).unwrap_or(&[]))
    }
}
