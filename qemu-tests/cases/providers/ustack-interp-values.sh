# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# Stacks that are values have the frames of interpreted code that the action shows.
. ./python-chain
cat >/tmp/keys.py <<'end'
import os
def down():
    os.getppid()
def one():
    down()
def other():
    down()
for n in range(3): one()
other()
end
echo 'a variable, printed when the call returns'
dtrace -qn "$call"' { self->at = ustack(40); self->seen = 1; printf("action"); ustack(40); }
syscall::getppid:return /self->seen/ { printf("value%k", self->at); }' -c 'python3 /tmp/chain.py call' >/tmp/out
sed -n '/^value$/,$p' /tmp/out | frames
awk '/^(action|value)$/ { half++; next } NF { sub(/^ */, ""); text[half] = text[half] $0 "\n" }
	END { print (text[1] == text[2] && text[1] != "") ? "the same" : "not the same:\n" text[1] "then\n" text[2] }' /tmp/out
echo 'keys'
dtrace -qn "$call"' { x = ustack(30); @[x] = count(); }' -c 'python3 /tmp/keys.py' | frames | sort -u
echo 'printed by trace'
dtrace -qn "$call"' { trace(ustack(40)); x = ustack(40); trace(x); }' -c 'python3 /tmp/chain.py call' | grep -c 'Handler.key'
dtrace -O json -qn "$call"' { x = ustack(40); trace(x); }' -c 'python3 /tmp/chain.py call' | grep -o '"interpreted":"down ' | wc -l
# Behind eight frames there is room for 16.
echo 'room'
dtrace -qn "$call"' { x = ustack(8); trace(x); }' -c 'python3 /tmp/chain.py deep' | grep -c 'down /tmp/chain.py:7'
echo 'the members are those of the native frames'
dtrace -qn "$call"' { x = ustack(60); printf("%d %d %d\n", x.depth == ustackdepth, x.addrs[x.depth], sizeof (x.addrs) / 8); }' -c 'python3 /tmp/chain.py call' | grep .
echo 'a kernel stack has the same type'
dtrace -qn "$call"' { x = stack(); x = ustack(); x = stack(); printf("%k", x); }' -c 'python3 /tmp/chain.py call' | grep -c '\['
echo 'off'
for option in ustackinterp=off ustackmode=fp noloops; do
	dtrace -x $option -qn "$call"' { x = ustack(40); trace(x); }' -c 'python3 /tmp/chain.py call' | grep -c '\[ '
done
rm /tmp/chain.py /tmp/keys.py /tmp/out
