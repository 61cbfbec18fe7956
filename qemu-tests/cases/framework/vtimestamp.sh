# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# vtimestamp excludes the time of firings, its own and earlier ones, and does not go back. If the
# kernel does not trust the TSC, its clock advances at most a tick beyond the last one: the rest of
# a firing is counted later, as the thread's time.
least=49000000
[ "$(cat /sys/devices/system/clocksource/clocksource0/current_clocksource)" = tsc ] || least=25000000
dtrace -wqn '
	BEGIN { n = 0; t = timestamp; v = vtimestamp; last = (uint64_t)0; back = 0; moved = 0; }
	syscall::write:entry /pid == $target && n == 0/ { t = timestamp; v = vtimestamp; }
	syscall::write:entry /pid == $target && n == 50/ {
		printf("%s waited, %s left out\n", timestamp - t >= 50000000 ? "all" : "not all",
		    (timestamp - t) - (vtimestamp - v) >= $1 ? "enough" : "too little");
	}
	syscall::write:entry /pid == $target && n < 50/ {
		this->v = vtimestamp;
		back += this->v < last;
		chill(1000000);
		moved += vtimestamp != this->v;
		last = this->v;
	}
	syscall::write:entry /pid == $target/ { n++; }
	END { printf("%d times back, %d moved\n", back, moved); }' $least -c 'dd if=/dev/zero of=/dev/null bs=1 count=60' 2>/tmp/said || cat /tmp/said
