/* SPDX-FileCopyrightText: The DTrace for Linux authors */
/* SPDX-License-Identifier: MIT OR Apache-2.0 */

/*
 * Probes of a program's own that need no definition: DTRACE_PROBE(provider, name, arguments...), or DTRACE_PROBEn with n of them. Arguments are numbers and pointers; __ in
 * a name stands for a hyphen.
 */
#ifndef _DTRACE_SYS_SDT_H
#define _DTRACE_SYS_SDT_H

/* Whoever asks to be told of arithmetic with void pointers does not mean this. */
#pragma GCC system_header

#include "../site.h"

/* A pointer is a number without a sign. */
#define _DTRACE_TYPE(x) __typeof__((x) + 0)
#define _DTRACE_SIGNED(x) ((_DTRACE_TYPE(x))-1 < (_DTRACE_TYPE(x))1)
#define _DTRACE_SIZE(x)                                                                 \
	(__builtin_classify_type((x) + 0) != 5 && _DTRACE_SIGNED(x) ? -(int)sizeof((x) + 0) : (int)sizeof((x) + 0))
#define _DTRACE_ARG(n, x) _DTRACE_VALUE(n, _DTRACE_SIZE(x), (x) + 0)
#define _DTRACE_PROBE(provider, name, text, ...)                                        \
	__extension__({ __asm__ __volatile__(_DTRACE_SITE(#provider, #name, "0", text) : : __VA_ARGS__); })

#define _DTRACE_PROBE0(provider, name) \
	__extension__({ __asm__ __volatile__(_DTRACE_SITE(#provider, #name, "0", "")); })

/* As many arguments as there are. */
#define _DTRACE_SELECT(provider, name, _1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, probe, ...) probe
#define DTRACE_PROBE(...)                                                               \
	_DTRACE_SELECT(__VA_ARGS__, DTRACE_PROBE12, DTRACE_PROBE11, DTRACE_PROBE10,     \
		       DTRACE_PROBE9, DTRACE_PROBE8, DTRACE_PROBE7, DTRACE_PROBE6,      \
		       DTRACE_PROBE5, DTRACE_PROBE4, DTRACE_PROBE3, DTRACE_PROBE2,      \
		       DTRACE_PROBE1, _DTRACE_PROBE0, )(__VA_ARGS__)
#define DTRACE_PROBE1(provider, name, a1) \
	_DTRACE_PROBE(provider, name, _DTRACE_TEXT(1), \
		_DTRACE_ARG(1, a1))
#define DTRACE_PROBE2(provider, name, a1, a2) \
	_DTRACE_PROBE(provider, name, _DTRACE_TEXT(1) " " _DTRACE_TEXT(2), \
		_DTRACE_ARG(1, a1), _DTRACE_ARG(2, a2))
#define DTRACE_PROBE3(provider, name, a1, a2, a3) \
	_DTRACE_PROBE(provider, name, _DTRACE_TEXT(1) " " _DTRACE_TEXT(2) " " _DTRACE_TEXT(3), \
		_DTRACE_ARG(1, a1), _DTRACE_ARG(2, a2), _DTRACE_ARG(3, a3))
#define DTRACE_PROBE4(provider, name, a1, a2, a3, a4) \
	_DTRACE_PROBE(provider, name, _DTRACE_TEXT(1) " " _DTRACE_TEXT(2) " " _DTRACE_TEXT(3) " " _DTRACE_TEXT(4), \
		_DTRACE_ARG(1, a1), _DTRACE_ARG(2, a2), _DTRACE_ARG(3, a3), _DTRACE_ARG(4, a4))
#define DTRACE_PROBE5(provider, name, a1, a2, a3, a4, a5) \
	_DTRACE_PROBE(provider, name, _DTRACE_TEXT(1) " " _DTRACE_TEXT(2) " " _DTRACE_TEXT(3) " " _DTRACE_TEXT(4) " " _DTRACE_TEXT(5), \
		_DTRACE_ARG(1, a1), _DTRACE_ARG(2, a2), _DTRACE_ARG(3, a3), _DTRACE_ARG(4, a4), _DTRACE_ARG(5, a5))
#define DTRACE_PROBE6(provider, name, a1, a2, a3, a4, a5, a6) \
	_DTRACE_PROBE(provider, name, _DTRACE_TEXT(1) " " _DTRACE_TEXT(2) " " _DTRACE_TEXT(3) " " _DTRACE_TEXT(4) " " _DTRACE_TEXT(5) " " _DTRACE_TEXT(6), \
		_DTRACE_ARG(1, a1), _DTRACE_ARG(2, a2), _DTRACE_ARG(3, a3), _DTRACE_ARG(4, a4), _DTRACE_ARG(5, a5), _DTRACE_ARG(6, a6))
#define DTRACE_PROBE7(provider, name, a1, a2, a3, a4, a5, a6, a7) \
	_DTRACE_PROBE(provider, name, _DTRACE_TEXT(1) " " _DTRACE_TEXT(2) " " _DTRACE_TEXT(3) " " _DTRACE_TEXT(4) " " _DTRACE_TEXT(5) " " _DTRACE_TEXT(6) " " _DTRACE_TEXT(7), \
		_DTRACE_ARG(1, a1), _DTRACE_ARG(2, a2), _DTRACE_ARG(3, a3), _DTRACE_ARG(4, a4), _DTRACE_ARG(5, a5), _DTRACE_ARG(6, a6), _DTRACE_ARG(7, a7))
#define DTRACE_PROBE8(provider, name, a1, a2, a3, a4, a5, a6, a7, a8) \
	_DTRACE_PROBE(provider, name, _DTRACE_TEXT(1) " " _DTRACE_TEXT(2) " " _DTRACE_TEXT(3) " " _DTRACE_TEXT(4) " " _DTRACE_TEXT(5) " " _DTRACE_TEXT(6) " " _DTRACE_TEXT(7) " " _DTRACE_TEXT(8), \
		_DTRACE_ARG(1, a1), _DTRACE_ARG(2, a2), _DTRACE_ARG(3, a3), _DTRACE_ARG(4, a4), _DTRACE_ARG(5, a5), _DTRACE_ARG(6, a6), _DTRACE_ARG(7, a7), _DTRACE_ARG(8, a8))
#define DTRACE_PROBE9(provider, name, a1, a2, a3, a4, a5, a6, a7, a8, a9) \
	_DTRACE_PROBE(provider, name, _DTRACE_TEXT(1) " " _DTRACE_TEXT(2) " " _DTRACE_TEXT(3) " " _DTRACE_TEXT(4) " " _DTRACE_TEXT(5) " " _DTRACE_TEXT(6) " " _DTRACE_TEXT(7) " " _DTRACE_TEXT(8) " " _DTRACE_TEXT(9), \
		_DTRACE_ARG(1, a1), _DTRACE_ARG(2, a2), _DTRACE_ARG(3, a3), _DTRACE_ARG(4, a4), _DTRACE_ARG(5, a5), _DTRACE_ARG(6, a6), _DTRACE_ARG(7, a7), _DTRACE_ARG(8, a8), _DTRACE_ARG(9, a9))
#define DTRACE_PROBE10(provider, name, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10) \
	_DTRACE_PROBE(provider, name, _DTRACE_TEXT(1) " " _DTRACE_TEXT(2) " " _DTRACE_TEXT(3) " " _DTRACE_TEXT(4) " " _DTRACE_TEXT(5) " " _DTRACE_TEXT(6) " " _DTRACE_TEXT(7) " " _DTRACE_TEXT(8) " " _DTRACE_TEXT(9) " " _DTRACE_TEXT(10), \
		_DTRACE_ARG(1, a1), _DTRACE_ARG(2, a2), _DTRACE_ARG(3, a3), _DTRACE_ARG(4, a4), _DTRACE_ARG(5, a5), _DTRACE_ARG(6, a6), _DTRACE_ARG(7, a7), _DTRACE_ARG(8, a8), _DTRACE_ARG(9, a9), _DTRACE_ARG(10, a10))
#define DTRACE_PROBE11(provider, name, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11) \
	_DTRACE_PROBE(provider, name, _DTRACE_TEXT(1) " " _DTRACE_TEXT(2) " " _DTRACE_TEXT(3) " " _DTRACE_TEXT(4) " " _DTRACE_TEXT(5) " " _DTRACE_TEXT(6) " " _DTRACE_TEXT(7) " " _DTRACE_TEXT(8) " " _DTRACE_TEXT(9) " " _DTRACE_TEXT(10) " " _DTRACE_TEXT(11), \
		_DTRACE_ARG(1, a1), _DTRACE_ARG(2, a2), _DTRACE_ARG(3, a3), _DTRACE_ARG(4, a4), _DTRACE_ARG(5, a5), _DTRACE_ARG(6, a6), _DTRACE_ARG(7, a7), _DTRACE_ARG(8, a8), _DTRACE_ARG(9, a9), _DTRACE_ARG(10, a10), _DTRACE_ARG(11, a11))
#define DTRACE_PROBE12(provider, name, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12) \
	_DTRACE_PROBE(provider, name, _DTRACE_TEXT(1) " " _DTRACE_TEXT(2) " " _DTRACE_TEXT(3) " " _DTRACE_TEXT(4) " " _DTRACE_TEXT(5) " " _DTRACE_TEXT(6) " " _DTRACE_TEXT(7) " " _DTRACE_TEXT(8) " " _DTRACE_TEXT(9) " " _DTRACE_TEXT(10) " " _DTRACE_TEXT(11) " " _DTRACE_TEXT(12), \
		_DTRACE_ARG(1, a1), _DTRACE_ARG(2, a2), _DTRACE_ARG(3, a3), _DTRACE_ARG(4, a4), _DTRACE_ARG(5, a5), _DTRACE_ARG(6, a6), _DTRACE_ARG(7, a7), _DTRACE_ARG(8, a8), _DTRACE_ARG(9, a9), _DTRACE_ARG(10, a10), _DTRACE_ARG(11, a11), _DTRACE_ARG(12, a12))

#endif
