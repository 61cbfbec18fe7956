// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Providers that name processes by a pattern, such as `pid*` or `p*d123`.
//!
//! A pattern cannot mean the functions of all processes on the machine. It makes probes in the
//! watched processes (`-p`, `-c`, `-W`) and, if it ends with digits, in the process of that number.
//! Probes that others make are matched by it as by any pattern. A pattern that neither ends with
//! digits nor begins with `pid` is for other providers.

use super::{process_of, provider_of, Error, Place, PROVIDER};
use crate::pattern::ProbePattern;
use dtrace_uapi::glob;
use std::collections::BTreeSet;

/// Returns the processes in which a provider's description makes probes, and whether the provider
/// is a pattern.
pub fn processes(provider: &str, watched: &[u32]) -> Result<(Vec<u32>, bool), Error> {
    if let Some(pid) = process_of(provider)? {
        return Ok((vec![pid], false));
    }
    let before = provider.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = &provider[before.len()..];
    if !glob::is_glob(provider.as_bytes()) || !provider.starts_with(PROVIDER) && digits.is_empty() {
        return Ok((Vec::new(), false));
    }
    let fits = |pid: &u32| glob::matches(provider.as_bytes(), provider_of(*pid).as_bytes());
    let mut named: BTreeSet<u32> = watched.iter().copied().collect();
    named.extend(digits.parse::<i32>().ok().map(i32::unsigned_abs));
    named.retain(|pid| *pid > 0 && fits(pid));
    Ok((named.into_iter().collect(), true))
}

/// Whether a description matches all of these probes of a process.
pub fn all_named(pattern: &ProbePattern, pid: u32, places: &[Place]) -> bool {
    let provider = provider_of(pid);
    places.iter().all(|place| {
        let name = place.kind.to_string();
        pattern.describes([&provider, &place.object.name, &place.func, &name])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_names_who_is_watched_or_has_its_number() {
        let named = |provider| processes(provider, &[7, 71, 123]).unwrap();
        for (provider, pids) in [
            ("pid*", &[7, 71, 123][..]),
            ("pid7*", &[7, 71]),
            ("pid?", &[7]),
            ("pid[0-9]*3", &[123]),
            ("p*d123", &[123]),
            ("p*d55", &[55]),
            ("*7", &[7]),
            ("p*", &[]),
            ("*", &[]),
            ("proc*", &[]),
            ("python*99999999999", &[]),
        ] {
            assert_eq!(named(provider).0, pids, "{provider}");
        }
        assert_eq!(named("pid8"), (vec![8], false));
        assert_eq!(named("fbt"), (vec![], false));
        assert!(processes("pid0", &[]).is_err());
    }
}
