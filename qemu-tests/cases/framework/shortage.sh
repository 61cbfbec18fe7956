# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 600
# @slow: it lets many allocations fail, one after the other
# One allocation after the other that is made for a consumer fails, and then all from there on: the
# consumer is refused, or works with less, and leaves nothing; then the same for a member's
# consumer. Every twentieth is tested here; testing each takes two minutes on the stock kernel:
# `make run CMD='insmod …/shortage.ko calls=1; shortage-check 1'`. Probes in processes and loading
# the module have cases of their own.
module=$(cat /run/vm/module)
shortage=$(dirname "$module")/../shortage/shortage.ko
mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing
insmod "$shortage" calls=1 || exit 1
shortage-check 20
rmmod dtrace && insmod "$module" group=77 && chmod 666 /dev/dtrace
shortage-check 20 member
rmmod shortage
rmmod dtrace && insmod "$module" && dtrace -qn 'BEGIN { printf("and it works\n"); exit(0); }'
