/* SPDX-FileCopyrightText: The DTrace for Linux authors */
/* SPDX-License-Identifier: MIT OR Apache-2.0 */

/*
 * Functions with probe sites as `dtrace -G` of other systems makes them, and an image that
 * describes them. ADDRESS(function) is the address that the image contains for a function.
 */

#include <linux/dtrace.h>
#include <stddef.h>

long dof_work(void);
int dof_asks(void);
int dof_asks_by_address(void);
long dof_tail(long a, long b, long c, long d, long e, long f, long g);

/* The NOPs replace a call with eight arguments, two of them on the stack, and then a call with a
 * double. */
__asm__(".text\n.globl dof_work\n.type dof_work, @function\ndof_work:\n"
	"	push %rbp\n	mov %rsp, %rbp\n"
	"	movabs $0xaaaaaaaaffffffff, %rdi\n	lea dof_text(%rip), %rsi\n	mov $3, %edx\n	mov $4, %ecx\n"
	"	mov $5, %r8d\n	mov $6, %r9d\n	pushq $0x108\n	pushq $-7\n"
	"dof_site:	nop\n	nop\n	nop\n	nop\n	nop\n"
	"	add $16, %rsp\n"
	"	mov $42, %edi\n	movabs $0x3ff8000000000000, %rax\n	movq %rax, %xmm0\n"
	"dof_other:	nop\n	nop\n	nop\n	nop\n	nop\n"
	"	xor %eax, %eax\n	pop %rbp\n	ret\n.size dof_work, .-dof_work\n"
	/* The return and the NOPs replace a tail call, which was a jump. */
	".globl dof_tail\n.type dof_tail, @function\ndof_tail:\n	mov $9, %eax\n"
	"dof_jump:	ret\n	nop\n	nop\n	nop\n	nop\n.size dof_tail, .-dof_tail\n"
	/* The NOPs replace an is-enabled call. */
	".globl dof_asks\n.type dof_asks, @function\ndof_asks:\n	xor %eax, %eax\n"
	"dof_question:	nop\n	nop\n	nop\n	ret\n.size dof_asks, .-dof_asks\n"
	/* An is-enabled call in the form of DOF version 3 and later. */
	".globl dof_asks_by_address\n.type dof_asks_by_address, @function\ndof_asks_by_address:\n"
	"	pushq $0\n	mov %rsp, %rdi\n"
	"dof_question3:	nop\n	nop\n	nop\n	nop\n	nop\n	pop %rax\n	ret\n"
	".size dof_asks_by_address, .-dof_asks_by_address\n"
	".section .rodata\ndof_text:	.asciz \"hello\"\n.text\n");

/* Offsets of the sites in their functions: the sums of the lengths of the instructions above. */
#define SITE_OFFSET (1 + 3 + 10 + 7 + 5 + 5 + 6 + 6 + 5 + 2)
#define OTHER_OFFSET (SITE_OFFSET + 5 + 4 + 5 + 10 + 5)
#define JUMP_OFFSET 5
#define ASKS_OFFSET 2
#define ASKS3_OFFSET (2 + 3)

#define TEXT                                                                      \
	"\0work\0passed\0dof_work\0float\0tail\0dof_tail\0said__it\0dof_asks\0"    \
	"int\0char *\0long\0long\0long\0long\0short\0unsigned char\0"              \
	"char *\0int\0short\0uint8_t\0int\0double\0double\0long\0dof_asks_by_address"
#define T_WORK 1
#define T_PASSED 6
#define T_DOF_WORK 13
#define T_FLOAT 22
#define T_TAIL 28
#define T_DOF_TAIL 33
#define T_SAID 42
#define T_DOF_ASKS 51
#define T_NATIVE 60
#define T_SEEN 111
#define T_INT_DOUBLE 136
#define T_DOUBLE 147
#define T_ASKS3 159

enum { STRTAB, PROBES, PRARGS, PROFFS, PRENOFFS, PROVIDER, RELTAB, URELHDR, SECTIONS };

