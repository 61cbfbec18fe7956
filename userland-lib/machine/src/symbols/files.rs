// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Opens the very files that a process has mapped.
//!
//! A path does not identify a file: the process may see another file there than we do, and the file
//! may have been replaced or deleted since. `/proc/PID/map_files` leads to what is mapped, whatever
//! its path. A user without the privilege for it gets the file that the path means to the process,
//! provided that device and inode are those of the mapping.
//!
//! A file that was opened stays open, so that later reads see what was mapped, even after the
//! process has ended.

use super::folder::folder_of;
use super::image::Image;
use super::maps::{all_mappings_of, Backing, Mapping};
use super::remains::{Relic, Remains};
use dtrace_files::outside::{self, place};
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::rc::{Rc, Weak};

/// Maximum size of the vDSO in bytes; it has a few pages.
const VDSO_MAX: u64 = 1 << 16;

/// Identifies a file among all that exist now or later. The times are needed because inode numbers
/// are reused.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Identity {
    File {
        device: u64,
        inode: u64,
        size: u64,
        modified: (i64, i64),
        changed: (i64, i64),
    },
    /// A copy of a vDSO: 32-bit programs have another one.
    Vdso(Vec<u8>),
}

/// The open files. Each is open once for all processes that have mapped it.
#[derive(Default)]
pub struct Files {
    open: RefCell<HashMap<Identity, Weak<Image>>>,
    /// The source of the mappings of processes that have ended.
    remains: RefCell<Option<Box<dyn Remains>>>,
    /// The vDSO of this process.
    vdso: OnceCell<Option<Rc<Image>>>,
}

