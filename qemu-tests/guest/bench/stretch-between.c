// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * `stretch-between BEGIN END NOT`: tells the emulator's plugin (host/stretch) between which
 * functions of dtrace.ko to count instructions, and which function (NOT) is called if entering
 * probe context is refused, so that this BEGIN does not count. Runs as root, before any of them has
 * been executed.
 */

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define MARK 0x7374726574636821ULL

static uint64_t address_of(const char *symbol)
{
	char line[512], name[256], module[64];
	unsigned long long addr = 0;
	FILE *file = fopen("/proc/kallsyms", "r");

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%llx %*c %255s [%63[^]]", &addr, name, module) == 3 && !strcmp(name, symbol) &&
		    !strcmp(module, "dtrace"))
			break;
		addr = 0;
	}
	if (file)
		fclose(file);
	if (!addr)
		fprintf(stderr, "stretch-between: dtrace.ko has no %s\n", symbol);
	return addr;
}

int main(int argc, char **argv)
{
	/* movabs to rax, rcx, rdx and rsi; ret */
	uint8_t code[41] = { [0] = 0x48, 0xb8, [10] = 0x48, 0xb9, [20] = 0x48, 0xba, [30] = 0x48, 0xbe, [40] = 0xc3 };
	uint64_t words[4] = { MARK };
	void *page;

	if (argc != 4)
		return 2;
	for (int n = 1; n < 4; n++) {
		words[n] = address_of(argv[n]);
		if (!words[n])
			return 1;
	}
	for (int n = 0; n < 4; n++)
		memcpy(code + 10 * n + 2, &words[n], sizeof(words[n]));
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED) {
		perror("stretch-between");
		return 1;
	}
	memcpy(page, code, sizeof(code));
	((void (*)(void))page)();
	return 0;
}
