# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 600
# @slow: an allocation after the other
# One allocation after the other fails that is made for a consumer, and all after it: it is refused, or lives with less, and leaves
# nothing; then for one of a member's. Every twentieth is tried here; each in turn takes the stock kernel two minutes:
# `make run CMD='insmod …/shortage.ko calls=1; shortage-check 1'`. Probes in processes and loading the module have cases of their own.
module=$(cat /run/vm/module)
shortage=$(dirname "$module")/../shortage/shortage.ko
mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing
insmod "$shortage" calls=1 || exit 1
shortage-check 20
rmmod dtrace && insmod "$module" group=77 && chmod 666 /dev/dtrace
shortage-check 20 member
rmmod shortage
rmmod dtrace && insmod "$module" && dtrace -qn 'BEGIN { printf("and it works\n"); exit(0); }'
