# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# Frames of interpreted code appear below the interpreter's own frame.
. ./python-chain
echo 'a generator, and a function that C calls'
dtrace -qn "$call { ustack(40); }" -c 'python3 /tmp/chain.py call' | frames
echo 'an evaluator that has just begun, and the specialized call of a class'
cat >/tmp/class.py <<'end'
import os
class Thing:
    def __init__(self, last):
        if last: os.getppid()
def main():
    for n in range(200): Thing(n == 199)
main()
end
dtrace -qn "$call { ustack(40); }" -c 'python3 /tmp/class.py' | frames
dtrace -qn 'pid$target::_PyEval_EvalFrameDefault:entry { @[jstack(30)] = count(); }' -c 'python3 /tmp/chain.py call' >/tmp/out
# The probe fires at the entry of the evaluator that will execute Handler.key: no frame of Python is
# below it; its callers are below the next evaluator.
frames /tmp/out | grep -A1 -x eval | grep -m1 '^eval numbers'
echo 'a thread'
dtrace -qn "$call { ustack(40); }" -c 'python3 /tmp/chain.py threads' | frames
echo 'a key'
dtrace -qn "$call { @[ustack(3)] = count(); }" -c 'python3 /tmp/chain.py call' | sed -E 's/^ +//; s/\+0x[0-9a-f]+$//; s/0x[0-9a-f]+/0x…/; /^$/d'
dtrace -qn "$call { @[jstack(8)] = count(); }" -c 'python3 /tmp/chain.py call' | frames
# Frames of Python have room for 20 words, plus what the other frames leave of theirs.
echo 'room'
dtrace -qn "$call { ustack(20); }" -c 'python3 /tmp/chain.py deep' | grep -c .
dtrace -qn "$call { ustack(8); }" -c 'python3 /tmp/chain.py deep' | grep -c 'down /tmp/chain.py:7'
echo 'off'
dtrace -x ustackinterp=off -qn "$call { ustack(40); }" -c 'python3 /tmp/chain.py call' | grep -c '\[ '
dtrace -x ustackmode=fp -qn "$call { ustack(40); }" -c 'python3 /tmp/chain.py call' | grep -c '\[ '
dtrace -x noloops -qn "$call { ustack(40); }" -c 'python3 /tmp/chain.py call' | grep -c '\['
printf '%s\n' 'syscall::getppid:entry { ustack(); while (1) ; }' >/tmp/loop.d
dtrace -qs /tmp/loop.d 2>&1 | sed 's/^dtrace: failed to compile script //'
echo 'ustackdepth counts what the processor executes'
dtrace -qn "$call { printf(\"%d\", ustackdepth); ustack(60); }" -c 'python3 /tmp/chain.py call' >/tmp/out
[ "$(head -1 /tmp/out)" = "$(grep -c '`\|^ *0x' /tmp/out)" ] && echo yes

# The threads of a process in its own namespaces have other ids there.
echo 'in namespaces of its own'
dtrace -qn 'syscall::getppid:entry /execname == "python3"/ { ustack(40); }' -c 'unshare -pfm --mount-proc sh -c "for n in 1 2 3 4 5 6; do python3 /tmp/chain.py call; sleep 1; done"' >/tmp/out
tac /tmp/out | awk '/getppid/ { exit } { print }' | tac | frames

echo 'it has ended'
dtrace -x switchrate=10sec -qn "$call { ustack(40); }" -c 'python3 /tmp/chain.py call' | frames | tail -1
