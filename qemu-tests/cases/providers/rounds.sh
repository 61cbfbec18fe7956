# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 900
# Enabled and disabled a thousand times while the functions are being called.
while :; do cat /proc/self/stat /etc/passwd; done >/dev/null 2>&1 &
load=$!
provider-check rounds 1000 'fbt::vfs_*:' 2>&1 | cut -d: -f1
kill $load
