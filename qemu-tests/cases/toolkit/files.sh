# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 150
# Tools in the style of the classic toolkit, about files: flags as inline constants, actions and
# aggregations behind conditions. The numbers are those of known-work.
. ./run
work='known-work files /tmp/toolkit'
echo '-- openwatch'
run openwatch -ec "$work" | grep -E 'toolkit|PATH' | sed 's/^ *[0-9]* //' | each
run openwatch -tx -f /tmp/toolkit/missing -n known-work -c "$work" | sed -E 's/[0-9]{5,}/N/; s/ +[0-9]+ known/ known/' | each
echo '-- rwwatch'
run rwwatch -c "$work" | grep -E 'data$|FILE$' | sed -E 's/^0 +[0-9]+/0/' | each
run rwwatch -rc "$work" | grep 'data$' | awk '{ print $4, $5, $6 }' | each
run rwwatch -bwc "$work" | each
echo '-- statwatch'
run statwatch -c "$work" | grep -E 'toolkit|PATH' | each
run statwatch -xc "$work" | grep toolkit | each
echo '-- opencount.d'
run opencount.d -c "$work" | grep toolkit
echo '-- readsizes.d'
run readsizes.d -c "$work" | grep -v '^ *$'
echo '-- namewatch.d'
run namewatch.d -c 'known-work names /tmp/toolkit' | grep -v '^$'
echo '-- filebytes'
run filebytes "$work" | grep data
run filebytes -wt 1 "$work"
run filebytes -r "$work" | grep -c write
echo '-- fdspread.d'
run fdspread.d -c "$work"
rm -rf /tmp/toolkit
