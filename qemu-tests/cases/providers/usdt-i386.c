// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * @gcc: -g -m32 -nostdlib -static -fno-pie -no-pie -fno-stack-protector -fcf-protection=none
 * A 32-bit program with a USDT probe and a semaphore that counts its consumers.
 */

unsigned short wanted __attribute__((section(".probes"), used));

/* Its arguments are in a register, half a register, a constant, on the stack and in a global
 * variable. */
int number __attribute__((used)) = -7;

void tells(int n, int other);
__asm__(".text\n.globl tells\n.type tells, @function\ntells:\n"
	"	mov 4(%esp), %eax\n"
	"990:	nop\n"
	"	ret\n"
	".size tells, .-tells\n"
	".pushsection .note.stapsdt,\"\",\"note\"\n"
	".balign 4\n"
	".4byte 992f-991f, 994f-993f, 3\n"
	"991:	.asciz \"stapsdt\"\n"
	"992:	.balign 4\n"
	"993:	.4byte 990b, 0, wanted\n"
	".asciz \"small\"\n"
	".asciz \"told\"\n"
	".asciz \"-4@%eax -2@%ax 4@$77 -4@8(%esp) -4@number\"\n"
	"994:	.balign 4\n"
	".popsection\n");

static int call(int number, int a, int b, int c)
{
	int value;

	__asm__ volatile("int $0x80" : "=a"(value) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory");
	return value;
}

void _start(void)
{
	static const char listened[] = "listened\n", alone[] = "alone\n";

	tells(-3, 0x12345678);
	if (*(volatile unsigned short *)&wanted)
		call(4, 1, (int)listened, sizeof(listened) - 1);
	else
		call(4, 1, (int)alone, sizeof(alone) - 1);
	call(1, 0, 0, 0);
	for (;;)
		;
}
