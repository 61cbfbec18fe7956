# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 600
# @slow: a path of many after the other
# Programs are traced, by functions and instructions, in children, in libraries that come and go, by probes of their own; and each time an
# allocation or another call of the kernel fails that is made for that, on a path on which none has failed. Here it is one path of forty, on
# the debug kernel one of ten; all take an hour:
# `make run KERNEL=debug CMD='insmod …/shortage.ko calls=1; shortage-check processes 1 1'`.
. ./paths
mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing
every=40
case $(uname -r) in *-debug) every=10 ;; esac
shortage $every
shortage-check processes $every 1
enough
