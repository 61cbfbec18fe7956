# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 900
# @slow: it tests many paths, one after the other
# The module is loaded with an anonymous enabling, another module with a provider is loaded, the
# enabling is claimed, and both modules are unloaded; each time something fails, on a path on which
# nothing has failed. This case tests one path in forty, on the debug kernel one in twenty; all are
# tested by `make run CMD='cd qemu-tests/cases/framework; every=1 . ./shortage-loads.sh'`.
. ./paths
case $(uname -r) in *-debug) every=${every:-20} ;; esac
every=${every:-40}
shortage $every
shortage-check loads $every 1 "$(dirname "$(cat /run/vm/module)")"
enough
