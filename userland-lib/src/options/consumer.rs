// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Options of the consumer alone, which neither the compiler nor the kernel knows. They may change at any time.

use super::{parse_flag, parse_size, OptionError};

/// How records become text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerOptions {
    /// Below each value of an aggregation stand those of the CPUs.
    pub aggpercpu: bool,
    /// Addresses stay numbers: no symbol is looked up.
    pub noresolve: bool,
    /// Lines begin with the probe's name: the numbers of CPU and probe, which differ from run to run, are left out. No option
    /// says so; it is for programs that compare what is printed.
    pub unnumbered: bool,
    /// How many bytes of an object `print()` shows.
    pub printsize: usize,
    /// Nothing is said of buffers that had to be made smaller.
    pub quietresize: bool,
}

impl Default for ConsumerOptions {
    fn default() -> Self {
        Self {
            aggpercpu: false,
            noresolve: false,
            unnumbered: false,
            printsize: 8192,
            quietresize: false,
        }
    }
}

impl ConsumerOptions {
    /// Sets the option `name`, if it is one of these.
    pub(super) fn set(
        &mut self,
        name: &str,
        value: Option<&str>,
    ) -> Option<Result<(), OptionError>> {
        let flag = || parse_flag(value).ok_or(OptionError::Value);
        let size = || value.and_then(parse_size).ok_or(OptionError::Value);
        Some(match name {
            "aggpercpu" => flag().map(|on| self.aggpercpu = on),
            "noresolve" => flag().map(|on| self.noresolve = on),
            "quietresize" => flag().map(|on| self.quietresize = on),
            "printsize" => {
                size().map(|size| self.printsize = usize::try_from(size).unwrap_or(usize::MAX))
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Options, Setter};
    use super::*;

    #[test]
    fn they_change_while_tracing_goes_on() {
        let mut options = Options::default();
        for (name, value) in [
            ("aggpercpu", None),
            ("noresolve", None),
            ("quietresize", Some("yes")),
            ("printsize", Some("1k")),
        ] {
            options.set(name, value, Setter::Running).expect(name);
        }
        let expected = ConsumerOptions {
            aggpercpu: true,
            noresolve: true,
            unnumbered: false,
            printsize: 1024,
            quietresize: true,
        };
        assert_eq!(options.consumer, expected);
        let refused = options.set("printsize", Some("all"), Setter::Running);
        assert_eq!(refused, Err(OptionError::Value));
    }
}
