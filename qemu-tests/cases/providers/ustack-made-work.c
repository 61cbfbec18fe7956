// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0
// @gcc: -O2 -fomit-frame-pointer -fno-optimize-sibling-calls

/*
 * Usage: ustack-made-work WORD...
 *
 * Generates two functions at run time, one with a frame pointer, which calls one without, which
 * calls getppid(); and writes a description of them: a perf map or, with the word `dump', a
 * jitdump. `foreign': the map belongs to another user; `open': everybody may write to it; `old':
 * it is older than this process; `late': it is written after the code has run once. `stays': the
 * process waits for a moment and runs the code once more.
 */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone))

/* push %rbp; mov %rsp,%rbp; mov %rsi,%rax; call *%rax; pop %rbp; ret */
static const unsigned char framed[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf0, 0xff, 0xd0, 0x5d, 0xc3 };
/* sub $8,%rsp; call *%rdi; add $8,%rsp; ret */
static const unsigned char stub[] = { 0x48, 0x83, 0xec, 0x08, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x08, 0xc3 };

static volatile long sink;
static const char *const *words;

static int has(const char *word)
{
	for (const char *const *at = words; *at; at++)
		if (!strcmp(*at, word))
			return 1;
	return 0;
}

KEPT void last(void)
{
	sink += syscall(SYS_getppid);
}

KEPT void run(char *code)
{
	void (*made)(void (*)(void), void *) = (void *)code;

	made(last, code + 64);
	sink++;
}

static void map(const char *code)
{
	const struct timespec long_ago[2] = { { .tv_sec = 1000000000 }, { .tv_sec = 1000000000 } };
	char path[64], fresh[80];
	FILE *file;

	/* The file appears complete, by renaming, because a reader may open it at any moment. */
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	snprintf(fresh, sizeof(fresh), "%s.new", path);
	file = fopen(fresh, "w");
	fprintf(file, "%lx %zx framed<int>(/a b.js:1)\n", (long)code, sizeof(framed));
	fprintf(file, "%lx %zx _ZN4stubC1Ev\n", (long)code + 64, sizeof(stub));
	fflush(file);
	if (has("foreign"))
		fchown(fileno(file), 1, 1);
	if (has("open"))
		fchmod(fileno(file), 0666);
	if (has("old"))
		futimens(fileno(file), long_ago);
	fclose(file);
	rename(fresh, path);
}

static void load(FILE *file, const char *code, size_t size, const char *name)
{
	uint32_t head[4] = { 0, 16 + 40 + strlen(name) + 1 + size };
	uint64_t body[5] = { (uint64_t)getpid() << 32 | getpid(), (uint64_t)code, (uint64_t)code, size };

	fwrite(head, sizeof(head), 1, file);
	fwrite(body, sizeof(body), 1, file);
	fwrite(name, strlen(name) + 1, 1, file);
	fwrite(code, size, 1, file);
}

static void dump(const char *code)
{
	uint32_t header[10] = { 0x4a695444, 1, 40, 62, 0, getpid() };
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/var/tmp/jit-%d.dump", getpid());
	file = fopen(path, "w+");
	fwrite(header, sizeof(header), 1, file);
	load(file, code, sizeof(framed), "framed in a dump");
	load(file, code + 64, sizeof(stub), "stub in a dump");
	fflush(file);
	mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(file), 0);
	fclose(file);
	unlink(path);
}

int main(int argc, char **argv)
{
	char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)argc;
	words = (const char *const *)argv + 1;
	memcpy(code, framed, sizeof(framed));
	memcpy(code + 64, stub, sizeof(stub));
	mprotect(code, 4096, PROT_READ | PROT_EXEC);
	if (has("late"))
		run(code);
	has("dump") ? dump(code) : map(code);
	run(code);
	if (has("stays")) {
		sleep(2);
		run(code);
		sleep(2);
	}
	return 0;
}
