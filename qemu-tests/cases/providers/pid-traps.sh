# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# @debug: quick
# Breakpoints that are handled at once, and those that are left to the kernel's uprobes, whose
# handler is counted.
t() {
	echo "$1"
	dtrace -x temporal -qn 'fbt::uprobe_notify_resume:entry /pid == $target/ { @elsewhere = count(); }
	END { printa("elsewhere %@d\n", @elsewhere); }'" $2" -c "pid-traps $3" 2>&1
}

echo 'without'
pid-traps common crooked lone deep steps own table table-own instead
t 'at once' 'pid$target:a.out:common: { @[probename] = count(); }' common
t 'before a store' 'pid$target:a.out:common:8 { this->at = (long *)copyin(uregs[R_RSI], 8); @old[*this->at == uregs[R_RDI]] = count(); }' common
t 'across words' 'pid$target:a.out:crooked: { @[probename] = count(); }' crooked
t 'onto new pages' 'pid$target:a.out:deep:entry { @ = count(); } pid$target:a.out:deep:return { @r = max(arg1); }' deep
t 'steps of a debugger' 'pid$target:a.out:lone:entry { @ = count(); }' steps
t 'own steps' 'pid$target:a.out:lone: { @[probename] = count(); }' own
t 'without uprobes' 'pid$target:a.out:table:,pid$target:a.out:leap:return { @[probefunc, probename] = count(); }' table
t 'own steps without uprobes' 'pid$target:a.out:table: { @[probename] = count(); }' table-own
# The child begins with its parent's breakpoints, and with uprobes' at the pop into memory, which
# makes any other breakpoint there look like theirs.
echo 'a child without uprobes'
dtrace -x follow=fork -qn 'pid$target:a.out:table:,pid$target:a.out:common:e { @[pid == $target, probefunc, probename] = count(); }' -c 'pid-traps common fork table'
echo N >/sys/module/dtrace/parameters/own_breakpoints
dtrace -n 'pid$target:a.out:table:7 { @ = count(); }' -c 'pid-traps table' 2>&1 | sed 's/pid[0-9][0-9]*/pidN/'
echo Y >/sys/module/dtrace/parameters/own_breakpoints
t 'another mapping' 'pid$target:a.out:lone:entry { @ = count(); }' 'lone instead'
t 'no stack' 'pid$target:a.out:deep:entry { @ = count(); }' full | grep -v elsewhere | sed -E 's/pid [0-9]+/pid N/; s/^ +[23][0-9][0-9]$/as many as have room/'
