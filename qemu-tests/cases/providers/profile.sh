# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 60
# Every unit; the order of the rates; invalid rates make no probe; CPUs that go offline and online;
# NMIs. A virtual machine that is stalled now and then misses expirations, mostly those of the fast
# rates. So the order of the counts gets several tries.
for try in 1 2 3 4 5; do
	order=$(provider-check count 1500 profile:::tick-100 profile:::tick-10hz profile:::tick-20000us profile:::tick-20000000ns \
		profile:::tick-20ms profile:::tick-1s profile:::profile-199 2>/dev/null |
		awk '{ n[NR] = $2 }
			END { print (n[1] > n[2]), (n[2] > n[6]), (n[3] > n[2]), (n[4] > n[2]), (n[5] > n[2]), (n[6] > 0), (n[7] > n[1]) }')
	[ "$order" != "1 1 1 1 1 1 1" ] || break
done
echo "$order"
for name in tick-0 tick-1fortnight tick- profile-1ns profile-99999999999999999999s tick-1sx nmi-0 nmi-5001 nmi-1001ms nmi-97x; do
	provider-check count 0 profile:::$name 2>&1 | tail -1
done
provider-check run profile:::profile-97 -- sh -c 'for n in 1 2 3; do echo 0; sleep 0.2; echo 1; sleep 0.2; done |
	while read -r on; do echo $on >/sys/devices/system/cpu/cpu1/online; done' 2>/dev/null | sed -E 's/[1-9][0-9]*$/some/'
cat /sys/devices/system/cpu/cpu1/online
# nmi-N fires from an NMI that the CPU's cycle counter raises. On a machine without this counter the
# probe does not exist, and dtrace reports that.
if dtrace -ln cpc:::cpu_cycles-all-5000 2>/dev/null | grep -q cpu_cycles; then
	dtrace -qn 'nmi-97 { n++; inside += ipl == 3; } tick-500ms /n/ { exit(0); }
		END { printf("nmi-97: %s\n", inside == n ? "as the machine can" : "not always in an NMI"); }' -c 'sh -c "while :; do :; done"' | sed '/^$/d'
else
	said=$(dtrace -n profile:::nmi-97 2>&1 | sed 's/.*: //')
	[ "$said" = 'probe description profile:::nmi-97 does not match any probes' ] && echo "nmi-97: as the machine can"
fi
# The kernel asks for the state of another CPU by an NMI, so the probe below fires in one. It skips
# idle CPUs, hence the busy loop.
taskset -c 1 sh -c 'while :; do :; done' &
dtrace -qn 'fbt::show_regs:entry /ipl == 3/ { @ = count(); stack(); } END { printa("in an NMI: %@d\n", @); }' \
	-c 'taskset -c 0 sh -c "echo l >/proc/sysrq-trigger; sleep 1"' | awk '/`exc_nmi/ { nmi = 1 } /^in an/ { print $0 ", by its stack " nmi }'
kill $!
