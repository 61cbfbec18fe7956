// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * The bodies of security.h.
 *
 * A security module that confines programs (SELinux, or one that is written for BPF) knows perf events and BPF, and not us. Who may have neither
 * for all his capabilities has no more here: so it is asked what it would be asked for the same sight by those. The hooks are the kernel's
 * security_perf_event_open() and security_bpf(); one that is not there (0) has nothing to say.
 */

#include <linux/bpf.h>
#include <linux/perf_event.h>

#include "providers.h"
#include "security.h"

static bool dtrace_security_perf(uintptr_t perf_event_open, int type)
{
	return !perf_event_open || !(int)dtrace_call(perf_event_open, type, 0, 0, 0, 0);
}

/* Whether it may have events of all processes. */
bool dtrace_security_sees(uintptr_t perf_event_open)
{
	return dtrace_security_perf(perf_event_open, PERF_SECURITY_OPEN) &&
	       dtrace_security_perf(perf_event_open, PERF_SECURITY_CPU);
}

/* Whether it may have events of the kernel. */
bool dtrace_security_sees_kernel(uintptr_t perf_event_open)
{
	return dtrace_security_perf(perf_event_open, PERF_SECURITY_KERNEL) &&
	       dtrace_security_perf(perf_event_open, PERF_SECURITY_TRACEPOINT);
}

/* Whether it may load a program of BPF that reads memory. */
bool dtrace_security_reads(uintptr_t bpf)
{
	union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_KPROBE };

	return !bpf || !(int)dtrace_call(bpf, BPF_PROG_LOAD, (uintptr_t)&attr, sizeof(attr), false, 0);
}
