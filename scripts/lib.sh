# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# What all scripts share: paths, messages, and how to report results.
#
# Everything that is not source is in one cache, outside the checkout, so that many checkouts share
# one build root and `git clean` costs nothing. An entry's name ends in a hash of what it was made
# from (script, package list, kernel version): a changed recipe makes a new entry and never changes
# an old one. An entry is built under NAME.tmp and renamed when it is complete, so an entry with its
# final name is complete.

# shellcheck shell=bash
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cache=${DTRACE_CACHE:-$HOME/.cache/dtrace-linux}
suite=trixie

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() { say "error: $*"; exit 1; }

# key FILE... [- TEXT...]: prints twelve hex digits of the hash of the files' contents and the
# texts.
key() {
	local files=()
	while [ $# -gt 0 ] && [ "$1" != - ]; do files+=("$1"); shift; done
	[ $# -eq 0 ] || shift
	{ [ ${#files[@]} -eq 0 ] || cat -- "${files[@]}"; printf '%s\n' "$@"; } | sha256sum | cut -c1-12
}

# The root's packages, without comments.
packages() { sed 's/#.*//; /^[[:space:]]*$/d' "$top/scripts/stages/root.packages"; }

root_dir() { echo "$cache/root-$suite-$(key "$top/scripts/stages/root" - "$(packages)")"; }

# KERNEL=debug: the same source, built with self-checks.
debug() { [ "${KERNEL:-}" = debug ]; }

# The distribution's kernel to build for and to boot: KERNEL, or else the one that the first setup
# chose.
kernel_version() {
	if [ -n "${KERNEL:-}" ] && ! debug; then
		echo "$KERNEL"
	else
		cat "$cache/kernel.default" 2>/dev/null || true
	fi
}

kernel_dir() { echo "$cache/kernel-$(kernel_version)-$(key "$top/scripts/stages/kernel")"; }

# compilers PATTERN: the packages of the root that match, with their versions.
compilers() {
	awk -v pattern="^Package: ($1)\$" '$0 ~ pattern { p = $2 } /^Version: / && p { print p, $2; p = "" }' \
		"$(root_dir)/var/lib/dpkg/status" 2>/dev/null || true
}

# The tree's Rust metadata depends on the exact compilers, so their versions are part of its key.
tree_dir() {
	echo "$cache/tree-$(kernel_version)-$(key "$top/scripts/stages/tree" - "$(basename "$(kernel_dir)")" \
		"$(compilers 'rustc|gcc-14|bindgen|libclang1-19|pahole')")"
}

debug_dir() {
	echo "$cache/debug-$(kernel_version)-$(key "$top/scripts/stages/debug" "$top/scripts/stages/debug.config" - \
		"$(basename "$(kernel_dir)")" "$(compilers 'rustc|clang-19|lld-19|bindgen|libclang1-19|pahole')")"
}

has_debug() { [ -f "$(KERNEL=debug debug_dir)/vmlinuz" ]; }

# The layer over the root with the programs that `make test-programs` traces.
programs_dir() { echo "$cache/programs-$suite-$(key "$top/scripts/stages/programs" - "$(basename "$(root_dir)")")"; }

# What is booted: the directory with vmlinuz and modules/, and the release, which is the name below
# /lib/modules.
boot_dir() { if debug; then debug_dir; else kernel_dir; fi; }
boot_release() { if debug; then cat "$(debug_dir)/release" 2>/dev/null || true; else kernel_version; fi; }

# make's arguments for building a module for that kernel: its tree and the compiler that built it.
module_make() {
	if debug; then
		echo "-C $(debug_dir)/tree LLVM=-19"
	else
		echo "-C $(tree_dir) CC=x86_64-linux-gnu-gcc-14 HOSTCC=gcc-14"
	fi
}

# Where this checkout builds; worktrees on one machine have different directories.
build_dir() { echo "$cache/build/$(basename "$top")-$(key - "$top")"; }

# The same for what is built for one kernel: the default one, or the one that KERNEL names.
kernel_build_dir() { echo "$(build_dir)${KERNEL:+/$KERNEL}"; }

# The hash of kmod/: the result of a long run is valid until that changes.
kmod_tree() {
	[ -z "$(git -C "$top" status --porcelain kmod)" ] || { echo "none: it has changes" && return; }
	git -C "$top" rev-parse HEAD:kmod
}

# verdict NAME COMMAND...: a test in a script, which passes if the command succeeds. `verdicts`
# prints the count at the end.
passed=0 failed=0
verdict() {
	local name=$1
	shift
	if "$@" >&2; then
		echo "test $name ... ok"
		passed=$((passed + 1))
	else
		echo "test $name ... FAILED"
		failed=$((failed + 1))
	fi
}
verdicts() {
	local result=ok
	[ "$failed" = 0 ] || result=FAILED
	echo "test result: $result. $passed passed; $failed failed"
	[ "$failed" = 0 ]
}
