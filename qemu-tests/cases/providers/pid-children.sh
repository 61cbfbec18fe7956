# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 90
# Children come and go: for each, the descriptions are registered with the kernel, 1,024 at most,
# and those of children that have exited are removed. Here are 140 children and eight descriptions.
# A child that was not held until its probes were created may be missing.
of() { printf 'pid$target:a.out:%s:entry' "$1"; shift; printf ',pid$target:a.out:%s:entry' "$@"; }

# shellcheck disable=SC2046
dtrace -x follow=fork -qn "$(of call 'c[a]ll' 'c*ll' 'ca*l' '?all' 'cal?' 'c?ll' '[c]all')"' { @[pid == $target] = count(); }' \
	-c "pid-loader open $(yes fork | head -140 | tr '\n' ' ')" 2>&1 |
	awk '/failed/ { print } NF == 2 && $1 == 0 { print ($2 > 1050 && $2 <= 1120 ? "all children" : $2) }'
