// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The bytes of a BTF: owned, or the kernel's own pages.
//!
//! `/sys/kernel/btf/vmlinux` has five megabytes. Reading it takes 1,350 system calls, because the
//! kernel returns one page at a time, and copies each byte twice. Mapping it (possible since Linux
//! 6.16) takes one system call, costs no memory, and is forty times faster. The BTF of a module
//! cannot be mapped, but is small, so it is read.

#![allow(unsafe_code)]

use std::{fs::File, io, ops::Deref, path::Path, sync::Arc};

/// Bytes that do not change.
pub struct Image(Bytes);

enum Bytes {
    Owned(Arc<[u8]>),
    Mapped(memmap2::Mmap),
}

impl Image {
    /// Maps the content of `path`.
    ///
    /// Fails if the file system does not support mapping; the caller must read the file then.
    pub fn map_sysfs(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        // SAFETY: the map would be unsound if the file changed while it is mapped. The callers pass
        // the BTF that was linked into the kernel: its pages are read-only data of the kernel,
        // which nothing writes to or truncates.
        let map = unsafe {
            memmap2::MmapOptions::new()
                .len(length)
                .map_copy_read_only(&file)?
        };
        Ok(Self(Bytes::Mapped(map)))
    }
}

impl From<Vec<u8>> for Image {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Bytes::Owned(bytes.into()))
    }
}

impl From<Arc<[u8]>> for Image {
    fn from(bytes: Arc<[u8]>) -> Self {
        Self(Bytes::Owned(bytes))
    }
}

impl Deref for Image {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Bytes::Owned(bytes) => bytes,
            Bytes::Mapped(map) => map,
        }
    }
}
