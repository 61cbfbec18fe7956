# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 200
# No tracing lacks a breakpoint without a report, whichever allocation for placing it fails, and
# also if the kernel refuses to place it, when that is tried and when it is done. On an instruction
# at which ftrace calls, there are many allocations; at another there may be none that matters,
# because the kernel can do without those that only make it faster.
. ./paths
cat >/tmp/reads <<'end'
for n in 1 2 3 4 5; do cat /proc/self/stat; done >/dev/null
end
# An instruction after that call, where the kernel replaces the breakpoint by a jump to its copy of
# the instruction.
behind=$(dtrace -Zln "$(seq -f 'kinst::vfs_read:%g' -s , 9 30)" | awk 'NR == 2 { print $NF }')

# placed DESCRIPTION: traces with a probe there.
placed() {
	dtrace -qn "$1 /execname == \"cat\"/ { n++; }" -n 'END { printf("%s", n >= 5 ? "traced" : "not traced"); }' -c 'bash /tmp/reads'
}
# tries DESCRIPTION: the same while one allocation or call after the other fails.
tries() {
	shortage 1 dtrace_kprobe_add
	told=0 refused=0
	while fails placed "$1"; do
		echo "$where: $said" >&2
		case $where:$said in
		# Only the kernel can say whether a probe is possible there.
		register_kprobe*'does not match any probes'*) refused=$((refused + 1)) ;;
		register_kprobe*'1 probe could not be enabled'*'error 5'*'not traced') refused=$((refused + 1)) ;;
		*'1 probe could not be enabled'*'error 12'*'not traced') told=$((told + 1)) ;;
		*:traced) ;;
		*) echo "$where: $said" ;;
		esac
	done
	enough
	echo "then $said, refused: $refused"
}
tries kinst:vmlinux:vfs_read:0
echo "told: $((told > 4))"
# This probe exists already, so it is not tried again whether it is possible.
tries kinst:vmlinux:vfs_read:$behind
rm -f /tmp/reads
