# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 300
# bash reload.sh [ROUNDS]: unloads and loads the module that often; it must be loaded at the end.
# Five times on the debug kernel, which detects a fault the first time.
module=$(cat /run/vm/module)
rounds=${1:-10}
case $(uname -r) in *-debug) rounds=5 ;; esac
for i in $(seq $rounds); do
	rmmod dtrace && insmod "$module" || { echo "round $i"; exit 1; }
done
[ -c /dev/dtrace ] && echo loaded
