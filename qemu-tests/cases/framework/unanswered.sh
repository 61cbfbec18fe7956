# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 60
# While a member's consumer is stopped, it cannot be checked which processes it may trace: firings
# in a new process are not seen, and reported afterwards. When it continues, the next process is
# seen completely.
. ./member
rmmod dtrace && insmod "$(cat /run/vm/module)" group=77
chmod 666 /dev/dtrace
dir=/tmp/unanswered
children $dir
own dtrace -qs $dir/calls.d -o $dir/seen 2>$dir/told & tracer=$!
timeout 30 await begun $dir/seen
kill -STOP $tracer
as 77 $dir/many-children 0 20
kill -CONT $tracer
sleep 1
as 77 $dir/many-children 0 20
kill -INT $tracer
wait
grep calls $dir/seen
# A process that becomes the user's process is checked additionally.
sed -n 's/.* \([0-9]*\) times it was not known soon enough whether a process may be traced.*/\1/p' $dir/told |
	awk '{ n += $1 } END { print (n >= 20 && n <= 30) ? "and the rest is told" : "told: " n }'
rm -r $dir
rmmod dtrace && insmod "$(cat /run/vm/module)"
