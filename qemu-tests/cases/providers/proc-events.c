// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

/* Causes each event of the provider proc, one after the other. */

#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static sigjmp_buf back;

static void on_signal(int sig)
{
	(void)sig;
}

static void on_fault(int sig)
{
	siglongjmp(back, sig);
}

static void *thread(void *arg)
{
	return arg;
}

/* Runs f in a process of its own, and waits for its end. */
static void child(void (*f)(void))
{
	pid_t pid = fork();

	if (!pid) {
		f();
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		exit(1);
}

static void exits(void)
{
	_exit(3);
}

static void is_killed(void)
{
	kill(getpid(), SIGKILL);
}

static void is_ended(void)
{
	kill(getpid(), SIGTERM);
}

static void *raises(void *arg)
{
	kill(getpid(), SIGALRM);
	return arg;
}

static void ends_both(void)
{
	pthread_t other;

	if (!pthread_create(&other, NULL, raises, NULL))
		pthread_join(other, NULL);
	pause();
}

static void *ends_the_first(void *arg)
{
	_exit(0);
	return arg;
}

static void is_left(void)
{
	pthread_t other;

	if (!pthread_create(&other, NULL, ends_the_first, NULL))
		pause();
}

static void dumps(void)
{
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };

	setrlimit(RLIMIT_CORE, &all);
	abort();
}

static void execs(void)
{
	execl("/nonesuch", "nonesuch", NULL);
	execl("/bin/true", "true", NULL);
}

static void illegal(void)
{
	asm volatile("ud2");
}

static void breakpoint(void)
{
	asm volatile("int3");
}

static void divides(void)
{
	asm volatile("xor %%edx, %%edx; xor %%ecx, %%ecx; mov $1, %%eax; div %%ecx" ::: "eax", "ecx", "edx");
}

static void unmapped(void)
{
	*(volatile int *)8 = 0;
}

static void protected(void)
{
	*(volatile char *)mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) = 0;
}

static void faults(void)
{
	static const int signals[] = { SIGILL, SIGTRAP, SIGFPE, SIGSEGV, SIGBUS };
	static void (*const causes[])(void) = { illegal, breakpoint, divides, unmapped, protected };
	unsigned int i;

	for (i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		signal(signals[i], on_fault);
	for (i = 0; i < sizeof(causes) / sizeof(*causes); i++)
		if (!sigsetjmp(back, 1))
			causes[i]();
}

int main(void)
{
	pthread_t other;
	sigset_t set;

	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
	signal(SIGHUP, SIG_IGN);
	raise(SIGHUP);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(SIGUSR2);
	sigwaitinfo(&set, NULL);
	if (pthread_create(&other, NULL, thread, NULL) || pthread_join(other, NULL))
		return 1;
	child(exits);
	child(is_killed);
	child(is_ended);
	child(ends_both);
	child(is_left);
	child(dumps);
	child(execs);
	child(faults);
	return 0;
}
