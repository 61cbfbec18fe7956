# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Every control call at its limits, from C: see calls.c.
device-check image >/tmp/calls.dof
calls /tmp/calls.dof
