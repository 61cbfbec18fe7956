#!/bin/bash
# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# dracut: if there is an anonymous enabling, adds it and dtrace.ko to the initramfs.

check() {
	# 255: only if this dracut module is requested by name.
	[ -s "${dracutsysrootdir:-}/etc/dtrace/anon.dof" ] || return 255
}

depends() {
	return 0
}

installkernel() {
	# A host-only initramfs would contain only those modules that are loaded now.
	hostonly='' instmods dtrace
}

install() {
	inst_simple /etc/dtrace/anon.dof
	inst_multiple modprobe
	# The first of the first hooks, before udev loads a driver.
	inst_hook cmdline 00 "$moddir/load.sh"
}
