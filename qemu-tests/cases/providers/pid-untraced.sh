# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 60
# A debugger's breakpoint on top of the module's, met by a thread that the debugger does not trace:
# it gets the signal, as without the module, the probes fire, and the debugger is told of its own
# thread, also after the other.
calls='pid$target:a.out:work:entry { @in = count(); } pid$target:a.out:work:return { @out = count(); }
BEGIN { printf("traced\n"); } END { printa("in %@d\n", @in); printa("out %@d\n", @out); }'

# meets [traced]: runs the debugger; its program is traced before the breakpoint is written.
meets() {
	rm -f /tmp/cover /tmp/traced
	pid-untraced >/tmp/said 2>&1 &
	local debugger=$! tracer=
	await '^program' /tmp/said
	if [ "${1:-}" ]; then
		dtrace -qn "$calls" -p "$(awk '/^program/ { print $2 }' /tmp/said)" >/tmp/traced 2>&1 &
		tracer=$!
		await -p $tracer traced /tmp/traced
	fi
	: >/tmp/cover
	wait $debugger $tracer
	grep -v '^program' /tmp/said
	[ -z "$tracer" ] || grep . /tmp/traced
}
meets
meets traced
rm -f /tmp/cover /tmp/traced /tmp/said
