// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The header of a provider (`dtrace -h`): for each probe one macro that is its site, and one that
//! tests whether the probe is enabled.
//!
//! It needs no other header and no library: it contains the definition of a site ([`SITE`]), and
//! every object that includes it defines the semaphores. If `DTRACE_DOF` is defined, sites are
//! calls instead, which `dtrace -G` replaces. The text is both C and C++. It includes `<unistd.h>`
//! where that exists, because programs written for the headers of other DTraces expect that.

use super::define::{number, Definition, Form, Parameter, Provider};
use std::fmt::Write as _;

/// The definition of a site, the same for all providers.
const SITE: &str = include_str!("../../../include/dtrace/site.h");

/// The include that other DTraces' headers have.
const INCLUDED: &str =
    "#ifdef __has_include\n#if __has_include(<unistd.h>)\n#include <unistd.h>\n#endif\n#endif\n";

/// The text before the declarations of the functions that probes call. Nothing defines these
/// functions. They are hidden, so that they are not looked for in other files.
const CALLS: &str = "
#else
#ifndef _DTRACE_CALLED
#define _DTRACE_CALLED __attribute__((visibility(\"hidden\"), nothrow))
#endif
#ifdef __cplusplus
extern \"C\" {
#endif
";

/// Returns the header of these providers. `file` is the name of its file. An error names the
/// argument that cannot be passed.
pub fn header(providers: &[Provider], file: &str) -> Result<String, String> {
    let is_letter = |c: char| c.is_ascii_alphanumeric();
    let guard: String = file
        .chars()
        .map(|c| {
            if is_letter(c) {
                c.to_ascii_uppercase()
            } else {
                '_'
            }
        })
        .collect();
    let mut text = format!(
        "/* Made by dtrace -h. */\n#ifndef _{guard}\n#define _{guard}\n\n{INCLUDED}\n#ifndef DTRACE_DOF\n{SITE}\n"
    );
    text.push_str("#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
    for probe in each(providers) {
        let _ = writeln!(text, "_DTRACE_SEMAPHORE({});", probe.semaphore());
    }
    text.push_str("#ifdef __cplusplus\n}\n#endif\n");
    for probe in each(providers) {
        text.push_str(&probe.macros()?);
    }
    text.push_str(CALLS);
    for probe in each(providers) {
        text.push_str(&probe.prototypes()?);
    }
    text.push_str("#ifdef __cplusplus\n}\n#endif\n");
    for probe in each(providers) {
        text.push_str(&probe.calls());
    }
    let _ = write!(text, "\n#endif\n#endif\n");
    Ok(text)
}

/// A probe together with its provider's name.
struct Of<'p> {
    provider: &'p str,
    probe: &'p Definition,
}

fn each(providers: &[Provider]) -> impl Iterator<Item = Of<'_>> {
    providers.iter().flat_map(|provider| {
        provider.probes.iter().map(|probe| Of {
            provider: &provider.name,
            probe,
        })
    })
}

impl Of<'_> {
    /// The semaphore's name, as all tools spell it.
    fn semaphore(&self) -> String {
        format!("{}_{}_semaphore", self.provider, self.probe.name)
    }

    fn macro_name(&self) -> String {
        let name = |text: &str| text.replace("__", "_").to_uppercase();
        format!("{}_{}", name(self.provider), name(&self.probe.name))
    }

    /// The macros of the probe for sites with notes.
    fn macros(&self) -> Result<String, String> {
        let (name, semaphore) = (self.macro_name(), self.semaphore());
        let mut texts = Vec::new();
        let mut values = Vec::new();
        let mut parameters = Vec::new();
        let mut variables = String::new();
        for (n, parameter) in self.probe.parameters.iter().enumerate() {
            let [text, value] = operand(n, parameter).ok_or_else(|| self.refused(parameter))?;
            texts.push(text);
            values.push(value);
            if let Form::Float(size) = parameter.form {
                let ty = float(size);
                let _ = write!(variables, "{ty} _dtrace_value{n} = (_dtrace{n}); ");
            }
            parameters.push(format!("_dtrace{n}"));
        }
        let text = match texts.is_empty() {
            true => "\"\"".to_owned(),
            false => texts.join(" \" \" "),
        };
        let count = values.len();
        values.push("_DTRACE_FUNCTION".to_owned());
        let operands = values.join(", ");
        let (provider, probe, shown) = (self.provider, &self.probe.name, self.probe.shown());
        let parameters = parameters.join(", ");
        Ok(format!(
            "
#define {name}({parameters}) \\
\t__extension__({{ {variables}__asm__ __volatile__(_DTRACE_DEFINED(\"{provider}\", \"{probe}\", \"{shown}\", \\
\t\t\"{semaphore}\", \"{count}\", {text}) \\
\t\t: : {operands}); }})
#define {name}_ENABLED() _DTRACE_ENABLED(\"{provider}\", \"{probe}\", \"{shown}\", {semaphore})
"
        ))
    }
}

