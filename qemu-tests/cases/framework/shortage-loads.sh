# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 900
# @slow: a path of many after the other
# The module is loaded with an anonymous enabling, a provider of another module comes, somebody claims the enabling, and both modules go; each
# time something fails, on a path on which nothing has failed. Here it is one path of forty, on the debug kernel one of twenty; all are tried
# by `make run CMD='cd qemu-tests/cases/framework; every=1 . ./shortage-loads.sh'`.
. ./paths
case $(uname -r) in *-debug) every=${every:-20} ;; esac
every=${every:-40}
shortage $every
shortage-check loads $every 1 "$(dirname "$(cat /run/vm/module)")"
enough
