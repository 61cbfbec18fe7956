// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * The bodies of security.h.
 *
 * A security module that confines programs (SELinux, or one written in BPF) knows perf events and
 * BPF, and not DTrace. A task that it denies these, whatever capabilities the task has, gets no
 * more here. So the module is asked what it would be asked if the task wanted to see the same by
 * perf events or BPF (INV-35). The hooks are the kernel's security_perf_event_open() and
 * security_bpf(), given by address; if one does not exist (0), it allows everything.
 */

#include <linux/bpf.h>
#include <linux/perf_event.h>

#include "security.h"
#include "symbols.h"

static bool dtrace_security_perf(uintptr_t perf_event_open, int type)
{
	return !perf_event_open || !(int)dtrace_call(perf_event_open, type, 0, 0, 0, 0);
}

/* Whether the task may have perf events of all processes. */
bool dtrace_security_sees(uintptr_t perf_event_open)
{
	return dtrace_security_perf(perf_event_open, PERF_SECURITY_OPEN) &&
	       dtrace_security_perf(perf_event_open, PERF_SECURITY_CPU);
}

/* Whether the task may have perf events of the kernel. */
bool dtrace_security_sees_kernel(uintptr_t perf_event_open)
{
	return dtrace_security_perf(perf_event_open, PERF_SECURITY_KERNEL) &&
	       dtrace_security_perf(perf_event_open, PERF_SECURITY_TRACEPOINT);
}

/* Whether the task may load a BPF program that reads memory. */
bool dtrace_security_reads(uintptr_t bpf)
{
	union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_KPROBE };

	return !bpf || !(int)dtrace_call(bpf, BPF_PROG_LOAD, (uintptr_t)&attr, sizeof(attr), false, 0);
}