impl Of<'_> {
    fn refused(&self, parameter: &Parameter) -> String {
        let (provider, probe, ty) = (self.provider, self.probe.shown(), &parameter.ty);
        format!("{provider}:::{probe}: arguments of type {ty} cannot be passed")
    }

    /// The functions that stand for the probe's site and is-enabled site until `dtrace -G` replaces
    /// them.
    fn functions(&self) -> [String; 2] {
        let (provider, probe) = (self.provider, &self.probe.name);
        ["__dtrace_", "__dtraceenabled_"].map(|begin| format!("{begin}{provider}___{probe}"))
    }

    /// The declarations of these functions.
    fn prototypes(&self) -> Result<String, String> {
        let mut types = Vec::new();
        for parameter in &self.probe.parameters {
            types.push(passed(parameter).ok_or_else(|| self.refused(parameter))?);
        }
        let types = match types.is_empty() {
            true => "void".to_owned(),
            false => types.join(", "),
        };
        let [fires, asks] = self.functions();
        Ok(format!(
            "extern void {fires}({types}) _DTRACE_CALLED;\nextern int {asks}(void) _DTRACE_CALLED;\n"
        ))
    }

    /// The macros of the probe for sites that are calls. An empty `asm` follows each call, so that
    /// the compiler does not make it a tail call (a jump).
    fn calls(&self) -> String {
        let name = self.macro_name();
        let [fires, asks] = self.functions();
        let count = self.probe.parameters.len();
        let parameters: Vec<String> = (0..count).map(|n| format!("_dtrace{n}")).collect();
        let values = self
            .probe
            .parameters
            .iter()
            .enumerate()
            .map(|(n, parameter)| {
                let ty = passed(parameter).unwrap_or_default();
                format!("({ty})(_dtrace{n})")
            });
        let values: Vec<String> = values.collect();
        let (parameters, values) = (parameters.join(", "), values.join(", "));
        format!(
            "
#define {name}({parameters}) \\
\t__extension__({{ {fires}({values}); __asm__ __volatile__(\"\"); }})
#define {name}_ENABLED() \\
\t__extension__({{ int _dtrace = {asks}(); __asm__ __volatile__(\"\" : \"+r\"(_dtrace)); __builtin_expect(_dtrace != 0, 0); }})
"
        )
    }
}

/// The C type in which a call passes a parameter. An address is passed as an integer, so that
/// programs may use integers and addresses for each other.
fn passed(parameter: &Parameter) -> Option<&'static str> {
    match parameter.form {
        Form::Pointer => Some("__UINTPTR_TYPE__"),
        Form::Int(size, is_signed) => c_type(&parameter.ty, size, is_signed),
        Form::Float(size @ (4 | 8)) => Some(float(size)),
        Form::Float(_) | Form::None => None,
    }
}

/// Returns argument `n` as it is written in the note, and as an operand of the `asm`.
fn operand(n: usize, parameter: &Parameter) -> Option<[String; 2]> {
    let text = format!("_DTRACE_TEXT({n})");
    // An address is passed as an integer, so that programs may use both for each other.
    let value = |size: &str, ty: &str| format!("_DTRACE_VALUE({n}, {size}, ({ty})(_dtrace{n}))");
    Some(match parameter.form {
        Form::Pointer => [text, value("(int)sizeof(void *)", "__UINTPTR_TYPE__")],
        Form::Int(size, signed) => {
            let ty = c_type(&parameter.ty, size, signed)?;
            let sign = if signed { "-" } else { "" };
            [text, value(&format!("{sign}(int)sizeof({ty})"), ty)]
        }
        Form::Float(size @ (4 | 8)) => [
            format!("_DTRACE_DOUBLE_TEXT({n})"),
            format!("_DTRACE_DOUBLE_VALUE({n}, {size}, _dtrace_value{n})"),
        ],
        Form::Float(_) | Form::None => return None,
    })
}

fn float(size: u8) -> &'static str {
    match size {
        4 => "float",
        _ => "double",
    }
}

/// Returns the C type for a D type, without the need for a header. Types that every compiler knows
/// keep their names, because they may have another size in another program.
fn c_type(ty: &str, size: u64, signed: bool) -> Option<&'static str> {
    let own = [
        ("long", "long"),
        ("unsigned long", "unsigned long"),
        ("ulong_t", "unsigned long"),
        ("size_t", "__SIZE_TYPE__"),
        ("ssize_t", "__INTPTR_TYPE__"),
        ("uintptr_t", "__UINTPTR_TYPE__"),
        ("intptr_t", "__INTPTR_TYPE__"),
    ];
    if let Some((_, own)) = own.iter().find(|(name, _)| *name == ty) {
        return Some(own);
    }
    number(size, signed)
}
