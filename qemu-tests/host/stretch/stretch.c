// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * A plugin of QEMU's: how many instructions a processor of the guest executes between coming to one place of its kernel and coming to
 * another one. What the computer does besides does not count.
 *
 * The guest says which places these are (`guest/bench/stretch-between.c`): it executes a block that loads MARK and three addresses into registers,
 * before it has executed any of them. At the third it says that it has not come in, after all: then what was before goes on. Instructions are
 * counted by blocks of translated code, so that a stretch may be a block too long or too short.
 *
 * Argument: `out=FILE`, for a line with the length of the longest stretch so far, and how many there were up to it.
 *
 * QEMU's interface is of version 4 of its plugins, that of QEMU 9.2 and 10.0 (include/qemu/qemu-plugin.h there).
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
/* The same in the program of the guest. */
#define MARK 0x7374726574636821ULL

struct qemu_info_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_scoreboard;

typedef struct {
	struct qemu_plugin_scoreboard *score;
	size_t offset;
} qemu_plugin_u64;

enum { QEMU_PLUGIN_INLINE_ADD_U64 };
enum { QEMU_PLUGIN_CB_NO_REGS };

void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, void (*cb)(uint64_t id, struct qemu_plugin_tb *tb));
void qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(struct qemu_plugin_tb *tb, int op, qemu_plugin_u64 entry, uint64_t imm);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, void (*cb)(unsigned int vcpu, void *data), int flags,
					    void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t at);
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to, size_t size);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t size);
void *qemu_plugin_scoreboard_find(struct qemu_plugin_scoreboard *score, unsigned int vcpu);

EXPORT int qemu_plugin_version = 4;
EXPORT int qemu_plugin_install(uint64_t id, const struct qemu_info_t *info, int argc, char **argv);

/* A processor of the guest. */
struct vcpu {
	uint64_t executed;
	/* What it had executed when the stretch began, and the one before. */
	uint64_t began, began_before;
	bool is_within, was_within;
};

static struct qemu_plugin_scoreboard *vcpus;
static FILE *out;

/* Of what follows; blocks are translated by several threads. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t begins, ends, is_refused;
static uint64_t longest, stretches;

static void begin(unsigned int n, void *data)
{
	struct vcpu *vcpu = qemu_plugin_scoreboard_find(vcpus, n);

	vcpu->began_before = vcpu->began;
	vcpu->was_within = vcpu->is_within;
	vcpu->began = vcpu->executed;
	vcpu->is_within = true;
}

static void take_back(unsigned int n, void *data)
{
	struct vcpu *vcpu = qemu_plugin_scoreboard_find(vcpus, n);

	vcpu->began = vcpu->began_before;
	vcpu->is_within = vcpu->was_within;
}

static void end(unsigned int n, void *data)
{
	struct vcpu *vcpu = qemu_plugin_scoreboard_find(vcpus, n);
	uint64_t length = vcpu->executed - vcpu->began;

	if (!vcpu->is_within)
		return;
	vcpu->is_within = false;
	pthread_mutex_lock(&lock);
	stretches++;
	if (length > longest) {
		longest = length;
		rewind(out);
		fprintf(out, "%llu %llu\n", (unsigned long long)longest, (unsigned long long)stretches);
		fflush(out);
	}
	pthread_mutex_unlock(&lock);
}

/* What an instruction `movabs $value, %r` loads, for r = rax, rcx, rdx, rsi: 0, 1, 2, 6. */
static bool loads(const struct qemu_plugin_insn *insn, unsigned int r, uint64_t *value)
{
	uint8_t code[16];

	if (qemu_plugin_insn_data(insn, code, sizeof(code)) != 10 || code[0] != 0x48 || code[1] != 0xb8 + r)
		return false;
	memcpy(value, code + 2, sizeof(*value));
	return true;
}

static void translated(uint64_t id, struct qemu_plugin_tb *tb)
{
	qemu_plugin_u64 executed = { vcpus, offsetof(struct vcpu, executed) };
	size_t n = qemu_plugin_tb_n_insns(tb);
	uint64_t mark, from, to, not;

	pthread_mutex_lock(&lock);
	if (n >= 4 && loads(qemu_plugin_tb_get_insn(tb, 0), 0, &mark) && mark == MARK &&
	    loads(qemu_plugin_tb_get_insn(tb, 1), 1, &from) && loads(qemu_plugin_tb_get_insn(tb, 2), 2, &to) &&
	    loads(qemu_plugin_tb_get_insn(tb, 3), 6, &not)) {
		begins = from;
		ends = to;
		is_refused = not;
	}
	from = begins;
	to = ends;
	not = is_refused;
	pthread_mutex_unlock(&lock);
	qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, QEMU_PLUGIN_INLINE_ADD_U64, executed, n);
	for (size_t at = 0; at < n; at++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, at);
		uint64_t addr = qemu_plugin_insn_vaddr(insn);

		if (addr && addr == from)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, begin, QEMU_PLUGIN_CB_NO_REGS, NULL);
		if (addr && addr == to)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, end, QEMU_PLUGIN_CB_NO_REGS, NULL);
		if (addr && addr == not)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, take_back, QEMU_PLUGIN_CB_NO_REGS, NULL);
	}
}

EXPORT int qemu_plugin_install(uint64_t id, const struct qemu_info_t *info, int argc, char **argv)
{
	if (argc != 1 || strncmp(argv[0], "out=", 4)) {
		fprintf(stderr, "stretch: the argument is out=FILE\n");
		return 1;
	}
	out = fopen(argv[0] + 4, "w");
	if (!out) {
		perror(argv[0] + 4);
		return 1;
	}
	vcpus = qemu_plugin_scoreboard_new(sizeof(struct vcpu));
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
