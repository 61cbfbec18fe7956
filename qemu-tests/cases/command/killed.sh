# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# A killed consumer leaves nothing behind: the next one traces the same probes, and the module can
# be unloaded and loaded.
module=$(cat /run/vm/module)
dtrace -qn 'syscall:::entry { @[probefunc] = count(); } tick-10ms { printf("on\n"); }' > /tmp/out &
await on /tmp/out
kill -KILL $!
wait $! 2>/dev/null
echo "status $?"
rm /tmp/out
dtrace -qn 'syscall:::entry { exit(5); }'
echo "status $?"
rmmod dtrace && insmod "$module" && echo "reloaded"
