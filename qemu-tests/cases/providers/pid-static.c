// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

/* @gcc: -static */
#include "pid-kind.h"

int main(void)
{
	work();
	return 0;
}
