# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 120
# Where the CPU that ends a tracing has no buffers END fires on another one, in whoever runs there. A user who may not see that process is told nothing
# of it. The user's limit leaves no room for the buffers of a CPU that comes later, which is where he ends.
. ./member
rmmod dtrace && insmod "$(cat /run/vm/module)" group=77 user_memory=12
chmod 666 /dev/dtrace
online=/sys/devices/system/cpu/cpu1/online
# The other CPU always has this to run.
setpriv --reuid 65533 --regid 65532 --clear-groups taskset 1 sh -c 'while :; do :; done' & stranger=$!
# ends WHO [OPTION...]: he begins while CPU 0 is alone, and ends on CPU 1.
ends() {
	: >/tmp/told
	chmod 666 /tmp/told
	echo 0 >$online
	"$1" dtrace -x bufsize=4m -x bufresize=manual -x aggsize=64k "${@:2}" -qn 'BEGIN { printf("begun\n"); } END {
		printf("on %d, in %s: parent %d uid %d gid %d \"%s\", %s\n", cpu,
		    pid == $pid ? "his own process" : pid == $1 ? "the stranger" : pid || tid ? "somebody" : "nobody",
		    ppid != 0, uid, gid, execname, vtimestamp ? "which has run" : "which has not run"); }' $stranger >/tmp/told 2>&1 & tracer=$!
	timeout 60 sh -c 'until grep -qs begun /tmp/told; do sleep 0.1; done'
	echo 1 >$online
	taskset -apc 1 $tracer >/dev/null
	kill $tracer
	wait $tracer
	sed '/^$/d; /^begun/d' /tmp/told
}
# Root may choose where END fires, and sees who is there: the stranger, unless something was just in its place.
for try in 1 2 3 4 5 6 7 8 9 10; do
	ends exec -x cpu=0 >/tmp/seen
	grep -q stranger /tmp/seen && break
done
echo "root: $(cat /tmp/seen)"
echo "a user: $(ends own)"
# Where there is room he ends where he is.
rmmod dtrace && insmod "$(cat /run/vm/module)" group=77
chmod 666 /dev/dtrace
echo "a user with room: $(ends own)"
kill $stranger
rm -f /tmp/told /tmp/seen
rmmod dtrace && insmod "$(cat /run/vm/module)"
