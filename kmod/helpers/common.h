/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* Locks that the calls of all consumers take; common.c holds the bodies. */
#ifndef _DTRACE_COMMON_H
#define _DTRACE_COMMON_H

#include <linux/types.h>

struct dtrace_common;

enum dtrace_common_of {
	DTRACE_COMMON_STATE,
	DTRACE_COMMON_USERS,
	DTRACE_COMMON_DESK,
	DTRACE_COMMON_HEIRS,
	DTRACE_COMMON_AUDIENCE,
	DTRACE_COMMON_KINDS,
};

bool dtrace_may_decide(void);
struct dtrace_common *dtrace_common_make(enum dtrace_common_of of);
void dtrace_common_free(struct dtrace_common *common);
/* killable: returns -EINTR if the task is killed. */
int dtrace_common_lock(struct dtrace_common *common, bool killable);
void dtrace_common_unlock(struct dtrace_common *common);

#endif
