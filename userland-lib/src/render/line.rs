// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The lines that probes' records stand on: header, CPU and probe columns, and the indentation of `flowindent`.
//!
//! Whether a probe is a function's entry or return is guessed from its name alone, so that probes of
//! applications such as `method-entry` take part. Several clauses of one probe fire one after the other; only
//! the first of an entry and the last of a return may change the indentation, which [`Flow::step`] finds out by
//! looking at the enabled probes before and after.

/// Appends the header of the default output.
pub fn header(out: &mut Vec<u8>) {
    put!(out, "{:>3} {:>6} {:>32}\n", "CPU", "ID", "FUNCTION:NAME");
}

/// Appends the header of the output with `flowindent`.
pub fn flow_header(out: &mut Vec<u8>) {
    put!(out, "{:>3} {:<41}\n", "CPU", "FUNCTION");
}

/// Appends the columns before a probe's records.
pub fn probe(out: &mut Vec<u8>, cpu: u32, id: u32, func: &str, name: &str) {
    put!(out, "{cpu:3} {id:6} {:>32} ", format!("{func}:{name}"));
}

/// What a probe does to the indentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowKind {
    /// Indents what follows.
    Entry,
    /// Ends what an entry began.
    Return,
    /// Nothing.
    None,
}

impl FlowKind {
    /// What a probe's name tells.
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

/// An enabled probe, as the flow sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enabled {
    /// The enabled probe's id.
    pub epid: u32,
    /// The probe's id.
    pub probe: u32,
}

impl Enabled {
    /// Whether the two are clauses of one probe, and not the same clause twice.
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

/// The most columns that are indented: beyond it the output is unreadable, but memory stays bounded.
const MAX_INDENT: usize = 4096;

impl Flow {
    /// Appends the columns before the records of `enabled`, a probe named `provider`, `func`, `name`; `next` is
    /// what follows in the buffer.
    pub fn step(
        &mut self,
        out: &mut Vec<u8>,
        cpu: u32,
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
        put!(
            out,
            "{cpu:3} {:<41} ",
            format!("{:indent$}{prefix}{text}", "")
        );
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
        header(&mut out);
        probe(&mut out, 0, 1, "", "BEGIN");
        out.push(b'\n');
        probe(
            &mut out,
            127,
            1_234_567,
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

    /// Prints the flow of `(epid, probe, name)`s.
    fn flow(steps: &[(u32, u32, (&str, &str, &str))]) -> String {
        let mut out = Vec::new();
        let mut flow = Flow::default();
        flow_header(&mut out);
        for (i, &(epid, probe, name)) in steps.iter().enumerate() {
            let next = steps.get(i + 1).map(|s| Enabled {
                epid: s.0,
                probe: s.1,
            });
            flow.step(&mut out, 0, Enabled { epid, probe }, name, next);
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
