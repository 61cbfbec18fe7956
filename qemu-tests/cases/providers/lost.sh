# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @debug: quick
# A function that a D program itself calls cannot fire for it: such firings are counted, by reason.
lost() { sed -n 's/^dtrace-lost:.*recursion \([0-9]*\) .*/\1/p' "/proc/$1/fdinfo/"*; }
loads='tick-20ms { @loads = sum(*(int *)curthread); }'
dtrace -qn "fbt::copy_from_kernel_nofault:entry { @entries = count(); } $loads" >/dev/null &
pid=$!
until before=$(lost $pid) && [ -n "$before" ]; do sleep 0.1; done
for _ in $(seq 100); do
	sleep 0.1
	after=$(lost $pid)
	[ "$after" -le "$before" ] || break
done
[ "$after" -gt "$before" ] && echo counted
kill $pid
wait $pid || :
