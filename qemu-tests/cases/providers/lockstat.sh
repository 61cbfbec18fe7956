# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 120
# Locks of a program that takes them often, by several threads at once.
cat >/tmp/lockstat.d <<'D'
lockstat:::adaptive-acquire /pid == $target/ { self->mutex[arg0] = 1; mutexes++; }
lockstat:::adaptive-release /self->mutex[arg0]/ { self->mutex[arg0] = 0; released++; }
lockstat:::spin-acquire /pid == $target/ { spins++; }
lockstat:::spin-release /pid == $target/ { unspins++; }
lockstat:::rw-acquire /pid == $target && arg1 == 1/ { self->read = arg0; readers++; }
lockstat:::rw-release /self->read && arg1 == 1 && self->read == arg0/ { self->read = 0; left++; }
lockstat:::rw-acquire /pid == $target && arg1 == 0/ { self->write = arg0; writers++; }
lockstat:::rw-release /self->write && arg1 == 0 && self->write == arg0/ { self->write = 0; wrote++; }
lockstat:::rw-downgrade /self->write == arg0/ { self->write = 0; downgraded++; }
lockstat:::adaptive-block, lockstat:::adaptive-spin, lockstat:::rw-block, lockstat:::spin-spin
/pid == $target/
{
	waited++;
	timed += args[1] > 0;
	wrong += args[1] > 120000000000;
}
lockstat:::rw-block /pid == $target && args[2] != 0 && args[2] != 1/ { modes++; }
END {
	printf("mutexes: %d %d\n", mutexes > 20000, mutexes - released >= 0 && mutexes - released < 100);
	printf("spin locks: %d %d\n", spins > 1000, unspins > 1000);
	printf("readers: %d %d\n", readers > 10000, left > 10000);
	printf("writers: %d %d\n", writers > 20000, wrote + downgraded > 20000);
	printf("waits: %d, timed: %d, wrong: %d\n", waited > 0, timed > 0, wrong);
	printf("wrong modes: %d\n", modes);
}
D
dtrace -x dynvarsize=32m -qs /tmp/lockstat.d -c lock-events
