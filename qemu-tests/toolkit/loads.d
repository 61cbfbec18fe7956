#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * loads.d: the load averages as uptime(1) prints them: fixed point as integers and hundredths.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	this->one = ((unsigned long *)&`avenrun)[0] + 10;
	this->five = ((unsigned long *)&`avenrun)[1] + 10;
	printf("load averages: %d.%02d, %d.%02d\n", this->one >> 11, ((this->one & 2047) * 100) >> 11,
	    this->five >> 11, ((this->five & 2047) * 100) >> 11);
	exit(0);
}
