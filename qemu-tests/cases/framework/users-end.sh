# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# If the CPU that ends a tracing has no buffers, END fires on another one, in whatever process runs
# there. If the user may not see that process, END shows nothing of it. Here the user's limit leaves
# no room for the buffers of a CPU that comes online later, and the tracing ends on that CPU.
. ./member
rmmod dtrace && insmod "$(cat /run/vm/module)" group=77 user_memory=12
chmod 666 /dev/dtrace
online=/sys/devices/system/cpu/cpu1/online
# Keeps the other CPU busy.
setpriv --reuid 65533 --regid 65532 --clear-groups taskset 1 sh -c 'while :; do :; done' & stranger=$!
# ends COMMAND [OPTION...]: starts a tracing while CPU 0 is alone, and ends it on CPU 1.
ends() {
	: >/tmp/told
	chmod 666 /tmp/told
	echo 0 >$online
	"$1" dtrace -x bufsize=4m -x bufresize=manual -x aggsize=64k "${@:2}" -qn 'BEGIN { printf("begun\n"); } END {
		printf("on %d, in %s: parent %d uid %d gid %d \"%s\", %s\n", cpu,
		    pid == $pid ? "his own process" : pid == $1 ? "the stranger" : pid || tid ? "somebody" : "nobody",
		    ppid != 0, uid, gid, execname, vtimestamp ? "which has run" : "which has not run"); }' $stranger >/tmp/told 2>&1 & tracer=$!
	timeout 60 await begun /tmp/told
	echo 1 >$online
	taskset -apc 1 $tracer >/dev/null
	kill $tracer
	wait $tracer
	sed '/^$/d; /^begun/d' /tmp/told
}
# Root may choose where END fires, and sees what runs there: the stranger, unless something else ran
# at that moment.
for try in 1 2 3 4 5 6 7 8 9 10; do
	ends exec -x cpu=0 >/tmp/seen
	grep -q stranger /tmp/seen && break
done
echo "root: $(cat /tmp/seen)"
echo "a user: $(ends own)"
# With enough room END fires on the CPU that ends the tracing.
rmmod dtrace && insmod "$(cat /run/vm/module)" group=77
chmod 666 /dev/dtrace
echo "a user with room: $(ends own)"
kill $stranger
rm -f /tmp/told /tmp/seen
rmmod dtrace && insmod "$(cat /run/vm/module)"
