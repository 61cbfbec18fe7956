# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# A provider in another module: its probes, arguments and attributes. While one of its probes is
# enabled that module cannot be unloaded, and dtrace.ko cannot while that module is loaded. It can
# be loaded again under its name, also while a consumer waits for it.
sample=$(dirname "$(cat /run/vm/module)")/../provider/dtrace_sample.ko
wanted='sample:::write-start { printf("%s:%s:%s %d %s\n", probemod, probefunc, probename, args[0], args[1]->pr_fname); }
	sample:::write-done { printf("%s %d\n", probename, args[0]); }'
dtrace -ln 'sample:::' 2>&1 | grep -c sample_write
insmod "$sample"
dtrace -ln 'sample:::' | awk 'NR > 1 { print $2, $3, $4, $5 }'
dtrace -lvn sample:::write-start | sed '1,3d'
echo unseen >/proc/dtrace_sample
dtrace -qn "$wanted" -c 'sh -c "echo three >/proc/dtrace_sample; echo >/proc/dtrace_sample"' | sed '/^$/d'
dtrace -qn 'sample:::write-done { exit(0); }' >/dev/null &
for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
	read -r _ _ used _ <<<"$(grep ^dtrace_sample /proc/modules)"
	[ "$used" = 0 ] || break
	sleep 1
done
rmmod dtrace_sample 2>/dev/null && echo "the module went while it was traced"
rmmod dtrace 2>/dev/null && echo "ours went while it was used"
echo >/proc/dtrace_sample
wait
rmmod dtrace_sample
dtrace -ln 'sample:::' 2>&1 | grep -c sample_write
dtrace -Zqn 'sample:::write-start { printf("came: %d\n", arg0); exit(0); } tick-30s { exit(1); } BEGIN { printf("waits\n"); }' >/tmp/provider-later &
until grep -q waits /tmp/provider-later 2>/dev/null || [ $((n += 1)) -gt 20 ]; do sleep 1; done
insmod "$sample"
echo four >/proc/dtrace_sample
wait
sed '/^$/d' /tmp/provider-later
rmmod dtrace_sample
