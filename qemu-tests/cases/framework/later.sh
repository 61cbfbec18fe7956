# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# Probes of a module that is loaded while a consumer waits for them are enabled for it, and again
# when the module is loaded again.
modprobe -r dummy
for probes in fbt:dummy:dummy_setup:entry 'fbt:dum*:dummy_set*:'; do
	dtrace -Zqn "BEGIN { printf(\"%s\n\", \"begun\"); } $probes { @ = count(); }
		syscall::rename*:entry { exit(0); } END { printa(\"%@d\n\", @); }" >/tmp/later &
	await begun /tmp/later
	for round in 1 2; do
		modprobe dummy numdummies=0
		ip link add dtrace0 type dummy
		ip link del dtrace0
		modprobe -r dummy
	done
	touch /tmp/later.1
	mv /tmp/later.1 /tmp/later.2
	wait
	grep -v begun /tmp/later
done
