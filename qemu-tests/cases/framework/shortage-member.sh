# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 120
# @slow: a path of many after the other
# What `shortage-processes` does, by a member of the tracing group, whose probes are made and paid for in ways of their own. Here it is one path of
# a hundred, on the debug kernel one of twenty; all are tried by
# `make run CMD='cd qemu-tests/cases/framework; every=1 . ./shortage-member.sh'`.
. ./paths
mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing
case $(uname -r) in *-debug) every=${every:-20} ;; esac
every=${every:-100}
# What he may reach.
mkdir -m 755 /tmp/programs
for name in pid-work pid-loader late.so pid-pages usdt-work usdt-dof; do cp "$(dirname "$(command -v pid-work)")/$name" /tmp/programs; done
PATH=/tmp/programs:$PATH
rmmod dtrace && insmod "$(cat /run/vm/module)" group=77 && chmod 666 /dev/dtrace
shortage $every
shortage-check processes $every 1 member
enough
rm -r /tmp/programs
rmmod dtrace && insmod "$(cat /run/vm/module)"
