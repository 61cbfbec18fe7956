# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 900
# Enabled and disabled again and again while the functions are being called. 1,000 rounds, by hand, are the whole
# test; one such run of two ended in `Oops: int3` of __schedule under QEMU's TCG, at a static key that return tracing switches, cause not found.
while :; do cat /proc/self/stat /etc/passwd; done >/dev/null 2>&1 &
load=$!
provider-check rounds 50 'fbt::vfs_*:' 2>&1 | cut -d: -f1
kill $load
