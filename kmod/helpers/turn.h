/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/*
 * A lock that admits one of a user's calls at a time, or one of the calls at a file; turn.c holds
 * the bodies (INV-31).
 */
#ifndef _DTRACE_TURN_H
#define _DTRACE_TURN_H

#include <linux/types.h>

struct dtrace_turn;

struct dtrace_turn *dtrace_turn_make(bool of_file);
void dtrace_turn_free(struct dtrace_turn *turn);
int dtrace_turn_take(struct dtrace_turn *turn);
void dtrace_turn_give(struct dtrace_turn *turn);

#endif
