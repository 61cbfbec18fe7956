# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Drops where RCU is not watching are reported to consumers with probes in the kernel's code, and to
# no others.
dir=$(mktemp -d)
beside() {
	dtrace -qn "BEGIN { printf(\"begun\n\"); } $2" >"$dir/$1.out" 2>"$dir/$1.err" &
	await begun "$dir/$1.out"
}
beside calls 'syscall:::entry { @ = count(); }'
calls=$!
beside samples 'profile-97, tick-10ms { @ = count(); }'
samples=$!
beside functions 'fbt:::entry { @ = count(); }'
functions=$!
lost() { sed -n 's/^dtrace-lost:.* unwatched \([0-9]*\) .*/\1/p' /proc/$functions/fdinfo/* | head -n 1; }
# A CPU that goes offline executes its last functions when RCU does not watch it any more.
online=/sys/devices/system/cpu/cpu1/online
for _ in $(seq 20); do
	echo 0 >$online
	echo 1 >$online
	[ "$(lost)" = 0 ] || break
done
lost=$(lost)
kill $calls $samples $functions
wait
# told NAME: the number of drops that were reported to that consumer, in all lines.
told() { sed -n 's/.* \([0-9]*\) drops\{0,1\} in probe context (RCU not watching).*/\1/p' "$dir/$1.err" | awk '{ n += $1 } END { print n + 0 }'; }
(($(told functions) >= lost && lost > 0)) && echo 'functions: all' || echo "functions: $(told functions) of $lost"
for who in calls samples; do echo "$who: $(grep -c 'RCU not watching' "$dir/$who.err")"; done
rm -r "$dir"
