#!/bin/bash
# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# dracut: where there is an anonymous enabling, the initial RAM disk gets it, and the module that traces it.

check() {
	# 255: only where somebody asks for this module by its name.
	[ -s "${dracutsysrootdir:-}/etc/dtrace/anon.dof" ] || return 255
}

depends() {
	return 0
}

installkernel() {
	# A RAM disk for this machine alone gets no other module than those that are loaded now.
	hostonly='' instmods dtrace
}

install() {
	inst_simple /etc/dtrace/anon.dof
	inst_multiple modprobe
	# The first of the first hooks, before udev has a driver loaded.
	inst_hook cmdline 00 "$moddir/load.sh"
}
