# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 240
# Every demonstration compiles for this kernel: its probes are there, and the fields of its types.
demo=../../../userland-lib/demo
for script in $demo/*.d; do
	case $script in
	*/funccount.d | */functime.d) argument=vfs_read ;;
	*) argument= ;;
	esac
	dtrace -e -s $script $argument -c true || echo "$script: status $?"
done 2>&1
ls $demo/*.d | wc -l
