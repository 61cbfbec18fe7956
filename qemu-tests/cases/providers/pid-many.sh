# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 180
# @slow: it creates a million places
# Every instruction of libc by one description: it may have as many probes as the consumer may, and
# there is no other limit.
case $(uname -r) in
*-debug) every='pid$target:libc.so.6:[d-f]*:' few=5000 ;;
*) every='pid$target:libc.so.6::' few=300000 ;;
esac
for n in first again; do
	echo "$n"
	# Instructions that overlap with another cannot have a probe; that is reported in one line.
	dtrace -qn "$every"' { @ = count(); } END { printa("%@d\n", @); }' -c 'pid-work grow' 2>&1 |
		sed '/could not be enabled/d; /^$/d; s/^[1-9][0-9]*$/many/'
done
echo fewer
rmmod dtrace && insmod "$(cat /run/vm/module)" consumer_places=$few
dtrace -qn "$every" -c 'pid-work grow' 2>&1 | sed "s/.*: a consumer/a consumer/; s/$few/N/"
dtrace -qn 'pid$target:a.out:grow:entry { @ = count(); } END { printa("%@d\n", @); }' -c 'pid-work grow' | grep .
rmmod dtrace && insmod "$(cat /run/vm/module)"