struct image {
	struct dof_hdr hdr;
	struct dof_sec secs[SECTIONS];
	struct dof_probe probes[4];
	struct dof_relocdesc relocs[4];
	uint32_t offsets[3];
	uint32_t asks[1];
	struct dof_provider provider;
	struct dof_relochdr reloc;
	uint8_t args[8];
	char text[192];
};

#define SEC(type, field, entry)                                                                  \
	{                                                                                        \
		.ty = DOF_SEC_TYPE_##type, .align = 8, .flags = DOF_SECF_LOAD, .entsize = entry, \
		.offset = offsetof(struct image, field), .size = sizeof(((struct image *)0)->field) \
	}
#define RELOC(n) { .ty = DOF_RELO_SETX, .offset = n * sizeof(struct dof_probe) }

#define IMAGE(name_offset, version, ADDRESS)                                                                              \
	{                                                                                                       \
		.hdr = { .ident = { 0x7f, 'D', 'O', 'F', 2, 1, version, 2, 8, 8 }, .hdrsize = sizeof(struct dof_hdr), \
			 .secsize = sizeof(struct dof_sec), .secnum = SECTIONS, .secoff = sizeof(struct dof_hdr), \
			 .loadsz = sizeof(struct image), .filesz = sizeof(struct image) },              \
		.secs = { SEC(STRTAB, text, 0), SEC(PROBES, probes, sizeof(struct dof_probe)), SEC(PRARGS, args, 1), \
			  SEC(PROFFS, offsets, 4), SEC(PRENOFFS, asks, 4), SEC(PROVIDER, provider, 0),  \
			  SEC(RELTAB, relocs, sizeof(struct dof_relocdesc)), SEC(UREL_HDR, reloc, 0) }, \
		.probes = {                                                                             \
			{ .addr = ADDRESS(dof_work), .func = T_DOF_WORK, .name = T_PASSED, .nargv = T_NATIVE, \
			  .xargv = T_SEEN, .nargc = 8, .xargc = 4, .argidx = 0, .offidx = 0, .noffs = 1 }, \
			{ .addr = ADDRESS(dof_work), .func = T_DOF_WORK, .name = T_FLOAT, .nargv = T_INT_DOUBLE, \
			  .xargv = T_DOUBLE, .nargc = 2, .xargc = 1, .argidx = 4, .offidx = 1, .noffs = 1 }, \
			{ .addr = ADDRESS(dof_tail), .func = T_DOF_TAIL, .name = T_TAIL, .nargv = T_NATIVE, \
			  .xargv = T_NATIVE, .nargc = 7, .xargc = 1, .argidx = 5, .offidx = 2, .noffs = 1 }, \
			{ .addr = version < 3 ? ADDRESS(dof_asks) : ADDRESS(dof_asks_by_address),       \
			  .func = version < 3 ? T_DOF_ASKS : T_ASKS3, .name = T_SAID,                   \
			  .enoffidx = 0, .nenoffs = 1 } },                                              \
		.relocs = { RELOC(0), RELOC(1), RELOC(2), RELOC(3) },                                   \
		.offsets = { SITE_OFFSET, OTHER_OFFSET, JUMP_OFFSET },                                  \
		.asks = { version < 3 ? ASKS_OFFSET : ASKS3_OFFSET },                                   \
		.provider = { .strtab = STRTAB, .probes = PROBES, .prargs = PRARGS, .proffs = PROFFS,   \
			      .name = name_offset, .provattr = 0x05050500, .modattr = 0x01010000, .funcattr = 0x01010000, \
			      .nameattr = 0x05050500, .argsattr = 0x05050500, .prenoffs = PRENOFFS },   \
		.reloc = { .strtab = STRTAB, .relsec = RELTAB, .tgtsec = PROBES },                      \
		.args = { 1, 0, 6, 7, 1, 6 }, .text = TEXT,                                             \
	}
