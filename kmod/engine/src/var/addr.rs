// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Addresses of the engine's own memory, as DIF sees them.
//!
//! They are numbers, not pointers: a tag in the top 16 bits, a region, and an offset in it. The tag
//! makes them invalid for any processor, because it is in neither half of the address space, with 4
//! or 5 levels of page tables. So a program can compute with these addresses and pass them on, and
//! one comparison tells them from the kernel's. An access is an index that is checked against its
//! region, and no address of the module's memory ever gets into a trace.

/// The top 16 bits of the engine's addresses.
const TAG: u64 = 0x8dd7;
const REGION_SHIFT: u32 = 40;
const OFFSET_MASK: u64 = (1 << REGION_SHIFT) - 1;

/// The regions of the engine's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// The scratch memory of the firing.
    Scratch,
    /// The string constants of the programs.
    Strings,
    /// Clause-local variables.
    Locals,
    /// Global variables.
    Globals,
    /// Values of dynamic variables.
    Dynamics,
}

/// Returns the address of `offset` in `region`.
#[inline(always)]
pub const fn make(region: Region, offset: usize) -> u64 {
    TAG << 48 | (region as u64) << REGION_SHIFT | offset as u64 & OFFSET_MASK
}

/// Whether `addr` is an address of the engine's memory.
#[inline(always)]
pub const fn is_own(addr: u64) -> bool {
    addr >> 48 == TAG
}

/// Returns region and offset of an address of the engine's memory; `None` if there is no such
/// region.
#[inline(always)]
pub const fn split(addr: u64) -> Option<(Region, usize)> {
    let region = match (addr >> REGION_SHIFT) & 0xff {
        0 => Region::Scratch,
        1 => Region::Strings,
        2 => Region::Locals,
        3 => Region::Globals,
        4 => Region::Dynamics,
        _ => return None,
    };
    Some((region, (addr & OFFSET_MASK) as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_round_trip_and_are_not_canonical() {
        for region in [
            Region::Scratch,
            Region::Strings,
            Region::Locals,
            Region::Globals,
            Region::Dynamics,
        ] {
            let addr = make(region, 0x1234);
            assert!(is_own(addr));
            assert_eq!(split(addr + 1), Some((region, 0x1235)));
            // Sign extension from bit 56 (five levels) changes the address, so it is not canonical.
            assert_ne!(((addr << 7) as i64 >> 7) as u64, addr);
        }
        assert!(!is_own(0) && !is_own(u64::MAX) && !is_own(0xffff_8880_0000_0000));
        assert_eq!(split(make(Region::Dynamics, 0) + (1 << REGION_SHIFT)), None);
    }
}
