# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# With -x cpu a single CPU is traced; one that does not exist or is offline is refused; one that
# goes offline and online again is traced again.
online=/sys/devices/system/cpu/cpu1/online
count='profile-97 { @[cpu] = count(); } END { printa("%d %@d\n", @); }'
counts() { awk 'NF { print "CPU", $1, ($2 > 20) ? "often" : "seldom" }' | sort; }
echo alone
dtrace -x cpu=1 -qn "$count" -c 'sleep 2' | counts
dtrace -x cpu=0 -qn 'tick-100ms { printf("tick on %d\n", cpu); exit(0); }'
dtrace -x cpu=1 -qn 'tick-100ms { printf("tick on %d\n", cpu); exit(0); }'
echo refused
dtrace -x cpu=4095 -qn 'BEGIN { exit(0); }' 2>&1 | grep -o 'no such CPU'
echo 0 >$online
dtrace -x cpu=1 -qn 'BEGIN { exit(0); }' 2>&1 | grep -o 'BEGIN cannot fire.*'
echo 1 >$online
echo "off and on"
cat >/tmp/off-and-on <<SCRIPT
#!/bin/sh
sleep 1
echo 0 >$online
sleep 1
echo 1 >$online
sleep 1
SCRIPT
chmod +x /tmp/off-and-on
dtrace -qn "$count" -c /tmp/off-and-on | counts
# What the only CPU has recorded can be read after it has gone offline, although no END fires on it.
echo "off at the end"
printf '#!/bin/sh\nsleep 1\necho 0 >%s\n' $online >/tmp/off
chmod +x /tmp/off
dtrace -x cpu=1 -x bufpolicy=ring -qn 'profile-97 { printf("%d\n", cpu); }' -n 'END { printf("end\n"); }' -c /tmp/off 2>&1 |
	awk '/^dtrace/ { print; next } NF { n[$1]++ } END { for (i in n) print i, (n[i] > 20) ? "often" : "seldom" }'
echo 1 >$online
