// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Files that the kernel reads.

use crate::bindings;
use core::ffi::CStr;
use kernel::alloc::KVVec;
use kernel::error::to_result;
use kernel::prelude::*;

/// Where the anonymous enabling is: the module's parameter `anon_file`.
pub fn anonymous() -> &'static CStr {
    // SAFETY: A string that ends with NUL; the parameter can be set when the module is loaded only.
    unsafe { CStr::from_char_ptr(bindings::dtrace_anon_path().cast()) }
}

/// Whether that is where it is unless the parameter names another file.
pub fn is_usual(path: &CStr) -> bool {
    path.to_bytes_with_nul() == bindings::DTRACE_ANON_FILE
}

/// Reads a whole file. `EFBIG` where it has more than `max` bytes, `EINVAL` where it has none.
pub fn read(path: &CStr, max: usize) -> Result<KVVec<u8>> {
    let mut buffer = core::ptr::null_mut();
    // SAFETY: `path` ends with NUL, and the call writes to `buffer` alone.
    let size = unsafe { bindings::dtrace_file_read(path.as_char_ptr().cast(), &mut buffer, max) };
    let Ok(len) = usize::try_from(size) else {
        return Err(to_result(size as i32).err().unwrap_or(EIO));
    };
    // SAFETY: The call has succeeded: that many bytes of `buffer` were read, and it is ours.
    let bytes = unsafe { core::slice::from_raw_parts(buffer.cast::<u8>(), len) };
    let mut copy = KVVec::new();
    let copied = copy.extend_from_slice(bytes, GFP_KERNEL);
    // SAFETY: Allocated by the call, and not used any more.
    unsafe { bindings::dtrace_file_free(buffer) };
    copied?;
    Ok(copy)
}
