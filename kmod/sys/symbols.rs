// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The kernel's symbols, and calls of functions that are not exported.
//!
//! kallsyms itself is not exported. A kprobe, which the kernel places by name, finds its look-up
//! function, and that finds everything else (`symbols.c`). Functions found this way are called
//! through a thunk (`thunk.S`), because an indirect call would fault on hardware that enforces
//! branch targets.

use crate::bindings;
use core::ffi::{c_char, c_int, c_void, CStr};
use core::ops::Range;
use kernel::prelude::*;

/// The length of the longest symbol name with its NUL.
const KSYM_NAME_LEN: usize = 512;

/// Returns the address of a kernel function or object. Fails with `ENOENT` if there is none, and
/// logs that. May sleep.
pub fn lookup(name: &CStr) -> Result<Address> {
    let found = find(name)?;
    if found.is_none() {
        pr_warn!("the kernel has no symbol {:?}\n", name);
    }
    found.ok_or(ENOENT)
}

/// Returns the address of a kernel function or object that may not exist. An error means that
/// nothing can be looked up. May sleep.
pub fn find(name: &CStr) -> Result<Option<Address>> {
    let mut addr = 0;
    // SAFETY: The name ends with NUL; `addr` is valid for the write.
    if !unsafe { bindings::dtrace_symbol(name.as_char_ptr().cast(), &mut addr) } {
        return Err(ENOENT);
    }
    Ok((addr != 0).then_some(Address(addr)))
}

/// Whether it is in the text of the kernel itself, not of a module.
pub fn is_kernel_text(addr: Address) -> Result<bool> {
    let (start, end) = (lookup(c"_stext")?, lookup(c"_etext")?);
    Ok((start.get()..end.get()).contains(&addr.get()))
}

/// Returns the addresses of the symbol that this one belongs to; `None` if it belongs to none.
pub fn extent(addr: Address) -> Result<Option<Range<usize>>> {
    let lookup = lookup(c"kallsyms_lookup_size_offset")?;
    let (mut size, mut offset) = (0usize, 0usize);
    let (to_size, to_offset) = (&raw mut size as usize, &raw mut offset as usize);
    // SAFETY: `kallsyms_lookup_size_offset()` takes any number, and pointers to two words, which
    // are valid for the writes.
    let found = unsafe { lookup.call([addr.get(), to_size, to_offset, 0, 0]) };
    let start = addr.get().wrapping_sub(offset);
    Ok((found as c_int != 0).then_some(start..start.wrapping_add(size)))
}

/// The address of a kernel symbol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address(pub(super) usize);

impl Address {
    /// Returns the number.
    pub fn get(self) -> usize {
        self.0
    }

    /// Returns the address as a pointer to an object.
    pub(super) fn as_ptr<T>(self) -> *mut T {
        self.0 as *mut T
    }

    /// Calls the function at this address.
    ///
    /// # Safety
    ///
    /// It must be a function with the kernel's calling convention and at most five integer or
    /// pointer arguments, and what that function requires of its caller must hold for `args`.
    pub(super) unsafe fn call(self, args: [usize; 5]) -> usize {
        let [a0, a1, a2, a3, a4] = args;
        // SAFETY: By the caller's promise; the thunk requires nothing else.
        unsafe { bindings::dtrace_call(self.0, a0, a1, a2, a3, a4) }
    }
}

/// Names of addresses. All text is in one buffer.
pub struct Names {
    text: KVVec<u8>,
    // One entry for each of the addresses that were named.
    entries: KVVec<Entry>,
    modules: KVVec<(u32, u32)>,
}

#[derive(Clone, Copy, Default)]
struct Entry {
    start: u32,
    len: u32,
    // The index into `modules` plus one; 0 is the kernel itself.
    module: u32,
}

impl Names {
    /// Returns the name of address `n`, and that of its module unless it is in the kernel itself.
    /// `None` if no symbol is there.
    pub fn get(&self, n: usize) -> Option<(Option<&[u8]>, &[u8])> {
        let entry = self.entries.get(n)?;
        let name = self.slice(entry.start, entry.len)?;
        if name.is_empty() {
            return None;
        }
        let module = match entry.module.checked_sub(1) {
            None => None,
            Some(i) => {
                let (start, len) = *self.modules.get(i as usize)?;
                Some(self.slice(start, len)?)
            }
        };
        Some((module, name))
    }

    fn slice(&self, start: u32, len: u32) -> Option<&[u8]> {
        self.text.get(start as usize..)?.get(..len as usize)
    }

    fn push_text(&mut self, bytes: &[u8]) -> Result<(u32, u32)> {
        let start = u32::try_from(self.text.len())?;
        self.text.extend_from_slice(bytes, GFP_KERNEL)?;
        Ok((start, bytes.len() as u32))
    }
}

