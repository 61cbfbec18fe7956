// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The very files that a process has mapped.
//!
//! A path says little of a file: the process may see another one there than we do, and a file may have been replaced or deleted
//! since. `/proc/PID/map_files` leads to what is mapped, whatever its path. Who may not use that gets what the path means to the
//! process, if device and inode are those of the mapping.
//!
//! A file that was opened stays open, so what is read of it later is what was mapped, also when the process has ended.

use super::image::Image;
use super::maps::{all_mappings_of, Backing, Mapping};
use super::remains::{Relic, Remains};
use crate::outside;
use nix::fcntl::OFlag;
use nix::sys::statfs::FsType;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::rc::{Rc, Weak};

/// Bytes of the kernel's code for processes; it has a few pages.
const VDSO_MAX: u64 = 1 << 16;

/// What tells a file from all others that exist now or later: a number of an inode is used again, at another time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Identity {
    File {
        device: u64,
        inode: u64,
        size: u64,
        modified: (i64, i64),
        changed: (i64, i64),
    },
    /// A copy of what the kernel gives processes: programs of 32 bits have another.
    Vdso(Vec<u8>),
}

/// The files that are open, each once for all processes that have mapped it.
#[derive(Default)]
pub struct Files {
    open: RefCell<HashMap<Identity, Weak<Image>>>,
    /// Who has those of processes that have ended.
    remains: RefCell<Option<Box<dyn Remains>>>,
    /// The kernel's own code for processes, as this one has it.
    vdso: OnceCell<Option<Rc<Image>>>,
}

impl Files {
    /// The file that a process has mapped.
    pub fn get(&self, pid: u32, mapping: &Mapping) -> io::Result<Rc<Image>> {
        match mapping.backing {
            Backing::File { .. } => self.once(open_mapped(pid, mapping)?, mapping),
            Backing::Vdso => {
                let code = vdso(&process(pid).join("mem"), mapping.start..mapping.end)?;
                self.shared(Identity::Vdso(code.clone()), || {
                    let file = outside::in_memory(c"vdso", &code)?;
                    Ok(Image::new(file, &mapping.path))
                })
            }
            Backing::Memory => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Has who notes what processes have mapped that end from now on.
    pub fn keep(&self, remains: Option<Box<dyn Remains>>) {
        *self.remains.borrow_mut() = remains;
    }

    /// What the processes had mapped that have ended with this number in records, `after` the one numbered so, and the files. Afterwards
    /// that is the last one's number.
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

    /// Processes of our width have the same.
    fn own_vdso(&self) -> Option<Rc<Image>> {
        let own = std::process::id();
        let mut all = all_mappings_of(own).ok()?.into_iter();
        let vdso = all.find(|mapping| mapping.backing == Backing::Vdso)?;
        self.get(own, &vdso).ok()
    }

    /// An open file, or the same one that is open already.
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

    /// How many are open.
    pub fn count(&self) -> usize {
        let files = self.open.borrow();
        files
            .values()
            .filter(|file| file.strong_count() > 0)
            .count()
    }

    /// Bytes of memory that what is known of inlined functions takes, about.
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

/// Where an open file can be opened once more.
pub fn path_of(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// Where the file that a process has mapped can be opened, as long as it has.
pub fn path_to_mapped(pid: u32, mapping: &Mapping) -> io::Result<PathBuf> {
    let process = process(pid);
    let exact = exact(&process, mapping);
    if place(&exact).is_ok() {
        return Ok(exact);
    }
    seen(&process, mapping).map(|_| in_root(&process, mapping))
}

/// Opens the file that a process has mapped, for reading.
pub fn open_mapped(pid: u32, mapping: &Mapping) -> io::Result<File> {
    let process = process(pid);
    let place = match place(&exact(&process, mapping)) {
        Ok(place) => place,
        Err(_) => seen(&process, mapping)?,
    };
    outside::reopen(&place)
}

/// What the path of a mapping means to the process, if that is what is mapped.
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

fn process(pid: u32) -> PathBuf {
    format!("/proc/{pid}").into()
}

fn exact(process: &Path, mapping: &Mapping) -> PathBuf {
    process.join(format!("map_files/{:x}-{:x}", mapping.start, mapping.end))
}

fn in_root(process: &Path, mapping: &Mapping) -> PathBuf {
    let path = mapping.path.trim_start_matches('/');
    process.join("root").join(path)
}

/// procfs, tracefs, debugfs, sysfs, cgroup2, configfs, efivarfs and bpffs (`linux/magic.h`). The kernel makes their files when they are read: that may
/// wait, or take something away. FUSE is none of them: virtiofs, from which whole machines run, has the same number.
const MADE: [nix::libc::__fsword_t; 8] = [
    0x9fa0,
    0x7472_6163,
    0x6462_6720,
    0x6265_6572,
    0x6367_7270,
    0x6265_6570,
    0xde5e_81e4,
    0xcafe_4a11,
];

/// Whether a file was stored, so that to read it changes nothing.
pub fn is_stored(file: &File) -> bool {
    nix::sys::statfs::fstatfs(file)
        .is_ok_and(|about| !MADE.map(FsType).contains(&about.filesystem_type()))
}

/// A file that is only found, not opened.
pub fn place(path: &Path) -> io::Result<File> {
    let flags = OFlag::O_PATH.bits();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Device and inode in the kernel's own numbers, as lists of mappings have them. Those of `stat()` differ where a file system
/// makes up some, as btrfs and overlayfs do.
fn numbers(process: &Path, place: &File) -> io::Result<((u32, u32), u64)> {
    let none = || io::Error::other("its device is not known");
    let about = fs::read_to_string(format!("/proc/self/fdinfo/{}", place.as_raw_fd()))?;
    let field = |name: &str| {
        let mut lines = about.lines();
        lines.find_map(|line| Some(line.strip_prefix(name)?.trim()))
    };
    let inode = field("ino:").and_then(|text| text.parse().ok());
    let mount = field("mnt_id:").ok_or_else(none)?;
    // The mount is one of the process' namespace.
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

/// The kernel's code for processes as the one has it whose memory this is.
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