impl Files {
    /// Opens the file that a process has mapped.
    pub fn get(&self, pid: u32, mapping: &Mapping) -> io::Result<Rc<Image>> {
        match mapping.backing {
            Backing::File { .. } => self.once(open_mapped(pid, mapping)?, mapping),
            Backing::Vdso => {
                let code = vdso(&folder_of(pid).join("mem"), mapping.start..mapping.end)?;
                self.shared(Identity::Vdso(code.clone()), || {
                    let file = outside::in_memory(c"vdso", &code)?;
                    Ok(Image::new(file, &mapping.path))
                })
            }
            Backing::Memory => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Sets the source that records the mappings of processes that end from now on.
    pub fn keep(&self, remains: Option<Box<dyn Remains>>) {
        *self.remains.borrow_mut() = remains;
    }

    /// Returns the recorded mappings after number `after`, and their files, of the ended processes
    /// that had the number `pid` in records. Sets `after` to the number of the last one.
    pub fn left(&self, pid: u32, after: &mut u64) -> Vec<(Mapping, Option<Rc<Image>>)> {
        let remains = self.remains.borrow();
        let mut left = Vec::new();
        let Some(remains) = remains.as_ref() else {
            return left;
        };
        while let Ok(Some(next)) = remains.next(pid, *after) {
            if next.number <= *after {
                break;
            }
            *after = next.number;
            let Ok(mapping) = next.mapping() else {
                continue;
            };
            let file = match next.of {
                Relic::Nothing => None,
                Relic::File(file) => self.once(file, &mapping).ok(),
                Relic::Vdso => self.vdso.get_or_init(|| self.own_vdso()).clone(),
            };
            left.push((mapping, file));
        }
        left
    }

    /// All processes of our word size have the same vDSO.
    fn own_vdso(&self) -> Option<Rc<Image>> {
        let own = std::process::id();
        let mut all = all_mappings_of(own).ok()?.into_iter();
        let vdso = all.find(|mapping| mapping.backing == Backing::Vdso)?;
        self.get(own, &vdso).ok()
    }

    /// Returns the image of an open file, or the existing one of the same file.
    fn once(&self, file: File, mapping: &Mapping) -> io::Result<Rc<Image>> {
        let data = file.metadata()?;
        let identity = Identity::File {
            device: data.dev(),
            inode: data.ino(),
            size: data.size(),
            modified: (data.mtime(), data.mtime_nsec()),
            changed: (data.ctime(), data.ctime_nsec()),
        };
        self.shared(identity, || Ok(Image::new(file, &mapping.path)))
    }

    /// Returns the number of open files.
    pub fn count(&self) -> usize {
        let files = self.open.borrow();
        files
            .values()
            .filter(|file| file.strong_count() > 0)
            .count()
    }

    /// Returns the approximate memory that the debugging information of all files takes, in bytes.
    pub fn inlines_kept(&self) -> u64 {
        let files = self.open.borrow();
        let files = files.values().filter_map(Weak::upgrade);
        files.map(|file| file.inlines_kept()).sum()
    }

    fn shared(
        &self,
        identity: Identity,
        make: impl FnOnce() -> io::Result<Image>,
    ) -> io::Result<Rc<Image>> {
        let mut files = self.open.borrow_mut();
        if let Some(file) = files.get(&identity).and_then(Weak::upgrade) {
            return Ok(file);
        }
        files.retain(|_, file| file.strong_count() > 0);
        let file = Rc::new(make()?);
        files.insert(identity, Rc::downgrade(&file));
        Ok(file)
    }
}

/// Returns a path from which the file that a process has mapped can be opened, as long as it is
/// mapped.
pub fn path_to_mapped(pid: u32, mapping: &Mapping) -> io::Result<PathBuf> {
    let process = folder_of(pid);
    let exact = exact(&process, mapping);
    if place(&exact).is_ok() {
        return Ok(exact);
    }
    seen(&process, mapping).map(|_| in_root(&process, mapping))
}

/// Opens the file that a process has mapped, for reading.
pub fn open_mapped(pid: u32, mapping: &Mapping) -> io::Result<File> {
    let process = folder_of(pid);
    let place = match place(&exact(&process, mapping)) {
        Ok(place) => place,
        Err(_) => seen(&process, mapping)?,
    };
    outside::reopen(&place)
}

/// Opens the path of a mapping in the process's root, if the file there is the one that is mapped.
fn seen(process: &Path, mapping: &Mapping) -> io::Result<File> {
    let other = || io::Error::other("another file has its path");
    if mapping.is_deleted {
        return Err(other());
    }
    let place = place(&in_root(process, mapping))?;
    let (device, inode) = numbers(process, &place)?;
    match mapping.backing == (Backing::File { device, inode }) {
        true => Ok(place),
        false => Err(other()),
    }
}

fn exact(process: &Path, mapping: &Mapping) -> PathBuf {
    process.join(format!("map_files/{:x}-{:x}", mapping.start, mapping.end))
}

fn in_root(process: &Path, mapping: &Mapping) -> PathBuf {
    let path = mapping.path.trim_start_matches('/');
    process.join("root").join(path)
}

/// Returns device and inode in the kernel's own numbers, as `/proc/PID/maps` lists them. Those of
/// `stat()` differ on file systems that make up their own, as btrfs and overlayfs do.
fn numbers(process: &Path, place: &File) -> io::Result<((u32, u32), u64)> {
    let none = || io::Error::other("its device is not known");
    let about = fs::read_to_string(format!("/proc/self/fdinfo/{}", place.as_raw_fd()))?;
    let field = |name: &str| {
        let mut lines = about.lines();
        lines.find_map(|line| Some(line.strip_prefix(name)?.trim()))
    };
    let inode = field("ino:").and_then(|text| text.parse().ok());
    let mount = field("mnt_id:").ok_or_else(none)?;
    // The mount ID is one of the process's mount namespace.
    let mounts = fs::read(process.join("mountinfo"))?;
    let device = String::from_utf8_lossy(&mounts).lines().find_map(|line| {
        let mut words = line.split(' ');
        let (major, minor) = (words.next() == Some(mount))
            .then(|| words.nth(1))??
            .split_once(':')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    });
    device.zip(inode).ok_or_else(none)
}

/// Reads the vDSO at `range` of a process's memory file.
pub fn vdso(memory: &Path, range: Range<u64>) -> io::Result<Vec<u8>> {
    let size = range.end.saturating_sub(range.start).min(VDSO_MAX);
    let mut code = vec![0; size as usize];
    File::open(memory)?.read_exact_at(&mut code, range.start)?;
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::super::maps::mappings_of;
    use super::*;

    fn own_text() -> Mapping {
        let mut all = mappings_of(std::process::id())
            .expect("mappings")
            .into_iter();
        all.find(|mapping| mapping.is_code).expect("our own text")
    }

    #[test]
    fn the_path_is_taken_where_device_and_inode_agree() {
        let own = own_text();
        let exe = fs::metadata("/proc/self/exe").expect("a program");
        let process = Path::new("/proc/self");
        let found = seen(process, &own)
            .expect("our own file")
            .metadata()
            .expect("data");
        assert_eq!((found.dev(), found.ino()), (exe.dev(), exe.ino()));
        let Backing::File { device, inode } = own.backing else {
            panic!("no file: {own:?}");
        };
        let backing = |device, inode| Mapping {
            backing: Backing::File { device, inode },
            ..own.clone()
        };
        for other in [
            backing(device, inode + 1),
            backing((device.0, device.1 + 1), inode),
            Mapping {
                path: "/bin/sh".into(),
                ..own.clone()
            },
            Mapping {
                is_deleted: true,
                ..own.clone()
            },
        ] {
            assert!(seen(process, &other).is_err(), "{other:?}");
        }
    }

    #[test]
    fn a_file_is_opened_once_and_forgotten_with_its_last_user() {
        let files = Files::default();
        let own = own_text();
        let get = || files.get(std::process::id(), &own).expect("our file");
        let first = get();
        assert!(Rc::ptr_eq(&first, &get()));
        assert_eq!(files.count(), 1);
        drop(first);
        assert_eq!(files.count(), 0);
    }

    #[test]
    fn what_is_no_file_is_not_opened() {
        let own = own_text();
        let device = Mapping {
            start: 0,
            end: 0,
            path: "/dev/zero".into(),
            ..own
        };
        assert!(open_mapped(std::process::id(), &device).is_err());
    }
}
