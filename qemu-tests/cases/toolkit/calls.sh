# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 150
# Tools in the style of the classic toolkit, about system calls and time. Times are only compared
# with each other.
. ./run
work='known-work calls'
# sums: whether the line TOTAL: is the sum of the others.
sums() { awk '/TOTAL:/ { total = $2; next } NF == 2 && $2 ~ /^[0-9]+$/ { sum += $2 } END { print (total && sum == total ? "sums up" : sum " is not " total) }'; }
echo '-- calltrace'
run calltrace -t getppid "$work" | sed -E 's/\((0x[0-9A-F]+[, )]*)+/(…)/; s/= [0-9]+ /= N /' | each
run calltrace -delo -t close "$work" | sed -E 's|^ +[0-9]+/[0-9]+: +[0-9]+ +[0-9]+ +[0-9]+ |IDS TIMES |' | each
run calltrace -cf known-work processes | awk '/^COUNT|^CALL/ { table = 1 } table && /execve|exit_group/'
echo '-- calltime'
run calltime -cT "$work" | grep -E 'getppid|close|Counts|Elapsed' | awk '$1 == "close" { print $1, ($2 >= 20 ? "20 and more" : $2); next } { $1 = $1; print }'
run calltime -cT "$work" | sums
run calltime -eT "$work" | sums
run calltime -a "$work" | grep -c TOTAL:
run calltime "$work" | grep -c -E 'Counts|CPU times'
# A sleep uses no CPU time.
run calltime -eo 'known-work sleep' | awk '$1 ~ /nanosleep/ { time[++n] = $2 } END { print (time[1] >= 100000000 && time[2] < time[1] ? "asleep" : time[1] " " time[2]) }'
echo '-- errcalls'
run errcalls "$work" | grep close | each
run errcalls -c "$work" | grep close
echo '-- callcount.d'
run callcount.d -c "$work" | grep getppid
run callcount.d -c "$work" getppid
echo '-- callrate.d'
run callrate.d -c 'known-work sleep' >/tmp/toolkit/rate
# The printed lines add up to all calls, and there were several.
awk '/^now/ { sum += $2; next } NF == 2 { all += $2 } END { print (sum && sum == all ? "all told" : sum " of " all) }' /tmp/toolkit/rate
[ "$(grep -c ^now /tmp/toolkit/rate)" -ge 4 ] && grep -c -m 1 CALLS /tmp/toolkit/rate
echo '-- cputop'
# On a busy host dtrace itself may use more CPU time than the command.
run cputop -n 1 known-work spin | grep -cE ' \((the command|another)\) [0-9]+$'
run cputop -n 3 known-work spin | grep -E 'the command|^user' | sed -E 's/ [0-9]+$/ N/'
run cputop -u known-work spin | grep -E '^user'
echo '-- offcpu.d'
run offcpu.d -c 'known-work sleep' | awk '/^off/ { off = $2 } /times/ { times = $1 } END { print (off >= 95 && times >= 5 ? "asleep for 100 ms" : off " " times) }'
echo '-- sleeptimes.d'
run sleeptimes.d -c 'known-work sleep' | awk '/sleeps/ { print } /<=/ { print ($1 >= 20000000 && $1 <= $3 && $3 <= $5 && $5 >= 100000000 ? "in order" : $0) }'
echo '-- loads.d'
run loads.d | sed -E 's/[0-9]+\.[0-9][0-9]/N/g; /^$/d'
echo '-- hotcalls'
run hotcalls vfs_write 'known-work files /tmp/toolkit' | sed '/^$/d'
run hotcalls -r ksys_lseek 'known-work files /tmp/toolkit' | sed '/^$/d'
rm -rf /tmp/toolkit
