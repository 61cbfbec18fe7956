# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 90
# A member of the group sees processes of his own user namespace; those with the same user and group
# in another one are another user's.
. ./member
rmmod dtrace && insmod "$(cat /run/vm/module)" group=77
chmod 666 /dev/dtrace
for program in inside outside; do cp "$(command -v overload)" /tmp/$program; done
# In a namespace only programs that everybody can reach can be executed.
cp "$(command -v dtrace)" /tmp/dtrace
cat >/tmp/both <<'end'
unshare -U /tmp/inside 100 >/dev/null
/tmp/outside 100 >/dev/null
end
echo root
dtrace -qn "$calls" -c 'setpriv --reuid 65534 --regid 77 --clear-groups sh /tmp/both' | grep . | sort
echo outside
as 77 dtrace -qn "$calls" -c 'sh /tmp/both' | grep . | sort
# The other program runs while the member traces.
beside as 77 /tmp/outside 100
echo inside
as 77 unshare -U /tmp/dtrace -qn "$calls" -c 'sh /tmp/both' | grep . | sort
wait
rm /tmp/inside /tmp/outside /tmp/dtrace /tmp/both /tmp/traced /tmp/passed
rmmod dtrace && insmod "$(cat /run/vm/module)"
