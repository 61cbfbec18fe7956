// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The file of an anonymous enabling: what `dtrace -A` leaves for the kernel to enable at boot.
//!
//! The kernel reads the file when the module is loaded, possibly long before userland exists. The
//! file therefore has the kernel's own format: consecutive DOF images, each as a consumer would
//! enable it. The last image enables nothing. Behind its loaded part it has a comment, which the
//! kernel skips: the [`Meaning`] of the records, in JSON. The kernel keeps the bytes of the file
//! that it enabled, and returns them to the consumer that claims the state. Thus records are never
//! interpreted with the meaning of another enabling, even if the file was replaced, or the file in
//! the initial RAM disk is older than the one on the root file system.
//!
//! The file is replaced as a whole: any reader, in particular the kernel, finds the old one, the
//! new one, or none.

use dtrace_compiler::dof;
use dtrace_compiler::statement::{AggVarId, Statement};
use dtrace_files::file;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

/// Where the module looks for the file, unless its parameter `anon_file` names another.
pub const PATH: &str = "/etc/dtrace/anon.dof";

/// The meaning of an enabling's records: everything that its consumer needs in addition to the
/// kernel's descriptions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meaning {
    /// The options that are set, by name.
    pub options: BTreeMap<String, u64>,
    /// The statements of all programs, in the order of their numbers.
    pub statements: Vec<Statement>,
    /// The aggregations: variable, number of the function, and its argument.
    pub aggregations: Vec<(AggVarId, u32, u64)>,
    /// The names of the variables, and the expressions of their keys. None in files of earlier
    /// versions.
    #[serde(default)]
    pub variables: Vec<(AggVarId, String, Vec<String>)>,
}

/// Why a file has no usable meaning.
#[derive(Debug, thiserror::Error)]
pub enum AnonError {
    /// It carries none.
    #[error("anonymous enabling was not made by dtrace -A")]
    Missing,
    /// Its format is not that of this version.
    #[error("anonymous enabling was made by another version of dtrace: {0}")]
    Foreign(#[from] serde_json::Error),
}

/// Returns the contents of a file with `images` and their meaning.
pub fn write(images: impl IntoIterator<Item = Vec<u8>>, meaning: &Meaning) -> Vec<u8> {
    let mut file: Vec<u8> = images.into_iter().flatten().collect();
    // Serialization cannot fail: JSON can express every meaning.
    let text = serde_json::to_vec(meaning).unwrap_or_default();
    file.extend(dof::emit_comment(&text));
    file
}

/// Returns the meaning that a file carries.
pub fn read(file: &[u8]) -> Result<Meaning, AnonError> {
    let comments = dof::comments(file);
    let text = comments.last().ok_or(AnonError::Missing)?;
    Ok(serde_json::from_slice(text)?)
}

/// Stores a file that only its owner can access.
pub fn store(path: &Path, data: &[u8]) -> io::Result<()> {
    fs::create_dir_all(file::folder(path))?;
    file::replace(path, data, 0o600)
}

/// Removes a file. Returns false if there was none.
pub fn clear(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dtrace_compiler::format::Format;
    use dtrace_compiler::program::Program;
    use dtrace_compiler::shape::{Field, Form, Shape};
    use dtrace_compiler::statement::{Kind, Print};
    use dtrace_uapi::option::Opt;

    fn meaning() -> Meaning {
        let print = Print {
            format: Format::parse("100%% %-*.3s|%@8d %Y\n\u{1}").expect("a format"),
            args: vec![Kind::Signed, Kind::String, Kind::Unsigned],
        };
        let field = Field {
            name: "next".into(),
            shape: Shape {
                name: "int".into(),
                size: 4,
                form: Form::Int { signed: true },
            },
            bit_offset: 3,
            bits: 5,
        };
        let shape = Shape {
            name: "struct list".into(),
            size: 8,
            form: Form::Record(vec![field]),
        };
        Meaning {
            options: BTreeMap::from([("bufsize".into(), 4096), ("quiet".into(), 1)]),
            statements: vec![
                Statement::Trace(Kind::Bytes),
                Statement::Printf(print.clone()),
                Statement::Printa {
                    format: Some(print.format),
                    aggs: vec![1, 2],
                },
                Statement::Print(Box::new(shape)),
                Statement::Aggregate {
                    var: 2,
                    keys: vec![Kind::Action],
                },
                Statement::Setopt,
                Statement::Error,
            ],
            aggregations: vec![(2, 0x708, u64::MAX)],
            variables: vec![(2, "lat".into(), vec!["execname".into()])],
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let image = || dof::emit(&Program::default(), &[(Opt::Bufsize, 4096)]);
        let file = write([image(), image()], &meaning());
        assert_eq!(read(&file).expect("a meaning"), meaning());
        assert!(file.starts_with(&[image(), image()].concat()));
    }

    #[test]
    fn a_file_of_another_make_has_no_meaning() {
        let image = dof::emit(&Program::default(), &[(Opt::Bufsize, 4096)]);
        let text = |file: &[u8]| read(file).expect_err("no meaning").to_string();
        for file in [&b""[..], b"\x7fDOF", b"no DOF at all", &image, &image[..70]] {
            assert_eq!(text(file), "anonymous enabling was not made by dtrace -A");
        }
        for other in [&b"{}"[..], b"[", br#"{"statements":[{"Sing":1}]}"#] {
            let why = text(&dof::emit_comment(other));
            assert!(
                why.starts_with("anonymous enabling was made by another version of dtrace: "),
                "{why}"
            );
        }
        // A file of an earlier version does not name its aggregations.
        let mut earlier = serde_json::to_value(meaning()).expect("JSON");
        earlier
            .as_object_mut()
            .expect("an object")
            .remove("variables");
        let earlier = dof::emit_comment(earlier.to_string().as_bytes());
        assert!(read(&earlier).expect("a meaning").variables.is_empty());
        // A format that the parser rejects is also rejected when it comes from a file.
        let good = serde_json::to_string(&meaning()).expect("JSON");
        let bad = good.replace("%Y", "%y");
        let why = text(&dof::emit_comment(bad.as_bytes()));
        assert!(
            why.contains("format conversion #3 is undefined: %y"),
            "{why}"
        );
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_cleared_once() {
        let dir = std::env::temp_dir().join(format!("anon-{}", std::process::id()));
        let path = dir.join("etc/anon.dof");
        for file in [&b"first, and longer"[..], b"second"] {
            store(&path, file).expect("stored");
            assert_eq!(fs::read(&path).expect("the file"), file);
        }
        let entries = fs::read_dir(dir.join("etc")).expect("a directory");
        assert_eq!(entries.count(), 1);
        assert_eq!(clear(&path).ok(), Some(true));
        assert_eq!(clear(&path).ok(), Some(false));
        // With a directory in the way, nothing of the new file remains.
        fs::create_dir(&path).expect("a directory");
        assert!(store(&path, b"third").is_err());
        let entries = fs::read_dir(dir.join("etc")).expect("a directory");
        assert_eq!(entries.count(), 1);
        fs::remove_dir_all(&dir).expect("removed");
    }
}
