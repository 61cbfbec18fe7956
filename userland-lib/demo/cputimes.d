#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * States of the CPUs, sampled 499 times a second: idle, in the kernel, or in a program.
 */

#pragma D option quiet

profile:::profile-499
{
	@samples[cpu, pid == 0 ? "idle" : arg0 ? "kernel" : "user"] = count();
}

dtrace:::END
{
	printf("%3s %-8s %8s\n", "CPU", "STATE", "SAMPLES");
	printa("%3d %-8s %@8d\n", @samples);
}
