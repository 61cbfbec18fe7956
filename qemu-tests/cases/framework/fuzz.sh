# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 120
# @debug: quick
# Images and control calls that nobody would make, always the same: see qemu-tests/src/bin/ioctl-fuzz. Those that are to be done
# are done, the others refused, and a consumer works afterwards. `make fuzz-vm` does it for long, as several users.
ioctl-fuzz 1 60
dtrace -qn 'BEGIN { printf("and it works\n"); exit(0); }'
