# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# Programs of every kind, and files and processes of other namespaces: arguments, results, names and
# callers are correct.
. ./traced
calls='pid$target:a.out:sum8:entry { printf("%d %d %d by %A in %s:%s at %A\n", arg0, arg6, (int)arg7, usym(ucaller), probemod, probefunc, usym(uregs[R_RIP])); }
pid$target:a.out:sum8:return { printf("%d %A\n", (int)arg1, usym(uregs[R_RIP])); }'
of() { dtrace -x temporal -qn "$calls" "$@" 2>&1 | sed 's/+0x[0-9a-f]*//g'; }

# then_of COMMAND: prints the program's output, and then what was traced of it.
then_of() { rm -f /tmp/told; of -o /tmp/told -c "$1"; sed 's/+0x[0-9a-f]*//g' /tmp/told; }

for kind in static staticpie musl; do
	echo "$kind"
	then_of "pid-$kind"
done
echo 'by musl'"'"'s linker'
dtrace -x temporal -Zqn 'pid$target:late-musl:greet:entry { printf("%d %A\n", arg0, usym(ucaller)); } pid$target:libc:dlclose:entry,pid$target:ld-musl-x86_64:dlclose:entry { @[probefunc] = count(); }' \
	-c "pid-musl $(dirname "$(command -v pid-musl)")/late-musl.so" 2>&1 | sed 's/+0x[0-9a-f]*//'
echo 'i386'
then_of pid-i386
dtrace -x temporal -qn 'pid$target:a.out:wide:entry { printf("%d\n", arg0); } pid$target:a.out:wide:return { printf("%d %d\n", arg1, arg2); }
	pid$target:a.out:scaled:entry { printf("%d %.2f %d\n", args[0], args[1], args[2]); }
	pid$target:a.out:sum8: { @ = count(); } END { printa("%@d\n", @); }' -c pid-i386 2>&1

# at NAME COMMAND...: traces a program that waits.
at() {
	waiting "$1" sum "${@:2}"
	of -wp "$pid" -n 'BEGIN { system("kill -USR1 %d", $target); }'
	wait
	rm /tmp/out
}
elsewhere at pid-work sum
mkdir /tmp/lower /tmp/over
mount -t tmpfs none /tmp/over && mkdir /tmp/over/upper /tmp/over/work /tmp/merged
cp "$(command -v pid-work)" /tmp/lower/below
mount -t overlay none -o lowerdir=/tmp/lower,upperdir=/tmp/over/upper,workdir=/tmp/over/work /tmp/merged
at 'from below an overlay' /tmp/merged/below wait sum
cp /tmp/lower/below /tmp/merged/above
at 'from an overlay' /tmp/merged/above wait sum
umount /tmp/merged /tmp/over
rm -r /tmp/lower /tmp/over /tmp/merged

echo 'dtrace in a pid namespace'
rm -f /tmp/traced
unshare -pf --mount-proc dtrace -o /tmp/traced -qn "$calls"' BEGIN { printf("%d\n", $target < 10); }' -c 'pid-work sum' 2>&1
sed 's/+0x[0-9a-f]*//g' /tmp/traced
echo 'two processes of one number'
two='pid-work wait sum'
unshare -pf --mount-proc dtrace -qn "$calls"' BEGIN { printf("begun\n"); }' -wc "$two" >/tmp/first 2>&1 &
first=$!
await begun /tmp/first
unshare -pf --mount-proc dtrace -x switchrate=1hour -qn "$calls" -c 'pid-work sum' 2>&1 | grep -o 'failed.*'
pkill -USR1 pid-work
wait $first
sed 's/+0x[0-9a-f]*//g' /tmp/first
