# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 90
# @debug: quick
# Who has the programs' device open keeps the module; who has registered probes does not. Where the devices lie.
until_line() { until grep -q "$1" "$2"; do sleep 0.1; done; }
ready() { : >/tmp/helper; usdt-dof "$@" >/tmp/helper & until_line ready /tmp/helper; }
module=$(cat /run/vm/module)

ready register wait fire
rmmod dtrace 2>&1 || echo "refused"
kill -USR1 $!
wait
cat /tmp/helper
ready register close wait fire
dtrace -ln 'work*:::tail' | wc -l
rmmod dtrace && echo gone
stat /dev/dtracehelper 2>/dev/null
kill -USR1 $!
wait
cat /tmp/helper
insmod "$module" layout=nowhere 2>&1 | sed 's/.*: //'
insmod "$module" layout=dir && stat -c '%a %n' /dev/dtrace/*
ready register wait fire
dtrace -ln 'work*:::tail' | wc -l
dtrace -qn 'BEGIN { printf("traces\n"); exit(0); }'
kill -USR1 $!
wait
cat /tmp/helper
rmmod dtrace && echo gone
insmod "$module" && stat -c '%a %n' /dev/dtrace*
