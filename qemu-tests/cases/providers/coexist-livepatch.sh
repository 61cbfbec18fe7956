# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 180
# A live patch of a function that is traced: every call fires at both ends, whichever comes or goes first, and is a call of the patch
# while there is one.
cat >/tmp/patch <<'end'
state=/sys/kernel/livepatch/livepatch
while [ $# -gt 0 ]; do
	case $1 in
	on)
		insmod "$(dirname "$(cat /run/vm/module)")/../livepatch/livepatch.ko"
		until [ "$(cat $state/transition)" = 0 ]; do sleep 0.1; done
		;;
	off)
		echo 0 >$state/enabled
		while [ -e $state ]; do sleep 0.1; done
		rmmod livepatch
		;;
	read) for n in $(seq 20); do cat /proc/cmdline; done | awk '/^patched$/ { n++ } END { print n + 0, "of 20 are patched" }' ;;
	esac
	shift
done
end
probes='fbt:vmlinux:cmdline_proc_show:entry fbt:vmlinux:cmdline_proc_show:return'
# Others read the file too, as who loads a module does: as often at both ends, and not less than we.
traced() {
	local least=$1
	shift
	provider-check run "$@" 2>/dev/null | awk -v least="$least" '/^fbt:/ { if (!n) n = $2; print $1, ($2 == n && n >= least); next } { print }'
}
echo 'the patch comes and goes'
traced 60 $probes -- sh /tmp/patch read on read off read
sh /tmp/patch on
echo 'the tracing comes and goes'
traced 20 $probes fbt:livepatch:patched_show:entry fbt:livepatch:patched_show:return -- sh /tmp/patch read
echo 'the patch goes'
traced 40 $probes -- sh /tmp/patch read off read
sh /tmp/patch read
