# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 90
# Events that the kernel counts, as often as requested; addresses of kernel or user code are shown,
# and only events of the requested mode count.
dtrace -qn 'cpc:::cpu_clock-user-10000000 /pid == $target/ { @[arg0 != 0, arg1 != 0] = count(); n++; } tick-2s /n/ { exit(0); }
	END { printa("program: kernel %d program %d\n", @); }' -c 'sh -c "while :; do :; done"' | sed '/^$/d'
dtrace -qn 'cpc:::cpu_clock-kernel-10000000 { @[arg0 != 0, arg1 != 0] = count(); } tick-2s { exit(0); }
	END { printa("kernel: kernel %d program %d\n", @); }' -c 'sh -c "while :; do :; done"' | sed '/^$/d'
dtrace -qn 'cpc:::cpu_clock-all-10000000 { @[arg0 != 0, arg1 != 0] = count(); both |= arg0 != 0 ? 1 : 2; } tick-2s /both == 3/ { exit(0); }
	END { printa("all: kernel %d program %d\n", @); }' -c 'sh -c "while :; do :; done"' | LC_ALL=C sort | sed '/^$/d'
for event in page_faults-user-1 minor_faults-user-1 page_faults-user-10; do
	dtrace -qn "cpc:::$event /pid == \$target/ { @ = count(); } END { printa(\"%@d\\n\", @); }" -c page-faults |
		awk -v every="${event##*-}" 'NF { print (every * $1 >= 160 && every * $1 <= 400) ? "all" : $1 }'
done
dtrace -qn 'cpc:::context_switches-all-1 { @ = count(); } tick-1s { exit(0); } END { printa("switches\n", @); }' | sed '/^$/d'
# A CPU that comes online counts, and one that goes offline and online.
echo 0 >/sys/devices/system/cpu/cpu1/online
cat >/tmp/turn <<'end'
for on in "$@"; do echo $on >/sys/devices/system/cpu/cpu1/online; done
exec taskset -c 1 sh -c 'while :; do sleep 0.02; done'
end
for turns in 1 '0 1'; do
	dtrace -qn 'proc:::exec-success /execname == "sleep"/ { back = 1; }
		cpc:::cpu_clock-all-10000000 /back && cpu == 1/ { clock = 1; } cpc:::context_switches-all-1 /back && cpu == 1/ { switches = 1; }
		tick-10ms /clock && switches/ { printf("counts after %s\n", $$1); exit(0); }' "$turns" -c "sh /tmp/turn $turns" | sed '/^$/d'
done
# Two probes on one event, and one of them twice.
provider-check run cpc:::page_faults-user-1 cpc:::page_faults-user-1 cpc:::page_faults-all-1 -- page-faults 2>/dev/null |
	awk '{ print $1, ($2 >= 200) }'
# Names with an invalid event, mode or count, and counts that would leave time for nothing else, are
# no probes.
for probe in cpu_clock-all-9999 cpu_clock-all-10000x cpu_clock-all- cpu_clock-10000 nothing-all-10000 cpu_clock-some-10000 page_faults-all-0 \
	page_faults-all-99999999999999999999; do
	dtrace -n "cpc:::$probe" 2>&1 | sed 's/.*: //'
done
