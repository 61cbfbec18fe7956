# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 180
# A live patch of a traced function: every call fires at both ends, whichever of the two is enabled
# or disabled first, and executes the patch while it is enabled.
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
# Others read the file too, for example when a module is loaded: the counts must be equal at both
# ends, and not less than the test's own reads.
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
