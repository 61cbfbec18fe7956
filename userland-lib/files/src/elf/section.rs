// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Contents and addresses of sections.

use gimli::BaseAddresses;
use object::{Object as _, ObjectSection as _, ReadRef};
use std::borrow::Cow;

/// Maximum size of a section, in bytes.
const SECTION_MAX: u64 = 1 << 28;

/// Returns the uncompressed contents of a section. `None` if it is missing, empty or larger than
/// [`SECTION_MAX`].
pub fn section<'a, R: ReadRef<'a>>(
    file: &object::File<'a, R>,
    name: &str,
) -> Option<Cow<'a, [u8]>> {
    bytes_of(file, name, SECTION_MAX)
}

/// Like [`section`], with a limit of `most` bytes.
pub fn bytes_of<'a, R: ReadRef<'a>>(
    file: &object::File<'a, R>,
    name: &str,
    most: u64,
) -> Option<Cow<'a, [u8]>> {
    let section = file.section_by_name(name)?;
    let data = (section.size() <= most).then(|| section.uncompressed_data().ok())??;
    (!data.is_empty()).then_some(data)
}

/// Returns the addresses that pointers in a file's `.eh_frame` may be relative to.
pub fn bases<'a, R: ReadRef<'a>>(file: &object::File<'a, R>) -> BaseAddresses {
    let address = |name| file.section_by_name(name).map_or(0, |s| s.address());
    BaseAddresses::default()
        .set_eh_frame(address(".eh_frame"))
        .set_text(address(".text"))
        .set_got(address(".got"))
}
