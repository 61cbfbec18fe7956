# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# @slow: it tests many paths, one after the other
# Calls of the kernel fail, on one path after the other, that neither `shortage` nor
# `shortage-processes` makes: those for BEGIN and END on a single CPU, the cleaner's visits to other
# CPUs, unwind tables, and names in processes that have ended. This case tests one path in fifty, on
# the debug kernel one in twenty; all are tested by `make run CMD='cd qemu-tests/cases/framework;
# every=1 . ./shortage-rest.sh'`.
. ./paths
mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing
case $(uname -r) in *-debug) every=${every:-20} ;; esac
every=${every:-50}
shortage $every
shortage-check rest $every 1
enough
