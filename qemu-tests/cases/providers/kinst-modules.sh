# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# @debug: quick
# Instructions of a module that is unloaded and loaded: a waiting consumer has its probes enabled
# again each time, and so does a new consumer; while the module is not loaded there are no probes.
# One probe is at ftrace's call, one at a breakpoint.
modprobe dummy numdummies=0
inner=$(dtrace -Zln "$(seq -f 'kinst:dummy:dummy_setup:%g' -s , 10 40)" 2>/dev/null | awk 'END { print $NF }')
cat >/tmp/count <<end
dtrace -qn '
	kinst:dummy:dummy_setup:0 { @entry = count(); }
	kinst:dummy:dummy_setup:$inner { @inner = count(); }
	END { printa("%@d ", @entry); printa("%@d\n", @inner); }' -c "\$*" | sed '/^$/d'
end
echo 'ip link add kinst0 type dummy; ip link del kinst0' >/tmp/use
cat >/tmp/rounds <<'end'
sh /tmp/use
for n in 1 2 3; do
	modprobe -r dummy
	dtrace -ln kinst:dummy:: 2>&1 | grep -o 'failed to match.*'
	modprobe dummy numdummies=0
	sh /tmp/use
done
sh /tmp/count sh /tmp/use
modprobe -r dummy
dtrace -n kinst:dummy:dummy_setup:0 2>&1 | sed 's/.*: //'
end
sh /tmp/count bash /tmp/rounds
