// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The consumer's messages about faults and drops.
//!
//! The texts are those that dtrace(1) prints after `dtrace: `, with the final newline.

use dtrace_uapi::{fault::Fault, ioctl::Status};

/// Returns the text for a fault.
pub fn fault(fault: Fault) -> &'static str {
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

/// An enabled probe, with all that messages say of it.
#[derive(Clone, Copy, Debug)]
pub struct Probe<'a> {
    /// The enabled probe's id.
    pub epid: u32,
    /// The probe's id.
    pub id: u32,
    /// Provider, module, function and name.
    pub name: [&'a str; 4],
}

impl Probe<'_> {
    fn text(&self) -> String {
        let [provider, module, func, name] = self.name;
        format!(
            "error on enabled probe ID {} (ID {}: {provider}:{module}:{func}:{name})",
            self.epid, self.id
        )
    }
}

/// The arguments of the `ERROR` probe, and the cause of a refused access.
#[derive(Clone, Copy, Debug)]
pub struct Error {
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
}

/// Returns the message for a fault in probe context.
pub fn error(probe: &Probe<'_>, error: &Error) -> String {
    let details = match error.fault {
        // The kernel reports this address if it does not know the real one.
        Fault::BadAddr if error.addr == u64::MAX => String::new(),
        Fault::BadAddr | Fault::BadAlign | Fault::BadStack | Fault::BadSize => {
            format!(" ({:#x})", error.addr)
        }
        Fault::BadIndex => format!(" ({})", error.addr as i64),
        Fault::Kpriv | Fault::Upriv => match error.lacks {
            Some(name) => format!(" (without {name})"),
            None => String::new(),
        },
        _ => String::new(),
    };
    let place = match error.action {
        0 => "predicate".into(),
        n => format!("action #{n}"),
    };
    let offset = match error.offset {
        Some(offset) => format!(" at DIF offset {offset}"),
        None => String::new(),
    };
    format!(
        "{}: {}{details} in {place}{offset}\n",
        probe.text(),
        fault(error.fault)
    )
}

/// Returns the message for an error of the consumer itself while it handled a record.
pub fn library_error(probe: &Probe<'_>, reason: &str) -> String {
    format!("{}: {reason}\n", probe.text())
}

fn plural(n: u64) -> &'static str {
    if n > 1 {
        "s"
    } else {
        ""
    }
}

/// Returns the message for `n` records dropped from a CPU's principal buffer.
pub fn principal_drops(n: u64, cpu: u32) -> String {
    format!("{n} drop{} on CPU {cpu}\n", plural(n))
}

/// Returns the message for `n` records dropped from a CPU's aggregation buffer.
pub fn aggregation_drops(n: u64, cpu: u32) -> String {
    format!("{n} aggregation drop{} on CPU {cpu}\n", plural(n))
}

/// Returns the drops between two states of a consumer: the tag and the message of each kind that
/// increased.
pub fn status_drops(old: &Status, new: &Status) -> Vec<(&'static str, String)> {
    let kinds = [
        (
            "DTRACEDROP_DYNAMIC",
            old.dyndrops,
            new.dyndrops,
            "dynamic variable drop",
            "",
        ),
        (
            "DTRACEDROP_DYNRINSE",
            old.dyndrops_rinsing,
            new.dyndrops_rinsing,
            "dynamic variable drop",
            " with non-empty rinsing list",
        ),
        (
            "DTRACEDROP_DYNDIRTY",
            old.dyndrops_dirty,
            new.dyndrops_dirty,
            "dynamic variable drop",
            " with non-empty dirty list",
        ),
        (
            "DTRACEDROP_SPEC",
            old.specdrops,
            new.specdrops,
            "speculative drop",
            "",
        ),
        (
            "DTRACEDROP_SPECBUSY",
            old.specdrops_busy,
            new.specdrops_busy,
            "failed speculation",
            " (available buffer(s) still busy)",
        ),
        (
            "DTRACEDROP_SPECUNAVAIL",
            old.specdrops_unavail,
            new.specdrops_unavail,
            "failed speculation",
            " (no speculative buffer available)",
        ),
        (
            "DTRACEDROP_STKSTROVERFLOW",
            old.stkstroverflows,
            new.stkstroverflows,
            "jstack()/ustack() string table overflow",
            "",
        ),
        (
            "DTRACEDROP_DBLERROR",
            old.dblerrors,
            new.dblerrors,
            "error",
            " in ERROR probe enabling",
        ),
        (
            "DTRACEDROP_RECURSION",
            old.recursions,
            new.recursions,
            "drop",
            " in probe context (recursion)",
        ),
        (
            "DTRACEDROP_NMI",
            old.nmis,
            new.nmis,
            "drop",
            " in probe context (NMI)",
        ),
        (
            "DTRACEDROP_UNWATCHED",
            old.unwatched,
            new.unwatched,
            "drop",
            " in probe context (RCU not watching)",
        ),
        (
            "DTRACEDROP_RETURN",
            old.returns,
            new.returns,
            "drop",
            " of returns (functions could not be hooked)",
        ),
        (
            "DTRACEDROP_MISSED",
            old.missed,
            new.missed,
            "probe",
            " could not be enabled or kept where modules, CPUs or other tracers came later, or where an instruction can have none",
        ),
        (
            "DTRACEDROP_NOBUFFER",
            old.unbuffered,
            new.unbuffered,
            "drop",
            " on CPUs that came later (no memory for their buffers)",
        ),
        (
            "DTRACEDROP_CARRIED",
            old.carried,
            new.carried,
            "instruction",
            " slower than usual where programs have no room for code",
        ),
        (
            "DTRACEDROP_UNANSWERED",
            old.unanswered,
            new.unanswered,
            "time",
            " it was not known soon enough whether a process may be traced, which went unseen",
        ),
    ];
    kinds
        .into_iter()
        .filter(|(_, old, new, ..)| new > old)
        .map(|(tag, old, new, what, how)| {
            let n = new - old;
            (tag, format!("{n} {what}{}{how}\n", plural(n)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use zerocopy::FromZeros;

    const PROBE: Probe<'_> = Probe {
        epid: 3,
        id: 1,
        name: ["dtrace", "", "", "BEGIN"],
    };

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
            text += &error(
                &PROBE,
                &Error {
                    action,
                    offset,
                    fault,
                    addr,
                    lacks: Some("CAP_BPF"),
                },
            );
        }
        text += &library_error(&PROBE, "no such option");
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
        assert!(status_drops(&old, &old).is_empty());
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
        for (tag, drops) in status_drops(&old, &new) {
            text += &format!("[{tag}] {drops}");
        }
        text += &principal_drops(1, 0);
        text += &principal_drops(2, 31);
        text += &aggregation_drops(u64::MAX, 1);
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
