/* SPDX-FileCopyrightText: The DTrace for Linux authors */
/* SPDX-License-Identifier: MIT OR Apache-2.0 */

/*
 * Functions whose instructions the processor must execute out of line while a breakpoint covers
 * them, for pid-moved. Each takes two numbers and an area, and changes and returns what depends
 * on these alone.
 */

#define FUNCTION(name, body)                                                                                                  \
	__asm__(".text\n.p2align 4\n.globl " #name "\n.type " #name ", @function\n" #name ":\n" body ".size " #name ", .-" #name "\n")

struct area {
	long word[32];
} __attribute__((aligned(64)));

typedef long form(long a, long b, struct area *area);

/* What some of them address relative to the instruction pointer. */
long tally = 1000;
const double scale = 1.25;
const struct area pattern = { { 0x0102030405060708, -0x1112131415161718, 0x7f80ff017f80ff01, 5 } };

/* Atomic instructions: `lock`, and `xchg`, which needs no prefix. */
form locked;
FUNCTION(locked, "	lock addq %rdi, (%rdx)\n"
		 "	lock addq $5, tally(%rip)\n"
		 "	lock incl 4(%rdx)\n"
		 "	mov %rsi, %rax\n"
		 "	lock xaddq %rax, 8(%rdx)\n"
		 "	lock cmpxchgq %rsi, 16(%rdx)\n"
		 "	setz 24(%rdx)\n"
		 "	lock btsq $7, 32(%rdx)\n"
		 "	adc $0, %rax\n"
		 "	xchg %rdi, 40(%rdx)\n"
		 "	add %rdi, %rax\n"
		 "	xchg %al, 48(%rdx)\n"
		 "	add tally(%rip), %rax\n"
		 "	ret\n");

/* String instructions. The first count is sometimes 0. */
form strings;
FUNCTION(strings, "	mov %rsi, %rax\n"
		  "	mov %edi, %ecx\n"
		  "	and $63, %ecx\n"
		  "	mov %rdx, %rsi\n"
		  "	lea 128(%rdx), %rdi\n"
		  "	rep movsb\n"
		  "	mov $5, %ecx\n"
		  "	rep stosq\n"
		  "	stosb\n"
		  "	movsq\n"
		  "	lea 128(%rdx), %rdi\n"
		  "	mov $64, %ecx\n"
		  "	repne scasb\n"
		  "	mov %rcx, %r8\n"
		  "	mov %rdx, %rsi\n"
		  "	lea 128(%rdx), %rdi\n"
		  "	mov $64, %ecx\n"
		  "	repe cmpsb\n"
		  "	lodsq\n"
		  "	lea (%rax, %rcx, 8), %rax\n"
		  "	add %r8, %rax\n"
		  "	ret\n");

/* The flags on the stack, where a single step would be visible. */
form flags;
FUNCTION(flags, "	add %rsi, %rdi\n"
		"	pushfq\n"
		"	pop %rax\n"
		"	pushfq\n"
		"	xorl $1, (%rsp)\n"
		"	popfq\n"
		"	adc %rdi, %rax\n"
		"	lahf\n"
		"	sahf\n"
		"	rcl $3, %rax\n"
		"	ret\n");

/* A switch as compilers emit it. */
form table;
FUNCTION(table, "	and $3, %edi\n"
		"	lea 9f(%rip), %rcx\n"
		"	movslq (%rcx, %rdi, 4), %rax\n"
		"	add %rcx, %rax\n"
		"	notrack jmp *%rax\n"
		"0:	imul $3, %rsi, %rax\n"
		"	ret\n"
		"1:	imul %rsi, %rsi\n"
		"	mov %rsi, %rax\n"
		"	ret\n"
		"2:	lea 7(%rsi), %rax\n"
		"	ret\n"
		"	.section .rodata\n"
		"	.p2align 2\n"
		"9:	.long 0b-9b, 1b-9b, 2b-9b, 0b-9b\n"
		"	.text\n");

/* Multiplication, division and bits. */
form numbers;
FUNCTION(numbers, "	mov %rdx, %r8\n"
		  "	imul $17, pattern(%rip), %rcx\n"
		  "	mov %rdi, %rax\n"
		  "	mul %rsi\n"
		  "	add %rdx, %rcx\n"
		  "	xor %edx, %edx\n"
		  "	or $3, %rsi\n"
		  "	div %rsi\n"
		  "	add %rdx, %rcx\n"
		  "	cqo\n"
		  "	idivq 24+pattern(%rip)\n"
		  "	bsf %rsi, %rdx\n"
		  "	add %rdx, %rcx\n"
		  "	bsr %rsi, %rdx\n"
		  "	shld $9, %rdi, %rcx\n"
		  "	xadd %rdx, %rcx\n"
		  "	bts %rdx, %rcx\n"
		  "	btq $9, (%r8)\n"
		  "	adc %rcx, %rax\n"
		  "	ret\n");

/* What the processor says of itself: whether that is the same elsewhere, and whether its clock
 * advances. */
form itself;
FUNCTION(itself, "	push %rbx\n"
		 "	mov %rdi, %r8\n"
		 "	rdtsc\n"
		 "	shl $32, %rdx\n"
		 "	lea (%rax, %rdx), %r9\n"
		 "	xor %eax, %eax\n"
		 "	cpuid\n"
		 "	xor %r8d, %ebx\n"
		 "	mfence\n"
		 "	rdtsc\n"
		 "	shl $32, %rdx\n"
		 "	add %rdx, %rax\n"
		 "	cmp %r9, %rax\n"
		 "	setb %al\n"
		 "	movzbl %al, %eax\n"
		 "	lea (%rax, %rbx, 2), %rax\n"
		 "	pop %rbx\n"
		 "	ret\n");

/* SSE and x87. */
form vectors;
FUNCTION(vectors, "	movups pattern(%rip), %xmm0\n"
		  "	movq %rdi, %xmm1\n"
		  "	paddq %xmm1, %xmm0\n"
		  "	pshufd $0x4e, %xmm0, %xmm1\n"
		  "	pmuludq %xmm0, %xmm1\n"
		  "	movups %xmm1, 64(%rdx)\n"
		  "	cvtsi2sd %esi, %xmm2\n"
		  "	mulsd scale(%rip), %xmm2\n"
		  "	addsd scale(%rip), %xmm2\n"
		  "	cvttsd2si %xmm2, %rax\n"
		  "	fildq (%rdx)\n"
		  "	fadds 1f(%rip)\n"
		  "	fistpq 80(%rdx)\n"
		  "	stmxcsr 88(%rdx)\n"
		  "	ldmxcsr 88(%rdx)\n"
		  "	andl $~0x3f, 88(%rdx)\n"
		  "	ret\n"
		  "	.section .rodata\n"
		  "	.p2align 2\n"
		  "1:	.float 8.0\n"
		  "	.text\n");

/* AVX, including instructions that uprobes take for branches (70 to 7f, e8, e9, eb), returns
 * (c2), `popf` (9d) and far calls (9a, ea). */
form wide;
FUNCTION(wide, "	vmovq %rdi, %xmm0\n"
	       "	vmovd %esi, %xmm1\n"
	       "	vmovdqu pattern(%rip), %ymm2\n"
	       "	vmovdqu (%rdx), %ymm3\n"
	       "	vpbroadcastq %xmm0, %ymm4\n"
	       "	vpshufd $0x1b, %ymm3, %ymm5\n"
	       "	vpsllw $2, %ymm5, %ymm5\n"
	       "	vpslld $3, %ymm3, %ymm6\n"
	       "	vpsrlq $5, %ymm4, %ymm7\n"
	       "	vpcmpeqb %ymm2, %ymm3, %ymm8\n"
	       "	vpcmpeqd %ymm5, %ymm6, %ymm9\n"
	       "	vcmpps $4, %ymm8, %ymm9, %ymm10\n"
	       "	vpinsrw $2, %esi, %xmm1, %xmm1\n"
	       "	vpand %ymm4, %ymm5, %ymm5\n"
	       "	vpsubsb %ymm6, %ymm5, %ymm5\n"
	       "	vpsubsw %ymm7, %ymm6, %ymm6\n"
	       "	vpminsw %ymm7, %ymm5, %ymm7\n"
	       "	vpor %ymm5, %ymm6, %ymm6\n"
	       "	vpxor %ymm6, %ymm7, %ymm7\n"
	       "	vpxor %ymm10, %ymm7, %ymm7\n"
	       "	vmovdqu %ymm7, 96(%rdx)\n"
	       "	vcvtsi2sd %esi, %xmm0, %xmm2\n"
	       "	vmovsd scale(%rip), %xmm3\n"
	       "	vfmsub132pd %xmm3, %xmm3, %xmm2\n"
	       "	vfnmadd132sd scale(%rip), %xmm3, %xmm2\n"
	       "	vcvttsd2si %xmm2, %rcx\n"
	       "	vmovq %xmm1, %rax\n"
	       "	vmovd %xmm6, %esi\n"
	       "	vzeroupper\n"
	       "	add %rcx, %rax\n"
	       "	add %rsi, %rax\n"
	       "	ret\n");

/* Copies with `rep movsb` alone, which takes so long that it is interrupted. */
void copy(void *to, const void *from, long count);
#define COPY_REP 3
FUNCTION(copy, "	mov %rdx, %rcx\n"
	       "	rep movsb\n"
	       "	ret\n");

/* On a page of its own, for many threads at a time. */
void increase(void);
FUNCTION(increase, "	lock addq $1, tally(%rip)\n"
		   "	ret\n");

/* Functions that fault. */
long divide(long n, long by);
#define DIVIDE_DIV 5
FUNCTION(divide, "	mov %rdi, %rax\n"
		 "	xor %edx, %edx\n"
		 "	div %rsi\n"
		 "	ret\n");
void add_to(long *at);
FUNCTION(add_to, "	lock addq $1, (%rdi)\n"
		 "	ret\n");
long load(const void *at);
#define LOAD_LENGTH 3
FUNCTION(load, "	movups (%rdi), %xmm0\n"
	       "	movq %xmm0, %rax\n"
	       "	ret\n");
long load_aligned(const void *at);
FUNCTION(load_aligned, "	movaps (%rdi), %xmm0\n"
		       "	movq %xmm0, %rax\n"
		       "	ret\n");

/* Stepped through by debuggers: the offsets of its instructions. At WALK_REP a step is a byte. */
long walk(long n, long *at);
#define WALK_REP 28
#define WALK_END 50
static const unsigned char walk_places[] = { 0, 9, 13, 16, 19, 23, 28, 30, 37, 42, 43, 44, 49 };
FUNCTION(walk, "	lock addq $1, tally(%rip)\n"
	       "	imul %rdi, %rdi\n"
	       "	xchg %rdi, (%rsi)\n"
	       "	movups (%rsi), %xmm0\n"
	       "	lea 64(%rsi), %rdi\n"
	       "	mov $3, %ecx\n"
	       "	rep movsb\n"
	       "	lea 1f(%rip), %rax\n"
	       "	notrack jmp *%rax\n"
	       "	xchg %ax, %ax\n"
	       "1:	pushfq\n"
	       "	pop %rax\n"
	       "	movq %xmm0, %rax\n"
	       "	ret\n");

/*
 * Increments the counter of the CPU it runs on, as a restartable sequence from 1 to 2; returns
 * whether it did. The CPU's number is multiplied in the sequence. The operand of `ud1` is the
 * signature that the kernel requires before 3.
 */
long restartable(void *rseq, struct area *counters);
FUNCTION(restartable, "	lea 4f(%rip), %rax\n"
		      "	mov %rax, 8(%rdi)\n"
		      "1:	mov 4(%rdi), %eax\n"
		      "	imul $256, %rax, %rcx\n"
		      "	incq (%rsi, %rcx)\n"
		      "2:	mov $1, %eax\n"
		      "	ret\n"
		      "	ud1 0x53053053(%rip), %edi\n"
		      "3:	xor %eax, %eax\n"
		      "	ret\n"
		      "	.section __rseq_cs, \"aw\"\n"
		      "	.p2align 5\n"
		      "4:	.long 0, 0\n"
		      "	.quad 1b, 2b-1b, 3b\n"
		      "	.section __rseq_cs_ptr_array, \"aw\"\n"
		      "	.quad 4b\n"
		      "	.text\n");
