# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 300
# @slow: hundreds of enablings
# Enabled and disabled again and again while the functions are being called. Returns are among them, and a call that was
# entered in one round may return in another, or when nothing is enabled. Less often on the debug kernel, which sees what is wrong
# with it the first time. By hand, for longer: `provider-check rounds 1000 'fbt::vfs_*:'`.
rounds=250
case $(uname -r) in *-debug) rounds=30 ;; esac
while :; do cat /proc/self/stat /etc/passwd; done >/dev/null 2>&1 &
load=$!
provider-check rounds $rounds 'fbt::vfs_*:' 2>&1 | cut -d: -f1
kill $load
