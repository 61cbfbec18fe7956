# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Functions of a module have probes for as long as it is loaded; it can also be unloaded while they
# are enabled.
modprobe -r dummy
found() { provider-check count 0 fbt:dummy:: 2>&1 >/dev/null | awk '{ print ($1 > 0) ? "probes" : "none" }'; }
found
modprobe dummy numdummies=0
found
provider-check run fbt:dummy:dummy_setup:entry -- ip link add dtrace0 type dummy 2>/dev/null
provider-check run fbt:dummy:: -- sh -c 'ip link del dtrace0; modprobe -r dummy' 2>/dev/null |
	sed -E 's/ [1-9][0-9]*$/ some/'
found
for n in 1 2 3; do
	modprobe dummy numdummies=0
	found
	modprobe -r dummy
done
found
