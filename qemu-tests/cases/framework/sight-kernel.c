// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * What the kernel itself lets the caller see, by calls that have nothing to do with DTrace:
 * sight-kernel sample|kprobe|kernel|user|write|child, or ptrace|perf PID. Prints `seen`, or the
 * error. And what the DTrace device permits with a file that another user has opened: `given`
 * opens it as root and calls as a member, `taken` the other way round; and whether the caller may
 * give it a `table` for stacks, and ask for `names` of frames.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/bpf.h>
#include <linux/dtrace.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOVE(to, from) { .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = to, .src_reg = from }
#define SET(to, number) { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = to, .imm = number }
#define ADD(to, number) { .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = to, .imm = number }
#define CALL(number) { .code = BPF_JMP | BPF_CALL, .imm = number }

static int perf(struct perf_event_attr *attr, pid_t pid, int cpu)
{
	attr->size = sizeof(*attr);
	return syscall(SYS_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Samples of a CPU, including the kernel, with stacks of the kernel and of programs, and with a
 * program's memory at its stack pointer. */
static int sample(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1000000,
		.sample_type = PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_TID | PERF_SAMPLE_STACK_USER | PERF_SAMPLE_REGS_INTR,
		.sample_stack_user = 4096,
		.sample_regs_intr = 1,
	};

	return perf(&attr, -1, 0);
}

/* Calls of a kernel function. */
static int kprobe(void)
{
	struct perf_event_attr attr = {
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_TID,
		.config1 = (uintptr_t)"vfs_read",
	};
	FILE *type = fopen("/sys/bus/event_source/devices/kprobe/type", "re");

	if (!type || fscanf(type, "%u", &attr.type) != 1) {
		errno = ENOENT;
		return -1;
	}
	fclose(type);
	return perf(&attr, -1, 0);
}

/* A BPF program at a kprobe that calls one of the functions that read and write memory. */
static int bpf(int function, const struct bpf_insn *set_up)
{
	const struct bpf_insn text[] = {
		{ .code = BPF_ST | BPF_MEM | BPF_DW, .dst_reg = BPF_REG_10, .off = -8 },
		set_up[0], set_up[1], set_up[2], set_up[3],
		CALL(function),
		SET(BPF_REG_0, 0),
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_KPROBE,
		.insns = (uintptr_t)text,
		.insn_cnt = sizeof(text) / sizeof(*text),
		.license = (uintptr_t)"GPL",
	};

	return syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

static int load(int function)
{
	const struct bpf_insn set_up[] = {
		MOVE(BPF_REG_1, BPF_REG_10), ADD(BPF_REG_1, -8), SET(BPF_REG_2, 8), SET(BPF_REG_3, 0),
	};

	return bpf(function, set_up);
}

static int store(void)
{
	const struct bpf_insn set_up[] = {
		SET(BPF_REG_1, 0), MOVE(BPF_REG_2, BPF_REG_10), ADD(BPF_REG_2, -8), SET(BPF_REG_3, 8),
	};

	return bpf(BPF_FUNC_probe_write_user, set_up);
}

static int attach(pid_t pid)
{
	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL))
		return -1;
	ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
	waitpid(pid, NULL, __WALL);
	return ptrace(PTRACE_DETACH, pid, NULL, NULL);
}

static int watch(pid_t pid)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.exclude_kernel = 1,
	};

	return perf(&attr, pid, -1);
}

static int attach_child(void)
{
	pid_t pid = fork();
	int got, error;

	if (!pid) {
		pause();
		_exit(0);
	}
	got = pid < 0 ? -1 : attach(pid);
	error = errno;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, __WALL);
	errno = error;
	return got;
}

/* A call of the device that needs rights over the kernel. */
static int call(int fd)
{
	int got = ioctl(fd, DTRACEIOC_WANTED);

	return got < 0 && errno == ENOENT ? 0 : got;
}

/* A table that is damaged: that is said only of a table that may be given. */
static int table(void)
{
	struct dtrace_unwind_table table = {
		.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
		.size = 1,
		.bytes = (uintptr_t)"",
	};
	int fd = open("/dev/dtrace", O_RDWR | O_CLOEXEC);
	int got = ioctl(fd, DTRACEIOC_TABLE, &table);

	return got < 0 && errno == EINVAL ? 0 : got;
}

/* A frame that there is not. */
static int names(void)
{
	char name[64];
	struct dtrace_interp_frame frame = { .name = 1, .size = sizeof(name), .bytes = (uintptr_t)name };
	int fd = open("/dev/dtrace", O_RDWR | O_CLOEXEC);
	int got = ioctl(fd, DTRACEIOC_FRAME, &frame);

	return got < 0 && errno == ENOENT ? 0 : got;
}

/* Becomes a member of the group, with these effective IDs. */
static int become(gid_t gid, uid_t uid)
{
	return setgroups(0, NULL) || setegid(gid) || seteuid(uid);
}

static int given(void)
{
	int fd = open("/dev/dtrace", O_RDWR | O_CLOEXEC);

	return fd < 0 || become(77, 65534) ? -1 : call(fd);
}

static int taken(void)
{
	int fd = become(77, 65534) ? -1 : open("/dev/dtrace", O_RDWR | O_CLOEXEC);

	return fd < 0 || seteuid(0) || setegid(0) ? -1 : call(fd);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	pid_t pid = argc > 2 ? atoi(argv[2]) : 0;
	int got;

	if (!strcmp(what, "sample"))
		got = sample();
	else if (!strcmp(what, "kprobe"))
		got = kprobe();
	else if (!strcmp(what, "kernel"))
		got = load(BPF_FUNC_probe_read_kernel);
	else if (!strcmp(what, "user"))
		got = load(BPF_FUNC_probe_read_user);
	else if (!strcmp(what, "write"))
		got = store();
	else if (!strcmp(what, "child"))
		got = attach_child();
	else if (!strcmp(what, "given"))
		got = given();
	else if (!strcmp(what, "taken"))
		got = taken();
	else if (!strcmp(what, "table"))
		got = table();
	else if (!strcmp(what, "names"))
		got = names();
	else if (!strcmp(what, "ptrace"))
		got = attach(pid);
	else if (!strcmp(what, "perf"))
		got = watch(pid);
	else
		return 2;
	puts(got >= 0 ? "seen" : strerrorname_np(errno));
	return 0;
}
