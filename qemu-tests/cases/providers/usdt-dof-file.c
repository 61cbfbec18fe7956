// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * Usage: usdt-dof-file. A program with DOF in its file, which it does not register.
 */

#include <stdio.h>

#include "usdt-dof.h"

#define ADDRESS(function) (uint64_t)(function)
struct image dof __attribute__((section(".SUNW_dof"), used, aligned(8))) = IMAGE(T_WORK, 2, ADDRESS);

int main(void)
{
	int asks = dof_asks();

	dof_work();
	printf("asks %d, tail %ld\n", asks, dof_tail(1, 2, 3, 4, 5, 6, 77));
	return 0;
}
