// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The columns before a record's values: header, CPU, probe, and the indentation of `flowindent`.
//!
//! Whether a probe is a function's entry or return is guessed from its name alone, so that probes
//! of applications such as `method-entry` are indented too. If several clauses of one probe fire in
//! succession, only the first of an entry and the last of a return may change the indentation.
//! [`Flow::step`] detects this by the enabled probes before and after.
//!
//! The columns for CPU and probe id may be omitted, because they differ from run to run.

/// Appends the header of the default output, with columns for CPU and probe id if `numbered`.
pub fn header(out: &mut Vec<u8>, numbered: bool) {
    if numbered {
        put!(out, "{:>3} {:>6} ", "CPU", "ID");
    }
    put!(out, "{:>32}\n", "FUNCTION:NAME");
}

/// Appends the header of the output with `flowindent`, with a column for the CPU if `numbered`.
pub fn flow_header(out: &mut Vec<u8>, numbered: bool) {
    if numbered {
        put!(out, "{:>3} ", "CPU");
    }
    put!(out, "{:<41}\n", "FUNCTION");
}

/// Appends the columns before a probe's records. `numbers` are the CPU and the probe id.
pub fn probe(out: &mut Vec<u8>, numbers: Option<(u32, u32)>, func: &str, name: &str) {
    if let Some((cpu, id)) = numbers {
        put!(out, "{cpu:3} {id:6} ");
    }
    put!(out, "{:>32} ", format!("{func}:{name}"));
}

/// The effect of a probe on the indentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowKind {
    /// Indents the records that follow.
    Entry,
    /// Ends the indentation of an entry.
    Return,
    /// No effect.
    None,
}

impl FlowKind {
    /// Derives the kind from a probe's name: `entry` or `return`, alone or after a hyphen.
    pub fn of(name: &str) -> Self {
        let ends = |word: &str| {
            name.strip_suffix(word)
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('-'))
        };
        if ends("entry") {
            Self::Entry
        } else if ends("return") {
            Self::Return
        } else {
            Self::None
        }
    }
}

/// An enabled probe, identified by its clause and probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enabled {
    /// The enabled probe's id.
    pub epid: u32,
    /// The probe's id.
    pub probe: u32,
}

impl Enabled {
    /// Whether both are different clauses of the same probe.
    fn is_sibling(self, other: Option<Self>) -> bool {
        other.is_some_and(|other| other.probe == self.probe && other.epid != self.epid)
    }
}

/// The indentation of one CPU's output.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    indent: usize,
    last: Option<Enabled>,
}

/// Maximum indentation, columns. It bounds memory; the output is unreadable long before.
const MAX_INDENT: usize = 4096;

