# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 90
# Threads of a consumer take turns as the thread in which it is checked which processes the consumer
# may trace, while processes start that must be checked: each is, once.
. ./member
rmmod dtrace && insmod "$(cat /run/vm/module)" group=77
chmod 666 /dev/dtrace
cp "$(command -v rights-work)" /tmp/work
cp "$(command -v rights-seat.so)" /tmp/seat.so
touch /tmp/told && chmod 666 /tmp/told
LD_PRELOAD=/tmp/seat.so SEAT=several own dtrace -qn "BEGIN { printf(\"begun\n\"); } $calls" -o /tmp/told & tracer=$!
timeout 60 await begun /tmp/told
cat >/tmp/many <<'end'
for _ in $(seq 60); do /tmp/work steps & done
wait
end
for _ in 1 2 3 4 5; do as 77 sh /tmp/many; done
touch /tmp/go
kill $tracer
wait
grep work /tmp/told
rm /tmp/work /tmp/seat.so /tmp/go /tmp/told /tmp/many
