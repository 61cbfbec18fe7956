# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# Locks of a program that takes them often, in several threads at once.
# Counts are aggregations, because the threads run on several processors, where a global variable
# would lose increments.
cat >/tmp/lockstat.d <<'D'
lockstat:::adaptive-acquire /pid == $target/ { self->mutex[arg0] = 1; @n["mutexes"] = count(); }
lockstat:::adaptive-release /self->mutex[arg0]/ { self->mutex[arg0] = 0; @n["released"] = count(); }
lockstat:::spin-acquire /pid == $target/ { @n["spins"] = count(); }
lockstat:::spin-release /pid == $target/ { @n["unspins"] = count(); }
lockstat:::rw-acquire /pid == $target && arg1 == 1/ { self->read = arg0; @n["readers"] = count(); }
lockstat:::rw-release /self->read && arg1 == 1 && self->read == arg0/ { self->read = 0; @n["left"] = count(); }
lockstat:::rw-acquire /pid == $target && arg1 == 0/ { self->write = arg0; @n["writers"] = count(); }
lockstat:::rw-release /self->write && arg1 == 0 && self->write == arg0/ { self->write = 0; @n["wrote"] = count(); }
lockstat:::rw-downgrade /self->write == arg0/ { self->write = 0; @n["wrote"] = count(); }
lockstat:::adaptive-block, lockstat:::adaptive-spin, lockstat:::rw-block, lockstat:::spin-spin
/pid == $target/
{
	@n["waited"] = count();
	@of["timed"] = sum(args[1] > 0);
	@of["wrong"] = sum(args[1] > 120000000000);
}
lockstat:::rw-block /pid == $target && args[2] != 0 && args[2] != 1/ { @n["modes"] = count(); }
END { printa("%s %@d\n", @n); printa("%s %@d\n", @of); }
D
dtrace -x dynvarsize=32m -qs /tmp/lockstat.d -c lock-events | awk '
NF { n[$1] = $2 }
function more(what, than) { return n[what] > than }
END {
	held = n["mutexes"] - n["released"]
	print "mutexes:", more("mutexes", 20000), (held >= 0 && held < 100)
	print "spin locks:", more("spins", 1000), more("unspins", 1000)
	print "readers:", more("readers", 10000), more("left", 10000)
	print "writers:", more("writers", 20000), more("wrote", 20000)
	print "waits: " more("waited", 0) ", timed: " more("timed", 0) ", wrong: " n["wrong"] + 0
	print "wrong modes: " n["modes"] + 0
}'
