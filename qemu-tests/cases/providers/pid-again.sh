# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 90
# A process with the ID of one that had probes: it has none of those, and its own probes are those
# of its program.
. ./traced
number=29999
n='pid29999:a.out'
listed() { dtrace -l -n 'pid*:::' 2>/dev/null | awk -v of=pid$number '$2 == of { n++ } END { print n + 0, "listed" }'; }
# A waiting process stands for what the consumer traces besides, which continues.
pid-work wait >/tmp/other &
other=$!
await ready /tmp/other

# begin WORD...: starts another process with the ID, which waits for SIGUSR1.
begin() {
	: >/tmp/out
	as-pid $number "$@" >/tmp/out &
	process=$!
	await ready /tmp/out
}
# trace D: traces both.
trace() {
	dtrace -x switchrate=10hz -Zqn "BEGIN { printf(\"begun\n\"); } $1" -p $number -p $other >/tmp/traced 2>&1 &
	tracer=$!
	await begun /tmp/traced
}
over() {
	kill -TERM $tracer
	wait $tracer
	grep -vx begun /tmp/traced | grep .
}
counts="$n:grow: { @i = count(); } $n:grow:entry { @n = count(); } END { printa(\"%@d entries\n\", @n); }"

echo 'the same program'
begin pid-work wait grow text
trace "$counts"
listed
kill -KILL $number
wait $process
echo "ended with $?"
begin pid-work wait grow text
kill -USR1 $number
wait $process
cat /tmp/out
over

echo 'that is traced as well'
begin pid-work wait grow
trace "$counts"
first=$tracer
kill -KILL $number
wait $process
begin pid-work wait grow
mv /tmp/traced /tmp/traced-first
trace "$counts"
listed
kill -USR1 $number
wait $process
cat /tmp/out
over
kill -TERM $first
wait $first
grep -vx begun /tmp/traced-first | grep .

echo 'another program'
begin pid-work wait grow
trace "$n:: { @n = count(); } END { printa(\"%@d instructions\n\", @n); }"
first=$tracer
kill -KILL $number
wait $process
begin usdt-work wait tell
mv /tmp/traced /tmp/traced-first
trace "work$number:::said-it { @n = sum(arg0); } $n:tell:entry { @e = count(); } END { printa(\"said %@d\n\", @n); printa(\"%@d entries\n\", @e); }"
kill -USR1 $number
wait $process
cat /tmp/out
over
kill -TERM $first
wait $first
grep -vx begun /tmp/traced-first | grep .

echo 'one that registers'
begin usdt-dof register wait fire
trace "work$number:::tail { @n = sum(arg0); } END { printa(\"tail %@d\n\", @n); }"
kill -KILL $number
wait $process
begin usdt-dof register wait fire
kill -USR1 $number
wait $process
cat /tmp/out
over
echo 'again and again'
for i in 1 2 3 4 5 6 7 8; do
	begin pid-work wait grow
	dtrace -qn "$n:grow:entry { @n = count(); } END { printa(\"%@d \", @n); } BEGIN { system(\"kill -USR1 $number\"); }" -wp $number 2>&1 | grep .
	wait $process
done
kill $other
wait $other
for i in {1..100}; do [ "$(listed)" = '0 listed' ] && break; sleep 0.1; done
listed
rm -f /tmp/out /tmp/other /tmp/traced /tmp/traced-first
