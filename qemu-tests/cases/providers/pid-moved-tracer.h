/* SPDX-FileCopyrightText: The DTrace for Linux authors */
/* SPDX-License-Identifier: MIT OR Apache-2.0 */

/* What a tracer of pid-moved sees of it: steps, stops at any moment, and its death. The tracer
 * is a child of the process. */

/* Has the tracer stop this process, which waits for it. */
static bool seize(pid_t pid, long options)
{
	int status;

	if (ptrace(PTRACE_SEIZE, pid, NULL, options) || ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) ||
	    waitpid(pid, &status, __WALL) != pid) {
		printf("(%s) ", strerror(errno));
		fflush(stdout);
		shared->go = shared->done = true;
		return false;
	}
	return true;
}

static pid_t tracer(void (*body)(pid_t))
{
	pid_t pid, parent = getpid();

	fflush(stdout);
	pid = fork();
	if (!pid) {
		body(parent);
		fflush(stdout);
		_exit(0);
	}
	return pid;
}

static void step_through(pid_t pid)
{
	struct user_regs_struct regs;
	int status;

	if (!seize(pid, 0))
		return;
	shared->go = true;
	for (int n = 0; n < 100000; n++) {
		if (ptrace(PTRACE_GETREGS, pid, NULL, &regs))
			break;
		step_to(regs.rip);
		if ((size_t)right == PLACES && regs.rip - (unsigned long)walk >= WALK_END)
			break;
		ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL);
		if (waitpid(pid, &status, __WALL) != pid || !WIFSTOPPED(status) || status >> 8 != SIGTRAP) {
			wrong_step++;
			break;
		}
	}
	shared->seen[0] = right;
	shared->seen[1] = wrong_step;
	ptrace(PTRACE_DETACH, pid, NULL, NULL);
}

static void steps(void)
{
	pid_t pid = tracer(step_through);
	long result;

	while (!shared->go)
		;
	result = walk(9, walk_area);
	waitpid(pid, NULL, 0);
	printf("steps %ld of %zu, %ld wrong, result %ld\n", shared->seen[0], PLACES, shared->seen[1], result);
}

/* Stops at any moment; every other time the registers are written back unchanged. */
static void stop_often(pid_t pid)
{
	struct user_regs_struct regs;
	int status;

	if (!seize(pid, 0))
		return;
	shared->go = true;
	for (int n = 0; n < TURNS; n++) {
		ptrace(PTRACE_CONT, pid, NULL, NULL);
		usleep(1000);
		ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
		if (waitpid(pid, &status, __WALL) != pid || !WIFSTOPPED(status))
			break;
		ptrace(PTRACE_GETREGS, pid, NULL, &regs);
		shared->seen[0]++;
		shared->seen[1] += !is_text(regs.rip);
		shared->seen[2] += regs.rip == (unsigned long)copy + COPY_REP;
		if (n & 1)
			ptrace(PTRACE_SETREGS, pid, NULL, &regs);
	}
	ptrace(PTRACE_DETACH, pid, NULL, NULL);
	shared->done = true;
}

static void stops(void)
{
	pid_t pid = tracer(stop_often);
	long turns = 0, wrong = 0;

	while (!shared->go)
		;
	while (!shared->done)
		wrong += !copied(turns++);
	waitpid(pid, NULL, 0);
	ended(turns);
	printf("stops %ld, %ld elsewhere, %s, %ld wrong\n", shared->seen[0], shared->seen[1],
	       shared->seen[2] ? "in the copy" : "never in the copy", wrong);
}

/* Watches the death of the process. */
static void watch_death(pid_t pid)
{
	struct user_regs_struct regs;
	siginfo_t info;
	int status;

	if (!seize(pid, PTRACE_O_TRACEEXIT))
		return;
	shared->go = true;
	ptrace(PTRACE_CONT, pid, NULL, NULL);
	while (waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status)) {
		bool exits = status >> 16 == PTRACE_EVENT_EXIT;

		ptrace(PTRACE_GETREGS, pid, NULL, &regs);
		ptrace(PTRACE_GETSIGINFO, pid, NULL, &info);
		printf("%s at %s%s\n", exits ? "exits" : "gets SIGSEGV", regs.rip == (unsigned long)add_to ? "instruction" : "elsewhere",
		       exits ? "" : info.si_addr ? ", address wrong" : ", address right");
		fflush(stdout);
		ptrace(PTRACE_CONT, pid, NULL, exits ? 0 : WSTOPSIG(status));
	}
}

static void dies(void)
{
	tracer(watch_death);
	while (!shared->go)
		;
	add_to(NULL);
}
