# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Usage: manual.py SOURCES DIR
#
# Generates all forms of the manual from one source: SOURCES/NAME.SECTION.md are the manual's pages
# in Markdown, as they are read in the repository. They become pages for man(1), and the tables of
# options in dtrace.8.md become completions for bash, zsh and fish. So each option is described
# once; tests of the command and of the library compare the tables with the options they know.
#
# The pages use a small part of Markdown, and anything else is an error: headings, paragraphs,
# tables of two columns, text indented by four spaces, and in lines `code`, ``co`de``, *emphasis*
# and \| for a bar.

import pathlib
import re
import sys
from typing import NamedTuple


# REUSE-IgnoreStart
LICENCE = ["SPDX-FileCopyrightText: The DTrace for Linux authors", "SPDX-License-Identifier: MIT OR Apache-2.0"]
# REUSE-IgnoreEnd


class Option(NamedTuple):
    """A row of a table of options."""

    name: str
    # The name of its argument; empty if it takes none.
    argument: str
    meaning: str


def fail(page, number, why):
    sys.exit(f"{page}:{number}: {why}")


def blocks(path):
    """The page's parts in order: (line number, kind, lines or rows)."""
    text = re.sub(r"\A<!--.*?-->\n", lambda m: "\n" * m[0].count("\n"), path.read_text(), flags=re.S)
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        start = at
        line = lines[at]
        if not line:
            at += 1
            continue
        kind = (
            "code" if line.startswith("    ")
            else "table" if line.startswith("|")
            else "heading" if line.startswith("#")
            else "text"
        )
        if kind == "code":
            while at < len(lines) and (lines[at].startswith("    ") or not lines[at]):
                at += 1
            part = [line[4:] for line in lines[start:at]]
            while not part[-1]:
                part.pop()
        else:
            while at < len(lines) and lines[at] and (kind != "heading" or at == start):
                at += 1
            part = lines[start:at]
        if kind == "table":
            part = [rows(path, start + 1 + n, line) for n, line in enumerate(part)]
            if len(part) < 3 or set(part[1][0]) != {"-"}:
                fail(path, start + 1, "a table without heading or rows")
            part = part[2:]
        if kind == "heading" and not re.match(r"## [A-Z -]+$|# [a-z]+\([1-9]\) - .+$", line):
            fail(path, start + 1, "a heading of another kind")
        yield start + 1, kind, part


def rows(path, number, line):
    """The two cells of a table's line."""
    cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)]
    if len(cells) != 4 or cells[0] or cells[3]:
        fail(path, number, "a table's line without two cells")
    return cells[1], cells[2]


def plain(text):
    """Text without marks."""
    return re.sub(r"[`*]", "", text.replace("\\|", "|"))


# Roff


def escape(text):
    text = text.replace("\\|", "|").replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    text = text.replace("`", "\\(ga").replace("^", "\\(ha").replace("~", "\\(ti")
    return "\\&" + text if text.startswith(".") else text


def roff(text):
    """A line's marks as roff has them."""
    out = []
    for quoted, code, emphasis, other in re.findall(r"``(.+?)``|`([^`]+)`|\*([^*\s][^*]*)\*|([^`*]+|.)", text):
        if quoted or code:
            out.append(f"\\fB{escape(code or quoted.strip())}\\fR")
        elif emphasis:
            out.append(f"\\fI{escape(emphasis)}\\fR")
        elif other == "`":
            sys.exit(f"a backquote that stands alone: {text}")
        else:
            # Names of manual pages, such as dtrace(8), are set in bold.
            other = re.split(r"\b([a-z][a-z_-]*)(\([1-9]\))", escape(other))
            for n in range(0, len(other), 3):
                page = other[n + 1 : n + 3]
                out.append(other[n] + (f"\\fB{page[0]}\\fR{page[1]}" if page else ""))
    line = "".join(out)
    return "\\&" + line if line.startswith((".", "'")) else line


def man(path, name, section):
    """The page for man(1)."""
    out = [
        *('.\\" ' + line for line in LICENCE),
        f'.\\" Made of {path.name} by packaging/manual.',
        f'.TH {name.upper()} {section} "" "DTrace for Linux"',
    ]
    for number, kind, part in blocks(path):
        if kind == "heading" and part[0].startswith("# "):
            title, summary = part[0][2:].split(" - ", 1)
            if title != f"{name}({section})":
                fail(path, number, f"the title is not that of {name}({section})")
            out += [".SH NAME", f"{name} \\- {escape(summary)}"]
        elif kind == "heading":
            out.append(f".SH {part[0][3:]}")
        elif kind == "code":
            out += [".PP", ".RS 4", ".nf", *map(escape, part), ".fi", ".RE"]
        elif kind == "table":
            for term, meaning in part:
                out += [".TP", roff(term), roff(meaning)]
        else:
            out += [".PP", *map(roff, part)]
    return "\n".join(out) + "\n"


# Completions


def options(path, section):
    """The rows of the table in a section."""
    here = False
    found = []
    for number, kind, part in blocks(path):
        if kind == "heading":
            here = part[0] == f"## {section}"
        elif here and kind == "table":
            for term, meaning in part:
                row = re.match(r"`(-?\w+)`(?:(=| )(.+))?$", term)
                if not row:
                    fail(path, number, f"an option in other words: {term}")
                # The first sentence is enough for a menu.
                short = re.split(r"[.;](?: |$)", plain(meaning))[0]
                found.append(Option(row[1], plain(row[3] or ""), short))
    if not found:
        sys.exit(f"{path}: no options in {section}")
    return found


