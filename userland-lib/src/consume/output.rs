// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Where text goes: to the given writer, or to the file that `freopen()` named last.

use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};

/// The file that output is redirected to, if it is.
#[derive(Debug, Default)]
pub struct Redirect {
    file: Option<BufWriter<File>>,
}

impl Redirect {
    /// Redirects output to `path`, or back to the given writer if that is empty.
    pub fn reopen(&mut self, path: &str) -> io::Result<()> {
        self.flush()?;
        self.file = match path {
            "" => None,
            path => Some(BufWriter::new(File::create(path)?)),
        };
        Ok(())
    }

    /// Where text goes now.
    pub fn writer<'a>(&'a mut self, out: &'a mut dyn Write) -> &'a mut dyn Write {
        match &mut self.file {
            Some(file) => file,
            None => out,
        }
    }

    /// Empties the file that output is redirected to, for `ftruncate()`; does nothing without one.
    pub fn truncate(&mut self) -> io::Result<()> {
        self.flush()?;
        if let Some(file) = &mut self.file {
            file.get_mut().set_len(0)?;
            file.rewind()?;
        }
        Ok(())
    }

    /// Writes out what is kept back.
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
        redirect.writer(&mut out).write_all(b"a").unwrap();
        redirect.reopen(name).unwrap();
        redirect.writer(&mut out).write_all(b"gone").unwrap();
        redirect.truncate().unwrap();
        redirect.writer(&mut out).write_all(b"b").unwrap();
        redirect.reopen("").unwrap();
        redirect.writer(&mut out).write_all(b"c").unwrap();
        assert_eq!(out, b"ac");
        assert_eq!(std::fs::read(&path).unwrap(), b"b");
        std::fs::remove_file(&path).unwrap();
        assert!(redirect.reopen("/nonexistent/x").is_err());
    }
}
