# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 600
# @slow: an allocation after the other
# One allocation after the other fails that is made for a consumer, and all after it: it is refused, or lives with less, and leaves
# nothing; then for one of a member's. Then the same while the module is loaded, of which the debug kernel tries more. Every twentieth is
# tried here; each in turn takes the stock kernel two minutes: `make run CMD='insmod …/shortage.ko calls=1; shortage-check 1'`. Probes in
# processes have a case of their own.
module=$(cat /run/vm/module)
shortage=$(dirname "$module")/../shortage/shortage.ko
parameters=/sys/module/shortage/parameters
loads='3 21 144'
case $(uname -r) in *-debug) loads='1 2 3 5 8 13 21 34 55 89 144 233 377 610 987' ;; esac
mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing
insmod "$shortage" calls=1 || exit 1
shortage-check 20
rmmod dtrace && insmod "$module" group=77 && chmod 666 /dev/dtrace
shortage-check 20 member

# loads NTH: loads the module, of whose allocations the NTH fails. It is loaded, or there is no memory.
loads() {
	echo "$1" >$parameters/nth
	echo 0 >$parameters/seen
	bash -c "echo \$\$ >$parameters/task; exec insmod $module" 2>/tmp/shortage.err
	status=$?
	echo 0 >$parameters/task
	if [ $status -ne 0 ] && ! grep -qE 'Cannot allocate memory|Input/output error' /tmp/shortage.err; then
		echo "allocation $1, $(cat $parameters/where): $(cat /tmp/shortage.err)"
	fi
	return $status
}
rmmod dtrace
refused=0
for nth in $loads; do
	if loads $nth; then
		rmmod dtrace
	else
		refused=$((refused + 1))
	fi
done
[ $refused -gt 0 ] || echo "no load was refused"
rmmod shortage
insmod "$module" && dtrace -qn 'BEGIN { printf("and it works\n"); exit(0); }'
