# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# Debuggers see a program's text without the module's own breakpoints. If there is no memory for
# that, uprobes carry the probes instead, whose breakpoints the kernel shows; nothing is missing.
# The next tracing uses own breakpoints again.
. ./paths
dtrace -qn 'BEGIN { printf("ready\n"); } fbt::uprobe_register:entry { printf("uprobe\n"); }' -x switchrate=20hz >/tmp/registered &
counter=$!
await ready /tmp/registered

traced() {
	: >/tmp/registered
	dtrace -qn 'pid$target:a.out:fib:entry { n++; } END { printf("%s", n > 0 ? "traced" : "not traced"); }' -c 'pid-work fib' 2>&1 | tail -n 1
	sleep 0.5
	grep -q uprobe /tmp/registered && echo 'by uprobes' || echo 'by our own'
}
shortage 1 dtrace_shown
carried=0
while fails traced; do
	case ${said//$'\n'/ } in
	'traced by uprobes') carried=$((carried + 1)) ;;
	# The kernel did without that memory.
	'traced by our own') ;;
	*) echo "$where: $said" ;;
	esac
done
enough
echo "carried by uprobes: $((carried > 0))"
echo "then $said"
kill $counter
wait $counter
rm -f /tmp/registered
