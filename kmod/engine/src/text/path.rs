// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! `basename()`, `dirname()` and `cleanpath()`.

use super::Out;

/// Returns the path without trailing slashes; empty for the root.
fn trimmed(path: &[u8]) -> &[u8] {
    let end = path
        .iter()
        .rposition(|&b| b != b'/')
        .map_or(0, |i| i.saturating_add(1));
    path.get(..end).unwrap_or(&[])
}

/// Returns the last component of `path`: `/` for the root, `.` for the empty path.
pub fn basename(path: &[u8]) -> &[u8] {
    let path = match path {
        [] => return b".",
        _ => trimmed(path),
    };
    let start = path
        .iter()
        .rposition(|&b| b == b'/')
        .map_or(0, |i| i.saturating_add(1));
    match path.get(start..) {
        None | Some([]) => b"/",
        Some(base) => base,
    }
}

/// Returns the part of `path` before its last component: `/` if the component is in the root, `.`
/// if there is no such part.
pub fn dirname(path: &[u8]) -> &[u8] {
    let rooted = path.first() == Some(&b'/');
    let path = trimmed(path);
    let slash = path.iter().rposition(|&b| b == b'/');
    let dir = trimmed(path.get(..slash.unwrap_or(0)).unwrap_or(&[]));
    match dir {
        [] if rooted => b"/",
        [] => b".",
        dir => dir,
    }
}

/// Writes `path` without empty and `.` components; each `..` removes itself and the component
/// before it. An empty result is written as `.`, but the empty path stays empty.
///
/// The file system is not consulted, so the result may be another file if symbolic links are
/// involved. Each `..` scans back over the output and shortens it, so the whole takes at most two
/// passes. The result is never longer than the path.
pub fn cleanpath(path: &[u8], out: &mut Out<'_>) {
    let root = usize::from(path.first() == Some(&b'/'));
    if root == 1 {
        out.push(b'/');
    }
    for component in path.split(|&b| b == b'/') {
        match component {
            [] | b"." => {}
            b".." if takes_along(out.as_slice(), root) => {
                let parent = out.as_slice().iter().rposition(|&b| b == b'/');
                out.truncate(parent.unwrap_or(0).max(root));
            }
            // The root has no parent.
            b".." if root == 1 => {}
            component => {
                if out.len() > root {
                    out.push(b'/');
                }
                out.extend(component);
            }
        }
    }
    if out.is_empty() && !path.is_empty() {
        out.push(b'.');
    }
}

/// Whether `clean` ends in a component that `..` removes. The first `root` bytes of `clean` are the
/// root.
fn takes_along(clean: &[u8], root: usize) -> bool {
    let last = clean.rsplit(|&b| b == b'/').next().unwrap_or(&[]);
    clean.len() > root && last != b".."
}

#[cfg(test)]
mod tests {
    use super::super::written;
    use super::*;

    #[test]
    fn basename_is_the_last_component() {
        for (path, base) in [
            ("", "."),
            ("/", "/"),
            ("///", "/"),
            ("a", "a"),
            ("a/", "a"),
            ("/a/b", "b"),
            ("/a/b//", "b"),
            ("..", ".."),
        ] {
            assert_eq!(basename(path.as_bytes()), base.as_bytes(), "{path}");
        }
    }

    #[test]
    fn dirname_is_the_rest() {
        for (path, dir) in [
            ("", "."),
            ("/", "/"),
            ("//", "/"),
            ("a", "."),
            ("a/", "."),
            ("/a", "/"),
            ("/a/b", "/a"),
            ("/a//b//", "/a"),
            ("a/b", "a"),
        ] {
            assert_eq!(dirname(path.as_bytes()), dir.as_bytes(), "{path}");
        }
    }

    #[test]
    fn cleanpath_drops_what_leads_nowhere() {
        for (path, clean) in [
            ("/a/b", "/a/b"),
            ("/a//b", "/a/b"),
            ("/a/./b", "/a/b"),
            ("/a/../b", "/b"),
            ("/a/b/..", "/a"),
            ("/..", "/"),
            ("/../a", "/a"),
            ("/a/..b/.c", "/a/..b/.c"),
            ("/a/.", "/a"),
            ("/a/", "/a"),
            ("/a/b/./", "/a/b"),
            ("./a", "a"),
            ("a/b", "a/b"),
            ("a/..", "."),
            ("./", "."),
            ("..", ".."),
            ("../../a/..", "../.."),
            ("a/../../b", "../b"),
            ("/a/../../..", "/"),
            ("/", "/"),
            ("//.//", "/"),
            ("", ""),
        ] {
            assert_eq!(
                written(|out| cleanpath(path.as_bytes(), out)),
                clean,
                "{path}"
            );
        }
    }
}
