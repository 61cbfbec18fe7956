# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 180
# A tracing whose consumer does not run is killed, and its command is notified; but not one that may
# be destructive, nor one whose buffers are read.
module=$(cat /run/vm/module)
rmmod dtrace && insmod "$module" deadman_timeout=3000 deadman_user=3000
stopped() {
	dtrace "$@" -x statusrate=100ms -qn 'BEGIN { printf("%s\n", "begun"); } tick-100ms { @ = count(); }
		tick-14s { printf("%s\n", "ended"); exit(0); }' &
	pid=$!
	sleep 3
	kill -STOP $pid
	sleep 9
	kill -CONT $pid
	wait $pid
	echo "status $?"
}
stopped >/tmp/one 2>&1 &
stopped -w >/tmp/other 2>&1
wait
grep -hv '^ *[0-9]*$' /tmp/one /tmp/other
dtrace -x statusrate=100ms -qn 'tick-7s { printf("%s\n", "read"); exit(0); }'
# Neither is one whose command makes other control calls meanwhile, for example to create probes.
device-check busy
rmmod dtrace && insmod "$module"
