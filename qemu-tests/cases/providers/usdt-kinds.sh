# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# USDT probes of programs of each kind, of files and processes in other namespaces, and of files
# with notes of only one kind.
. ./traced
echo 'i386'
usdt-i386
dtrace -x temporal -qn 'small$target:::told { printf("%d %d %d %x %d in %s:%s by %s\n", args[0], args[1], args[2], args[3], args[4], probemod, probefunc, execname); }' \
	-o /tmp/told -c usdt-i386 2>&1
cat /tmp/told

# at NAME COMMAND...: traces a waiting program by a pattern and by its process id.
at() {
	waiting "$1" tell "${@:2}"
	dtrace -ln 'work*:::said-it' 2>&1 | awk 'NR > 1 { print $3, $4 }'
	dtrace -x temporal -qn 'work$target:::said-it { @[probemod, probefunc] = sum(args[0]); } BEGIN { system("kill -USR1 %d", $target); }
		END { printa("%s:%s %@d\n", @); }' -wp "$pid" 2>&1 | grep .
	wait
	cat /tmp/out
	rm /tmp/out
}
elsewhere at usdt-work tell

# Programs that start later, at a path where no process outside of their namespace can open the
# file.
echo 'later, in other namespaces'
dtrace -x temporal -x holdtime=1sec -Zqn 'work*:::said-it { @[probemod, probefunc] = sum(arg0); } BEGIN { printf("begun\n"); }
	END { printa("%s:%s %@d\n", @); }' >/tmp/later 2>&1 & its=$!
await begun /tmp/later
unshare -mpf --mount-proc sh -c 'mount -t tmpfs none /mnt && cp $(command -v usdt-work) /mnt/elsewhere && /mnt/elsewhere tell'
pid-memfd "$(command -v usdt-work)" tell
kill $its
wait
grep . /tmp/later

# Each site of the sample has two notes, one of each kind.
cp "$(command -v shop-c)" /tmp/both
objcopy --remove-section .note.stapsdt /tmp/both /tmp/usdt-alone
objcopy --remove-section .note.usdt /tmp/both /tmp/stapsdt-alone
for shop in both usdt-alone stapsdt-alone; do
	echo "$shop"
	rm /tmp/told
	dtrace -x temporal -qn 'shop$target:::sold { printf("%d %s\n", (int)arg0, copyinstr(arg1)); }' -o /tmp/told -c "/tmp/$shop 2" >/dev/null
	grep . /tmp/told
done
rm /tmp/told /tmp/later /tmp/both /tmp/*-alone
