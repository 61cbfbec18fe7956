# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 200
# A CPU that comes online while a consumer traces has no buffers before, and everything it needs
# from its first moment on. If there is no memory for that, it comes online all the same, and drops
# on it are counted; END, which is requested there, fires elsewhere.
insmod "$(dirname "$(cat /run/vm/module)")/../shortage/shortage.ko" || exit 1
online=/sys/devices/system/cpu/cpu1/online
parameters=/sys/module/shortage/parameters
vmalloc() { awk '$1 == "VmallocUsed:" { print $2 }' /proc/meminfo; }

cat >/tmp/comes <<end
#!/bin/bash
$(declare -f vmalloc)
before=\$(vmalloc)
echo 1 >$online
echo grown \$((\$(vmalloc) - before))
overload 20000
end
cat >/tmp/comes-short <<end
#!/bin/bash
echo 1 >$parameters/onwards
echo 1 >$parameters/nth
bash -c "echo \\\$\\\$ >$parameters/task; echo 1 >$online"
echo 0 >$parameters/task
cat $online
overload 20000
taskset -pc 1 \$PPID >/dev/null
end
chmod +x /tmp/comes /tmp/comes-short

# traced PROGRAM: prints what PROGRAM calls while the CPU comes online, what is recorded of it, and
# dtrace's messages.
traced() {
	echo 0 >$online
	dtrace -qx bufsize=16m -n 'syscall::sched_get_priority_max:entry /execname == "overload"/ { printf("on %d\n", cpu); }
		END { printf("end on %d\n", cpu); }' -c "$1" 2>&1
}
traced /tmp/comes | awk '$1 == "calls" { calls += $2 } $1 == "on" { n++; on[$2]++ } $1 == "grown" { grown = $2 / 1024 } /^dtrace/
	END { print calls - n, "lost,", on[1], "on the new one,", (grown >= 32 && grown < 48) ? "some 32 MiB more" : grown " MiB more" }'
traced /tmp/comes-short | awk '$1 == "calls" { calls += $2 } $1 == "on" { n++; on[$2]++ } $1 == 1 { print "it came" } $1 == "end"
	/^dtrace/ { lost += $2; $2 = "N"; said[$0] }
	END { for (line in said) print line; print calls - n - lost, "not counted,", on[1] + 0, "on the new one" }'
rmmod shortage
rm -f /tmp/comes /tmp/comes-short
