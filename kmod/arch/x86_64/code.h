/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* Sizes of programs' instructions and of what is made of them. */
#ifndef _DTRACE_ARCH_CODE_H
#define _DTRACE_ARCH_CODE_H

#include <linux/sizes.h>

/* Bytes of the longest instruction. */
#define DTRACE_CODE_MAX 15

/* Bytes of a slot: an instruction, and a jump to the one behind the original. */
#define DTRACE_SLOT_SIZE 32

/*
 * Largest distance of an area from the text that it is for: instructions reach data within 2 GiB,
 * and the data lies behind the text.
 */
#define DTRACE_AREA_REACH SZ_1G

#endif
