// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The BTF of the running kernel and of its modules.
//!
//! The kernel publishes them in one directory, with one file for itself (`vmlinux`) and one for
//! each module. A file is opened on first use and its BTF is kept. A module that is loaded later is
//! found by the next request for it. A module that is not loaded is looked up in the modules'
//! [`Files`], but only if it is requested by name.

use super::{Btf, Error, Files, Image, Kind, Malformed, TypeId};
use crate::VMLINUX;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A directory of BTF files, with the BTF read from it.
#[derive(Debug)]
pub struct KernelBtf {
    directory: PathBuf,
    files: Option<Files>,
    vmlinux: OnceLock<Option<Arc<Btf>>>,
    modules: Mutex<HashMap<String, Arc<Btf>>>,
}

impl Default for KernelBtf {
    fn default() -> Self {
        Self::with_files("/sys/kernel/btf", Files::of_running_kernel())
    }
}

impl KernelBtf {
    /// Uses the BTF files of `directory`.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            files: None,
            vmlinux: OnceLock::new(),
            modules: Mutex::default(),
        }
    }

    /// Uses the BTF files of `directory`, and `files` for modules that are not loaded.
    pub fn with_files(directory: impl Into<PathBuf>, files: Files) -> Self {
        Self {
            files: Some(files),
            ..Self::new(directory)
        }
    }

    /// Returns the kernel's BTF; `None` if the kernel was built without.
    pub fn vmlinux(&self) -> Result<Option<Arc<Btf>>, Error> {
        if let Some(known) = self.vmlinux.get() {
            return Ok(known.clone());
        }
        let read = read(&self.directory.join(VMLINUX), None)?;
        Ok(self.vmlinux.get_or_init(|| read).clone())
    }

    /// Returns the BTF of `module`, or of the kernel itself for `vmlinux`; `None` if there is none.
    pub fn module(&self, module: &str) -> Result<Option<Arc<Btf>>, Error> {
        if module == VMLINUX {
            return self.vmlinux();
        }
        if module.is_empty() || module.contains(['/', '\0']) {
            return Ok(None);
        }
        let known = |modules: &HashMap<_, Arc<Btf>>| modules.get(module).cloned();
        if let Some(btf) = known(&self.modules.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(Some(btf));
        }
        let Some(base) = self.vmlinux()? else {
            return Ok(None);
        };
        let shown = read(&self.directory.join(module), Some(base.clone()))?;
        let found = shown.map_or_else(|| self.not_loaded(module, base), |btf| Ok(Some(btf)))?;
        let Some(btf) = found else {
            return Ok(None);
        };
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Some(
            modules.entry(module.to_owned()).or_insert(btf).clone(),
        ))
    }

    /// Returns the BTF of a module that is not loaded.
    fn not_loaded(&self, module: &str, base: Arc<Btf>) -> Result<Option<Arc<Btf>>, Error> {
        let files = self.files.as_ref();
        let file = files.and_then(|files| files.module(module, &self.directory, || self.modules()));
        let Some((bytes, path)) = file else {
            return Ok(None);
        };
        match Btf::parse(bytes, Some(base)) {
            Ok(btf) => Ok(Some(Arc::new(btf))),
            Err(source) => Err(Error::Malformed { path, source }),
        }
    }

    /// Returns the names of the loaded modules that have BTF, sorted, without the kernel itself.
    pub fn modules(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(&self.directory) else {
            return Vec::new(); // A kernel without BTF has no directory.
        };
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name != VMLINUX)
            .collect();
        names.sort_unstable();
        names
    }

    /// Returns the first type with this name and one of these kinds, in the kernel and then in its
    /// loaded modules.
    pub fn find(&self, name: &str, kinds: &[Kind]) -> Result<Option<(Arc<Btf>, TypeId)>, Error> {
        let find = |module: &str| -> Result<Option<(Arc<Btf>, TypeId)>, Error> {
            let Some(btf) = self.module(module)? else {
                return Ok(None);
            };
            let found = btf
                .find_own(name, kinds)
                .map_err(|source| self.malformed(module, source))?;
            Ok(found.map(|id| (btf, id)))
        };
        if let Some(found) = find(VMLINUX)? {
            return Ok(Some(found));
        }
        for module in self.modules() {
            if let Some(found) = find(&module)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn malformed(&self, module: &str, source: Malformed) -> Error {
        Error::Malformed {
            path: self.directory.join(module),
            source,
        }
    }
}

/// Reads the BTF in `path`; `None` if there is no such file. The kernel's own is mapped if
/// possible.
fn read(path: &Path, base: Option<Arc<Btf>>) -> Result<Option<Arc<Btf>>, Error> {
    let mapped = match &base {
        None if is_sysfs(path) => Image::map_sysfs(path).ok(),
        _ => None,
    };
    let image = match mapped {
        Some(image) => image,
        None => match fs::read(path) {
            Ok(bytes) => bytes.into(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => {
                return Err(Error::Io {
                    path: path.to_owned(),
                    source,
                })
            }
        },
    };
    match Btf::parse(image, base) {
        Ok(btf) => Ok(Some(Arc::new(btf))),
        Err(source) => Err(Error::Malformed {
            path: path.to_owned(),
            source,
        }),
    }
}

/// Whether a file is in sysfs, so that the kernel provides its content and nothing changes it.
fn is_sysfs(path: &Path) -> bool {
    nix::sys::statfs::statfs(path)
        .is_ok_and(|fs| fs.filesystem_type() == nix::sys::statfs::SYSFS_MAGIC)
}
