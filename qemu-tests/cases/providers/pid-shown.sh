# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 60
# The core of a program that has executed an instruction out of line shows the instruction's own
# address; a program that may make nothing executable is traced as others are.
loads=$(pid-shown where)
calls='pid$target:a.out:loads:entry { @ = count(); } BEGIN { printf("begun\n"); } END { printa("%@d\n", @); }'

echo 'by its address'
for module in a.out ''; do
	dtrace -qn "pid\$target:$module:-:$loads { @[probemod, probefunc, probename == \"$loads\" ? \"there\" : probename] = count(); }
		END { printa(\"%s %s %s %@d\\n\", @); }" -c 'pid-shown load load load' 2>&1 | grep .
done

echo 'in its core'
was=$(cat /proc/sys/kernel/core_pattern)
echo /tmp/core >/proc/sys/kernel/core_pattern
(ulimit -c unlimited; dtrace -qn "$calls" -c 'pid-shown load load fault' 2>&1) | grep . | sed 's/pid [0-9]*/pid N/'
echo "$was" >/proc/sys/kernel/core_pattern
rip=$(eu-readelf -n /tmp/core | sed -nE 's/.* rip: +0x0*([0-9a-f]+).*/\1/p')
[ "$rip" = "$loads" ] && echo 'where it is' || echo "$rip instead of $loads"
rm -f /tmp/core*

echo 'nothing becomes executable'
pid-shown mdwe wait load load load >/tmp/said & its=$!
await ready /tmp/said
dtrace -qn "$calls" -p $its >/tmp/seen 2>&1 &
await begun /tmp/seen
# It is not left to uprobes.
echo "areas: $(grep -c '/dtrace-slots (deleted)' /proc/$its/maps)"
kill -USR1 $its
wait
grep . /tmp/said /tmp/seen | sed 's/.*://'
rm /tmp/said /tmp/seen
