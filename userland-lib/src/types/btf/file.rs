// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The BTF of modules that are not loaded: that in their files.
//!
//! A module's file carries what the kernel shows once the module is loaded: types whose numbers go on where the kernel's own
//! end. With another kernel they would mean something else, and nothing in the file says which kernel it was built for, but
//! a release's name that a rebuilt kernel keeps. So the files are believed only where one of a loaded module has, byte for
//! byte, what the running kernel shows of it.
//!
//! Files may be compressed; what decompresses them is what made them. A module that was built outside of the kernel's tree
//! has numbers of its own (`.BTF.base`) until the kernel has loaded it: it is left out.

use object::{Object, ObjectSection};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Which files there are, and what each needs.
const LIST: &str = "modules.dep";

/// The files of a kernel's modules.
#[derive(Debug)]
pub struct Files {
    directory: PathBuf,
    believed: OnceLock<bool>,
}

impl Files {
    /// The modules in `directory`, as their tools lay it out.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            believed: OnceLock::new(),
        }
    }

    /// Those of the running kernel.
    pub fn of_running_kernel() -> Self {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self::new(Path::new("/lib/modules").join(release.trim_end()))
    }

    /// The BTF in the file of `module`, and the file. The kernel shows the BTF of `loaded` modules in the files of `shown`.
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
        let believed = || loaded().iter().find_map(is_same).unwrap_or(false);
        if !*self.believed.get_or_init(believed) {
            return None;
        }
        Some((btf(&path)?, path))
    }

    /// The file of a module.
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

/// The BTF in a module's file.
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
