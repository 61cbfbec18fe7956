# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 60
# Each probe of lockstat, at locks of a module that takes them a known number of times, and waits
# for them: which probe, which lock and, for a reader/writer lock, in which mode; each kind is slept
# for, for at least 20 ms. The statistics of waiting count the same events.
insmod "$(dirname "$(cat /run/vm/module)")/../locks/locks.ko"
base=$(cat /sys/module/locks/parameters/base)
cat >/tmp/locks.d <<D
#pragma D option quiet
inline uintptr_t base = ${base}ul;
lockstat:::adaptive-acquire, lockstat:::adaptive-release, lockstat:::rt-acquire, lockstat:::rt-release, lockstat:::rw-downgrade
/arg0 - base < 6 * 256/ { @once[probename, (arg0 - base) / 256] = count(); }
lockstat:::rw-acquire, lockstat:::rw-release
/arg0 - base < 6 * 256/ { @modes[probename, (arg0 - base) / 256, args[1]] = count(); }
lockstat:::adaptive-acquire-error
/arg0 - base < 6 * 256/ { @errors[probename, (arg0 - base) / 256, args[1]] = count(); }
lockstat:::adaptive-block, lockstat:::rt-block
/arg0 - base < 6 * 256 && args[1] >= 20000000/ { @blocks[probename, (arg0 - base) / 256] = count(); }
lockstat:::rw-block
/arg0 - base < 6 * 256 && args[1] >= 20000000/ { @rwblocks[probename, (arg0 - base) / 256, args[2]] = count(); }
lockstat:::rw-spin
/arg0 - base < 6 * 256/ { @rwspins[probename, (arg0 - base) / 256, args[2]] = count(); }
lockstat:::adaptive-spin
/arg0 - base < 5 * 256/ { @spins[probename, (arg0 - base) / 256] = count(); }
/* The others have spinlocks within. */
lockstat:::spin-acquire, lockstat:::spin-release /arg0 == base + 3 * 256/ { @once[probename, (arg0 - base) / 256] = count(); }
lockstat:::spin-spin /arg0 == base + 3 * 256/ { @spins[probename, (arg0 - base) / 256] = count(); }
sysinfo:::mutex_adenters, sysinfo:::rw_rdfails, sysinfo:::rw_wrfails /execname == "locks"/ { @statistics[probename] = count(); }
END {
	printa("%s of %d: %@d\n", @once);
	printa("%s of %d, mode %d: %@d\n", @modes);
	printa("%s of %d: error %d\n", @errors);
	printa("%s of %d\n", @spins);
	printa("%s of %d, long enough\n", @blocks);
	printa("%s of %d, mode %d, long enough\n", @rwblocks);
	printa("%s of %d, mode %d\n", @rwspins);
	printa("%s grows\n", @statistics);
}
D
dtrace -s /tmp/locks.d -c 'sh -c "echo 1 >/sys/module/locks/parameters/run"' | LC_ALL=C sort | sed '/^$/d'
rmmod locks
