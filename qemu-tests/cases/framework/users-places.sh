# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# A user's probes in his processes do not use the kernel's uprobes, at whatever instruction they are
# and whatever the program does there: registering or removing a uprobe keeps everybody from forking
# until the locks of all memories that map the file have been taken.
. ./member
rmmod dtrace && insmod "$(cat /run/vm/module)" group=77
chmod 666 /dev/dtrace
cp "$(command -v users-places)" /tmp/work
cat >/tmp/uprobes.d <<'end'
fbt::uprobe_register:entry, fbt::uprobe_unregister_nosync:entry { n++; }
END { printf("uprobes: %d\n", n); }
end
cat >/tmp/places.d <<'end'
pid$target:work:nop_1:entry, pid$target:work:nop_5:entry, pid$target:work:nop_10:entry, pid$target:work:locked:entry,
pid$target:work:computed:entry, pid$target:work:loaded:entry, places$target:::asked { @[probename == "asked" ? probename : probefunc] = count(); }
END { printa("%s %@d\n", @); }
end
# counted COMMAND...: runs it, and prints how often uprobes were called meanwhile.
counted() { dtrace -qs /tmp/uprobes.d -c "$*" 2>&1 | grep . | sort; }
member='setpriv --reuid 65534 --regid 77 --clear-groups'
traces() {
	echo "$1"
	printf '%s\n' "exec $member dtrace -qs /tmp/places.d -c '/tmp/work $1'" >/tmp/traces
	counted sh /tmp/traces
}
traces 'calls asked'
traces 'together'
traces 'stepped'
traces 'calls calls fork asked calls'
echo listed
printf '%s\n' "exec $member dtrace -qn 'pid\$target:work::entry { @ = count(); } END { printa(\"%@d or more\\n\", @); }' -c '/tmp/work calls'" >/tmp/traces
counted sh /tmp/traces | sed 's/^[6-9][0-9][0-9] or/600 or/'

echo he goes first
$member /tmp/work mark /tmp/ready asked await /tmp/go asked calls >/tmp/said &
ready
printf '%s\n' "exec $member dtrace -qs /tmp/places.d -n 'tick-1s { exit(0); }' -p $! >/dev/null" >/tmp/traces
counted sh /tmp/traces
touch /tmp/go; wait; cat /tmp/said; rm /tmp/go

echo root has one there too
own /tmp/work mark /tmp/ready await /tmp/go calls asked & of=$!
ready
dtrace -qn "pid$of:work:nop_5:entry { @ = count(); } BEGIN { printf(\"begun\\n\"); } END { printa(\"root %@d\\n\", @); }" -p $of >/tmp/root 2>&1 &
timeout 60 await begun /tmp/root
(own dtrace -qs /tmp/places.d -n 'BEGIN { printf("begun\n"); }' -p $of) >/tmp/told 2>&1 &
timeout 60 await 'begun|failed' /tmp/told
touch /tmp/go; wait; cat /tmp/root /tmp/told | grep -v begun | grep . | sort
rm -f /tmp/go /tmp/ready /tmp/told /tmp/root /tmp/said /tmp/work /tmp/traces /tmp/*.d
rmmod dtrace && insmod "$(cat /run/vm/module)"
