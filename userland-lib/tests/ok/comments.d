#!/usr/sbin/dtrace -s
/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

#pragma D option quiet
#pragma D option bufsize=4m
/* a comment */
BEGIN /* between */
{
	trace("a" "b\t\x41"); /* joined */
}
