// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The folder in which procfs shows what a process has mapped.
//!
//! `/proc/PID` shows what the process's first thread has. That thread may end before the others;
//! from then on it has no memory, no program and no root. Procfs has a folder for every other
//! thread as well, though it does not list it, which shows the same of the same process.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Returns the folder that shows the memory, program and root of a process. It stays until the
/// thread ends whose folder it is.
pub fn folder_of(pid: u32) -> PathBuf {
    folder_in(Path::new("/proc"), pid)
}

fn folder_in(procfs: &Path, pid: u32) -> PathBuf {
    let own = procfs.join(pid.to_string());
    match has_ended(&own) {
        true => other(procfs, &own).unwrap_or(own),
        false => own,
    }
}

/// Whether the thread has no root any more, or there is none. If its root may not be read, it has
/// one.
fn has_ended(folder: &Path) -> bool {
    let root = fs::read_link(folder.join("root"));
    root.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Returns the folder of the process's first thread that has not ended.
fn other(procfs: &Path, own: &Path) -> Option<PathBuf> {
    let threads = fs::read_dir(own.join("task")).ok()?;
    let ids = threads.filter_map(|thread| thread.ok()?.file_name().to_str()?.parse().ok());
    let mut ids: Vec<u32> = ids.collect();
    ids.sort_unstable();
    let mut folders = ids.iter().map(|id| procfs.join(id.to_string()));
    folders.find(|folder| !has_ended(folder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A folder like `/proc`, with one process.
    struct Procfs(PathBuf);

    impl Procfs {
        /// A process with threads of these numbers, the first one its own, each with whether it
        /// lives.
        fn with(name: &str, threads: &[(u32, bool)]) -> Self {
            let this = Self(std::env::temp_dir().join(format!("{name}-{}", std::process::id())));
            let tasks = this.0.join(threads[0].0.to_string()).join("task");
            for (id, lives) in threads {
                fs::create_dir_all(tasks.join(id.to_string())).expect("a folder");
                fs::create_dir_all(this.0.join(id.to_string())).expect("a folder");
                if *lives {
                    symlink("/", this.0.join(id.to_string()).join("root")).expect("a link");
                }
            }
            this
        }

        fn folder(&self, pid: u32) -> PathBuf {
            let folder = folder_in(&self.0, pid);
            folder.strip_prefix(&self.0).expect("in it").to_owned()
        }
    }

    impl Drop for Procfs {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_first_thread_that_lives_shows_the_process() {
        let all = Procfs::with("all-live", &[(70, true), (9, true)]);
        assert_eq!(all.folder(70), Path::new("70"));
        let threads = [(70, false), (700, true), (71, false), (100, true)];
        let others = Procfs::with("others-live", &threads);
        assert_eq!(others.folder(70), Path::new("100"));
    }

    #[test]
    fn a_process_that_has_ended_keeps_its_own() {
        let ended = Procfs::with("ended", &[(70, false), (71, false)]);
        assert_eq!(ended.folder(70), Path::new("70"));
        assert_eq!(ended.folder(72), Path::new("72"));
    }

    #[test]
    fn a_process_of_procfs_has_its_folder() {
        let pid = std::process::id();
        assert_eq!(folder_of(pid), Path::new(&format!("/proc/{pid}")));
    }
}
