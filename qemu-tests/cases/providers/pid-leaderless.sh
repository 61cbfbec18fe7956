# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 60
# A process whose first thread has ended while another runs: it has probes, and its addresses have
# names.
cat >/tmp/leaderless.d <<'end'
pid$target:a.out:work:entry { @calls = count(); @[ufunc(uregs[R_RIP])] = count(); }
pid$target:a.out:work:return { @returns = count(); }
BEGIN { printf("begun\n"); }
END { printa("calls %@d\n", @calls); printa("returns %@d\n", @returns); printa("%A %@d\n", @); }
end
first-thread-ends wait >/tmp/said & its=$!
await ready /tmp/said
dtrace -qs /tmp/leaderless.d -p "$its" >/tmp/seen 2>&1 &
await 'begun|dtrace:' /tmp/seen
kill -USR1 "$its"
wait
grep -h . /tmp/said /tmp/seen | grep -v 'ready\|begun'
rm /tmp/said /tmp/seen /tmp/leaderless.d
