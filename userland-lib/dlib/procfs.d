/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Processes and threads. Each thread has a task_struct of its own. The threads of a process share
 * the process's data.
 */

#pragma D depends_on library unistd.d

typedef int processorid_t;

typedef struct psinfo {
	int pr_nlwp;		/* number of threads */
	int pr_nzomb;		/* zombie threads: 1 if the main thread is a zombie, else 0 */
	pid_t pr_pid;		/* process ID */
	pid_t pr_ppid;		/* process ID of the parent */
	pid_t pr_pgid;		/* process group ID */
	pid_t pr_sid;		/* session ID */
	uid_t pr_uid;		/* real user ID */
	uid_t pr_euid;		/* effective user ID */
	gid_t pr_gid;		/* real group ID */
	gid_t pr_egid;		/* effective group ID */
	uintptr_t pr_addr;	/* address of the task_struct */
	size_t pr_size;		/* size of the address space in KiB, 0 if it has none */
	size_t pr_rssize;	/* resident part of it in KiB, approximate */
	uint32_t pr_ttydev;	/* controlling terminal, -1 if there is none */
	uint64_t pr_start;	/* start time, nanoseconds since boot */
	string pr_fname;	/* name of the program */
	string pr_psargs;	/* arguments; of another process the name if they cannot be read */
	int pr_wstat;		/* exit status of a dead process */
	int pr_argc;		/* number of arguments; current process only, else 0 */
	uintptr_t pr_argv;	/* address of the initial argument array, 0 without memory */
	uintptr_t pr_envp;	/* address of the initial environment; current process only */
	char pr_dmodel;		/* PR_MODEL_... */
	int pr_taskid;		/* always 0: Linux has no tasks, */
	int pr_projid;		/* projects, */
	int pr_poolid;		/* pools, */
	int pr_zoneid;		/* zones */
	int pr_contract;	/* or contracts of this kind */
} psinfo_t;

inline int PR_MODEL_UNKNOWN = 0;
inline int PR_MODEL_ILP32 = 1;
inline int PR_MODEL_LP64 = 2;

/*
 * The initial stack of a process begins with the number of its arguments. The pointers to the
 * arguments follow, then a NULL, then the pointers of the environment.
 */
inline int dtrace_model[struct task_struct *T] =
    T->mm == NULL || T->mm->task_size >> 32 != 0 ? PR_MODEL_LP64 : PR_MODEL_ILP32;
inline int dtrace_argc[struct task_struct *T] =
    T->mm == NULL || T->tgid != pid ? 0 : *(int *)copyin(T->mm->start_stack, sizeof (int));
inline uintptr_t dtrace_argv[struct task_struct *T] =
    T->mm == NULL ? 0 : T->mm->start_stack + (dtrace_model[T] == PR_MODEL_LP64 ? 8 : 4);

