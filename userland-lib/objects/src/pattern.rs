// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Probe descriptions.

use dtrace_uapi::glob;
use dtrace_uapi::types::ProbeId;
use std::fmt;

/// Module name that stands for the program, whatever its file is called.
pub const PROGRAM: &str = "a.out";
/// Function name that makes the probe's name an address.
pub(crate) const ADDRESS: &str = "-";

/// A probe description: four patterns, of which an empty one matches everything, or an id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProbePattern {
    /// The probe's id, or 0 if the patterns apply.
    pub id: ProbeId,
    /// Glob for the provider.
    pub provider: String,
    /// Glob for the module.
    pub module: String,
    /// Glob for the function.
    pub func: String,
    /// Glob for the name.
    pub name: String,
}

impl fmt::Display for ProbePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.id != 0 {
            return write!(f, "{}", self.id);
        }
        write!(
            f,
            "{}:{}:{}:{}",
            self.provider, self.module, self.func, self.name
        )
    }
}

impl ProbePattern {
    /// Returns the same description with another provider.
    #[must_use]
    pub fn of_provider(&self, provider: String) -> Self {
        Self {
            provider,
            ..self.clone()
        }
    }

    /// Whether the description may match something in an object that the process maps later.
    pub fn may_name_more(&self) -> bool {
        self.func != ADDRESS && self.module != PROGRAM
    }

    /// Whether the description may match probes of a provider.
    pub fn is_of(&self, provider: &str) -> bool {
        fits(&self.provider, provider)
    }

    /// Whether the description matches a probe with these names.
    pub fn describes(&self, parts: [&str; 4]) -> bool {
        let own = [&self.provider, &self.module, &self.func, &self.name];
        own.into_iter()
            .zip(parts)
            .all(|(own, part)| fits(own, part))
    }
}

/// Whether a part of a description is empty or a glob.
pub fn is_open(part: &str) -> bool {
    part.is_empty() || glob::is_glob(part.as_bytes())
}

/// Whether a part of a description matches a name.
pub fn fits(part: &str, text: &str) -> bool {
    part.is_empty() || glob::matches(part.as_bytes(), text.as_bytes())
}
