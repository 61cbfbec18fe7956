#!/bin/sh
# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# dracut: starts tracing before the first driver is loaded. modprobe(8) honours dtrace.anon=0 on the
# kernel's command line.

[ -s /etc/dtrace/anon.dof ] && modprobe -q dtrace
:
