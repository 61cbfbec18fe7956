// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tests: folders and files that belong to others, shortage of room, and concurrent writers.

use super::*;
use std::fs::{self, Permissions};
use std::os::unix::fs::{symlink, PermissionsExt as _};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

/// A folder that is removed when the test ends.
pub struct Base(pub PathBuf);

impl Base {
    pub fn new(name: &str) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let pid = std::process::id();
        let path = std::env::temp_dir().join(format!("dtrace-kept-{name}-{pid}-{number}"));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    /// The cache folder inside of it.
    pub fn files(&self) -> PathBuf {
        self.0.join("dtrace/unwind")
    }

    /// The names of the files, sorted.
    pub fn names(&self) -> Vec<String> {
        let all = fs::read_dir(self.files()).unwrap();
        let mut names: Vec<_> = all
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn open(&self) -> io::Result<Folder> {
        Folder::open(&self.0, Uid::effective(), 1 << 20)
    }
}

impl Drop for Base {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn somebody_else() -> Uid {
    Uid::from_raw(Uid::effective().as_raw() + 1)
}

#[test]
fn a_folder_is_made_for_its_user_alone() {
    let base = Base::new("made");
    base.open().unwrap().write("a", &[b"1", b"23"]).unwrap();
    assert_eq!(fs::read(base.files().join("a")).unwrap(), b"123");
    for (path, denied) in [
        ("dtrace", 0o022),
        ("dtrace/unwind", 0o077),
        ("dtrace/unwind/a", 0o077),
    ] {
        let mode = fs::metadata(base.0.join(path))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & denied, 0, "{path}: {mode:o}");
    }
    assert!(Folder::open(&base.0.join("none"), Uid::effective(), 1).is_err());
}

#[test]
fn folders_that_others_may_write_to_are_refused() {
    for (path, good, bad) in [
        ("dtrace", [0o700, 0o755], [0o775, 0o757]),
        ("dtrace/unwind", [0o700, 0o500], [0o750, 0o701]),
    ] {
        let base = Base::new("modes");
        base.open().unwrap();
        for (modes, is_good) in [(good, true), (bad, false)] {
            for bits in modes {
                mode(&base.0.join(path), bits);
                assert_eq!(base.open().is_ok(), is_good, "{path}: {bits:o}");
            }
        }
    }
}

#[test]
fn folders_of_others_are_refused() {
    let base = Base::new("others");
    base.open().unwrap();
    for above in [base.0.clone(), base.0.join("dtrace")] {
        let above = File::open(above).unwrap();
        for name in ["dtrace", "unwind"] {
            let of = |owner| enter(&above, name, owner, 0o700, 0o022);
            assert!(of(Uid::effective()).is_ok(), "{name}");
            let refused = of(somebody_else()).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied, "{name}");
        }
    }
    assert!(Folder::open(&base.0, somebody_else(), 1).is_err());
}

#[test]
fn links_to_folders_are_refused() {
    let good = Base::new("good");
    good.open().unwrap();
    let upper = Base::new("upper");
    symlink(good.0.join("dtrace"), upper.0.join("dtrace")).unwrap();
    assert!(upper.open().is_err());
    let lower = Base::new("lower");
    fs::create_dir(lower.0.join("dtrace")).unwrap();
    symlink(good.files(), lower.files()).unwrap();
    assert!(lower.open().is_err());
    fs::remove_file(lower.files()).unwrap();
    assert!(lower.open().is_ok());
}

#[test]
fn what_was_not_written_here_is_refused() {
    let base = Base::new("files");
    let mut folder = base.open().unwrap();
    folder.write("a", &[b"abc"]).unwrap();
    let why = |folder: &Folder, name, most| folder.read(name, most).map_err(|error| error.kind());
    let refused = Err(io::ErrorKind::InvalidData);
    assert_eq!(why(&folder, "a", 3), Ok(b"abc".to_vec()));
    assert_eq!(why(&folder, "none", 3), Err(io::ErrorKind::NotFound));
    assert_eq!(why(&folder, "a", 2), refused);
    symlink("a", base.files().join("link")).unwrap();
    assert_eq!(why(&folder, "link", 3), refused);
    fs::create_dir(base.files().join("folder")).unwrap();
    assert_eq!(why(&folder, "folder", 1 << 20), refused);
    nix::unistd::mkfifo(&base.files().join("pipe"), Mode::S_IRUSR).unwrap();
    assert_eq!(why(&folder, "pipe", 3), refused);
    mode(&base.files().join("a"), 0o620);
    assert_eq!(why(&folder, "a", 3), refused);
    mode(&base.files().join("a"), 0o600);
    folder.owner = somebody_else();
    assert_eq!(why(&folder, "a", 3), refused);
}

#[test]
fn what_was_not_used_for_longest_goes() {
    let base = Base::new("room");
    let folder = Folder::open(&base.0, Uid::effective(), 4 * BLOCK).unwrap();
    let block: &[u8] = &[7; BLOCK as usize];
    for (name, age) in [("a", 400), ("b", 300), ("c", 200), ("new-1-1", 100)] {
        // One byte takes a whole block.
        folder.write(name, &[b"1"]).unwrap();
        let file = File::open(base.files().join(name)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(age))
            .unwrap();
    }
    folder.read("a", 1).unwrap();
    folder.write("d", &[block]).unwrap();
    assert_eq!(base.names(), ["a", "c", "d", "new-1-1"]);
    folder.write("e", &[block, b"1"]).unwrap();
    assert_eq!(base.names(), ["a", "d", "e"]);
    let too_large = folder.write("f", &[block; 5]).unwrap_err();
    assert_eq!(too_large.kind(), io::ErrorKind::FileTooLarge);
    assert_eq!(base.names(), ["a", "d", "e"]);
}

#[test]
fn a_file_that_cannot_be_placed_leaves_nothing() {
    let base = Base::new("placed");
    let folder = base.open().unwrap();
    fs::create_dir(base.files().join("a")).unwrap();
    assert!(folder.write("a", &[b"1"]).is_err());
    assert_eq!(base.names(), ["a"]);
}

#[test]
fn each_file_is_whole_while_many_write() {
    const SIZE: usize = 100_000;
    let base = Base::new("many");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let writers: Vec<_> = (1..=4)
            .map(|byte| {
                let folder = base.open().unwrap();
                let text = [byte; SIZE];
                let write = move || (0..200).try_for_each(|_| folder.write("a", &[&text]));
                scope.spawn(write)
            })
            .collect();
        let reader = scope.spawn(|| loop {
            // The flag is read before the file, so that the last check happens after the last
            // write.
            let is_last = is_over.load(Ordering::Relaxed);
            if let Ok(text) = fs::read(base.files().join("a")) {
                assert_eq!(text, [text[0]; SIZE]);
            }
            if is_last {
                break;
            }
        });
        for writer in writers {
            writer.join().unwrap().unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
    assert_eq!(base.names(), ["a"]);
}
