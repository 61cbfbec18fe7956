# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 180
# @slow: it starts seventeen thousand processes
# A user's tracings see a new process however many have come and gone before: what is remembered of
# processes that have ended is replaced, although several tracings have it. A tracing has room for
# 16,384.
. ./member
rmmod dtrace && insmod "$(cat /run/vm/module)" group=77
chmod 666 /dev/dtrace
dir=/tmp/users-answers
children $dir
for n in 1 2; do
	own dtrace -qs $dir/calls.d -o $dir/told.$n & tracers="$tracers $!"
	timeout 60 await begun $dir/told.$n
done
as 77 $dir/many-children 17000 100
kill $tracers
wait
grep -h . $dir/told.1 $dir/told.2
rm -r $dir
rmmod dtrace && insmod "$(cat /run/vm/module)"
