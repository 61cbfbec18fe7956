# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 120
# @slow: a path of many after the other
# What neither the lives of `shortage` nor the probes of `shortage-processes` ask the kernel for fails, on one path after the other: on one CPU alone
# what begins and ends there, the cleaner's visits to other CPUs, tables for stacks, and names of processes that have ended. Here it is
# one path of fifty, on the debug kernel one of twenty; all are tried by
# `make run CMD='cd qemu-tests/cases/framework; every=1 . ./shortage-rest.sh'`.
. ./paths
mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing
case $(uname -r) in *-debug) every=${every:-20} ;; esac
every=${every:-50}
shortage $every
shortage-check rest $every 1
enough
