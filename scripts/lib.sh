# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# What every script here knows: where things are, and how to say so.
#
# Everything that is not source lives in one cache, outside the checkout, so that many checkouts share one build root
# and `git clean` costs nothing. An entry's name ends in a hash of what it was made from (script, package list, kernel
# version): a changed recipe makes a new entry and never edits an old one. An entry is built under NAME.tmp and renamed
# when complete; what bears the final name is whole.

# shellcheck shell=bash
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cache=${DTRACE_CACHE:-$HOME/.cache/dtrace-linux}
suite=trixie

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() { say "error: $*"; exit 1; }

# key FILE... [- TEXT...]: twelve hex digits that stand for the contents of the files and the texts.
key() {
	local files=()
	while [ $# -gt 0 ] && [ "$1" != - ]; do files+=("$1"); shift; done
	[ $# -eq 0 ] || shift
	{ [ ${#files[@]} -eq 0 ] || cat -- "${files[@]}"; printf '%s\n' "$@"; } | sha256sum | cut -c1-12
}

# The root's packages, without comments.
packages() { sed 's/#.*//; /^[[:space:]]*$/d' "$top/scripts/packages"; }

root_dir() { echo "$cache/root-$suite-$(key "$top/scripts/stages/root" - "$(packages)")"; }

# The kernel to build for and to boot: KERNEL, else the one that the first set-up chose.
kernel_version() {
	if [ -n "${KERNEL:-}" ]; then echo "$KERNEL"; else cat "$cache/kernel.default" 2>/dev/null || true; fi
}

kernel_dir() { echo "$cache/kernel-$(kernel_version)-$(key "$top/scripts/stages/kernel")"; }

# The tree's Rust metadata depends on the compilers to the letter, so their versions are part of its key.
tree_dir() {
	local compilers
	compilers=$(awk '/^Package: (rustc|gcc-14|bindgen|libclang1-19|pahole)$/ { p = $2 }
		/^Version: / && p { print p, $2; p = "" }' "$(root_dir)/var/lib/dpkg/status" 2>/dev/null || true)
	echo "$cache/tree-$(kernel_version)-$(key "$top/scripts/stages/tree" - "$(basename "$(kernel_dir)")" "$compilers")"
}

# Where this checkout builds: worktrees of one machine do not disturb each other.
build_dir() { echo "$cache/build/$(basename "$top")-$(key - "$top")"; }
