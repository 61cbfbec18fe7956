# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 240
# All functions at once, then all tracepoints, while the machine goes on working; nothing stays patched.
mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing
for probes in fbt:::entry fbt:::return fbt::: sdt:::; do
	provider-check run $probes -- ls / 2>&1 >/tmp/everything | sed -E 's/^[0-9]{2,} probes, .* 0 errors.*/enabled/'
	grep -c "^$probes [1-9]" /tmp/everything
done
awk '!/^dtrace_anchor/ { n++ } END { print n + 0 }' /sys/kernel/tracing/enabled_functions
