// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * @gcc: -m32 -nostdlib -static -fno-pie -no-pie -fno-stack-protector -fcf-protection=none -mno-sse
 * A 32-bit program without a C library, whose instructions are executed out of line while they
 * have a probe. Prints a sum, how often a timer's handler saw an address that is not the
 * program's, and whether a long copy was interrupted.
 */

#define FUNCTION(name, body)                                                                                                  \
	__asm__(".text\n.p2align 4\n.globl " #name "\n.type " #name ", @function\n" #name ":\n" body ".size " #name ", .-" #name "\n")

int tally = 1000;
const unsigned int pattern[4] = { 0x01020304, 0x80ff7f01, 5, 0xfedcba98 };

/* All take their arguments in eax, edx and ecx. */
__attribute__((regparm(3))) int locked(int a, int b, int *area);
FUNCTION(locked, "	lock addl %eax, (%ecx)\n"
		 "	lock incl tally\n"
		 "	lock xaddl %edx, 4(%ecx)\n"
		 "	lock cmpxchgl %edx, 8(%ecx)\n"
		 "	xchg %eax, 12(%ecx)\n"
		 "	add %edx, %eax\n"
		 "	add tally, %eax\n"
		 "	ret\n");

__attribute__((regparm(3))) int numbers(int a, int b, int *area);
FUNCTION(numbers, "	push %ebx\n"
		  "	mov %edx, %ebx\n"
		  "	or $3, %ebx\n"
		  "	imul $17, %eax, %eax\n"
		  "	xor %edx, %edx\n"
		  "	div %ebx\n"
		  "	add %edx, %eax\n"
		  "	bsf %ebx, %edx\n"
		  "	aam\n"
		  "	add %edx, %eax\n"
		  "	pop %ebx\n"
		  "	ret\n");

__attribute__((regparm(3))) int vectors(int a, int b, int *area);
FUNCTION(vectors, "	movups pattern, %xmm0\n"
		  "	movd %eax, %xmm1\n"
		  "	pshufd $0, %xmm1, %xmm1\n"
		  "	paddd %xmm1, %xmm0\n"
		  "	cvtsi2sd %edx, %xmm2\n"
		  "	addsd %xmm2, %xmm2\n"
		  "	cvttsd2si %xmm2, %eax\n"
		  "	movups %xmm0, 16(%ecx)\n"
		  "	ret\n");

/* The long copy, and the offset where it is interrupted. */
__attribute__((regparm(3))) void copy(void *to, const void *from, int count);
#define COPY_REP 6
FUNCTION(copy, "	push %esi\n"
	       "	push %edi\n"
	       "	mov %edx, %esi\n"
	       "	mov %eax, %edi\n"
	       "	rep movsb\n"
	       "	pop %edi\n"
	       "	pop %esi\n"
	       "	ret\n");

/* The beginning and the end of the program's text. */
extern const char __executable_start[], etext[];

static int call(int number, int a, int b, int c, int d)
{
	int value;

	__asm__ volatile("int $0x80" : "=a"(value) : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d) : "memory");
	return value;
}

static volatile int elsewhere, at_copy;

/* The instruction's address is the 19th word of the context. */
static void on_alarm(int sig, void *info, const unsigned int *context)
{
	unsigned int at = context[19];

	(void)sig;
	(void)info;
	elsewhere += at < (unsigned int)__executable_start || at >= (unsigned int)etext;
	at_copy += at == (unsigned int)copy + COPY_REP;
}

static void alarm_every(int us)
{
	int timer[4] = { 0, us, 0, us };

	call(104, 0, (int)timer, 0, 0);
}

static void print(const char *text, unsigned int number)
{
	char digits[8];
	int length = 0;

	while (text[length])
		length++;
	call(4, 1, (int)text, length, 0);
	for (int i = 0; i < 8; i++)
		digits[i] = "0123456789abcdef"[number >> (28 - 4 * i) & 15];
	call(4, 1, (int)digits, 8, 0);
}

static unsigned char source[256 << 10], target[256 << 10];

/* The number of bytes of a long copy that are wrong. */
static int miscopied(int n)
{
	int wrong = 0;

	source[n] ^= n + 1;
	source[sizeof(source) - 1 - n] += 3;
	copy(target, source, sizeof(source));
	for (unsigned int i = 0; i < sizeof(source); i += 4)
		wrong += *(int *)(source + i) != *(int *)(target + i);
	return wrong;
}

__attribute__((force_align_arg_pointer)) void _start(void)
{
	/* Handler, flags for siginfo and for restarting calls, no restorer, no signals masked. */
	unsigned int action[5] = { (unsigned int)on_alarm, 0x10000004, 0, 0, 0 };
	unsigned int sum = 0, wrong = 0;
	int area[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };

	for (int n = 0; n < 200; n++) {
		sum = sum * 31 + locked(n * 0x9e3779b9U, n * n + 3, area);
		sum = sum * 31 + numbers(n * 0x9e3779b9U, n * n + 3, area);
		sum = sum * 31 + vectors(n * 0x9e3779b9U, n * n + 3, area);
		for (int i = 0; i < 8; i++)
			sum = sum * 33 + area[i];
	}
	call(174, 14, (int)action, 0, 8);
	alarm_every(200);
	for (int n = 0; n < 200; n++)
		wrong += miscopied(n);
	alarm_every(0);
	print("sum ", sum);
	print(", wrong ", wrong);
	print(", elsewhere ", elsewhere);
	if (at_copy)
		call(4, 1, (int)", interrupted\n", 14, 0);
	else
		call(4, 1, (int)", not interrupted\n", 18, 0);
	call(1, 0, 0, 0, 0);
	for (;;)
		;
}
