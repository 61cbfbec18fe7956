// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Replaces a file as a whole: a reader finds the old one, the new one, or none. Other hard links
//! to the old file keep its contents.

use std::collections::hash_map::RandomState;
use std::fs::{self, File, OpenOptions, Permissions};
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// Replaces a file's contents and sets its permissions.
pub fn replace(path: &Path, data: &[u8], mode: u32) -> io::Result<()> {
    let dir = folder(path);
    // The temporary name must be unpredictable, because others may be able to write to the folder
    // and could leave a link there.
    let mut name = path.as_os_str().to_owned();
    name.push(format!(
        ".{:016x}",
        RandomState::new().build_hasher().finish()
    ));
    let new = Path::new(&name);
    let mut options = OpenOptions::new();
    let mut writer = options.write(true).create_new(true).mode(0o600).open(new)?;
    let placed = writer
        .write_all(data)
        .and_then(|()| writer.set_permissions(Permissions::from_mode(mode)))
        .and_then(|()| writer.sync_all())
        .and_then(|()| fs::rename(new, path))
        .and_then(|()| File::open(dir)?.sync_all());
    if placed.is_err() {
        // The incomplete new file is useless. The error that matters is that of replacing.
        let _ = fs::remove_file(new);
    }
    placed
}

/// Returns the folder that contains a file.
pub fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_and_nothing_else_is_left() {
        let dir = std::env::temp_dir().join(format!("file-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a folder");
        let [path, other] = ["file", "other"].map(|name| dir.join(name));
        fs::write(&path, b"old").expect("a file");
        fs::hard_link(&path, &other).expect("another name");
        replace(&path, b"new", 0o640).expect("replaced");
        let read = |path| fs::read(path).expect("a file");
        assert_eq!((read(&path), read(&other)), (b"new".into(), b"old".into()));
        let mode = fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        // Nothing is written through links with guessable names.
        for guess in ["new".to_owned(), std::process::id().to_string()] {
            let link = dir.join(format!("file.{guess}"));
            std::os::unix::fs::symlink(&other, &link).expect("a link");
            replace(&path, b"newer", 0o640).expect("replaced");
            assert_eq!(
                (read(&path), read(&other)),
                (b"newer".into(), b"old".into())
            );
            fs::remove_file(&link).expect("removed");
        }
        // A folder is in the way.
        fs::remove_file(&other).expect("removed");
        fs::create_dir(&other).expect("a folder");
        assert!(replace(&other, b"new", 0o600).is_err());
        assert_eq!(fs::read_dir(&dir).expect("a folder").count(), 2);
        fs::remove_dir_all(&dir).expect("removed");
    }
}
