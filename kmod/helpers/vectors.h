/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* Vector registers of programs. */
#ifndef _DTRACE_VECTORS_H
#define _DTRACE_VECTORS_H

#include <linux/types.h>

u64 dtrace_user_vector(unsigned int n);

#endif
