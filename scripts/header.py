# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0

"""Puts uapi/include/dtrace.h together from what cbindgen makes of each module of uapi.

cbindgen knows one name space, Rust has one for each module (ioctl and dof both have a ProbeDesc), so every module is
read by itself and its names get the prefix that C programs of DTrace know them by. The control calls are
computed by a const function, which cbindgen cannot evaluate; they are written with the kernel's own macros.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

SRC = pathlib.Path("uapi/src")

# Module: prefix of its types, prefix of its constants.
MODULES = {
    "limits": ("dtrace_", "DTRACE_"),
    "types": ("dtrace_", "DTRACE_"),
    "dif": ("dif_", "DIF_"),
    "var": ("dif_", "DIF_"),
    "subr": ("dif_", "DIF_"),
    "action": ("dtrace_", "DTRACE_"),
    "fault": ("dtrace_", "DTRACE_"),
    "option": ("dtrace_", "DTRACEOPT_"),
    "dof": ("dof_", "DOF_"),
    "process": ("dtrace_process_", "DTRACE_PROCESS_"),
    "hold": ("dtrace_", "DTRACE_HOLD_"),
    "unwind": ("dtrace_unwind_", "DTRACE_UNWIND_"),
    "remains": ("dtrace_", "DTRACE_REMAINS_"),
    "interp": ("dtrace_interp_", "DTRACE_INTERP_"),
    "ioctl": ("dtrace_", "DTRACE_"),
}

HEAD = """\
/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/*
 * The contract between dtrace.ko and its consumers. Made by scripts/header from uapi/src; do not edit.
 */
#ifndef _LINUX_DTRACE_H
#define _LINUX_DTRACE_H

#include <stdint.h>
#include <sys/ioctl.h>
"""

TYPE = re.compile(r"^pub (struct|enum|type) (\w+)(\(?)", re.M)
CONST = re.compile(r"^pub const (\w+):", re.M)
CALL = re.compile(
    r"((?:^///.*\n)+)^pub const (\w+): u32 = ioc\((0|[A-Z| ]+), (\w+), (\d+), (?:0|size_of::<([\w:]+)>\(\))\);",
    re.M,
)
COMMENT = re.compile(r"(/\*.*?\*/)", re.S)


def c_name(prefix, name):
    """A constant's name in C; one that has a prefix of DTrace's keeps it."""
    return name if name.startswith(("DIF", "DOF", "DTRACE")) else prefix + name


def sources():
    return {module: (SRC / f"{module}.rs").read_text() for module in MODULES}


def cbindgen(module, include):
    config = pathlib.Path("uapi/cbindgen.toml").read_text()
    names = ", ".join(f'"{name}"' for name in include)
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(config.replace("include = []", f"include = [{names}]"))
        file.flush()
        return subprocess.run(
            ["cbindgen", "-q", "--config", file.name, str(SRC / f"{module}.rs")],
            check=True,
            capture_output=True,
            text=True,
        ).stdout


class Names:
    """What each name of the sources is in C, as seen from one module: its own first, then everybody's."""

    def __init__(self, texts):
        self.types = {}
        self.constants = {}
        for module, text in texts.items():
            of_types, of_constants = MODULES[module]
            for kind, name, tuple_of in TYPE.findall(text):
                # cbindgen makes a type alias of a struct with one unnamed field.
                tag = "struct " if kind == "struct" and not tuple_of else ""
                self.types.setdefault(name, {})[module] = tag + of_types + name.lower()
            for name in CONST.findall(text):
                self.constants.setdefault(name, {})[module] = c_name(of_constants, name)

    @staticmethod
    def pick(of, module):
        return of.get(module) or next(iter(of.values()))

    def rewrite(self, code, module, enums):
        def word(match):
            text = match.group(0)
            bare = re.sub(r"^(struct|enum) ", "", text)
            if bare in self.types:
                c = self.pick(self.types[bare], module)
                return f"enum {c}" if text.startswith("enum ") else c
            if bare in self.constants:
                return self.pick(self.constants[bare], module)
            for enum in enums:
                screaming = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", enum).upper()
                if bare.startswith(screaming + "_"):
                    return c_name(MODULES[module][1], bare)
            return text

        return re.sub(r"(?:(?:struct|enum) )?\b[A-Za-z_]\w*\b", word, code)


def section(module, text, names):
    found = TYPE.findall(text)
    out = cbindgen(module, [name for _, name, _ in found])
    # Types without a fixed layout exist only in Rust.
    out = re.sub(r"(/\*(?:(?!\*/).)*\*/\n)?struct \w+;\n", "", out, flags=re.S)
    enums = [name for kind, name, _ in found if kind == "enum"]
    parts = COMMENT.split(out)
    for i, part in enumerate(parts):
        if part.startswith("/*"):
            parts[i] = re.sub(r"\[(`[^`]*`)\](\([^)]*\))?", r"\1", part)
        else:
            parts[i] = names.rewrite(part, module, enums)
    return "".join(parts).strip() + "\n"


def calls(text, names):
    direction = {"READ": "_IOR", "WRITE": "_IOW", "READ | WRITE": "_IOWR"}
    out = []
    for doc, name, way, ty, nr, arg in CALL.findall(text):
        module, _, bare = arg.rpartition("::")
        if not bare:
            c = None
        elif bare in names.types:
            c = names.pick(names.types[bare], module.rpartition("::")[2] or "ioctl")
        else:
            c = {"i32": "int32_t", "u32": "uint32_t", "u64": "uint64_t"}[bare]
        letter = {"IOC_TYPE": "DTRACE_IOC_TYPE", "HELPER_IOC_TYPE": "DTRACE_HELPER_IOC_TYPE"}[ty]
        comment = " ".join(line.removeprefix("///").strip() for line in doc.splitlines())
        comment = re.sub(r"\[(`[^`]*`)\](\([^)]*\))?", r"\1", comment)
        prefix = "DTRACEHIOC_" if name.startswith("HELPER_") else "DTRACEIOC_"
        name = prefix + name.removeprefix("HELPER_")
        number = f"{direction[way]}({letter}, {nr}, {c})" if c else f"_IO({letter}, {nr})"
        out.append(f"/* {comment} */\n#define {name} {number}\n")
    return "\n".join(out)


def main():
    texts = sources()
    names = Names(texts)
    sys.stdout.write(HEAD)
    for module, text in texts.items():
        sys.stdout.write(f"\n/*\n * {module}\n */\n\n{section(module, text, names)}")
    sys.stdout.write(f"\n{calls(texts['ioctl'], names)}\n#endif /* _LINUX_DTRACE_H */\n")


main()
