# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 900
# Enabled and disabled again and again while the functions are being called. Returns are among them, and a call that was
# entered in one round may return in another, or when nothing is enabled.
while :; do cat /proc/self/stat /etc/passwd; done >/dev/null 2>&1 &
load=$!
provider-check rounds 1000 'fbt::vfs_*:' 2>&1 | cut -d: -f1
kill $load
