# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# Threads that all execute an instruction at which a debugger has a breakpoint on top of the
# module's: the probes count each call, the debugger sees what it sees in an untraced program, and
# no thread gets a signal.
calls='pid$target:a.out:work:entry { @in = count(); } pid$target:a.out:work:return { @out = count(); }
BEGIN { printf("traced\n"); } END { printa("in %@d\n", @in); printa("out %@d\n", @out); }'

# covered HOW [traced]: runs a debugger of that kind; its program is traced before the breakpoint is
# set.
covered() {
	echo "$*"
	rm -f /tmp/go /tmp/cover /tmp/traced
	pid-covered "$1" >/tmp/said &
	local debugger=$! tracer=
	await '^program' /tmp/said
	if [ "${2:-}" ]; then
		dtrace -qn "$calls" -p "$(awk '/^program/ { print $2 }' /tmp/said)" >/tmp/traced 2>&1 &
		tracer=$!
		await -p $tracer traced /tmp/traced
	fi
	: >/tmp/cover
	await '^found' /tmp/said
	: >/tmp/go
	wait $debugger $tracer
	grep -v '^program' /tmp/said
	[ -z "$tracer" ] || grep . /tmp/traced
}
covered all
covered all traced
covered one
covered one traced
rm -f /tmp/go /tmp/cover /tmp/traced /tmp/said
