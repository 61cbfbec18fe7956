# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 900
# Fifty times unloaded and loaded, and still there.
module=$(cat /run/vm/module)
for i in $(seq 50); do
	rmmod dtrace && insmod "$module" || { echo "round $i"; exit 1; }
done
[ -c /dev/dtrace ] && echo loaded
