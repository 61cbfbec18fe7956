// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The destination of text: the given output, or the file that `freopen()` named last.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, Seek, Stdout, Write};
use std::os::fd::AsFd;

/// A destination of text that `ftruncate()` can empty.
pub trait Output: Write {
    /// Removes the text that was written. Has no effect on a terminal or a pipe.
    fn truncate(&mut self) -> io::Result<()>;
}

impl Output for Vec<u8> {
    fn truncate(&mut self) -> io::Result<()> {
        self.clear();
        Ok(())
    }
}

impl Output for BufWriter<File> {
    fn truncate(&mut self) -> io::Result<()> {
        self.flush()?;
        empty(self.get_ref())
    }
}

impl Output for BufWriter<Stdout> {
    fn truncate(&mut self) -> io::Result<()> {
        self.flush()?;
        empty(&File::from(self.get_ref().as_fd().try_clone_to_owned()?))
    }
}

/// Empties and rewinds a regular file; does nothing to any other.
fn empty(mut file: &File) -> io::Result<()> {
    if !file.metadata()?.is_file() {
        return Ok(());
    }
    file.set_len(0)?;
    file.rewind()
}

/// The file to which output is redirected, if any.
#[derive(Debug, Default)]
pub struct Redirect {
    file: Option<BufWriter<File>>,
}

impl Redirect {
    /// Redirects output to the file `path`, which is created or emptied, or back to the given
    /// output if `path` is empty.
    pub fn reopen(&mut self, path: &OsStr) -> io::Result<()> {
        self.flush()?;
        self.file = match path.is_empty() {
            true => None,
            false => Some(BufWriter::new(File::create(path)?)),
        };
        Ok(())
    }

    /// Whether output goes to a file.
    pub fn is_active(&self) -> bool {
        self.file.is_some()
    }

    /// Returns the current destination; `out` is the given output.
    pub fn output<'a>(&'a mut self, out: &'a mut dyn Output) -> &'a mut dyn Output {
        match &mut self.file {
            Some(file) => file,
            None => out,
        }
    }

    /// Writes out the buffered text of the file.
    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.file {
            Some(file) => file.flush(),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_goes_to_the_file_and_back() {
        let path = std::env::temp_dir().join(format!("dtrace-freopen-{}", std::process::id()));
        let name = path.to_str().unwrap();
        let mut redirect = Redirect::default();
        let mut out = Vec::new();
        redirect.output(&mut out).write_all(b"a").unwrap();
        redirect.reopen(name.as_ref()).unwrap();
        redirect.output(&mut out).write_all(b"gone").unwrap();
        redirect.output(&mut out).truncate().unwrap();
        redirect.output(&mut out).write_all(b"b").unwrap();
        redirect.reopen("".as_ref()).unwrap();
        redirect.output(&mut out).write_all(b"c").unwrap();
        assert_eq!(out, b"ac");
        redirect.output(&mut out).truncate().unwrap();
        assert_eq!(out, b"");
        assert_eq!(std::fs::read(&path).unwrap(), b"b");
        std::fs::remove_file(&path).unwrap();
        assert!(redirect.reopen("/nonexistent/x".as_ref()).is_err());
    }
}
