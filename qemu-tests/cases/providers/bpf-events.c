// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * bpf-events [COMMAND [WORD]...]: BPF programs count this process' calls of vfs_read(), in each
 * way in which they can be attached to a function: trampolines at its entry and its return,
 * probes of both, and the tracepoint of every system call. Makes 500 reads, runs the command,
 * makes 500 more reads, and prints what each program has counted. BPF_FUNCTION names another
 * function than vfs_read().
 */

#include <err.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define READS 500

enum { ENTRY, RETURN, PROBE_ENTRY, PROBE_RETURN, TRACEPOINT, WAYS };
static const char *const names[] = { "fentry", "fexit", "kprobe.multi", "kretprobe.multi", "raw tracepoint" };

static int map;

static const char *watched(void)
{
	return getenv("BPF_FUNCTION") ?: "vfs_read";
}

static int bpf(int command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

/* The number of bytes after a type's three words. */
static size_t more(const struct btf_type *type)
{
	size_t count = BTF_INFO_VLEN(type->info);

	switch (BTF_INFO_KIND(type->info)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return 4;
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return count * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return count * sizeof(struct btf_enum);
	case BTF_KIND_ENUM64:
		return count * sizeof(struct btf_enum64);
	case BTF_KIND_FUNC_PROTO:
		return count * sizeof(struct btf_param);
	case BTF_KIND_DATASEC:
		return count * sizeof(struct btf_var_secinfo);
	default:
		return 0;
	}
}

/* The ID of the function in the kernel's BTF. */
static unsigned int function(const char *name)
{
	int fd = open("/sys/kernel/btf/vmlinux", O_RDONLY);
	const struct btf_header *header;
	const char *at, *end, *strings;
	struct stat stat;
	unsigned int id;
	ssize_t got;
	char *image;
	off_t have;

	if (fd < 0 || fstat(fd, &stat))
		err(1, "the kernel's types");
	image = malloc(stat.st_size);
	for (have = 0; image && have < stat.st_size; have += got) {
		got = read(fd, image + have, stat.st_size - have);
		if (got <= 0)
			err(1, "the kernel's types");
	}
	close(fd);
	header = (void *)image;
	at = image + header->hdr_len + header->type_off;
	end = at + header->type_len;
	strings = image + header->hdr_len + header->str_off;
	for (id = 1; at < end; id++) {
		const struct btf_type *type = (const void *)at;

		if (BTF_INFO_KIND(type->info) == BTF_KIND_FUNC && !strcmp(strings + type->name_off, name)) {
			free(image);
			return id;
		}
		at += sizeof(*type) + more(type);
	}
	errx(1, "no function %s", name);
}

/* Adds one to an element of the map if this process runs. */
static int load(int way, int type, int attach, unsigned int id)
{
	const struct bpf_insn code[] = {
		{ BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_get_current_pid_tgid },
		{ BPF_ALU64 | BPF_RSH | BPF_K, BPF_REG_0, 0, 0, 32 },
		{ BPF_JMP | BPF_JNE | BPF_K, BPF_REG_0, 0, 9, getpid() },
		{ BPF_ST | BPF_MEM | BPF_W, BPF_REG_10, 0, -4, way },
		{ BPF_LD | BPF_IMM | BPF_DW, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, map },
		{ 0, 0, 0, 0, 0 },
		{ BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_2, BPF_REG_10, 0, 0 },
		{ BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_2, 0, 0, -4 },
		{ BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem },
		{ BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, 2, 0 },
		{ BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_1, 0, 0, 1 },
		{ BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_0, BPF_REG_1, 0, BPF_ADD },
		{ BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 0 },
		{ BPF_JMP | BPF_EXIT, 0, 0, 0, 0 },
	};
	static char log[65536];
	union bpf_attr attr = {
		.prog_type = type,
		.expected_attach_type = attach,
		.attach_btf_id = id,
		.insns = (uintptr_t)code,
		.insn_cnt = sizeof(code) / sizeof(*code),
		.license = (uintptr_t)"GPL",
		.log_buf = (uintptr_t)log,
		.log_size = sizeof(log),
		.log_level = 1,
	};
	int program = bpf(BPF_PROG_LOAD, &attr);

	if (program < 0)
		err(1, "%s: %s", names[way], log);
	return program;
}

static void trampoline(int way, int attach, unsigned int id)
{
	union bpf_attr attr = { .raw_tracepoint.prog_fd = load(way, BPF_PROG_TYPE_TRACING, attach, id) };

	if (bpf(BPF_RAW_TRACEPOINT_OPEN, &attr) < 0)
		err(1, "%s", names[way]);
}

static void probe(int way, unsigned int flags)
{
	const char *symbol = watched();
	union bpf_attr attr = {
		.link_create.prog_fd = load(way, BPF_PROG_TYPE_KPROBE, BPF_TRACE_KPROBE_MULTI, 0),
		.link_create.attach_type = BPF_TRACE_KPROBE_MULTI,
		.link_create.kprobe_multi.flags = flags,
		.link_create.kprobe_multi.cnt = 1,
		.link_create.kprobe_multi.syms = (uintptr_t)&symbol,
	};

	if (bpf(BPF_LINK_CREATE, &attr) < 0)
		err(1, "%s", names[way]);
}

static void tracepoint(void)
{
	union bpf_attr attr = {
		.raw_tracepoint.name = (uintptr_t)"sys_enter",
		.raw_tracepoint.prog_fd = load(TRACEPOINT, BPF_PROG_TYPE_RAW_TRACEPOINT, 0, 0),
	};

	if (bpf(BPF_RAW_TRACEPOINT_OPEN, &attr) < 0)
		err(1, "%s", names[TRACEPOINT]);
}

static void reads(int fd)
{
	char byte;
	int i;

	for (i = 0; i < READS; i++)
		if (read(fd, &byte, 1) != 1)
			err(1, "read");
}

/* Without a shell, because not every shell passes on an exported function of another. */
static void run(char **words)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		execvp(words[0], words);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		errx(1, "%s", words[0]);
}

int main(int argc, char **argv)
{
	union bpf_attr attr = { .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 8, .max_entries = WAYS };
	int zero = open("/dev/zero", O_RDONLY), way;
	unsigned int id = function(watched());

	map = bpf(BPF_MAP_CREATE, &attr);
	if (zero < 0 || map < 0)
		err(1, "map");
	trampoline(ENTRY, BPF_TRACE_FENTRY, id);
	trampoline(RETURN, BPF_TRACE_FEXIT, id);
	probe(PROBE_ENTRY, 0);
	probe(PROBE_RETURN, BPF_F_KPROBE_MULTI_RETURN);
	tracepoint();
	reads(zero);
	fflush(stdout);
	if (argc > 1)
		run(argv + 1);
	reads(zero);
	for (way = 0; way < WAYS; way++) {
		unsigned long long count = 0;

		memset(&attr, 0, sizeof(attr));
		attr.map_fd = map;
		attr.key = (uintptr_t)&way;
		attr.value = (uintptr_t)&count;
		if (bpf(BPF_MAP_LOOKUP_ELEM, &attr))
			err(1, "look-up");
		/* The process makes other system calls too. */
		if (way == TRACEPOINT ? count >= 2 * READS : count == 2 * READS)
			printf("%s: each\n", names[way]);
		else
			printf("%s: %llu\n", names[way], count);
	}
	return 0;
}
