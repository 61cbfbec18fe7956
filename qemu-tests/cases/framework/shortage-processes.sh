# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 600
# @slow: it tests many paths, one after the other
# Programs are traced by functions and instructions, in children, in libraries that are loaded and
# unloaded, and by USDT probes; each time an allocation or another call of the kernel that is made
# for that fails, on a path on which none has failed. This case tests one path in forty, on the
# debug kernel one in ten; all take an hour: `make run KERNEL=debug CMD='insmod …/shortage.ko
# calls=1; shortage-check processes 1 1'`.
. ./paths
mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing
every=40
case $(uname -r) in *-debug) every=10 ;; esac
shortage $every
shortage-check processes $every 1
enough
