// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! What is to be said *about* tracing: faults, drops, and what the consumer itself could not do.
//!
//! An [`Event`] is a value. Its text, by [`Display`](fmt::Display), is what dtrace(1) prints after
//! `dtrace: `.

use super::layout::{EnabledProbe, ProbeName};
use super::places::Place;
use dtrace_machine::proc::Ended;
use dtrace_uapi::fault::Fault;
use dtrace_uapi::ioctl::Status;
use dtrace_uapi::types::Epid;
use std::fmt;
use std::rc::Rc;

/// Something besides the records that the consumer reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A fault in probe context.
    Fault(Faulted),
    /// The source location and the expression of the last fault, which [`Faulted`] has as well.
    Place(Place),
    /// Records, aggregations or variables were dropped.
    Drop(Drops),
    /// Probes that could not be made or kept: what they would have recorded is missing.
    Missing(String),
    /// A buffer is smaller than requested, because there was not enough memory.
    Lowered(String),
    /// A record asks for something that could not be done.
    Failed {
        /// The probe that recorded it.
        probe: EventProbe,
        /// What and why.
        failure: Failure,
        /// The statement that asks for it, if it is known.
        place: Option<Place>,
    },
    /// A watched process ended.
    Ended(Ended),
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault(fault) => fault.fmt(f),
            Self::Place(place) => write!(f, "at {place}"),
            Self::Drop(drops) => drops.fmt(f),
            Self::Missing(text) | Self::Lowered(text) => {
                f.write_str(text.strip_suffix('\n').unwrap_or(text))
            }
            Self::Failed { probe, failure, .. } => write!(f, "{probe}: {failure}"),
            Self::Ended(ended) => ended.fmt(f),
        }
    }
}

/// Something that could not be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// `setopt()` of this option to this value.
    Setopt {
        /// The option's name.
        name: String,
        /// The value.
        value: String,
        /// The reason.
        error: String,
    },
    /// `normalize()` by a factor that is not positive.
    Normalize,
    /// Something else, in words.
    Other(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // As in every DTrace, an empty line follows this message.
            Self::Setopt { name, value, error } => {
                writeln!(f, "couldn't set option \"{name}\" to \"{value}\": {error}")
            }
            Self::Normalize => f.write_str("Invalid normalization"),
            Self::Other(reason) => f.write_str(reason),
        }
    }
}

/// An enabled probe, as far as events name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventProbe {
    /// The enabled probe's id.
    pub epid: Epid,
    /// The probe.
    pub name: Rc<ProbeName>,
}

impl From<&EnabledProbe> for EventProbe {
    fn from(enabled: &EnabledProbe) -> Self {
        Self {
            epid: enabled.epid,
            name: Rc::clone(&enabled.probe),
        }
    }
}

impl fmt::Display for EventProbe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (epid, name) = (self.epid, &self.name);
        write!(
            f,
            "error on enabled probe ID {epid} (ID {}: {name})",
            name.id
        )
    }
}

/// A fault: the arguments of the `ERROR` probe, and the cause of a refused access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faulted {
    /// The CPU on which it happened.
    pub cpu: u32,
    /// When it happened, ns, by the clock of D's `timestamp`.
    pub timestamp: u64,
    /// The probe whose clause it happened in.
    pub probe: EventProbe,
    /// The number of the action, from 1; 0 is the predicate.
    pub action: u32,
    /// The offset in the DIF, bytes, if it is known.
    pub offset: Option<u32>,
    /// The fault.
    pub fault: Fault,
    /// The address that could not be used, `u64::MAX` if it is unknown; for [`Fault::BadIndex`] the
    /// index, for [`Fault::BadSize`] the size.
    pub addr: u64,
    /// The capability that the consumer lacks for the access, if it lacks one.
    pub lacks: Option<&'static str>,
    /// The expression that failed, if it is known.
    pub place: Option<Place>,
}

impl Faulted {
    /// Returns the fault's name: that of D's `DTRACEFLT_` constant without the prefix.
    pub fn name(&self) -> &'static str {
        match self.fault {
            Fault::Unknown => "UNKNOWN",
            Fault::BadAddr => "BADADDR",
            Fault::BadAlign => "BADALIGN",
            Fault::IllOp => "ILLOP",
            Fault::DivZero => "DIVZERO",
            Fault::NoScratch => "NOSCRATCH",
            Fault::Kpriv => "KPRIV",
            Fault::Upriv => "UPRIV",
            Fault::TupOflow => "TUPOFLOW",
            Fault::BadStack => "BADSTACK",
            Fault::BadSize => "BADSIZE",
            Fault::BadIndex => "BADINDEX",
            Fault::Overrun => "OVERRUN",
            Fault::Library => "LIBRARY",
        }
    }

    /// Returns the address that could not be used, if the fault is about one and it is known.
    pub fn address(&self) -> Option<u64> {
        match self.fault {
            // The kernel reports this address if it does not know the real one.
            Fault::BadAddr if self.addr == u64::MAX => None,
            Fault::BadAddr | Fault::BadAlign | Fault::BadStack => Some(self.addr),
            _ => None,
        }
    }
}

