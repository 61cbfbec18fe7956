# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Usage: completions.py PAGE DIR
#
# Generates completions for bash, zsh and fish in DIR from PAGE, docs/man/dtrace.8.md: its tables of
# options are their source too, so each option is described once. Tests of the command and of the
# library compare the tables with the options they know.

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


def plain(text):
    """Text without marks."""
    return re.sub(r"[`*]", "", text.replace("\\|", "|"))


def options(page, section):
    """The rows of the table in a section."""
    text = page.read_text().split(f"\n## {section}\n")[-1].split("\n## ")[0]
    table = [line for line in text.split("\n") if line.startswith("|")]
    found = []
    # The first two rows are the table's heading.
    for line in table[2:]:
        _, term, meaning, _ = (cell.strip() for cell in re.split(r"(?<!\\)\|", line))
        row = re.match(r"`(-?\w+)`(?:(=| )(.+))?$", term)
        if not row:
            sys.exit(f"{page}: an option in other words: {term}")
        # The first sentence is enough for a menu.
        short = re.split(r"[.;](?: |$)", plain(meaning))[0]
        found.append(Option(row[1], plain(row[3] or ""), short))
    if not found:
        sys.exit(f"{page}: no options in {section}")
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
    page, out = map(pathlib.Path, sys.argv[1:])
    letters, settings = options(page, "OPTIONS"), options(page, "TRACING OPTIONS")
    for shell, text in [("bash", bash), ("zsh", zsh), ("fish", fish)]:
        (out / f"dtrace.{shell}").write_text(text(letters, settings))


main()
