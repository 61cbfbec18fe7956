// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Options: which values they can have, and what they are where nobody sets them.

use super::Privileges;
use crate::budget::{MOVED, UNITS};
use crate::error::{Errno, Reason};
use dtrace_uapi::limits::{
    BUFSIZE_DEFAULT, CLEANRATE_DEFAULT, CLEANRATE_MAX, CLEANRATE_MIN, DYNVARSIZE_DEFAULT,
    JSTACKFRAMES_DEFAULT, JSTACKSTRSIZE_DEFAULT, NSPEC_DEFAULT, RATE_DEFAULT, SPECSIZE_DEFAULT,
    STACKFRAMES_DEFAULT, STATUSRATE_MAX, STRSIZE_DEFAULT, USTACKFRAMES_DEFAULT,
};
use dtrace_uapi::option::{
    Opt, BUFPOLICY_SWITCH, BUFRESIZE_AUTO, COUNT, UNSET, USTACKMODE_AUTO, USTACKMODE_TOLD,
};

/// Greatest size of a string, bytes: the least piece of work that a firing's budget is spent for.
const STRSIZE_MAX: u64 = (64 << 10) + 1;
/// Greatest scratch memory that may be asked for, bytes: as much as a firing's budget lets it write.
const SCRATCHSIZE_MAX: u64 = 4 << 20;
/// Most speculations of a consumer: each CPU looks at all of them, with interrupts off, when they are cleaned.
const NSPEC_MAX: u64 = 4096;
/// Greatest buffer of a consumer without rights over the kernel, bytes.
const UNPRIVILEGED_MAX: u64 = 16 << 20;
/// Greatest buffer at all, bytes: offsets in it have 32 bits.
const BUFFER_MAX: u64 = 2 << 30;

/// Greatest speculation, bytes: as much as a firing's budget lets `commit()` move, and moved in one go by the cleaner.
const SPECSIZE_MAX: usize = UNITS as usize * MOVED;
/// The same of a consumer without rights over the kernel, whose records may be as short as can be.
const UNPRIVILEGED_SPECSIZE_MAX: usize = 1 << 20;

/// Greatest speculation of a consumer with these rights, bytes.
pub(super) fn speculation_max(privileges: &Privileges) -> usize {
    match privileges.kernel {
        true => SPECSIZE_MAX,
        false => UNPRIVILEGED_SPECSIZE_MAX,
    }
}

/// Greatest buffer of a consumer with these rights, bytes.
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

/// What an option is where nobody sets it.
fn default(option: Opt) -> u64 {
    match option {
        Opt::Bufsize | Opt::Aggsize => BUFSIZE_DEFAULT,
        Opt::Bufpolicy => BUFPOLICY_SWITCH,
        Opt::Bufresize => BUFRESIZE_AUTO,
        Opt::Ustackmode => USTACKMODE_AUTO,
        Opt::Dynvarsize => DYNVARSIZE_DEFAULT,
        Opt::Specsize => SPECSIZE_DEFAULT,
        Opt::Nspec => NSPEC_DEFAULT,
        Opt::Strsize => STRSIZE_DEFAULT,
        Opt::Cleanrate => CLEANRATE_DEFAULT,
        Opt::Stackframes => STACKFRAMES_DEFAULT,
        Opt::Ustackframes => USTACKFRAMES_DEFAULT,
        Opt::Jstackframes => JSTACKFRAMES_DEFAULT,
        Opt::Jstackstrsize => JSTACKSTRSIZE_DEFAULT,
        Opt::Aggrate | Opt::Statusrate | Opt::Switchrate => RATE_DEFAULT,
        _ => UNSET,
    }
}

/// The value that `value` becomes, or why it cannot be one.
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
        // `BEGIN` and `END` fire there, in whoever's process that CPU is at.
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
    /// The value that was set, [`UNSET`] where none was.
    pub fn raw(&self, option: Opt) -> u64 {
        self.0.get(option.place()).copied().unwrap_or(UNSET)
    }

    /// The value, or the default.
    pub fn get(&self, option: Opt) -> u64 {
        match self.raw(option) {
            UNSET => default(option),
            value => value,
        }
    }

    /// Whether a flag is set.
    pub fn flag(&self, option: Opt) -> bool {
        !matches!(self.raw(option), UNSET | 0)
    }

    /// Sets an option. `fixed` says that clauses have been built with those that shape them.
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

    /// Puts a value in place, unchecked: sizes that were got instead of those that were asked for.
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
