# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# @slow: it tests many paths, one after the other
# The same as `shortage-processes` for a member of the tracing group, whose probes are created and
# charged differently. This case tests one path in a hundred, on the debug kernel one in twenty; all
# are tested by `make run CMD='cd qemu-tests/cases/framework; every=1 . ./shortage-member.sh'`.
. ./paths
mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing
case $(uname -r) in *-debug) every=${every:-20} ;; esac
every=${every:-100}
# Programs that the member can reach.
mkdir -m 755 /tmp/programs
for name in pid-work pid-loader late.so pid-pages usdt-work usdt-dof; do cp "$(dirname "$(command -v pid-work)")/$name" /tmp/programs; done
PATH=/tmp/programs:$PATH
rmmod dtrace && insmod "$(cat /run/vm/module)" group=77 && chmod 666 /dev/dtrace
shortage $every
shortage-check processes $every 1 member
enough
rm -r /tmp/programs
rmmod dtrace && insmod "$(cat /run/vm/module)"