impl fmt::Display for Faulted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.probe, text_of(self.fault))?;
        match self.fault {
            // The kernel reports this address if it does not know the real one.
            Fault::BadAddr if self.addr == u64::MAX => {}
            Fault::BadAddr | Fault::BadAlign | Fault::BadStack | Fault::BadSize => {
                write!(f, " ({:#x})", self.addr)?;
            }
            Fault::BadIndex => write!(f, " ({})", self.addr as i64)?,
            Fault::Kpriv | Fault::Upriv => {
                if let Some(name) = self.lacks {
                    write!(f, " (without {name})")?;
                }
            }
            _ => {}
        }
        match self.action {
            0 => f.write_str(" in predicate")?,
            n => write!(f, " in action #{n}")?,
        }
        match self.offset {
            Some(offset) => write!(f, " at DIF offset {offset}"),
            None => Ok(()),
        }
    }
}

/// Returns the text for a fault.
fn text_of(fault: Fault) -> &'static str {
    match fault {
        Fault::Unknown => "unknown fault",
        Fault::BadAddr => "invalid address",
        Fault::BadAlign => "invalid alignment",
        Fault::IllOp => "illegal operation",
        Fault::DivZero => "divide-by-zero",
        Fault::NoScratch => "out of scratch space",
        Fault::Kpriv => "invalid kernel access",
        Fault::Upriv => "invalid user access",
        Fault::TupOflow => "tuple stack overflow",
        Fault::BadStack => "bad stack",
        Fault::BadSize => "invalid size",
        Fault::BadIndex => "index out of bounds",
        Fault::Overrun => "too much work in one firing",
        Fault::Library => "library-level fault",
    }
}

/// Drops of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drops {
    /// Their kind.
    pub kind: &'static DropKind,
    /// Their number.
    pub count: u64,
    /// The CPU whose buffer had no room, if it is one CPU's.
    pub cpu: Option<u32>,
    /// Whether the text begins with the kind's tag (option `droptags`).
    pub is_tagged: bool,
}

impl fmt::Display for Drops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DropKind { tag, what, how } = self.kind;
        if self.is_tagged {
            write!(f, "[{tag}] ")?;
        }
        let plural = if self.count > 1 { "s" } else { "" };
        write!(f, "{} {what}{plural}{how}", self.count)?;
        match self.cpu {
            Some(cpu) => write!(f, " on CPU {cpu}"),
            None => Ok(()),
        }
    }
}

impl DropKind {
    /// Returns a short name: the tag without its prefix, in small letters.
    pub fn name(&self) -> String {
        let name = self.tag.strip_prefix("DTRACEDROP_").unwrap_or(self.tag);
        name.to_ascii_lowercase()
    }
}

/// A kind of drops.
#[derive(Debug, PartialEq, Eq)]
pub struct DropKind {
    /// Its tag.
    pub tag: &'static str,
    /// What was dropped, in the singular.
    what: &'static str,
    /// Where or why.
    how: &'static str,
}

/// Records for which a CPU's principal buffer had no room.
pub const PRINCIPAL: DropKind = DropKind {
    tag: "DTRACEDROP_PRINCIPAL",
    what: "drop",
    how: "",
};
/// Records for which a CPU's aggregation buffer had no room.
pub const AGGREGATION: DropKind = DropKind {
    tag: "DTRACEDROP_AGGREGATION",
    what: "aggregation drop",
    how: "",
};

/// Returns a counter of a consumer's status.
type Counter = fn(&Status) -> u64;

