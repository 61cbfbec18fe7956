# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# Neither open files of the programs' device nor registered probes keep the module loaded. Also
# tests the paths of the devices.
ready() { : >/tmp/helper; "$@" >/tmp/helper & await ready /tmp/helper; }
module=$(cat /run/vm/module)

ready helper-files
rmmod dtrace && echo gone
kill -USR1 $!
wait
cat /tmp/helper
insmod "$module"
ready usdt-dof register wait register fire
dtrace -ln 'work*:::tail' | wc -l
rmmod dtrace && echo gone
stat /dev/dtracehelper 2>/dev/null
kill -USR1 $!
wait
cat /tmp/helper
insmod "$module" layout=nowhere 2>&1 | sed 's/.*: //'
insmod "$module" layout=dir && stat -c '%a %n' /dev/dtrace/*
ready usdt-dof register wait fire
dtrace -ln 'work*:::tail' | wc -l
dtrace -qn 'BEGIN { printf("traces\n"); exit(0); }'
kill -USR1 $!
wait
cat /tmp/helper
rmmod dtrace && echo gone

# The module is unloaded while the device is opened and called.
insmod "$module"
ready helper-files 3
for _ in 1 2 3; do
	rmmod dtrace && insmod "$module" || echo "in use"
done
kill -USR1 $!
wait
cat /tmp/helper
rmmod dtrace && echo gone
insmod "$module" && stat -c '%a %n' /dev/dtrace*
