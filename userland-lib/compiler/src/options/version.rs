// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Versions of the D language: `major.minor[.micro]`.
//!
//! A program may state the version for which it is written. Only versions that were released are
//! accepted.

use super::OptionError;
use std::fmt;
use std::str::FromStr;

/// A version of D.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    major: u8,
    minor: u16,
    micro: u16,
}

/// The version that this library implements.
pub const CURRENT: Version = Version::new(2, 0, 0);

/// All versions that were released, oldest first.
const KNOWN: &[Version] = &[
    Version::new(1, 0, 0),
    Version::new(1, 1, 0),
    Version::new(1, 2, 0),
    Version::new(1, 2, 1),
    Version::new(1, 2, 2),
    Version::new(1, 3, 0),
    Version::new(1, 4, 0),
    Version::new(1, 4, 1),
    Version::new(1, 5, 0),
    Version::new(1, 6, 0),
    Version::new(1, 6, 1),
    Version::new(1, 6, 2),
    Version::new(1, 6, 3),
    Version::new(1, 6, 4),
    Version::new(1, 7, 0),
    Version::new(1, 7, 1),
    Version::new(1, 8, 0),
    Version::new(1, 8, 1),
    Version::new(1, 9, 0),
    Version::new(1, 9, 1),
    Version::new(1, 10, 0),
    Version::new(1, 11, 0),
    Version::new(1, 12, 0),
    Version::new(1, 12, 1),
    Version::new(1, 13, 0),
    CURRENT,
];

/// Whether this version was released.
pub fn is_known(version: Version) -> bool {
    KNOWN.contains(&version)
}

impl Version {
    const fn new(major: u8, minor: u16, micro: u16) -> Self {
        Self {
            major,
            minor,
            micro,
        }
    }
}

impl FromStr for Version {
    type Err = OptionError;

    /// Parses a version. Major is at most 255, minor and micro at most 4095, so that a version fits
    /// in 32 bits.
    fn from_str(text: &str) -> Result<Self, OptionError> {
        let number = |part: &str| {
            let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            let number = part.parse::<u16>().ok().filter(|number| *number <= 0xfff);
            number
                .filter(|_| is_number)
                .ok_or(OptionError::VersionFormat)
        };
        let mut parts = text.split('.');
        let major = number(parts.next().unwrap_or_default())?;
        let minor = number(parts.next().unwrap_or_default())?;
        let micro = parts.next().map_or(Ok(0), number)?;
        match (u8::try_from(major), parts.next()) {
            (Ok(major), None) => Ok(Self::new(major, minor, micro)),
            _ => Err(OptionError::VersionFormat),
        }
    }
}

impl fmt::Display for Version {
    /// Formats the version as programs state it; `{:#}` always includes micro.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)?;
        match self.micro {
            0 if !f.alternate() => Ok(()),
            micro => write!(f, ".{micro}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_written() {
        for text in ["1.0", "1.6.3", "1.13", "255.4095.4095"] {
            assert_eq!(text.parse::<Version>().unwrap().to_string(), text);
        }
        let version = "1.13.0".parse::<Version>().unwrap();
        assert_eq!(format!("{version} {version:#}"), "1.13 1.13.0");
        for text in [
            "", "1", "1.", "1.+2", "1.2.", "1.2.3.4", "256.0", "1.4096", "a.b",
        ] {
            assert_eq!(
                text.parse::<Version>(),
                Err(OptionError::VersionFormat),
                "{text}"
            );
        }
    }

    #[test]
    fn known_versions_are_in_order_and_end_with_ours() {
        assert!(KNOWN.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(KNOWN.last(), Some(&CURRENT));
        assert!(!is_known(Version::new(99, 1, 0)));
    }
}
