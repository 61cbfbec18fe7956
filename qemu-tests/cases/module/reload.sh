# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 300
# bash reload.sh [ROUNDS]: so many times unloaded and loaded, and still there. On the debug kernel, which sees a fault the first time, five times.
module=$(cat /run/vm/module)
rounds=${1:-10}
case $(uname -r) in *-debug) rounds=5 ;; esac
for i in $(seq $rounds); do
	rmmod dtrace && insmod "$module" || { echo "round $i"; exit 1; }
done
[ -c /dev/dtrace ] && echo loaded
