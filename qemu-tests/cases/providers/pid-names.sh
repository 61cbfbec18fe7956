# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 90
# @debug: quick
# The names of a program's functions and file do nothing to the terminal of the consumer, and its
# probes are found by them.
hostile=$(printf '/tmp/a\033[2J:b')
LC_ALL=C sed 's/clears_12J/clears\x1b[2J/; s/title_3/title\x9b3/; s/two_4lines/two\nlines_/; s/turns_555/turns_\xe2\x80\xae/
	s/type_6eq/type:.eq/; s/operator_7/operator\/7/; s/gr_8899e/gr\xc3\xb6\xc3\x9fe_/; s/latin_0/latin_\xf6/' "$(command -v pid-names)" >"$hostile"
chmod +x "$hostile"

echo 'probes, addresses and stacks'
every=$(printf 'pid$target:a.out:%s*:entry,' clears title two turns type operator gr latin)
dtrace -qn "${every%,}"' { @[probemod, probefunc] = count(); } END { printa("%s %s %@d\n", @); }' -c "$hostile" 2>&1 | grep . | LC_ALL=C sort
dtrace -qn 'pid$target:a.out:clears*:entry { @a[usym(uregs[R_RIP])] = count(); @b[umod(uregs[R_RIP])] = count(); @c[ustack(1)] = count(); }
	END { printa("%A %@d\n", @a); printa("%A %@d\n", @b); printa("%k\n", @c); }' -c "$hostile" 2>&1 | sed 's/^ *//; /^$/d'
echo 'a name that was printed'
dtrace -qn 'pid$target:a?*:clears??2J:entry { @[ufunc(uregs[R_RIP])] = count(); }' -c "$hostile" 2>&1 | sed 's/ *$//'
echo 'a list'
"$hostile" wait & pid=$!
sleep 1
dtrace -ln "pid$pid:a.out:clears*:entry" 2>&1 | sed "s/^ *[0-9]* */ID /; s/$pid/N/"
dtrace -ln "pid$pid:a.out:clears??2J:ffff" 2>&1 | sed "s/$pid/N/g"
dtrace -ln "pid$pid:a.out:two_lines_:entry" 2>&1 | sed "s/$pid/N/g"
kill $pid
wait $pid 2>/dev/null
rm "$hostile"
echo 'what the kernel takes'
rights-work mark /tmp/ready await /tmp/go & pid=$!
until [ -e /tmp/ready ]; do sleep 0.1; done
sled=$(eu-readelf -s "$(command -v rights-work)" | awk '$NF == "sled" { print $2; exit }')
device-check names $pid "$(printf %x $((0x$(awk -F- '{ print $1; exit }' /proc/$pid/maps) + 0x$sled)))"
kill $pid
wait $pid 2>/dev/null
rm /tmp/ready
