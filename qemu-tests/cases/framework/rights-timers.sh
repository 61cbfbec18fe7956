# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 300
# @slow: it waits for slow timers
# A member of the group may use timer probes: profile-N fires where code of his own processes runs,
# tick-N always, without showing anything of what runs there. Their rates and number are limited,
# and their clauses cannot take over the machine.
. ./member
rmmod dtrace && insmod "$(cat /run/vm/module)" group=77
chmod 666 /dev/dtrace
cp "$(command -v rights-work)" /tmp/work
cp /tmp/work /tmp/hidden
cp "$(command -v device-check)" /tmp
mkfifo /tmp/never
# Two processes of other users for two processors; a process of the member that he may not trace;
# one of his that runs in the kernel.
cp "$(command -v dd)" /tmp/copies
/tmp/work spin 600000 & others=$!
setpriv --reuid 65533 --regid 77 --clear-groups /tmp/work spin 600000 & others="$others $!"
own /tmp/hidden undumpable mark /tmp/ready spin 600000 & hidden=$!
ready
own /tmp/copies if=/dev/zero of=/dev/null bs=4M status=none & copies=$!

echo profile
whose='execname == "hidden" ? "hidden" : uid == 65534 && pid != 0 ? "own" : "others"'
what='arg0 != 0 ? "kernel" : arg1 != 0 ? "program" : "nothing"'
seen="profile-97 { @[$whose, $what] = count(); } END { printa(\"%s %s\n\", @); }"
dtrace -qn "$seen" -c 'setpriv --reuid 65534 --regid 77 --clear-groups /tmp/work spin 3000' |
	grep -v -e nothing -e 'hidden kernel' | grep . | sort
echo his own
as 77 dtrace -qn "$seen" -c '/tmp/work spin 3000' | grep . | sort
# What it was executing there, and in which process.
as 77 dtrace -qn 'profile-97 /pid == $target/ { @[usym(arg1)] = count(); } END { trunc(@, 1); }' \
	-c '/tmp/work spin 3000' | grep -o 'work`main'

