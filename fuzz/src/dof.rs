// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! DOF images: any image is refused or run, and leaves nothing behind.

use crate::common::dof::Image;
use crate::common::images::{sample, try_image};
use arbitrary::{Arbitrary, Result, Unstructured};

/// The first byte of the input selects an image as it is, a valid image with changes, or arbitrary
/// sections with a valid header.
pub fn dof(data: &[u8]) {
    let Some((mode, data)) = data.split_first() else {
        return;
    };
    match mode % 3 {
        0 => drop(try_image(data)),
        1 => drop(try_image(&changed(sample().write(), data))),
        _ => {
            if let Ok(image) = sections(&sample(), &mut Unstructured::new(data)) {
                try_image(&image);
            }
        }
    }
}

/// Changes an image: each three bytes of `data` are a position (2 bytes) and a value.
pub fn changed(mut image: Vec<u8>, data: &[u8]) -> Vec<u8> {
    for change in data.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]]));
        // Small values replace a whole word, because words are often links and kinds. Other values
        // replace a byte.
        let (at, value) = (at % image.len(), change[2]);
        match image.get_mut(at & !3..(at & !3) + 4) {
            Some(word) if value < 64 => word.copy_from_slice(&u32::from(value).to_le_bytes()),
            _ => image[at] = value,
        }
    }
    image
}

/// Makes an image whose header and section offsets are valid. Its sections are those of `good` or
/// variants of them.
pub fn sections(good: &Image, u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let mut image = Image::default();
    if !bool::arbitrary(u)? {
        image.secs.clone_from(&good.secs);
    }
    while !u.is_empty() && image.secs.len() < 200 {
        let known: Vec<u32> = image.secs.iter().map(|(sec, _)| sec.ty).collect();
        let mut section = match (known.is_empty(), u.int_in_range(0..=2)?) {
            // Add a copy of an existing section.
            (false, 0) => image.secs[u.choose_index(known.len())?].clone(),
            _ => {
                let mut section = good.secs[u.choose_index(good.secs.len())?].clone();
                section.1 = words(u)?;
                section
            }
        };
        if u.ratio(1, 4)? {
            section.0.entsize = u.int_in_range(0..=64)?;
        }
        section.0.size = section.1.len() as u64;
        if u.ratio(1, 3)? && !section.1.is_empty() {
            let at = u.choose_index(section.1.len())?;
            section.1[at] = u8::arbitrary(u)?;
        }
        image.secs.push(section);
    }
    Ok(image.write())
}

/// Makes words that are mostly small, like section indices.
fn words(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for _ in 0..u.int_in_range(0..=24)? {
        let word = match u.ratio(7, 8)? {
            true => u32::from(u8::arbitrary(u)? % 32),
            false => u32::arbitrary(u)?,
        };
        bytes.extend(word.to_le_bytes());
    }
    Ok(bytes)
}
