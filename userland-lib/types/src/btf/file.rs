// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The BTF of modules that are not loaded, read from the modules' files.
//!
//! A module's file holds the BTF that the kernel publishes once the module is loaded. Its type
//! numbers continue those of the kernel's own BTF, so with another kernel they would mean other
//! types. The file does not say for which kernel it was built, except for the name of a release,
//! which a rebuilt kernel keeps. The files are therefore trusted only after a check: the first
//! loaded module whose file has BTF must have in it, byte for byte, what the running kernel
//! publishes for that module.
//!
//! Files may be compressed; they are decompressed with the tool that compressed them. A module that
//! was built outside of the kernel's tree numbers its types independently (`.BTF.base`) until the
//! kernel loads it; such a file is ignored.

use object::{Object, ObjectSection};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The file that lists the modules' files and their dependencies.
const LIST: &str = "modules.dep";

/// The files of a kernel's modules.
#[derive(Debug)]
pub struct Files {
    directory: PathBuf,
    believed: OnceLock<bool>,
}

impl Files {
    /// The modules in `directory`, which has the layout of `/lib/modules/<release>`.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            believed: OnceLock::new(),
        }
    }

    /// The files for the running kernel.
    pub fn of_running_kernel() -> Self {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self::new(Path::new("/lib/modules").join(release.trim_end()))
    }

    /// Returns the BTF in the file of `module`, and the path of that file; `None` if there is none
    /// or the files are not trusted. The directory `shown` holds the BTF that the kernel publishes;
    /// `loaded` lists the modules that have such BTF.
    pub fn module(
        &self,
        module: &str,
        shown: &Path,
        loaded: impl FnOnce() -> Vec<String>,
    ) -> Option<(Vec<u8>, PathBuf)> {
        let list = fs::read_to_string(self.directory.join(LIST)).ok()?;
        let path = self.path(&list, module)?;
        let is_same = |name: &String| {
            let in_file = btf(&self.path(&list, name)?)?;
            Some(fs::read(shown.join(name)).ok()? == in_file)
        };
        // The first module that can be compared decides, even if it differs.
        let believed = || loaded().iter().find_map(is_same).unwrap_or(false);
        if !*self.believed.get_or_init(believed) {
            return None;
        }
        Some((btf(&path)?, path))
    }

    /// Returns the path of a module's file.
    fn path(&self, list: &str, module: &str) -> Option<PathBuf> {
        let mut files = list.lines().filter_map(|line| line.split(':').next());
        let file = files.find(|file| {
            let name = file.rsplit('/').next().unwrap_or(file);
            let name = name
                .split_once(".ko")
                .map(|(name, _)| name.replace('-', "_"));
            name.is_some_and(|name| name == module)
        });
        Some(self.directory.join(file?))
    }
}

/// Reads the BTF from a module's file.
fn btf(path: &Path) -> Option<Vec<u8>> {
    let bytes = match path.extension()?.to_str()? {
        "ko" => fs::read(path).ok()?,
        "xz" => decompress("xz", path)?,
        "zst" => decompress("zstd", path)?,
        "gz" => decompress("gzip", path)?,
        _ => return None,
    };
    let file = object::File::parse(&*bytes).ok()?;
    if file.section_by_name(".BTF.base").is_some() {
        return None;
    }
    Some(file.section_by_name(".BTF")?.data().ok()?.to_vec())
}

fn decompress(tool: &str, path: &Path) -> Option<Vec<u8>> {
    let mut command = Command::new(tool);
    command.arg("-dc").stdin(File::open(path).ok()?);
    let output = command.stderr(Stdio::null()).output().ok()?;
    output.status.success().then_some(output.stdout)
}
