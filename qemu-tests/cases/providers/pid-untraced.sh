# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 60
# A debugger's breakpoint on top of the module's, met by threads that the debugger does not trace:
# they get the signal, as without the module, the probes fire, and the debugger is told of its own
# thread, also after the others.
calls='pid$target:a.out:work:entry { @in = count(); } pid$target:a.out:work:return { @out = count(); }
BEGIN { printf("traced\n"); } END { printa("in %@d\n", @in); printa("out %@d\n", @out); }'

# meets HOW [traced]: runs a debugger of that kind; its program is traced before the breakpoint is
# written.
meets() {
	echo "$*"
	rm -f /tmp/cover /tmp/traced
	pid-untraced "$1" >/tmp/said 2>&1 &
	local debugger=$! tracer=
	until grep -q '^program' /tmp/said; do sleep 0.1; done
	if [ "${2:-}" ]; then
		dtrace -qn "$calls" -p "$(awk '/^program/ { print $2 }' /tmp/said)" >/tmp/traced 2>&1 &
		tracer=$!
		until grep -q traced /tmp/traced || ! kill -0 $tracer 2>/dev/null; do sleep 0.1; done
	fi
	: >/tmp/cover
	wait $debugger $tracer
	grep -v '^program' /tmp/said
	[ -z "$tracer" ] || grep . /tmp/traced
}
meets thread
meets thread traced
meets memory
meets memory traced
rm -f /tmp/cover /tmp/traced /tmp/said
