// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Lists probes as `dtrace -l` does, and with `-v` also the attributes of their providers and their
//! arguments.
//!
//! A kernel has some hundred thousand probes, so each line is generated directly from the device's
//! description.

use crate::handle::KernelWorld;
use dtrace_compiler::stability::{class_name, minimum, stability_name, Report};
use dtrace_compiler::world::ProbeSource;
use dtrace_consumer::device::text;
use dtrace_render::json as render;
use dtrace_uapi::ioctl::ProbeDesc;
use dtrace_uapi::types::{Attribute, ProviderAttributes};
use std::io::{self, Write};

/// Writes the header line.
pub fn header(out: &mut impl Write) -> io::Result<()> {
    columns(out, "ID", "PROVIDER", "MODULE", "FUNCTION", "NAME")
}

/// Writes the line of a probe.
pub fn row(out: &mut impl Write, probe: &ProbeDesc) -> io::Result<()> {
    columns(
        out,
        probe.id,
        &text(&probe.provider),
        &text(&probe.module),
        &text(&probe.func),
        &text(&probe.name),
    )
}

fn columns(
    out: &mut impl Write,
    id: impl std::fmt::Display,
    provider: &str,
    module: &str,
    func: &str,
    name: &str,
) -> io::Result<()> {
    writeln!(out, "{id:>5} {provider:>10} {module:>17} {func:>33} {name}")
}

/// Writes the line of a probe as JSON. With a `world`, it has the details that `-v` adds.
pub fn json(
    out: &mut impl Write,
    world: Option<&KernelWorld<'_>>,
    probe: &ProbeDesc,
) -> io::Result<()> {
    let provider = text(&probe.provider);
    let (module, func, name) = (text(&probe.module), text(&probe.func), text(&probe.name));
    let details = match world {
        None => None,
        Some(world) => Some(render::list::Details {
            attributes: world
                .attributes(&provider)
                .map(|attr| [described(&attr), attr.args]),
            arguments: world.arguments(probe)?,
        }),
    };
    let mut line = Vec::new();
    let listed = render::list::Listed {
        id: probe.id,
        parts: [&provider, &module, &func, &name],
        details,
    };
    render::list::probe(&mut line, &listed);
    out.write_all(&line)
}

/// Returns the stability of a description of a provider's probes: the least of its parts.
fn described(attr: &ProviderAttributes) -> Attribute {
    let parts = [attr.module, attr.func, attr.name];
    parts.into_iter().fold(attr.provider, minimum)
}

/// Writes the details that `-v` adds: the stability of the provider's names and arguments, and the
/// arguments' types.
pub fn details(out: &mut impl Write, world: &KernelWorld<'_>, probe: &ProbeDesc) -> io::Result<()> {
    if let Some(attr) = world.attributes(&text(&probe.provider)) {
        attributes(out, "Probe Description Attributes", described(&attr))?;
        attributes(out, "Argument Attributes", attr.args)?;
    }
    writeln!(out, "\n\tArgument Types")?;
    let arguments = world.arguments(probe)?;
    for (index, ty) in arguments.iter().enumerate() {
        writeln!(out, "\t\targs[{index}]: {ty}")?;
    }
    if arguments.is_empty() {
        writeln!(out, "\t\tNone")?;
    }
    writeln!(out)
}

/// Writes the stability report of a program for `-v`: the minimum attributes of the names it uses.
/// `what` is the kind of the program, `name` its text or file.
pub fn report(out: &mut impl Write, what: &str, name: &str, report: &Report) -> io::Result<()> {
    writeln!(out, "\nStability attributes for {what} {name}:")?;
    attributes(
        out,
        "Minimum Probe Description Attributes",
        report.description,
    )?;
    attributes(out, "Minimum Statement Attributes", report.statement)?;
    writeln!(out)
}

fn attributes(out: &mut impl Write, title: &str, attribute: Attribute) -> io::Result<()> {
    writeln!(out, "\n\t{title}")?;
    writeln!(
        out,
        "\t\tIdentifier Names: {}",
        stability_name(attribute.name)
    )?;
    writeln!(
        out,
        "\t\tData Semantics:   {}",
        stability_name(attribute.data)
    )?;
    writeln!(out, "\t\tDependency Class: {}", class_name(attribute.class))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dtrace_consumer::device::fill;
    use dtrace_uapi::types::{Class, Stability};

    #[test]
    fn a_line_for_each_probe_under_the_header() {
        let probe = ProbeDesc {
            id: 12,
            provider: fill("syscall").unwrap(),
            module: fill("vmlinux").unwrap(),
            func: fill("read").unwrap(),
            name: fill("entry").unwrap(),
        };
        let mut out = Vec::new();
        header(&mut out).unwrap();
        row(&mut out, &probe).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "   ID   PROVIDER            MODULE                          FUNCTION NAME\n\
             \x20  12    syscall           vmlinux                              read entry\n"
        );
    }

    #[test]
    fn a_probe_is_an_object_of_json() {
        let probe = ProbeDesc {
            id: 12,
            provider: fill("syscall").unwrap(),
            module: fill("vmlinux").unwrap(),
            func: fill("read").unwrap(),
            name: fill("a\"b").unwrap(),
        };
        let mut out = Vec::new();
        json(&mut out, None, &probe).unwrap();
        let lines = render::testing::held(&out);
        let [line] = &lines[..] else {
            panic!("one line");
        };
        assert_eq!(line["name"], "a\"b");
        assert_eq!(line["id"], 12);
    }

    #[test]
    fn attributes_are_named_and_the_least_counts() {
        let evolving = Attribute::new(Stability::Evolving, Stability::Stable, Class::Isa);
        let private = Attribute::new(Stability::Private, Stability::Unstable, Class::Common);
        let mut out = Vec::new();
        attributes(&mut out, "Argument Attributes", minimum(evolving, private)).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "\n\tArgument Attributes\n\t\tIdentifier Names: Private\n\
             \t\tData Semantics:   Unstable\n\t\tDependency Class: ISA\n"
        );
    }
}