/// The kinds that the status of a consumer counts, and their counters.
const COUNTED: &[(DropKind, Counter)] = &[
    (
        DropKind {
            tag: "DTRACEDROP_DYNAMIC",
            what: "dynamic variable drop",
            how: "",
        },
        |status| status.dyndrops,
    ),
    (
        DropKind {
            tag: "DTRACEDROP_DYNRINSE",
            what: "dynamic variable drop",
            how: " with non-empty rinsing list",
        },
        |status| status.dyndrops_rinsing,
    ),
    (
        DropKind {
            tag: "DTRACEDROP_DYNDIRTY",
            what: "dynamic variable drop",
            how: " with non-empty dirty list",
        },
        |status| status.dyndrops_dirty,
    ),
    (
        DropKind {
            tag: "DTRACEDROP_SPEC",
            what: "speculative drop",
            how: "",
        },
        |status| status.specdrops,
    ),
    (
        DropKind {
            tag: "DTRACEDROP_SPECBUSY",
            what: "failed speculation",
            how: " (available buffer(s) still busy)",
        },
        |status| status.specdrops_busy,
    ),
    (
        DropKind {
            tag: "DTRACEDROP_SPECUNAVAIL",
            what: "failed speculation",
            how: " (no speculative buffer available)",
        },
        |status| status.specdrops_unavail,
    ),
    (
        DropKind {
            tag: "DTRACEDROP_STKSTROVERFLOW",
            what: "jstack()/ustack() string table overflow",
            how: "",
        },
        |status| status.stkstroverflows,
    ),
    (
        DropKind {
            tag: "DTRACEDROP_DBLERROR",
            what: "error",
            how: " in ERROR probe enabling",
        },
        |status| status.dblerrors,
    ),
    (
        DropKind {
            tag: "DTRACEDROP_RECURSION",
            what: "drop",
            how: " in probe context (recursion)",
        },
        |status| status.recursions,
    ),
    (
        DropKind {
            tag: "DTRACEDROP_NMI",
            what: "drop",
            how: " in probe context (NMI)",
        },
        |status| status.nmis,
    ),
    (
        DropKind {
            tag: "DTRACEDROP_UNWATCHED",
            what: "drop",
            how: " in probe context (RCU not watching)",
        },
        |status| status.unwatched,
    ),
    (
        DropKind {
            tag: "DTRACEDROP_RETURN",
            what: "drop",
            how: " of returns (functions could not be hooked)",
        },
        |status| status.returns,
    ),
    (
        DropKind {
            tag: "DTRACEDROP_MISSED",
            what: "probe",
            how: " could not be enabled or kept where modules, CPUs or other tracers came later, or where an instruction can have none",
        },
        |status| status.missed,
    ),
    (
        DropKind {
            tag: "DTRACEDROP_NOBUFFER",
            what: "drop",
            how: " on CPUs that came later (no memory for their buffers)",
        },
        |status| status.unbuffered,
    ),
    (
        DropKind {
            tag: "DTRACEDROP_CARRIED",
            what: "instruction",
            how: " slower than usual where programs have no room for code",
        },
        |status| status.carried,
    ),
    (
        DropKind {
            tag: "DTRACEDROP_UNANSWERED",
            what: "time",
            how: " it was not known soon enough whether a process may be traced, which went unseen",
        },
        |status| status.unanswered,
    ),
];

