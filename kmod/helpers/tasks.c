// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Tasks as probes see them: their identity, their user, and their ancestors. Probe context takes no
 * lock, so what another task may change meanwhile is read once, or by a load that may fault.
 */

#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/ptrace.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/coredump.h>
#include <linux/sched/signal.h>
#include <linux/sched/task_stack.h>
#include <linux/user_namespace.h>
#if __has_include(<linux/sched/exec_state.h>)
#include <linux/sched/exec_state.h>
#endif

#include "loads.h"
#include "tasks.h"

struct task_struct *dtrace_current(void)
{
	return current;
}

/* The registers with which a task entered the kernel; NULL for a kernel thread. */
struct pt_regs *dtrace_user_regs(struct task_struct *task)
{
	struct pt_regs *regs;

	if (!task->mm || (task->flags & (PF_KTHREAD | PF_USER_WORKER)))
		return NULL;
	regs = task_pt_regs(task);
	return user_mode(regs) ? regs : NULL;
}

/*
 * The parent of a task; NULL: the task has been released, which may happen long before it leaves
 * its CPU for the last time. From then on it gets no other parent when its parent goes, and the
 * pointer may lead to freed memory. Interrupts are off, which is an RCU read-side critical section:
 * a parent that is found in it is not freed before its end, and neither are that one's ancestors.
 */
static struct task_struct *dtrace_parent(struct task_struct *task)
{
	return READ_ONCE(task->thread_pid) ? rcu_dereference_raw(task->real_parent) : NULL;
}

unsigned int dtrace_ppid(struct task_struct *task)
{
	struct task_struct *parent = dtrace_parent(task);

	return parent ? parent->tgid : 0;
}

unsigned int dtrace_uid(struct task_struct *task)
{
	return __kuid_val(rcu_dereference_raw(task->real_cred)->uid);
}

unsigned int dtrace_gid(struct task_struct *task)
{
	return __kgid_val(rcu_dereference_raw(task->real_cred)->gid);
}

/* Whether the task's user may access the memory of the task. */
bool dtrace_is_dumpable(struct task_struct *task)
{
#if __has_include(<linux/sched/exec_state.h>)
	struct task_exec_state *state = rcu_dereference_raw(task->exec_state);

	return state && READ_ONCE(state->dumpable) == TASK_DUMPABLE_OWNER;
#else
	struct mm_struct *mm = READ_ONCE(task->mm);

	return mm && get_dumpable(mm) == SUID_DUMP_USER;
#endif
}

/*
 * Whether a process belongs to one user alone, as __ptrace_may_access() and
 * cap_ptrace_access_check() require it for an unprivileged task that attaches. They refuse
 * processes that run, or ran, with the rights of another user, because what they read then may
 * still be in their memory.
 */
bool dtrace_belongs_to(struct task_struct *task, const struct dtrace_identity *user)
{
	const struct cred *cred = rcu_dereference_raw(task->real_cred);
	kuid_t uid = KUIDT_INIT(user->uid);
	kgid_t gid = KGIDT_INIT(user->gid);

	if (task->flags & PF_KTHREAD)
		return false;
	if (!uid_eq(cred->uid, uid) || !uid_eq(cred->euid, uid) || !uid_eq(cred->suid, uid))
		return false;
	if (!gid_eq(cred->gid, gid) || !gid_eq(cred->egid, gid) || !gid_eq(cred->sgid, gid))
		return false;
	if (cred->user_ns->ns.ns_id != user->user_ns || cred->cap_permitted.val & ~user->permitted)
		return false;
	/*
	 * commit_creds() makes a task undumpable before it gives up rights; so the credentials are
	 * read before that is looked at.
	 */
	smp_rmb();
	return dtrace_is_dumpable(task);
}

/*
 * Whether a task descends from process `pid`; *hops: the number of parents that were looked at. The
 * ancestors are read only by loads that may fault: a consumer that traces by descent does so in
 * every firing, and a bad pointer would crash the machine.
 */
bool dtrace_progenyof(struct task_struct *task, u64 pid, u32 *hops)
{
	struct task_struct *at = task;
	pid_t tgid = task->tgid;

	/* Bounded, because a task may get another parent at the same time. */
	for (*hops = 0; *hops < 4096; ++*hops) {
		if (tgid == pid)
			return true;
		if (tgid <= 1)
			return false;
		if (at == task)
			at = dtrace_parent(task);
		else if (dtrace_load(&at, (u64)&at->real_parent, sizeof(at)))
			return false;
		if (!at || dtrace_load(&tgid, (u64)&at->tgid, sizeof(tgid)))
			return false;
	}
	return false;
}

/* Whether the current task has the group, by its effective or a supplementary group id. */
bool dtrace_in_group(unsigned int gid)
{
	kgid_t group = make_kgid(&init_user_ns, gid);

	return gid_valid(group) && in_egroup_p(group);
}

/*
 * The current task's identity by its real ids, as for PTRACE_MODE_REALCREDS: a set-id program opens
 * for the user who started it.
 */
void dtrace_current_identity(struct dtrace_identity *user)
{
	const struct cred *cred = current_cred();

	*user = (struct dtrace_identity) {
		.uid = __kuid_val(cred->uid),
		.gid = __kgid_val(cred->gid),
		.user_ns = cred->user_ns->ns.ns_id,
		.permitted = cred->cap_permitted.val,
	};
}

/* Whether the current task has a fatal signal pending. */
bool dtrace_killed(void)
{
	return fatal_signal_pending(current);
}

/* The number of the current thread in the initial pid namespace. */
u32 dtrace_thread_number(void)
{
	return task_pid_nr(current);
}
