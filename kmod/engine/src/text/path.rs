// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! `basename()`, `dirname()` and `cleanpath()`.

use super::Out;

/// The path without the slashes at its end; nothing is left of the root.
fn trimmed(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|&b| b != b'/').map_or(0, |i| i + 1);
    path.get(..end).unwrap_or(&[])
}

/// The last component of `path`: `/` of the root, `.` of the empty path.
pub fn basename(path: &[u8]) -> &[u8] {
    let path = match path {
        [] => return b".",
        _ => trimmed(path),
    };
    let start = path.iter().rposition(|&b| b == b'/').map_or(0, |i| i + 1);
    match path.get(start..) {
        None | Some([]) => b"/",
        Some(base) => base,
    }
}

/// What comes before the last component of `path`: `/` in the root, `.` where there is nothing.
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

/// Writes `path` without its empty and `.` components, each `..` taking the component before it along.
///
/// The file system is not asked, so a symbolic link may make the result another file. Each `..` walks back over what
/// was written; as that is shortened by it, the whole takes at most two passes. A `.` at the very end stays.
pub fn cleanpath(path: &[u8], out: &mut Out<'_>) {
    let mut rest = path;
    // What stands before the first slash is no component to be judged: `./a` stays `./a`.
    while let Some((&byte, tail)) = rest.split_first() {
        if byte == b'/' {
            break;
        }
        out.push(byte);
        rest = tail;
    }
    while let Some(tail) = rest.strip_prefix(b"/") {
        let end = tail.iter().position(|&b| b == b'/').unwrap_or(tail.len());
        let (component, after) = tail.split_at_checked(end).unwrap_or((tail, &[]));
        let last = after.is_empty();
        match component {
            [] | b"." if !last => {}
            b".." => {
                let parent = out.as_slice().iter().rposition(|&b| b == b'/').unwrap_or(0);
                out.truncate(parent);
                if last && out.is_empty() {
                    out.push(b'/');
                }
            }
            component => {
                out.push(b'/');
                out.extend(component);
            }
        }
        rest = after;
    }
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
            ("/a/.", "/a/."),
            ("./a", "./a"),
            ("a/b", "a/b"),
            ("/", "/"),
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
