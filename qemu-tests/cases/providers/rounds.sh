# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 300
# @slow: hundreds of enablings
# Enables and disables functions repeatedly while they are being called. Their returns are enabled
# too, so a call that was entered in one round can return in another round or while nothing is
# enabled. The debug kernel gets fewer rounds because it detects an error at its first occurrence.
# For a longer run by hand: `provider-check rounds 1000 'fbt::vfs_*:'`.
rounds=250
case $(uname -r) in *-debug) rounds=30 ;; esac
while :; do cat /proc/self/stat /etc/passwd; done >/dev/null 2>&1 &
load=$!
provider-check rounds $rounds 'fbt::vfs_*:' 2>&1 | cut -d: -f1
kill $load
