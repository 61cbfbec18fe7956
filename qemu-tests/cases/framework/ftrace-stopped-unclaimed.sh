# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 60
# @last: ftrace has stopped for good, and the module's removal does not end
# If ftrace stops while functions are traced by an unclaimed anonymous enabling, nothing keeps rmmod
# from starting, but it never ends.
dmesg -C
module=$(cat /run/vm/module)
dof=/tmp/anon.dof
dtrace -qA -o $dof -n 'fbt::do_nanosleep: { @ = count(); }'
rmmod dtrace
insmod "$module" anon_file=$dof
insmod "$(dirname "$module")/../stopftrace/stopftrace.ko"
rmmod dtrace &
until dmesg | grep -q 'does not end'; do sleep 0.1; done
[ -d /proc/$! ] && echo "still at it"
[ -c /dev/dtrace ] || echo "no device"
dmesg | sed -n 's/.*dtrace: \(.*ftrace\|.*traced\)/\1/p' | sort -u
rm -f $dof
