# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 60
# Probes of one instruction under two names all fire, whether one tracing has them or two, and stay when others at the instruction go.
both='pid$target:a.out:work:entry { @["work in"] = count(); } pid$target:a.out:work:return { @["work out"] = count(); }
pid$target:a.out:twi*:entry { @["twin in"] = count(); } pid$target:a.out:twi*:return { @["twin out"] = count(); }
END { printa("%s %@d\n", @); }'
dtrace -qn "$both" -c pid-aliases | grep . | sort
echo 'two tracings, of which the first ends earlier'
pid-aliases /tmp/first /tmp/second >/tmp/said & its=$!
# traces NAME FUNCTION: in the background, as $tracer.
traces() {
	dtrace -qn "pid\$target:a.out:$2:entry { @ = count(); } BEGIN { printf(\"begun\n\"); } END { printa(\"$1 %@d\n\", @); }" -p $its >/tmp/"$1" 2>&1 & tracer=$!
	await begun /tmp/"$1"
}
traces work work && one=$tracer
traces twin 'twi*' && two=$tracer
: >/tmp/first
await total /tmp/said
kill $one
wait $one
: >/tmp/second
wait $its $two
cat /tmp/said /tmp/work /tmp/twin | grep -v begun | grep .
rm -f /tmp/first /tmp/second /tmp/said /tmp/work /tmp/twin