impl Flow {
    /// Appends the columns before a record of `enabled`, whose probe has the names `provider`,
    /// `func` and `name`. `cpu` is omitted if it is `None`. `next` is the enabled probe of the
    /// record that follows.
    pub fn step(
        &mut self,
        out: &mut Vec<u8>,
        cpu: Option<u32>,
        enabled: Enabled,
        (provider, func, name): (&str, &str, &str),
        next: Option<Enabled>,
    ) {
        let kind = match FlowKind::of(name) {
            FlowKind::Entry if enabled.is_sibling(self.last) => FlowKind::None,
            FlowKind::Return if enabled.is_sibling(next) => FlowKind::None,
            kind => kind,
        };
        if kind == FlowKind::Return {
            self.indent = self.indent.saturating_sub(2);
        }
        let (prefix, text) = match (kind, provider == "syscall") {
            (FlowKind::Entry, false) => (" -> ", func.to_owned()),
            (FlowKind::Entry, true) => (" => ", func.to_owned()),
            (FlowKind::Return, false) => (" <- ", func.to_owned()),
            (FlowKind::Return, true) => (" <= ", func.to_owned()),
            (FlowKind::None, _) => ("| ", format!("{func}:{name}")),
        };
        let indent = self.indent.min(MAX_INDENT);
        if let Some(cpu) = cpu {
            put!(out, "{cpu:3} ");
        }
        put!(out, "{:<41} ", format!("{:indent$}{prefix}{text}", ""));
        if kind == FlowKind::Entry {
            self.indent += 2;
        }
        self.last = Some(enabled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn default_lines() {
        let mut out = Vec::new();
        header(&mut out, true);
        probe(&mut out, Some((0, 1)), "", "BEGIN");
        out.push(b'\n');
        probe(
            &mut out,
            Some((127, 1_234_567)),
            "a_rather_long_name_of_a_function",
            "entry",
        );
        out.push(b'\n');
        let text = String::from_utf8(out).unwrap().replace(" \n", "$\n");
        expect![[r#"
            CPU     ID                    FUNCTION:NAME
              0      1                           :BEGIN$
            127 1234567 a_rather_long_name_of_a_function:entry$
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn numbers_may_be_left_out() {
        let mut out = Vec::new();
        header(&mut out, false);
        probe(&mut out, None, "", "BEGIN");
        out.extend(b"$\n");
        flow_header(&mut out, false);
        let enabled = Enabled { epid: 1, probe: 1 };
        Flow::default().step(&mut out, None, enabled, ("fbt", "f", "entry"), None);
        out.extend(b"$\n");
        expect![[r#"
                               FUNCTION:NAME
                                      :BEGIN $
            FUNCTION                                 
             -> f                                     $
        "#]]
        .assert_eq(&String::from_utf8(out).unwrap());
    }

    #[test]
    fn names_tell_the_kind() {
        for (name, kind) in [
            ("entry", FlowKind::Entry),
            ("method-entry", FlowKind::Entry),
            ("return", FlowKind::Return),
            ("function-return", FlowKind::Return),
            ("carpentry", FlowKind::None),
            ("entry-done", FlowKind::None),
            ("", FlowKind::None),
        ] {
            assert_eq!(FlowKind::of(name), kind, "{name}");
        }
    }

    /// Prints the flow of `steps`, which are EPID, probe id and names.
    fn flow(steps: &[(u32, u32, (&str, &str, &str))]) -> String {
        let mut out = Vec::new();
        let mut flow = Flow::default();
        flow_header(&mut out, true);
        for (i, &(epid, probe, name)) in steps.iter().enumerate() {
            let next = steps.get(i + 1).map(|s| Enabled {
                epid: s.0,
                probe: s.1,
            });
            flow.step(&mut out, Some(0), Enabled { epid, probe }, name, next);
            out.extend(b"$\n");
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn calls_are_indented() {
        expect![[r#"
            CPU FUNCTION                                 
              0  => read                                  $
              0    -> vfs_read                            $
              0     | kmem:alloc                          $
              0    <- vfs_read                            $
              0  <= read                                  $
              0  <- lost                                  $
        "#]]
        .assert_eq(&flow(&[
            (1, 1, ("syscall", "read", "entry")),
            (2, 2, ("fbt", "vfs_read", "entry")),
            (3, 3, ("sdt", "kmem", "alloc")),
            (4, 4, ("fbt", "vfs_read", "return")),
            (5, 5, ("syscall", "read", "return")),
            (6, 6, ("fbt", "lost", "return")),
        ]));
    }

    #[test]
    fn clauses_of_one_probe_indent_once() {
        expect![[r#"
            CPU FUNCTION                                 
              0  -> f                                     $
              0   | f:entry                               $
              0   | f:return                              $
              0  <- f                                     $
              0  -> f                                     $
              0    -> f                                   $
        "#]]
        .assert_eq(&flow(&[
            (1, 1, ("fbt", "f", "entry")),
            (2, 1, ("fbt", "f", "entry")),
            (3, 2, ("fbt", "f", "return")),
            (4, 2, ("fbt", "f", "return")),
            (1, 1, ("fbt", "f", "entry")),
            (1, 1, ("fbt", "f", "entry")),
        ]));
    }
}