/* Offset of a CPU's copy of a per-CPU variable from the variable's address. */
inline uintptr_t dtrace_percpu[int cpu_id] = ((uintptr_t *)&`__per_cpu_offset)[cpu_id];

/*
 * Resident pages of a kind: MM_FILEPAGES 0, MM_ANONPAGES 1, MM_SHMEMPAGES 3. Each CPU collects some
 * pages in a local count before it adds them to the total. The local count of the thread's own CPU
 * is included here.
 */
inline long dtrace_rss[struct task_struct *T, int kind] = T->mm->rss_stat[kind].count +
    *(int *)((uintptr_t)T->mm->rss_stat[kind].counters + dtrace_percpu[T->thread_info.cpu]);
inline long dtrace_rss_total[struct task_struct *T] = dtrace_rss[T, 0] + dtrace_rss[T, 1] + dtrace_rss[T, 3];

/* pids[2] is that of PIDTYPE_PGID, pids[3] that of PIDTYPE_SID. */
translator psinfo_t < struct task_struct *T > {
	pr_nlwp = T->signal->nr_threads;
	/* EXIT_ZOMBIE. Threads other than the main thread are released when they end. */
	pr_nzomb = T->group_leader->exit_state & 0x20 ? 1 : 0;
	pr_pid = T->tgid;
	pr_ppid = T->thread_pid == NULL ? 0 : T->real_parent->tgid;
	pr_pgid = T->signal->pids[2]->numbers[0].nr;
	pr_sid = T->signal->pids[3]->numbers[0].nr;
	pr_uid = T->real_cred->uid.val;
	pr_euid = T->real_cred->euid.val;
	pr_gid = T->real_cred->gid.val;
	pr_egid = T->real_cred->egid.val;
	pr_addr = (uintptr_t)T;
	pr_size = T->mm == NULL ? 0 : T->mm->total_vm * 4;
	pr_rssize = T->mm == NULL || dtrace_rss_total[T] < 0 ? 0 : dtrace_rss_total[T] * 4;
	pr_ttydev = T->signal->tty == NULL ? -1 :
	    (T->signal->tty->driver->major << 20) +
	    T->signal->tty->driver->minor_start + T->signal->tty->index;
	pr_start = T->group_leader->start_boottime;
	pr_fname = stringof(T->group_leader->comm);
	pr_psargs = T->tgid == pid ? execargs : taskargs(T);
	pr_wstat = T->exit_code;
	pr_argc = dtrace_argc[T];
	pr_argv = dtrace_argv[T];
	pr_envp = T->mm == NULL || T->tgid != pid ? 0 :
	    dtrace_argv[T] + (dtrace_argc[T] + 1) * (dtrace_model[T] == PR_MODEL_LP64 ? 8 : 4);
	pr_dmodel = dtrace_model[T];
	pr_taskid = 0;
	pr_projid = 0;
	pr_poolid = 0;
	pr_zoneid = 0;
	pr_contract = 0;
};

inline int SSLEEP = 1;
inline int SRUN = 2;
inline int SZOMB = 3;
inline int SSTOP = 4;
inline int SIDL = 5;
inline int SONPROC = 6;
inline int SWAIT = 7;

inline int PR_STOPPED = 0x00000001;
inline int PR_ISSYS = 0x00001000;
inline int PR_VFORKP = 0x00002000;
inline int PR_PTRACE = 0x04000000;

inline char SOBJ_NONE = 0;
inline char SOBJ_MUTEX = 1;
inline char SOBJ_RWLOCK = 2;
inline char SOBJ_CV = 3;
inline char SOBJ_SEMA = 4;
inline char SOBJ_USER = 5;
inline char SOBJ_USER_PI = 6;
inline char SOBJ_SHUTTLE = 7;

inline int dtrace_node[int cpu_id] = *(int *)((uintptr_t)&`numa_node + dtrace_percpu[cpu_id]);

typedef struct lwpsinfo {
	int pr_flag;		/* PR_STOPPED, PR_ISSYS, PR_VFORKP, PR_PTRACE */
	id_t pr_lwpid;		/* thread ID */
	uintptr_t pr_addr;	/* address of the task_struct */
	uintptr_t pr_wchan;	/* address of the lock it waits for, 0 if not known */
	char pr_state;		/* SSLEEP, SRUN, ... */
	char pr_sname;		/* the state as a letter */
	char pr_nice;		/* nice value */
	short pr_cpu;		/* recent CPU utilization, of 1024 */
	int pr_pri;		/* priority; lower values are more urgent */
	int pr_oldpri;		/* the same */
	string pr_clname;	/* scheduling class */
	string pr_name;		/* name of the thread */
	processorid_t pr_onpro;	/* CPU that the thread runs on, or ran on last */
	processorid_t pr_bindpro;	/* the only permitted CPU, -1 if there are more */
	int pr_bindpset;	/* always -1: Linux has no processor sets */
	int pr_lgrp;		/* memory node of that CPU */
	char pr_stype;		/* type of the lock at pr_wchan: SOBJ_... */
	short pr_syscall;	/* number of the current system call, -1 if there is none */
} lwpsinfo_t;

/*
 * The user registers of a thread are at the top of its kernel stack. Their offset is the same as in
 * the stack of the first thread, which results from kernel symbols.
 */
inline struct pt_regs *dtrace_user_regs[struct task_struct *T] = (struct pt_regs *)((uintptr_t)T->stack +
    ((uintptr_t)&`__top_init_kernel_stack - (uintptr_t)&`init_stack));
