/* SPDX-FileCopyrightText: The DTrace for Linux authors */
/* SPDX-License-Identifier: MIT OR Apache-2.0 */

/*
 * Sites of a program's own probes. A site is one instruction that does nothing, and a note in the file which is not loaded: where the site
 * is, what the probe is called and where its arguments lie there, as all tools know them (section .note.stapsdt, version 3).
 * A probe's semaphore, a number of two bytes, is more than 0 while somebody has enabled the probe.
 */
#ifndef _DTRACE_SITE_H
#define _DTRACE_SITE_H

#ifdef __LP64__
#define _DTRACE_ADDRESS "	.8byte "
#else
#define _DTRACE_ADDRESS "	.4byte "
#endif

/* "?" is for the note to be left out together with an inline function that is left out. */
#define _DTRACE_NOTE(section, owner, type, provider, name, semaphore, arguments)        \
	"990:	nop\n"                                                                  \
	"	.pushsection " section ",\"?\",\"note\"\n"                              \
	"	.balign 4\n"                                                            \
	"	.4byte 992f-991f, 994f-993f, " type "\n"                                \
	"991:	.asciz \"" owner "\"\n"                                                 \
	"992:	.balign 4\n"                                                            \
	"993:" _DTRACE_ADDRESS "990b\n"                                                 \
	_DTRACE_ADDRESS "_.stapsdt.base\n"                                              \
	_DTRACE_ADDRESS semaphore "\n"                                                  \
	"	.asciz \"" provider "\"\n"                                              \
	"	.asciz \"" name "\"\n"                                                  \
	"	.asciz \"" arguments "\"\n"                                             \
	"994:	.balign 4\n"                                                            \
	"	.popsection\n"                                                          \
	"	.ifndef _.stapsdt.base\n"                                               \
	"	.pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"  \
	"	.weak _.stapsdt.base\n"                                                 \
	"	.hidden _.stapsdt.base\n"                                               \
	"_.stapsdt.base: .space 1\n"                                                    \
	"	.size _.stapsdt.base, 1\n"                                              \
	"	.popsection\n"                                                          \
	"	.endif\n"

#define _DTRACE_SITE(provider, name, semaphore, arguments) \
	_DTRACE_NOTE(".note.stapsdt", "stapsdt", "3", provider, name, semaphore, arguments)
/* Where a program asks whether a probe is enabled that it may not have: DTrace's own, so that nobody takes it for the probe. */
#define _DTRACE_ASKS(provider, name, semaphore) \
	_DTRACE_NOTE(".note.dtrace", "dtrace", "1", provider, name, semaphore, "")

/*
 * The same once more, in the notes of DTrace 2.0.7 (section .note.usdt): type 1 is a site, type 2 is one where the program asks. They have the
 * function's name, an address as the file numbers its memory. The large code model has no such address that could stand in an instruction.
 */
#if defined(__x86_64__) && defined(__LP64__) && !defined(__code_model_large__)
#define _DTRACE_AGAIN(type, provider, name, count, arguments)                           \
	"	.pushsection .note.usdt,\"?\",\"note\"\n"                               \
	"	.balign 4\n"                                                            \
	"	.4byte 996f-995f, 998f-997f, " type "\n"                                \
	"995:	.asciz \"usdt\"\n"                                                     \
	"996:	.balign 4\n"                                                            \
	"997:	.8byte 990b, %c[_fn]\n"                                                 \
	"	.asciz \"" provider "\"\n"                                              \
	"	.asciz \"" name "\"\n"                                                  \
	"	.byte " count "\n"                                                      \
	"	.asciz \"" arguments "\"\n"                                             \
	"998:	.balign 4\n"                                                            \
	"	.popsection\n"
#define _DTRACE_FUNCTION [_fn] "i"(__func__)
#else
#define _DTRACE_AGAIN(type, provider, name, count, arguments) ""
#define _DTRACE_FUNCTION [_fn] "i"(0)
#endif

/* A site of a probe that is defined: shown is its name as those know it who trace. */
#define _DTRACE_DEFINED(provider, name, shown, semaphore, count, arguments)     \
	_DTRACE_SITE(provider, name, semaphore, arguments)                      \
	_DTRACE_AGAIN("1", provider, shown, count, arguments)

/* Each file that is linked has its own, whatever the number of objects that bring it. */
#define _DTRACE_SEMAPHORE(symbol)                                                       \
	__asm__("	.ifndef " #symbol "\n"                                          \
		"	.pushsection .probes,\"awG\",\"progbits\"," #symbol ",comdat\n" \
		"	.balign 2\n"                                                    \
		"	.weak " #symbol "\n"                                            \
		"	.hidden " #symbol "\n"                                          \
		"	.type " #symbol ", STT_OBJECT\n"                                \
		"	.size " #symbol ", 2\n"                                         \
		#symbol ": .zero 2\n"                                                   \
		"	.popsection\n"                                                  \
		"	.endif\n");                                                     \
	extern unsigned short symbol __attribute__((visibility("hidden")))

/* Whoever answers by writing to an address, the one argument in those notes, has none: the semaphore is the answer. */
#define _DTRACE_ENABLED(provider, name, shown, symbol)                                  \
	__extension__({                                                                 \
		__asm__ __volatile__(_DTRACE_ASKS(provider, name, #symbol)              \
			_DTRACE_AGAIN("2", provider, shown, "1", "8@$0")                \
			: : _DTRACE_FUNCTION);                                          \
		__builtin_expect(*(volatile unsigned short *)&(symbol) != 0, 0);        \
	})

/* Argument n in a note, and what the assembler makes it of: bytes, less than 0 for a number with a sign, and value. */
#define _DTRACE_TEXT(n) "%c[_s" #n "]@%[_a" #n "]"
#define _DTRACE_VALUE(n, size, value) [_s##n] "n"(size), [_a##n] "nor"(value)
#define _DTRACE_DOUBLE_TEXT(n) "%c[_s" #n "]f@%[_a" #n "]"
/* A variable: where there are several registers for such numbers, and none, every tool can read memory. */
#define _DTRACE_DOUBLE_VALUE(n, size, variable) [_s##n] "n"(size), [_a##n] "m"(variable)

#endif
