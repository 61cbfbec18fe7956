// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Files that the kernel reads.

use crate::bindings;
use core::ffi::CStr;
use kernel::alloc::KVVec;
use kernel::error::to_result;
use kernel::prelude::*;

/// Returns the path of the anonymous enabling: the module's parameter `anon_file`.
pub fn anonymous() -> &'static CStr {
    // SAFETY: The parameter is a string that ends with NUL. It can be set only when the module is
    // loaded, so it is constant from then on.
    unsafe { CStr::from_char_ptr(bindings::dtrace_anon_path().cast()) }
}

/// Whether the path is the default one, which applies unless the parameter names another.
pub fn is_usual(path: &CStr) -> bool {
    path.to_bytes_with_nul() == bindings::DTRACE_ANON_FILE
}

/// Reads a whole file. Fails with `EFBIG` if it has more than `max` bytes, and with `EINVAL` if it
/// has none. May sleep.
pub fn read(path: &CStr, max: usize) -> Result<KVVec<u8>> {
    let mut buffer = core::ptr::null_mut();
    // SAFETY: `path` ends with NUL; the call writes only to `buffer`.
    let size = unsafe { bindings::dtrace_file_read(path.as_char_ptr().cast(), &mut buffer, max) };
    let Ok(len) = usize::try_from(size) else {
        return Err(to_result(size as i32).err().unwrap_or(EIO));
    };
    // SAFETY: The call has succeeded, so `buffer` points to at least `len` bytes that were read,
    // and nothing else uses them until they are freed below.
    let bytes = unsafe { core::slice::from_raw_parts(buffer.cast::<u8>(), len) };
    let mut copy = KVVec::new();
    let copied = copy.extend_from_slice(bytes, GFP_KERNEL);
    // SAFETY: The call allocated the buffer, and `bytes` is not used any more.
    unsafe { bindings::dtrace_file_free(buffer) };
    copied?;
    Ok(copy)
}
