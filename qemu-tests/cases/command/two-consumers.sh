# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Two consumers trace the same probe at the same time, each with its own options and variables.
for n in 1 2; do
	dtrace -qn 'BEGIN { i = $1; } tick-50ms { i++; } tick-1s { printf("%s\n", i > $1 ? "ticked" : "stuck"); exit($1); }' $n > /tmp/out$n &
	pids[$n]=$!
done
for n in 1 2; do
	wait ${pids[$n]}
	echo "status $?"
	cat /tmp/out$n
	rm /tmp/out$n
done