/// Returns the drops between two states of a consumer: those of each kind whose counter increased.
pub fn drops_between<'s>(
    old: &'s Status,
    new: &'s Status,
) -> impl Iterator<Item = (&'static DropKind, u64)> + 's {
    COUNTED.iter().filter_map(|(kind, counter)| {
        let more = counter(new).checked_sub(counter(old));
        more.filter(|count| *count > 0).map(|count| (kind, count))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use zerocopy::FromZeros;

    fn probe() -> EventProbe {
        let name = ProbeName {
            id: 1,
            provider: "dtrace".to_owned(),
            name: "BEGIN".to_owned(),
            ..ProbeName::default()
        };
        EventProbe {
            epid: 3,
            name: Rc::new(name),
        }
    }

    #[test]
    fn faults_say_where_and_why() {
        let mut text = String::new();
        for (action, offset, fault, addr) in [
            (1, Some(16), Fault::BadAddr, 0),
            (2, Some(4), Fault::BadAlign, 0xffff_8880_0000_0001),
            (0, Some(8), Fault::DivZero, 7),
            (5, None, Fault::BadStack, 1),
            (1, Some(0), Fault::BadAddr, u64::MAX),
            (1, None, Fault::BadIndex, -8i64 as u64),
            (1, None, Fault::BadSize, 4096),
            (3, Some(4), Fault::Overrun, 1 << 22),
            (1, Some(4), Fault::Kpriv, 0),
        ] {
            let fault = Event::Fault(Faulted {
                cpu: 0,
                timestamp: 0,
                place: None,
                probe: probe(),
                action,
                offset,
                fault,
                addr,
                lacks: Some("CAP_BPF"),
            });
            text += &format!("{fault}\n");
        }
        let failed = Event::Failed {
            probe: probe(),
            failure: Failure::Other("no such option".to_owned()),
            place: None,
        };
        text += &format!("{failed}\n");
        expect![[r#"
            error on enabled probe ID 3 (ID 1: dtrace:::BEGIN): invalid address (0x0) in action #1 at DIF offset 16
            error on enabled probe ID 3 (ID 1: dtrace:::BEGIN): invalid alignment (0xffff888000000001) in action #2 at DIF offset 4
            error on enabled probe ID 3 (ID 1: dtrace:::BEGIN): divide-by-zero in predicate at DIF offset 8
            error on enabled probe ID 3 (ID 1: dtrace:::BEGIN): bad stack (0x1) in action #5
            error on enabled probe ID 3 (ID 1: dtrace:::BEGIN): invalid address in action #1 at DIF offset 0
            error on enabled probe ID 3 (ID 1: dtrace:::BEGIN): index out of bounds (-8) in action #1
            error on enabled probe ID 3 (ID 1: dtrace:::BEGIN): invalid size (0x1000) in action #1
            error on enabled probe ID 3 (ID 1: dtrace:::BEGIN): too much work in one firing in action #3 at DIF offset 4
            error on enabled probe ID 3 (ID 1: dtrace:::BEGIN): invalid kernel access (without CAP_BPF) in action #1 at DIF offset 4
            error on enabled probe ID 3 (ID 1: dtrace:::BEGIN): no such option
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn drops_are_counted_by_kind() {
        let mut old = Status::new_zeroed();
        assert_eq!(drops_between(&old, &old).count(), 0);
        old.dyndrops = 10;
        let mut new = Status::new_zeroed();
        new.dyndrops = 11;
        new.dyndrops_rinsing = 2;
        new.dyndrops_dirty = 1;
        new.specdrops = 38;
        new.specdrops_busy = 1;
        new.specdrops_unavail = 2;
        new.stkstroverflows = 2;
        new.dblerrors = 2;
        new.recursions = 1;
        new.nmis = 2;
        new.unwatched = 3;
        new.returns = 4;
        new.missed = 5;
        new.unbuffered = 6;
        // No message for these: a clause that did not get its memory was reported as a fault.
        new.waits = 9;
        new.waits_in_vain = 7;
        new.carried = 8;
        new.unanswered = 2;
        let mut text = String::new();
        let mut show = |kind, count, cpu: Option<u32>| {
            let is_tagged = cpu.is_none();
            let drops = Drops {
                kind,
                count,
                cpu,
                is_tagged,
            };
            text += &format!("{drops}\n");
        };
        for (kind, count) in drops_between(&old, &new) {
            show(kind, count, None);
        }
        show(&PRINCIPAL, 1, Some(0));
        show(&PRINCIPAL, 2, Some(31));
        show(&AGGREGATION, u64::MAX, Some(1));
        expect![[r#"
            [DTRACEDROP_DYNAMIC] 1 dynamic variable drop
            [DTRACEDROP_DYNRINSE] 2 dynamic variable drops with non-empty rinsing list
            [DTRACEDROP_DYNDIRTY] 1 dynamic variable drop with non-empty dirty list
            [DTRACEDROP_SPEC] 38 speculative drops
            [DTRACEDROP_SPECBUSY] 1 failed speculation (available buffer(s) still busy)
            [DTRACEDROP_SPECUNAVAIL] 2 failed speculations (no speculative buffer available)
            [DTRACEDROP_STKSTROVERFLOW] 2 jstack()/ustack() string table overflows
            [DTRACEDROP_DBLERROR] 2 errors in ERROR probe enabling
            [DTRACEDROP_RECURSION] 1 drop in probe context (recursion)
            [DTRACEDROP_NMI] 2 drops in probe context (NMI)
            [DTRACEDROP_UNWATCHED] 3 drops in probe context (RCU not watching)
            [DTRACEDROP_RETURN] 4 drops of returns (functions could not be hooked)
            [DTRACEDROP_MISSED] 5 probes could not be enabled or kept where modules, CPUs or other tracers came later, or where an instruction can have none
            [DTRACEDROP_NOBUFFER] 6 drops on CPUs that came later (no memory for their buffers)
            [DTRACEDROP_CARRIED] 8 instructions slower than usual where programs have no room for code
            [DTRACEDROP_UNANSWERED] 2 times it was not known soon enough whether a process may be traced, which went unseen
            1 drop on CPU 0
            2 drops on CPU 31
            18446744073709551615 aggregation drops on CPU 1
        "#]]
        .assert_eq(&text);
    }
}
