// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * own-arguments KIND [WORD...]: puts its arguments where KIND says, prints its process ID when
 * they are there, and waits. own-arguments rush N: creates N processes, one after the other,
 * that execute this program and exit, and sends them signals meanwhile.
 */

#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096
#define HUGE (2 << 20)
/* Registers of a SATA controller that has no driver. */
#define SATA "/sys/bus/pci/devices/0000:00:1f.2/resource5"

static const char words[] = "moved\0to elsewhere";

/* The path of this program, which gives it its name. */
static char self[PATH_MAX];

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static char *map(size_t size, int fd)
{
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (memory == MAP_FAILED)
		fail("mmap");
	return memory;
}

/* From now on the arguments are at this mapping, below the stack. */
static void move_to(const char *memory)
{
	if (prctl(PR_SET_MM, PR_SET_MM_ARG_START, memory, 0, 0) ||
	    prctl(PR_SET_MM, PR_SET_MM_ARG_END, memory + sizeof(words), 0, 0))
		fail("prctl");
}

static char *with_words(char *memory)
{
	return memcpy(memory, words, sizeof(words));
}

static void huge(void)
{
	char *memory = map(2 * HUGE, -1);

	memory += -(uintptr_t)memory % HUGE;
	if (madvise(memory, HUGE, MADV_HUGEPAGE))
		fail("madvise");
	*memory = 1;
	move_to(with_words(memory + HUGE / 2 - 8));
}

static void secret(void)
{
	int fd = syscall(SYS_memfd_secret, 0);

	if (fd < 0 || ftruncate(fd, PAGE))
		fail("memfd_secret");
	move_to(with_words(map(PAGE, fd)));
}

static void device(void)
{
	int fd = open(SATA, O_RDWR);

	if (fd < 0)
		fail(SATA);
	move_to(map(PAGE, fd));
}

static void without_rights(void)
{
	char *memory = with_words(map(PAGE, -1));

	move_to(memory);
	if (mprotect(memory, PAGE, PROT_NONE))
		fail("mprotect");
}

/* A process that has exited and has not been waited for. */
static pid_t zombie(void)
{
	siginfo_t info;
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	if (pid < 0 || waitid(P_PID, pid, &info, WEXITED | WNOWAIT))
		fail("zombie");
	return pid;
}

static void rush(int n)
{
	while (n--) {
		pid_t pid = fork();

		if (!pid) {
			execl(self, "own-arguments", "one", "of many", NULL);
			fail("exec");
		}
		if (pid < 0)
			fail("fork");
		while (!waitpid(pid, NULL, WNOHANG)) {
			kill(pid, SIGWINCH);
			usleep(100);
		}
	}
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "";
	char *none[] = { NULL };
	pid_t pid = getpid();

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		fail("readlink");
	if (!strcmp(kind, "rush")) {
		rush(atoi(argv[2]));
		return 0;
	}
	if (!strcmp(kind, "one"))
		return 0;
	if (!strcmp(kind, "none"))
		execve(self, none, environ);
	else if (!strcmp(kind, "rewritten"))
		memcpy(argv[1], "written over", sizeof("written over") - 1);
	else if (!strcmp(kind, "moved"))
		move_to(with_words(map(PAGE, -1)));
	else if (!strcmp(kind, "across"))
		move_to(with_words(map(2 * PAGE, -1) + PAGE - 8));
	else if (!strcmp(kind, "absent"))
		move_to(map(PAGE, -1));
	else if (!strcmp(kind, "huge"))
		huge();
	else if (!strcmp(kind, "secret"))
		secret();
	else if (!strcmp(kind, "device"))
		device();
	else if (!strcmp(kind, "without-rights"))
		without_rights();
	else if (!strcmp(kind, "zombie"))
		pid = zombie();
	printf("%d\n", pid);
	fclose(stdout);
	pause();
	return 0;
}
