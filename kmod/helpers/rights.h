/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/*
 * Which processes a member's consumer may trace: the kernel's answers, as they are requested and
 * kept (INV-36).
 */
#ifndef _DTRACE_RIGHTS_H
#define _DTRACE_RIGHTS_H

#include <linux/mm_types.h>
#include <linux/sched.h>
#include <linux/types.h>

struct dtrace_rights;

struct dtrace_rights *dtrace_rights_open(uintptr_t may_access, const int *scope);
void dtrace_rights_close(struct dtrace_rights *rights);
void dtrace_rights_sit(struct dtrace_rights *rights);
int dtrace_rights_may(struct dtrace_rights *rights, struct pid *process, struct mm_struct *mm, bool wait);
int dtrace_rights_ask_all(struct dtrace_rights *rights);
bool dtrace_rights_likely(struct dtrace_rights *rights);
bool dtrace_rights_known(struct dtrace_rights *rights);
u64 dtrace_rights_unanswered(const struct dtrace_rights *rights);
void dtrace_rights_begun(struct dtrace_rights *rights, struct task_struct *task);
void dtrace_rights_control(struct dtrace_rights *rights, int option);
void dtrace_rights_changes(struct dtrace_rights *rights, const struct cred *cred);
unsigned int dtrace_rights_payer(const struct dtrace_rights *rights);
unsigned int dtrace_payer_of_current(void);

#endif
