// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Paths that are found from their end, because each directory knows only the one above it.
//!
//! The text always starts at the beginning of its memory, and is moved when something is prepended.
//! So what does not fit is cut off at the end, as with every string, and not at the root. A move
//! costs one unit of the budget for each byte moved or prepended.

use super::number::lltostr;
use super::Out;
use crate::budget::{Budget, Spent};

/// Text that is written from its end to its beginning.
#[derive(Debug)]
pub struct Upwards<'a> {
    buf: &'a mut [u8],
    len: usize,
}

impl<'a> Upwards<'a> {
    /// Makes an empty text in `buf`.
    pub fn new(buf: &'a mut [u8]) -> Self {
        Self { buf, len: 0 }
    }

    /// Makes room for `n` bytes before the text and returns that room for the caller to fill; it is
    /// shorter if the buffer is. Text that no longer fits is cut off at the end.
    pub fn before(&mut self, n: usize, budget: &mut Budget) -> Result<&mut [u8], Spent> {
        let n = n.min(self.buf.len());
        let kept = self.len.min(self.buf.len().saturating_sub(n));
        budget.spend(kept.saturating_add(n))?;
        if n != 0 {
            // Cannot panic: `kept + n` is at most the buffer's length.
            self.buf.copy_within(..kept, n);
        }
        self.len = kept.saturating_add(n);
        Ok(self.buf.get_mut(..n).unwrap_or(&mut []))
    }

    /// Prepends `bytes` to the text.
    pub fn prepend(&mut self, bytes: &[u8], budget: &mut Budget) -> Result<(), Spent> {
        for (to, from) in self.before(bytes.len(), budget)?.iter_mut().zip(bytes) {
            *to = *from;
        }
        Ok(())
    }

    /// Returns the length of the text in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// Writes the substitute for the path of a file that is in no directory, in the form that the
/// kernel shows in /proc. `fs` is the name of its file system type, `name` its own name, which may
/// be empty, and `inode` its number.
pub fn unplaced(fs: &[u8], name: &[u8], inode: u64, out: &mut Out<'_>) {
    if name.is_empty() {
        match fs {
            b"sockfs" => out.extend(b"socket"),
            _ => out.extend(fs.strip_suffix(b"fs").unwrap_or(fs)),
        }
        out.extend(b":[");
        // Inode numbers of such files do not reach the sign bit.
        lltostr(inode as i64, 10, out);
        out.push(b']');
    } else if fs == b"anon_inodefs" {
        out.extend(b"anon_inode:");
        out.extend(name);
    } else {
        out.push(b'/');
        out.extend(name);
        out.extend(b" (deleted)");
    }
}

#[cfg(test)]
mod tests {
    use super::super::written;
    use super::*;

    fn path(room: usize, names: &[&str]) -> std::string::String {
        let (mut buf, mut budget) = (std::vec![0; room], Budget::full());
        let mut text = Upwards::new(&mut buf);
        for name in names.iter().rev() {
            text.prepend(name.as_bytes(), &mut budget).unwrap();
            text.prepend(b"/", &mut budget).unwrap();
        }
        let len = text.len();
        assert_eq!(text.is_empty(), len == 0);
        std::string::String::from_utf8(buf[..len].to_vec()).unwrap()
    }

    #[test]
    fn the_end_is_cut_off() {
        let names = ["usr", "share", "doc"];
        assert_eq!(path(20, &names), "/usr/share/doc");
        assert_eq!(path(14, &names), "/usr/share/doc");
        assert_eq!(path(13, &names), "/usr/share/do");
        assert_eq!(path(6, &names), "/usr/s");
        assert_eq!(path(1, &names), "/");
        assert_eq!(path(0, &names), "");
        assert_eq!(path(8, &[]), "");
    }

    #[test]
    fn moving_is_paid_for() {
        let (mut buf, mut budget) = ([0; 64 << 10], Budget::full());
        let mut text = Upwards::new(&mut buf);
        let all = (0..)
            .take_while(|_| text.prepend(&[b'x'; 1000], &mut budget).is_ok())
            .count();
        assert!((65..200).contains(&all), "{all}");
    }

    #[test]
    fn files_in_no_directory_have_a_kind_and_a_number() {
        let text =
            |fs: &str, name: &str| written(|out| unplaced(fs.as_bytes(), name.as_bytes(), 77, out));
        assert_eq!(text("pipefs", ""), "pipe:[77]");
        assert_eq!(text("sockfs", ""), "socket:[77]");
        assert_eq!(text("weird", ""), "weird:[77]");
        assert_eq!(text("anon_inodefs", "[eventfd]"), "anon_inode:[eventfd]");
        assert_eq!(text("tmpfs", "memfd:x"), "/memfd:x (deleted)");
    }
}
