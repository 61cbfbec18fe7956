#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Modules that are loaded during boot, and the drivers' probing of devices with its duration. Times
 * in the first column count from the loading of the DTrace module. Run the first command to trace
 * the next boot, and the second one after the boot:
 *
 *	dtrace -A -s boot-modules.d
 *	dtrace -ae
 */

#pragma D option quiet
#pragma D option bufpolicy=fill

dtrace:::BEGIN
{
	start = timestamp;
	printf("%12s %6s %-16s %s\n", "MICROS", "PID", "BY", "WHAT");
}

sdt:::module_load
{
	printf("%12d %6d %-16s module loaded: %s\n", (timestamp - start) / 1000, pid, execname,
	    ((struct module *)arg0)->name);
}

fbt::really_probe:entry
{
	self->since = timestamp;
}

fbt::really_probe:return
/self->since/
{
	printf("%12d %6d %-16s a driver probed a device: %d us, result %d\n", (timestamp - start) / 1000,
	    pid, execname, (timestamp - self->since) / 1000, (int)arg1);
	self->since = 0;
}
