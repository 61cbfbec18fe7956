# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 240
# @debug: quick
# Stacks of programs whose functions have no frame pointers.

. ./ustack-names

for chain in deep sorts fills aligns signal; do
	echo "$chain: $(dtrace -qn 'syscall::getppid:entry /pid == $target/ { ustack(); }' -c "ustack-work $chain" 2>&1 | names)"
done

# A signal can interrupt a program at any address, and a handler can forge the interrupted address:
# dtrace prints it as a number.
dtrace -qn 'syscall::getppid:entry /pid == $target/ { printf("stack"); ustack(); }' -c 'ustack-work jumps' |
	sed -nE 's/^ +ustack-work`([a-z_]+).*/\1/p; s/^ +(libc)[^`]*`.*/other/p; s/^ +(0x[0-9a-f]+|\[.*)$/\1/p; /^stack$/p' | uniq | paste -sd' ' | sed 's/ stack/\nstack/g'

# When a return probe fires, the function has already returned.
echo 'at the ends of functions'
for probe in pid\$target::last:entry pid\$target::last:return fbt::*_sys_getppid:entry; do
	echo "$(dtrace -qn "$probe /pid == \$target/ { ustack(); printf(\"depth %d\", ustackdepth > 5); }" -c 'ustack-work fills' 2>&1 |
		sed 's/depth/ ustack-work`depth/' | names)"
done
dtrace -qn 'pid$target::last:entry { @[usym(ucaller)] = count(); }' -c 'ustack-work fills aligns deep' | sed -nE 's/^ +ustack-work`([a-z]+) +/\1 /p' | sort

# If no consumer has named the program, its table is made after a stack has led to it.
echo 'found'
dtrace -x switchrate=100hz -qn 'syscall::getppid:entry /execname == "ustack-work"/ { ustack(); } tick-60s { exit(1); }' >/tmp/stacks 2>&1 &
for n in {1..100}; do
	ustack-work sorts 300 deep
	grep -q '`_start' /tmp/stacks && break
done
kill $!
wait $!
names </tmp/stacks | grep -o 'other last deep main other _start' | head -1

echo 'by the mode'
for mode in auto fp table best; do
	dtrace -x ustackmode=$mode -qn 'syscall::getppid:entry /pid == $target/ { ustack(); exit(0); }' -c 'ustack-work sorts' >/tmp/stacks 2>/tmp/err
	echo $mode: $(grep -c '`_start' /tmp/stacks) $(cat /tmp/err)
done
# In the mode `table` only tables count: a frame without one ends the stack, whatever the frame
# pointer seems to be.
cp "$(command -v ustack-work)" /tmp/fresh
dtrace -x ustackmode=table -x switchrate=10sec -qn 'syscall::getppid:entry /execname == "fresh"/ { @[ustackdepth] = count(); }' \
	-c 'sh -c "/tmp/fresh deep"' | awk 'NF { print "depth " $1 }'

# A stack is cut off at the same frame when it is walked for the first time and when it is walked
# again.
echo 'cut off'
dtrace -qn 'syscall::getppid:entry /pid == $target/ { @depths[ustackdepth] = count(); @stacks[ustack(600)] = count(); }
	END { printa("depth %d %@d\n", @depths); printa("stack %@d\n", @stacks); }' -c 'ustack-work deepest deepest deepest' | sed '/./!d'
for frames in 20 600; do
	dtrace -qn 'syscall::getppid:entry /pid == $target/ { ustack('$frames'); }' -c 'ustack-work deepest' | grep -E '^ +(ustack-work`deep\+|\[lost)' | sed -E 's/^ +//; s/\+0x.*//' |
		uniq -c | paste -sd' ' | sed 's/  */ /g; s/^ //'
done
