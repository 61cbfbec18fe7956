# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# A provider makes at most 4,096 probes on request. At the limit, probes that are not enabled make
# room; enabled probes and those that always exist stay.
# Probes that other cases have had made to order would make room, too.
rmmod dtrace && insmod "$(cat /run/vm/module)"
dir=/tmp/to-order
mkdir -p $dir
names() { dtrace -lP profile | awk 'NR > 1 { print $NF }' | sort; }
names >$dir/usual
dtrace -qn 'tick-123456us { n++; } END { printf("ticked: %d\n", n > 20); }' -o $dir/ticks & tracer=$!
sleep 1
seq -f 'tick-%.0fus {}' 1000001 1002100 >$dir/first.d
seq -f 'tick-%.0fus {}' 1002101 1004200 >$dir/second.d
for list in first second; do
	echo "$list: $(dtrace -ls $dir/$list.d | grep -c tick-100....us)"
done
names >$dir/all
echo "missing: $(comm -23 $dir/usual $dir/all | wc -l) of $(($(wc -l <$dir/usual) > 5))"
dtrace -qn 'tick-77777us { printf("another\n"); exit(0); }' | grep .
echo "as many: $(awk 'END { print (NR > 3000 && NR <= 4096) }' $dir/all)"
sleep 3
kill $tracer
wait $tracer
grep . $dir/ticks
rm -r $dir
