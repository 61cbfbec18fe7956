/* SPDX-FileCopyrightText: The DTrace for Linux authors */
/* SPDX-License-Identifier: MIT OR Apache-2.0 */

/*
 * A USDT probe site in assembly with its note, so that an argument can be in any possible place.
 */

#define SITE(provider, name, arguments, semaphore)                              \
	"990:	nop\n"                                                          \
	".pushsection .note.stapsdt,\"\",\"note\"\n"                            \
	".balign 4\n"                                                           \
	".4byte 992f-991f, 994f-993f, 3\n"                                      \
	"991:	.asciz \"stapsdt\"\n"                                           \
	"992:	.balign 4\n"                                                    \
	"993:	.8byte 990b\n"                                                  \
	".8byte _.stapsdt.base\n"                                               \
	".8byte " semaphore "\n"                                                \
	".asciz \"" provider "\"\n"                                             \
	".asciz \"" name "\"\n"                                                 \
	".asciz \"" arguments "\"\n"                                            \
	"994:	.balign 4\n"                                                    \
	".popsection\n"                                                         \
	".ifndef _.stapsdt.base\n"                                              \
	".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
	".weak _.stapsdt.base\n"                                                \
	".hidden _.stapsdt.base\n"                                              \
	"_.stapsdt.base: .space 1\n"                                            \
	".size _.stapsdt.base, 1\n"                                             \
	".popsection\n"                                                         \
	".endif\n"