echo tick
nobody='execname == "" && !pid && !tid && !ppid && !uid && !gid && !arg0 && !arg1 && !vtimestamp && !errno'
tick="tick-97 { @[$nobody ? \"nobody\" : uid == 65534 && !arg0 ? \"own\" : \"others\"] = count(); } END { printa(\"%s\n\", @); }"
as 77 dtrace -qn "$tick" -c '/tmp/work spin 3000' | grep . | sort
# 6: kernel memory; 7: another user's.
for what in curthread caller 'stack(2)' 'copyinstr(4096)' 'ustack(2)' ucaller; do
	as 77 dtrace -qn "tick-97 /!pid/ { this->x = $what; } ERROR { printf(\"$what: %d\n\", arg4); exit(0); }
		tick-10s { printf(\"$what: none\n\"); exit(0); }" 2>/dev/null | grep .
done
kill $others $hidden $copies
wait 2>/dev/null

echo rates
for probe in profile-997 tick-997hz profile-998 tick-1ms profile-1999 tick-5000 profile-5001; do
	echo "$probe $(as 77 device-check timers $probe 1 </dev/null)"
done
as 77 dtrace -n 'profile-4999 { @ = count(); }' 2>&1 | grep -o "a user's timers.*"
# If there is such a counter, it counts the kernel.
as 77 dtrace -n 'nmi-97 { @ = count(); }' 2>&1 | grep -o -e 'rights over the kernel' -e 'not match any' |
	sed 's/not match any/rights over the kernel/'
# Of several matching probes he gets those that he may have.
for probe in profile-499 profile-997 profile-1999; do dtrace -ln $probe >/dev/null; done
as 77 device-check timers 'profile-[1-9]99*' 1 </dev/null | sed 's/[0-9]* made/some made/'
# The limit is for all his probes together; a probe counts once.
as 77 device-check timers profile-97 3 profile-900hz 3 profile-97 1 tick-1s 1 </dev/null
as 77 device-check timers profile-499 1 tick-499 1 profile-10hz 1 </dev/null
device-check timers profile-4999 1 tick-5000 1 </dev/null

echo number
told() { timeout 60 sh -c 'until [ -s /tmp/told ]; do sleep 0.1; done'; cat /tmp/told; }
# keep COMMAND...: runs it in the background, as $kept; it keeps its probes until it ends.
keep() {
	rm -f /tmp/told
	(exec "$@" <>/tmp/never >/tmp/told) & kept=$!
	told
}
member=(setpriv --reuid 65534 --regid 77 --clear-groups /tmp/device-check timers)
as 77 device-check timers tick-1s 33 </dev/null
as 77 device-check timers tick-1s 32 tick-1s 1 </dev/null
keep "${member[@]}" tick-1s 30 && first=$kept
as 77 device-check timers profile-97 3 profile-97 2 </dev/null
keep "${member[@]}" profile-97 2 && second=$kept
as 77 device-check timers tick-1s 1 </dev/null
as 77 dtrace -qn 'tick-1s { exit(0); }' 2>&1 | grep -o 'a user may have 32 timers at a time'
echo another user, and root
setpriv --reuid 65533 --regid 77 --clear-groups /tmp/device-check timers tick-1s 32 </dev/null
device-check timers tick-1s 1000 </dev/null
echo killed
kill -9 $first && wait $first 2>/dev/null
as 77 device-check timers tick-1s 30 tick-1s 1 </dev/null
kill $second && wait $second 2>/dev/null
as 77 device-check timers tick-1s 32 </dev/null
as 77 dtrace -qn 'tick-100ms { exit(0); }' >/dev/null && echo exited
as 77 device-check timers tick-1s 32 </dev/null
echo another user whom he has made
# inside: a user in a user namespace of the member requests a timer.
inside() {
	own unshare -U --keep-caps sh -c 'touch /tmp/ready; await . /proc/self/uid_map
		exec setpriv --reuid 0 /tmp/device-check timers tick-1s 1' </dev/null & one=$!
	ready
	echo '77 77 1' >/proc/$one/gid_map
	echo '0 100000 1' >/proc/$one/uid_map
	wait $one
}
keep "${member[@]}" tick-1s 32 && first=$kept
inside
kill $first && wait $first 2>/dev/null
inside
echo made later
# A pattern gets probes that are created later, as long as there are timers left; unmatched ones are
# reported.
rm -f /tmp/told
as 77 dtrace -qn "$(seq -f 'profile-7*hz { @ = count(); } /* %.0f */' 20)" -n 'BEGIN { printf("begun\n"); }
	syscall::unlinkat:entry /execname == "rm"/ { exit(0); }' -Z >/tmp/told 2>&1 & later=$!
told
as 77 device-check timers profile-71hz 1 profile-72hz 1 </dev/null
touch /tmp/x; as 77 sh -c 'rm -f /tmp/x; exec rm -f /tmp/x' 2>/dev/null
wait $later
grep -o '[0-9]* probes could.*' /tmp/told

echo patterns of others
# count PATTERN: prints how many probes match for root.
count() { device-check timers "$1" 1 </dev/null; }
keep "${member[@]}" profile-81hz 1 && first=$kept
count 'profile-8[12]hz'
setpriv --reuid 65533 --regid 77 --clear-groups /tmp/device-check timers 'profile-8[12]hz' 1 </dev/null
as 77 device-check timers 'profile-8[12]hz' 1 </dev/null
# With its full name it is available.
count profile-81hz
# A consumer that waits does not get probes that are created later.
rm -f /tmp/root
(exec /tmp/device-check timers 'profile-8[23]hz' 1 profile-83hz 1 <>/tmp/never >/tmp/root) & waits=$!
timeout 60 await 1 /tmp/root
as 77 dtrace -qn 'profile-82hz { @ = count(); } tick-1s { exit(0); }' >/dev/null
as 77 dtrace -l -n profile-200001ns -n profile-4001hz 2>/dev/null | grep -c 200001
count 'profile-8[23]hz'
count 'profile-20000*ns'
kill $first $waits && wait $first $waits 2>/dev/null
cat /tmp/root

echo names
# Probes that he has created and does not use are removed to make room; those of others stay.
names=$(seq -f '-n tick-%.0fms' 20001 21100)
as 77 dtrace -l $names | grep -c 'tick-2....*ms'
there=$(dtrace -l | grep -c 'tick-2....*ms')
[ "$there" -gt 900 ] && [ "$there" -le 1024 ] && echo no more than there may be
as 77 device-check timers tick-30001ms 1 </dev/null
device-check timers tick-30002ms 1 </dev/null

echo time
# A clause that takes milliseconds, five hundred times a second.
cat >/tmp/heavy.d <<end
inline string hay = "$(printf '%030000d' 0)"; inline string needle = "$(printf '%090d1' 0)";
tick-499 { @ = sum(strstr(hay, needle) == NULL); } tick-30s { exit(0); }
end
as 77 dtrace -x strsize=32k -x statusrate=100ms -qs /tmp/heavy.d 2>&1 | grep -o 'processing aborted.*'
# The limit is per second.
sleep 1
as 77 dtrace -qn 'tick-10 { exit(0); }' >/dev/null && echo still there
# All others that fire in that second are killed too: of five at a time none is left.
sed -i s/tick-499/tick-99/ /tmp/heavy.d
all=()
for n in 1 2 3 4 5; do
	own dtrace -x strsize=32k -x statusrate=100ms -qs /tmp/heavy.d >/tmp/heavy.$n 2>&1 & all+=($!)
done
wait "${all[@]}"
grep -l 'processing aborted' /tmp/heavy.? | wc -l
rm -f /tmp/work /tmp/hidden /tmp/copies /tmp/device-check /tmp/never /tmp/told /tmp/root /tmp/heavy.*
rmmod dtrace && insmod "$(cat /run/vm/module)"
