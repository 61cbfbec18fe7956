# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 60
# Probes that a member of the tracing group enables in a program of theirs do not keep root from
# those at the same instructions, which pass other arguments, and neither do root's the member.
rmmod dtrace && insmod "$(cat /run/vm/module)" group=77
chmod 666 /dev/dtrace
member='setpriv --reuid 65534 --regid 77 --clear-groups'
# enables NAME PID D [COMMAND...]: traces the process, by the command.
enables() {
	local name=$1 pid=$2 program=$3
	shift 3
	"$@" dtrace -qn "$program"' BEGIN { printf("begun\n"); }' -p "$pid" >"/tmp/$name" 2>&1 &
	await 'begun|dtrace:' "/tmp/$name"
}
his() { enables his "$its" 'work$target:junk::passed { printf("member %d\n", arg0); }' $member; }
ours() { enables ours "$its" 'work$target:usdt-dof::passed { printf("root %s\n", copyinstr(arg0)); }'; }
# both FIRST SECOND: has them enable their probes in this order.
both() {
	echo "$*"
	$member usdt-dof junk register wait fire fire >/tmp/said & its=$!
	await ready /tmp/said
	"$1"
	"$2"
	kill -USR1 "$its"
	wait
	grep -h . /tmp/said /tmp/ours /tmp/his | grep -v 'ready\|begun'
	rm /tmp/said /tmp/ours /tmp/his
}
both his ours
both ours his
rmmod dtrace && insmod "$(cat /run/vm/module)"
