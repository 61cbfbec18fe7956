# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 240
# Many short-lived processes under a wildcard: each firing has its names, and the state that is kept
# for ended processes does not grow with their number.

. ./traced

processes=200

mms() { awk '$1 == "mm_struct" { print $2 }' /proc/slabinfo; }

dtrace $options -x bufsize=1m -Zqn 'work*:::said-it { printf("%s %d %s %s\n", probeprov, pid, probefunc, probename); } BEGIN { printf("begun\n"); }' \
	>/tmp/said 2>/tmp/told &
tracer=$!
await begun /tmp/said
before=$(mms)
n=0
while [ $n -lt $processes ]; do
	usdt-work tell >/dev/null
	n=$((n + 1))
done
# Waits until dtrace has read the firings of the last processes from the buffers.
sleep 2
kept=$(($(mms) - before))
[ $kept -lt 140 ] && echo 'few memories are kept' || echo "kept: $kept memories"
dtrace -l -P 'work*' >/tmp/list
kept=$(wc -l </tmp/list)
[ $kept -lt 140 ] && echo 'few probes are kept' || echo "kept: $kept probes"
kill $tracer
wait $tracer
awk -v processes=$processes '$1 == "work" $2 && $3 != "" && $4 == "said-it" { named++ } END { print (named == 10 * processes) ? "all have names" : named " of " NR " have names" }' /tmp/said
cat /tmp/told
echo 'no more' $(dtrace -l -P 'work*' 2>/dev/null | wc -l)
rm /tmp/said /tmp/told /tmp/list
