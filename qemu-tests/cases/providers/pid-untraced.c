// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * A debugger with a breakpoint that a thread meets which it does not trace: it traces the program's
 * second thread alone. The program has a handler for the signal of the breakpoint, which does what
 * the instruction would have done. The debugger writes its breakpoint when /tmp/cover exists.
 */

#define _GNU_SOURCE
#include <err.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define CALLS 10

/* On a page of its own. */
long work(long n);
__asm__(".text\n.p2align 12\n.globl work\n.type work, @function\nwork:\n"
	"	lea 1(%rdi), %rax\n"
	"	ret\n"
	".size work, .-work\n.p2align 12\n");
/* The length of its first instruction. */
#define LEA 4

/* What happens, in this order. */
enum { STARTED, READY, WRITTEN, MET, CALLED, AGAIN, RESTORED };

/* Shared by both processes. */
static struct {
	atomic_int phase;
	pid_t second;
} *shared;

static volatile long traps, wrong;

static void reach(int phase)
{
	shared->phase = phase;
}

static void await(int phase)
{
	while (shared->phase < phase)
		usleep(1000);
}

static void on_trap(int sig, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)sig;
	(void)info;
	wrong += regs[REG_RIP] != (long)work + 1;
	regs[REG_RAX] = regs[REG_RDI] + 1;
	regs[REG_RIP] = (long)work + LEA;
	traps++;
}

static void calls(int count)
{
	for (int n = 0; n < count; n++)
		wrong += work(n) != n + 1;
}

static void *second(void *unused)
{
	shared->second = syscall(SYS_gettid);
	reach(READY);
	await(MET);
	calls(1);
	reach(CALLED);
	await(RESTORED);
	return unused;
}

static int program(void)
{
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	pthread_t id;

	sigaction(SIGTRAP, &action, NULL);
	pthread_create(&id, NULL, second, NULL);
	await(WRITTEN);
	calls(CALLS);
	reach(MET);
	await(CALLED);
	calls(CALLS);
	reach(AGAIN);
	await(RESTORED);
	calls(CALLS);
	pthread_join(id, NULL);
	printf("traps %ld wrong %ld\n", traps, wrong);
	return 0;
}

static void poke(pid_t id, long byte)
{
	long word = ptrace(PTRACE_PEEKTEXT, id, work, NULL);

	ptrace(PTRACE_POKETEXT, id, work, (word & ~0xffL) | byte);
}

static void stop(pid_t id)
{
	ptrace(PTRACE_INTERRUPT, id, NULL, NULL);
	waitpid(id, NULL, __WALL);
}

/* Steps a thread over the breakpoint. Returns whether it has stopped there. */
static bool steps(pid_t id, int status, long saved)
{
	struct user_regs_struct regs;

	if (status >> 8 != SIGTRAP || ptrace(PTRACE_GETREGS, id, NULL, &regs) || (long)regs.rip != (long)work + 1)
		return false;
	regs.rip = (long)work;
	ptrace(PTRACE_SETREGS, id, NULL, &regs);
	poke(id, saved);
	ptrace(PTRACE_SINGLESTEP, id, NULL, NULL);
	waitpid(id, NULL, __WALL);
	poke(id, 0xcc);
	return true;
}

static void debug_thread(pid_t id)
{
	int status, met = 0;
	long saved;

	if (ptrace(PTRACE_SEIZE, id, NULL, NULL))
		err(1, "seize");
	stop(id);
	saved = ptrace(PTRACE_PEEKTEXT, id, work, NULL) & 0xff;
	printf("found %02lx\n", saved);
	poke(id, 0xcc);
	ptrace(PTRACE_CONT, id, NULL, NULL);
	reach(WRITTEN);
	while (shared->phase < AGAIN) {
		if (waitpid(id, &status, __WALL | WNOHANG) != id) {
			usleep(1000);
			continue;
		}
		met += steps(id, status, saved);
		ptrace(PTRACE_CONT, id, NULL, NULL);
	}
	stop(id);
	poke(id, saved);
	ptrace(PTRACE_DETACH, id, NULL, NULL);
	printf("met %d\n", met);
}

int main(void)
{
	pid_t pid;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	pid = fork();
	if (!pid)
		return program();
	await(READY);
	printf("program %d\n", pid);
	fflush(stdout);
	while (access("/tmp/cover", F_OK))
		usleep(10000);
	debug_thread(shared->second);
	fflush(stdout);
	reach(RESTORED);
	waitpid(pid, NULL, 0);
	return 0;
}
