# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 60
# A user has more processes than are checked at a time when he starts tracing: each of them is seen.
. ./member
rmmod dtrace && insmod "$(cat /run/vm/module)" group=77
chmod 666 /dev/dtrace
cp "$(command -v rights-work)" /tmp/work
for _ in $(seq 60); do
	own /tmp/work await /tmp/go steps &
done
until [ "$(pgrep -c -u 65534 -x work)" = 60 ]; do sleep 0.1; done
touch /tmp/many && chmod 666 /tmp/many
own dtrace -qn "BEGIN { printf(\"begun\n\"); } $calls" -o /tmp/many & tracer=$!
timeout 60 await begun /tmp/many
touch /tmp/go
timeout 60 sh -c 'while pgrep -u 65534 -x work >/dev/null; do sleep 0.1; done'
kill $tracer
wait
grep . /tmp/many
rm /tmp/many /tmp/go /tmp/work