# What can be completed for an argument, by its name; nothing for other names.
FILES = {"file": "*", "script": "*.d"}
LISTED = {"provider": 2, "module": 3}
POLICIES = {"policy": "ring fill switch", "way": "auto manual", "time": "exec preinit postinit main", "conformance": "a c s t"}
HEADER = "".join(f"# {line}\n" for line in LICENCE) + "#\n# Made of dtrace.8.md by packaging/manual.\n"


def listing(column):
    """The command that lists what the kernel has."""
    return f"dtrace -l 2>/dev/null | awk 'NR > 1 {{ print ${column} }}' | sort -u"


def bash(letters, settings):
    cases = []
    for option in letters:
        if not option.argument:
            continue
        kind = option.argument.split("[")[0]
        if kind == "option":
            names = " ".join(o.name + ("=" if o.argument else "") for o in settings)
            act = f'compopt -o nospace; COMPREPLY=($(compgen -W "{names}" -- "$cur"))'
        elif kind in LISTED:
            act = f'COMPREPLY=($(compgen -W "$({listing(LISTED[kind])})" -- "$cur"))'
        elif kind in POLICIES:
            act = f'COMPREPLY=($(compgen -W "{POLICIES[kind]}" -- "$cur"))'
        elif kind == "directory":
            act = 'compopt -o filenames; COMPREPLY=($(compgen -d -- "$cur"))'
        elif kind == "script":
            act = 'compopt -o filenames; COMPREPLY=($(compgen -f -X "!*.d" -- "$cur") $(compgen -d -- "$cur"))'
        elif kind == "file":
            act = 'compopt -o filenames; COMPREPLY=($(compgen -f -- "$cur"))'
        elif kind == "command":
            act = 'COMPREPLY=($(compgen -c -- "$cur"))'
        elif kind == "pid":
            act = 'COMPREPLY=($(compgen -W "$(cd /proc && echo [0-9]*)" -- "$cur"))'
        else:
            act = "COMPREPLY=()"
        cases.append(f"\t{option.name}) {act} ;;")
    flags = " ".join(o.name for o in letters)
    cases.append(
        f'\t*) if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W "{flags}" -- "$cur"))\n'
        '\t\telse compopt -o filenames; COMPREPLY=($(compgen -f -- "$cur")); fi ;;'
    )
    return (
        HEADER + "\n_dtrace() {\n\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
        "\tcase $prev in\n" + "\n".join(cases) + "\n\tesac\n}\ncomplete -F _dtrace dtrace\n"
    )


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def zsh(letters, settings):
    def bracket(text):
        return re.sub(r"([\[\]:\\])", r"\\\1", text)

    lines = []
    for option in letters:
        spec = f"*{option.name}" if option.argument else option.name
        spec += f"[{bracket(option.meaning)}]"
        if option.argument:
            kind = option.argument.split("[")[0]
            act = (
                "->option" if kind == "option"
                else f"->{kind}" if kind in LISTED
                else f"({POLICIES[kind]})" if kind in POLICIES
                else "_files -/" if kind == "directory"
                else f'_files -g "{FILES[kind]}"' if kind in FILES
                else "_command_names -e" if kind == "command"
                else "_pids" if kind == "pid"
                else " "
            )
            spec += f":{kind}:{act}"
        lines.append(f"\t{quoted(spec)} \\")
    names = []
    for option in settings:
        name = f"{option.name}{'=' if option.argument else ''}"
        names.append(f"\t\t{quoted(name + ':' + bracket(option.meaning))}")
    listed = [
        f"{name})\n\tlocal -a names=(${{(f)\"$({listing(column)})\"}})\n\t_describe {name} names\n\t;;"
        for name, column in LISTED.items()
    ]
    return (
        "#compdef dtrace\n" + HEADER + "\nlocal state line context\ntypeset -A opt_args\n"
        "_arguments -s \\\n" + "\n".join(lines) + "\n\t'*:argument:_files'\n\ncase $state in\noption)\n"
        "\tlocal -a settings=(\n" + "\n".join(names) + "\n\t)\n\t_describe -o option settings -S ''\n\t;;\n"
        + "\n".join(listed) + "\nesac\n"
    )


def fish(letters, settings):
    out = [HEADER]
    for option in letters:
        letter = option.name[1:]
        line = f"complete -c dtrace {'-s' if len(letter) == 1 else '-o'} {letter} -d {quoted(option.meaning)}"
        if option.argument:
            kind = option.argument.split("[")[0]
            if kind in LISTED:
                line += f" -x -a {quoted('(' + listing(LISTED[kind]) + ')')}"
            elif kind in POLICIES:
                line += f" -x -a {quoted(POLICIES[kind])}"
            elif kind == "directory":
                line += " -x -a '(__fish_complete_directories)'"
            elif kind in FILES:
                line += " -r -F"
            elif kind == "command":
                line += " -x -a '(__fish_complete_command)'"
            elif kind == "pid":
                line += " -x -a '(__fish_complete_pids)'"
            else:
                line += " -x"
        out.append(line)
    for option in settings:
        name = f"{option.name}{'=' if option.argument else ''}"
        out.append(f"complete -c dtrace -s x -x -a {quoted(name)} -d {quoted(option.meaning)}")
    return "\n".join(out) + "\n"


def main():
    sources, out = map(pathlib.Path, sys.argv[1:])
    for path in sorted(sources.glob("*.md")):
        name, section, _ = path.name.split(".")
        (out / f"{name}.{section}").write_text(man(path, name, section))
    page = sources / "dtrace.8.md"
    letters, settings = options(page, "OPTIONS"), options(page, "TRACING OPTIONS")
    for shell, text in [("bash", bash), ("zsh", zsh), ("fish", fish)]:
        (out / f"dtrace.{shell}").write_text(text(letters, settings))


main()
