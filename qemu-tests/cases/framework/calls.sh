# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# Every control call at its limits, from C: see calls.c.
device-check image >/tmp/calls.dof
calls /tmp/calls.dof
