// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/* The bodies of privilege.h. */

#include <linux/capability.h>
#include <linux/security.h>

#include "privilege.h"

/*
 * Whether the current task has a capability in the initial user namespace. A task without it may
 * have the group's rights, so a refusal is not audited.
 */
bool dtrace_capable(int capability)
{
	return ns_capable_noaudit(&init_user_ns, capability);
}

/*
 * Whether the kernel is not locked down for confidentiality, so that its memory may be read;
 * dtrace_may_write(): not for integrity, so that programs may be written to.
 */
bool dtrace_may_read_kernel(void)
{
	return !security_locked_down(LOCKDOWN_BPF_READ_KERNEL);
}

bool dtrace_may_write(void)
{
	return !security_locked_down(LOCKDOWN_BPF_WRITE_USER);
}
