# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# @debug: quick
# A process that is to wait when it has mapped a file may never get there: here the file's server
# does not deliver the bytes that the same call populates. The module can be unloaded nevertheless.
[ -e /dev/fuse ] || modprobe fuse
mkdir -p /tmp/unread
unread serve /tmp/unread & server=$!
timeout 60 sh -c 'until [ -e /tmp/unread/file ]; do sleep 0.1; done'
# USDT probes of any program that starts.
dtrace -Zqn 'BEGIN { printf("traces\n"); } nobody*:::nothing { }' >/tmp/told 2>&1 & tracer=$!
timeout 60 await traces /tmp/told
unread map /tmp/unread/file & mapper=$!
timeout 60 await request_wait /proc/$mapper/wchan
sleep 1
kill $tracer
wait $tracer
rmmod dtrace & remover=$!
timeout 20 sh -c "while kill -0 $remover 2>/dev/null; do sleep 0.1; done" && echo gone
[ -d /proc/$mapper ] && echo 'it is still mapping'
kill -9 $mapper $server
wait $remover $mapper $server 2>/dev/null
umount -l /tmp/unread
insmod "$(cat /run/vm/module)"
