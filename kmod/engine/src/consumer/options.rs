// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Options: their valid values. Their defaults are in `uapi`, with who reads them.

use super::Privileges;
use crate::budget::{MOVED, UNITS};
use crate::error::{Errno, Reason};
use dtrace_uapi::limits::{CLEANRATE_MAX, CLEANRATE_MIN, STATUSRATE_MAX};
use dtrace_uapi::option::{Opt, BUFPOLICY_SWITCH, COUNT, UNSET, USTACKMODE_TOLD};

/// Maximum size of a string, in bytes. It is also the maximum work between two looks at the budget
/// in code that works on strings.
const STRSIZE_MAX: u64 = (64 << 10) + 1;
/// Maximum of the option `scratchsize`, in bytes: as much as a clause's budget lets it write.
const SCRATCHSIZE_MAX: u64 = 4 << 20;
/// Maximum number of speculations of a consumer: the cleaner examines all of them on each CPU, with
/// interrupts off.
const NSPEC_MAX: u64 = 4096;
/// Maximum size of a buffer of a consumer without rights over the kernel, in bytes.
const UNPRIVILEGED_MAX: u64 = 16 << 20;
/// Maximum size of any buffer, in bytes: offsets in it have 32 bits.
const BUFFER_MAX: u64 = 2 << 30;

/// Maximum size of a speculation, in bytes: as much as a clause's budget lets `commit()` move. The
/// cleaner moves a speculation in one go.
const SPECSIZE_MAX: usize = UNITS as usize * MOVED;
/// The same for a consumer without rights over the kernel, in bytes. It is smaller, because the
/// records may be very short, and therefore many (INV-29).
const UNPRIVILEGED_SPECSIZE_MAX: usize = 1 << 20;

/// Returns the maximum size of a speculation of a consumer with these rights, in bytes.
pub(super) fn speculation_max(privileges: &Privileges) -> usize {
    match privileges.kernel {
        true => SPECSIZE_MAX,
        false => UNPRIVILEGED_SPECSIZE_MAX,
    }
}

/// Returns the maximum size of a buffer of a consumer with these rights, in bytes.
pub(super) fn buffer_max(privileges: &Privileges) -> u64 {
    match privileges.kernel {
        true => BUFFER_MAX,
        false => UNPRIVILEGED_MAX,
    }
}

/// A consumer's options.
#[derive(Clone, Debug)]
pub struct Options([u64; COUNT]);

impl Default for Options {
    fn default() -> Self {
        Self([UNSET; COUNT])
    }
}

/// Returns the value to store for `value`, or the reason for a refusal.
fn check(option: Opt, value: u64, privileges: &Privileges) -> Result<u64, Reason> {
    let refuse = |errno, text| Err(Reason::new(errno, text).about(option.name()));
    let bad = |text| Err(Reason::invalid(text).about(option.name()));
    match option {
        Opt::Nspec if value > NSPEC_MAX => {
            return refuse(Errno::E2BIG, "number is too big");
        }
        Opt::Zone => return bad("there are no zones"),
        Opt::Bufpolicy if value > BUFPOLICY_SWITCH => return bad("no such policy"),
        Opt::Bufresize if value > 1 => return bad("no such policy"),
        Opt::Ustackmode if value > USTACKMODE_TOLD => return bad("no such way to walk stacks"),
        Opt::Scratchsize if value > SCRATCHSIZE_MAX => {
            return refuse(Errno::E2BIG, "size is too big");
        }
        Opt::Strsize if !(1..=STRSIZE_MAX).contains(&value) => {
            return bad("size of strings is out of range")
        }
        Opt::Cleanrate => return Ok(value.clamp(CLEANRATE_MIN, CLEANRATE_MAX)),
        Opt::Statusrate => return Ok(value.min(STATUSRATE_MAX)),
        // `BEGIN` and `END` fire on that CPU, in whatever process runs there, which may be another
        // user's.
        Opt::Cpu if !privileges.all_users => {
            return refuse(Errno::EACCES, "no privilege to choose a CPU")
        }
        Opt::Destructive if !privileges.destructive => {
            return refuse(Errno::EACCES, "no privilege for destructive actions")
        }
        _ => {}
    }
    Ok(value)
}

impl Options {
    /// Returns the value that was set, [`UNSET`] if none was.
    pub fn raw(&self, option: Opt) -> u64 {
        self.0.get(option.place()).copied().unwrap_or(UNSET)
    }

    /// Returns the value, or the default.
    pub fn get(&self, option: Opt) -> u64 {
        match self.raw(option) {
            UNSET => option.usual(),
            value => value,
        }
    }

    /// Whether a flag is set.
    pub fn flag(&self, option: Opt) -> bool {
        !matches!(self.raw(option), UNSET | 0)
    }

    /// Sets an option. `fixed` says that clauses have been built; then the options that shape
    /// clauses cannot change (`EBUSY`).
    pub fn set(
        &mut self,
        option: Opt,
        value: u64,
        privileges: &Privileges,
        fixed: bool,
    ) -> Result<(), Reason> {
        let value = check(option, value, privileges)?;
        let shapes = matches!(
            option,
            Opt::Strsize
                | Opt::Destructive
                | Opt::Stackframes
                | Opt::Ustackframes
                | Opt::Jstackframes
                | Opt::Jstackstrsize
                | Opt::Noloops
        );
        if fixed && shapes && value != self.get(option) {
            return Err(
                Reason::new(Errno::EBUSY, "option has to be set before the first clause")
                    .about(option.name()),
            );
        }
        self.replace(option, value);
        Ok(())
    }

    /// Stores a value without a check: a size that was allocated in place of the one requested.
    pub fn replace(&mut self, option: Opt, value: u64) {
        if let Some(slot) = self.0.get_mut(option.place()) {
            *slot = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked() {
        let mut o = Options::default();
        let all = Privileges::ALL;
        assert_eq!((o.raw(Opt::Strsize), o.get(Opt::Strsize)), (UNSET, 256));
        o.set(Opt::Strsize, 64, &all, false).unwrap();
        assert_eq!(o.get(Opt::Strsize), 64);
        assert_eq!(
            o.set(Opt::Strsize, 65, &all, true).unwrap_err().errno,
            Errno::EBUSY
        );
        o.set(Opt::Strsize, 64, &all, true).unwrap();
        for (option, value) in [
            (Opt::Strsize, 0),
            (Opt::Strsize, 1 << 40),
            (Opt::Bufpolicy, 3),
            (Opt::Bufresize, 2),
            (Opt::Ustackmode, 4),
            (Opt::Zone, 1),
        ] {
            assert_eq!(
                o.set(option, value, &all, false).unwrap_err().errno,
                Errno::EINVAL
            );
        }
        for option in [Opt::Scratchsize, Opt::Nspec] {
            assert_eq!(
                o.set(option, 1 << 40, &all, false).unwrap_err().errno,
                Errno::E2BIG
            );
        }
        o.set(Opt::Cleanrate, 1, &all, false).unwrap();
        assert_eq!(o.get(Opt::Cleanrate), CLEANRATE_MIN);
        let user = Privileges {
            kernel: false,
            kernel_memory: false,
            all_users: false,
            user_memory: true,
            destructive: false,
        };
        for option in [Opt::Destructive, Opt::Cpu] {
            assert_eq!(
                o.set(option, 1, &user, false).unwrap_err().errno,
                Errno::EACCES
            );
        }
        assert!(buffer_max(&user) < buffer_max(&all));
    }
}