/// Finds the names of `ips`, which must be sorted: for each, the first symbol that begins at most
/// `offset` bytes before it. May sleep.
///
/// One pass over all symbols names tens of thousands of addresses in the time of some hundred
/// separate look-ups, because each of those has to expand compressed names again.
pub fn name_all(ips: &[usize], offset: usize) -> Result<Names> {
    let mut names = Names {
        text: KVVec::new(),
        entries: KVVec::from_elem(Entry::default(), ips.len(), GFP_KERNEL)?,
        modules: KVVec::new(),
    };
    // Names are about 20 bytes long on average.
    names
        .text
        .reserve(ips.len().saturating_mul(24), GFP_KERNEL)?;

    let mut pass = Pass {
        ips,
        offset,
        names: &mut names,
        module: 0,
        error: Ok(()),
    };
    let each = lookup(c"kallsyms_on_each_symbol")?;
    let data = core::ptr::from_mut(&mut pass).cast::<c_void>() as usize;
    let callback = name_symbol as unsafe extern "C" fn(*mut c_void, *const c_char, usize) -> c_int;
    // SAFETY: `kallsyms_on_each_symbol()` takes a callback of this type and its data. It passes C
    // strings and `data`, a `Pass` that outlives the call and that nothing else uses meanwhile.
    unsafe { each.call([callback as usize, data, 0, 0, 0]) };
    pass.error?;

    name_modules(ips, offset, &mut names)?;
    Ok(names)
}

/// Names what belongs to modules, by a pass over the symbols of every module that has one of `ips`.
fn name_modules(ips: &[usize], offset: usize, names: &mut Names) -> Result {
    let lookup_one = lookup(c"kallsyms_lookup")?;
    let each = lookup(c"module_kallsyms_on_each_symbol")?;
    let mut buf = KVec::from_elem(0u8, KSYM_NAME_LEN, GFP_KERNEL)?;

    for (n, ip) in ips.iter().enumerate() {
        if names.entries.get(n).is_none_or(|e| e.len != 0) {
            continue;
        }
        let (mut size, mut off) = (0usize, 0usize);
        let mut module: *const c_char = core::ptr::null();
        // SAFETY: `kallsyms_lookup()` takes any number. It writes to two words, to a pointer, and
        // to a buffer of `KSYM_NAME_LEN` bytes, all of which are valid for the writes.
        let found = unsafe {
            lookup_one.call([
                *ip,
                core::ptr::from_mut(&mut size) as usize,
                core::ptr::from_mut(&mut off) as usize,
                core::ptr::from_mut(&mut module) as usize,
                buf.as_mut_ptr() as usize,
            ])
        };
        if found == 0 || module.is_null() {
            continue;
        }
        // SAFETY: The pointer is to the name within the module's structure, a C string. The module
        // is not freed meanwhile: the caller holds references to the modules that `ips` come from,
        // or is called by a notifier that keeps them.
        let module = unsafe { CStr::from_char_ptr(module.cast()) };
        if last_module(names) == Some(module.to_bytes()) {
            // A function without a symbol, of the module that was just named.
            continue;
        }
        let text = names.push_text(module.to_bytes())?;
        names.modules.push(text, GFP_KERNEL)?;
        let index = names.modules.len() as u32;
        let mut pass = Pass {
            ips,
            offset,
            names,
            module: index,
            error: Ok(()),
        };
        let data = core::ptr::from_mut(&mut pass).cast::<c_void>() as usize;
        let callback =
            name_symbol as unsafe extern "C" fn(*mut c_void, *const c_char, usize) -> c_int;
        // SAFETY: As for `kallsyms_on_each_symbol()`; the first argument is the module's name, a C
        // string.
        unsafe { each.call([module.as_char_ptr() as usize, callback as usize, data, 0, 0]) };
        pass.error?;
    }
    Ok(())
}

fn last_module(names: &Names) -> Option<&[u8]> {
    let (start, len) = *names.modules.last()?;
    names.slice(start, len)
}

struct Pass<'a> {
    ips: &'a [usize],
    offset: usize,
    names: &'a mut Names,
    module: u32,
    error: Result,
}

impl Pass<'_> {
    fn symbol(&mut self, name: &[u8], addr: usize) -> Result {
        let n = self.ips.partition_point(|ip| *ip < addr);
        let Some(ip) = self.ips.get(n) else {
            return Ok(());
        };
        if ip.wrapping_sub(addr) > self.offset || name.is_empty() {
            return Ok(());
        }
        // If an address has several names, the first one is that which the kernel prints.
        if self.names.entries.get(n).is_none_or(|e| e.len != 0) {
            return Ok(());
        }
        let (start, len) = self.names.push_text(name)?;
        if let Some(entry) = self.names.entries.get_mut(n) {
            *entry = Entry {
                start,
                len,
                module: self.module,
            };
        }
        Ok(())
    }
}

/// Called by kallsyms for each symbol.
///
/// # Safety
///
/// `data` must point to a `Pass` that nothing else uses during the call, and `name` to a C string.
unsafe extern "C" fn name_symbol(data: *mut c_void, name: *const c_char, addr: usize) -> c_int {
    // SAFETY: By the caller's promise.
    let (pass, name) = unsafe {
        (
            &mut *data.cast::<Pass<'_>>(),
            CStr::from_char_ptr(name.cast()),
        )
    };
    pass.error = pass.symbol(name.to_bytes(), addr);
    c_int::from(pass.error.is_err())
}
