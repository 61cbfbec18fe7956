// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/* @gcc: -static-pie -fPIE */
#include "pid-kind.h"

int main(void)
{
	work();
	return 0;
}