/*
 * Threads with PF_KTHREAD or PF_USER_WORKER have no user registers. Those of a thread that runs on
 * another CPU are out of date.
 */
inline int dtrace_syscall[struct task_struct *T] =
    T->flags & 0x204000 || T->stack == NULL || (T->on_cpu && T != curthread) ? -1 :
    (int)dtrace_user_regs[T]->orig_ax;
/* futex(2): 202 for 64 bits; 240 and 422 (futex_time64) for 32 bits. */
inline int dtrace_futex[struct task_struct *T] =
    dtrace_model[T] == PR_MODEL_LP64 ? dtrace_syscall[T] == 202 : dtrace_syscall[T] == 240 || dtrace_syscall[T] == 422;
/* TASK_INTERRUPTIBLE is 1. */
inline int dtrace_futex_wait[struct task_struct *T] = T->__state & 1 && dtrace_futex[T];
/*
 * A process that waits for a child of vfork(2) creates no other child, so that child is its last
 * one.
 */
inline int dtrace_vforks[struct task_struct *T] = T->children.prev != &T->children &&
    ((struct task_struct *)((uintptr_t)T->children.prev - offsetof(struct task_struct, sibling)))->vfork_done != NULL;

/*
 * __state: bits 2 and 3 mean stopped and traced. flags: 0x200000 is PF_KTHREAD. A static_prio of
 * 120 is nice 0.
 */
translator lwpsinfo_t < struct task_struct *T > {
	pr_flag = (T->flags & 0x200000 ? PR_ISSYS : 0) | (T->__state & 0xc ? PR_STOPPED : 0) |
	    (dtrace_vforks[T] ? PR_VFORKP : 0) | (T->ptrace ? PR_PTRACE : 0);
	pr_lwpid = T->pid;
	pr_addr = (uintptr_t)T;
	pr_wchan = T->blocked_on != NULL ? (uintptr_t)T->blocked_on :
	    T->pi_blocked_on != NULL ? (uintptr_t)T->pi_blocked_on->lock :
	    !dtrace_futex_wait[T] ? 0 :
	    dtrace_model[T] == PR_MODEL_LP64 ? dtrace_user_regs[T]->di : dtrace_user_regs[T]->bx;
	/*
	 * A thread that is about to sleep is still on its CPU, so test __state first. 0xc: stopped
	 * or traced; 0x800: new, not woken yet.
	 */
	pr_state = T->exit_state ? SZOMB : T->__state & 0xc ? SSTOP : T->__state & 0x800 ? SIDL :
	    T->__state ? SSLEEP : T->on_cpu ? SONPROC : SRUN;
	pr_sname = T->exit_state ? 'Z' : T->__state & 0xc ? 'T' : T->__state & 0x800 ? 'I' :
	    T->__state ? 'S' : T->on_cpu ? 'O' : 'R';
	pr_nice = T->static_prio - 120;
	pr_cpu = T->se.avg.util_avg;
	pr_pri = T->prio;
	pr_oldpri = T->prio;
	pr_clname = T->policy == 1 || T->policy == 2 ? "RT" :
	    T->policy == 6 ? "DL" : T->policy == 7 ? "EXT" : "TS";
	pr_name = stringof(T->comm);
	pr_onpro = T->thread_info.cpu;
	pr_bindpro = T->nr_cpus_allowed == 1 ? T->thread_info.cpu : -1;
	pr_bindpset = -1;
	pr_lgrp = dtrace_node[T->thread_info.cpu];
	pr_stype = T->blocked_on != NULL ? SOBJ_MUTEX :
	    T->pi_blocked_on != NULL ? (dtrace_futex[T] ? SOBJ_USER_PI : SOBJ_MUTEX) :
	    dtrace_futex_wait[T] ? SOBJ_USER : SOBJ_NONE;
	pr_syscall = dtrace_syscall[T];
};

inline psinfo_t *curpsinfo = xlate <psinfo_t *> (curthread);
inline lwpsinfo_t *curlwpsinfo = xlate <lwpsinfo_t *> (curthread);

/* The current process's working directory and root directory. */
inline string cwd = d_path(&curthread->fs->pwd);
inline string root = d_path(&curthread->fs->root);
inline string threadname = stringof(curthread->comm);
