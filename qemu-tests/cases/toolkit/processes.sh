# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 150
# Tools in the style of the classic toolkit, about processes, threads and signals.
. ./run
work='known-work processes'
echo '-- execwatch'
run execwatch -c "$work" | sed -E 's/ +[0-9]+ +[0-9]+ / N N /' | each
run execwatch -a -n true -c "$work" | sed -E 's/^[0-9]{5,}/N/; s/ +[0-9]+ +[0-9]+ true/ N N true/; s/ +/ /g' | each
echo '-- forkcount.d'
run forkcount.d -c "$work" | sed '/^$/d'
echo '-- exitcodes'
run exitcodes "$work" | sed '/^$/d'
run exitcodes -z "$work" | sed '/^$/d' | each
echo '-- sigwatch'
run sigwatch known-work signals | grep -v ' 17:' | sed '/^$/d'
run sigwatch -s 12 known-work signals | sed '/^$/d'
echo '-- lifetimes.d'
run lifetimes.d -c "$work" | grep ended
echo '-- family'
# lines: without empty lines and without what is not printed by printa().
lines() { sed -E '/^$/d; /^  /d'; }
run family "$work" | lines
run family -f "$work" | lines
echo '-- threadlife.d'
run threadlife.d -c 'known-work threads' | sed -E '/^$/d; s/for [1-9][0-9]* ns/for N ns/'
echo '-- wakers.d'
run wakers.d -c 'known-work sleep' | awk '/^woken/ { sum += $NF } END { print (sum >= 5 ? "woken after each sleep" : sum) }'
rm -rf /tmp/toolkit
