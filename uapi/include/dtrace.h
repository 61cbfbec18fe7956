/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/*
 * The contract between dtrace.ko and its consumers. Made by scripts/header from uapi/src; do not edit.
 */
#ifndef _LINUX_DTRACE_H
#define _LINUX_DTRACE_H

#include <stdint.h>
#include <sys/ioctl.h>

/*
 * limits
 */

/*
 Length of a provider's name, with its NUL.
 */
#define DTRACE_PROVNAMELEN 64

/*
 Length of a module's name, with its NUL.
 */
#define DTRACE_MODNAMELEN 64

/*
 Length of a function's name, with its NUL.
 */
#define DTRACE_FUNCNAMELEN 192

/*
 Length of a probe's name, with its NUL.
 */
#define DTRACE_NAMELEN 64

/*
 Length of `provider:module:function:name`, with its NUL.
 */
#define DTRACE_FULLNAMELEN ((((DTRACE_PROVNAMELEN + DTRACE_MODNAMELEN) + DTRACE_FUNCNAMELEN) + DTRACE_NAMELEN) + 4)

/*
 Length of the name of an argument's type, with its NUL.
 */
#define DTRACE_ARGTYPELEN 128

/*
 Length of the reason of the last failed call, with its NUL.
 */
#define DTRACE_REASONLEN 256

/*
 `strsize` unless set, bytes.
 */
#define DTRACE_STRSIZE_DEFAULT 256

/*
 `dynvarsize` unless set, bytes.
 */
#define DTRACE_DYNVARSIZE_DEFAULT (1 << 20)

/*
 `bufsize` and `aggsize` of dtrace(8) unless set, bytes.
 */
#define DTRACE_BUFSIZE_DEFAULT (4 << 20)

/*
 Most bytes that a principal buffer has beyond its `bufsize`, for the times of its records.
 */
#define DTRACE_BUFFER_TIMES_MAX (8 << 10)

/*
 `nspec` unless set.
 */
#define DTRACE_NSPEC_DEFAULT 1

/*
 `specsize` unless set, bytes.
 */
#define DTRACE_SPECSIZE_DEFAULT (32 << 10)

/*
 Most frames of a stack.
 */
#define DTRACE_FRAMES_MAX 1024

/*
 `stackframes` unless set.
 */
#define DTRACE_STACKFRAMES_DEFAULT 20

/*
 `ustackframes` unless set.
 */
#define DTRACE_USTACKFRAMES_DEFAULT 100

/*
 `jstackframes` unless set.
 */
#define DTRACE_JSTACKFRAMES_DEFAULT 50

/*
 `jstackstrsize` unless set, bytes.
 */
#define DTRACE_JSTACKSTRSIZE_DEFAULT 512

/*
 `cleanrate` unless set, ns.
 */
#define DTRACE_CLEANRATE_DEFAULT 9900990

/*
 Least `cleanrate`, ns.
 */
#define DTRACE_CLEANRATE_MIN 200000

/*
 Greatest `cleanrate`, ns.
 */
#define DTRACE_CLEANRATE_MAX 60000000000

/*
 `aggrate`, `statusrate` and `switchrate` unless set, ns.
 */
#define DTRACE_RATE_DEFAULT 1000000000

/*
 Greatest `statusrate`, ns.
 */
#define DTRACE_STATUSRATE_MAX 10000000000

/*
 Greatest size of a DIFO's text, bytes.
 */
#define DIFO_MAX (256 << 10)

/*
 Greatest size of a DOF image, bytes.
 */
#define DOF_MAX (8 << 20)

/*
 Greatest size of the file of an anonymous enabling, bytes.
 */
#define DTRACE_ANON_MAX (16 << 20)

/*
 Greatest size of a by-reference global or clause-local variable, bytes.
 */
#define DTRACE_STATVAR_MAX (16 << 10)

/*
 Most actions of one enabling.
 */
#define DTRACE_ACTIONS_MAX 16384

/*
 Most retained enablings.
 */
#define DTRACE_RETAIN_MAX 1024

/*
 Most `chill()` on one CPU in `CHILL_INTERVAL`, ns.
 */
#define DTRACE_CHILL_MAX 500000000

/*
 The interval that `CHILL_MAX` speaks of, ns.
 */
#define DTRACE_CHILL_INTERVAL 1000000000

/*
 A consumer that the kernel could not serve for this long is killed, ns.
 */
#define DTRACE_DEADMAN_TIMEOUT 10000000000

/*
 A consumer for which nobody has made a control call for this long is no longer served, ns.
 */
#define DTRACE_DEADMAN_USER 30000000000

/*
 How often the deadman looks, ns.
 */
#define DTRACE_DEADMAN_INTERVAL 1000000000

/*
 * types
 */

/*
 `DifType::kind` of a value typed by the consumer; the name recalls the Compact C Type Format.
 */
#define DIF_TYPE_CTF 0

/*
 `DifType::kind` of a D string.
 */
#define DIF_TYPE_STRING 1

/*
 `DifType::flags`: the value is a kernel-space address of the data.
 */
#define DIF_TF_BYREF 1

/*
 `DifType::flags`: the value is a user-space address of the data.
 */
#define DIF_TF_BYUREF 2

/*
 `DifVar::kind` of an array.
 */
#define DIFV_KIND_ARRAY 0

/*
 `DifVar::kind` of a scalar.
 */
#define DIFV_KIND_SCALAR 1

/*
 `DifVar::scope` of a global variable.
 */
#define DIFV_SCOPE_GLOBAL 0

/*
 `DifVar::scope` of a thread-local variable (`self->`).
 */
#define DIFV_SCOPE_THREAD 1

/*
 `DifVar::scope` of a clause-local variable (`this->`).
 */
#define DIFV_SCOPE_LOCAL 2

/*
 `DifVar::flags`: the DIFO reads the variable.
 */
#define DIFV_F_REF 1

/*
 `DifVar::flags`: the DIFO writes the variable.
 */
#define DIFV_F_MOD 2

/*
 What stands behind the last address of a user stack whose caller was not found, if there is room. It is no address of a program.
 */
#define DTRACE_STACK_LOST 2305843009213693952

/*
 What is added to an address of a user stack that a frame pointer led to, or code that was looked at, where that is to be told. No
 address of a program has that bit.
 */
#define DTRACE_STACK_GUESSED 4611686018427387904

/*
 What is added to an address of a user stack that was interrupted there, and where no program can be: 0, or one of more than 56 bits (Linux:
 `Documentation/arch/x86/x86_64/mm.rst`). A program may have jumped there, or say that it has.
 */
#define DTRACE_STACK_NOWHERE 13835058055282163712ull

/*
 Which machines a name or its data exists on (`dtrace_class_t`).
 */
enum dtrace_class {
  /*
   Not known.
   */
  DTRACE_CLASS_UNKNOWN = 0,
  /*
   This model of CPU.
   */
  DTRACE_CLASS_CPU = 1,
  /*
   This platform.
   */
  DTRACE_CLASS_PLATFORM = 2,
  /*
   This group of platforms.
   */
  DTRACE_CLASS_GROUP = 3,
  /*
   This instruction set.
   */
  DTRACE_CLASS_ISA = 4,
  /*
   All machines.
   */
  DTRACE_CLASS_COMMON = 5,
};
typedef uint8_t dtrace_class;

/*
 How far a name or its data may be relied on (`dtrace_stability_t`).
 */
enum dtrace_stability {
  /*
   Private to DTrace itself.
   */
  DTRACE_STABILITY_INTERNAL = 0,
  /*
   Private to the kernel.
   */
  DTRACE_STABILITY_PRIVATE = 1,
  /*
   Will go away.
   */
  DTRACE_STABILITY_OBSOLETE = 2,
  /*
   Controlled by somebody else.
   */
  DTRACE_STABILITY_EXTERNAL = 3,
  /*
   New or rapidly changing.
   */
  DTRACE_STABILITY_UNSTABLE = 4,
  /*
   Less likely to change.
   */
  DTRACE_STABILITY_EVOLVING = 5,
  /*
   Changes only with a major release.
   */
  DTRACE_STABILITY_STABLE = 6,
  /*
   Follows an industry standard.
   */
  DTRACE_STABILITY_STANDARD = 7,
};
typedef uint8_t dtrace_stability;

/*
 Identifies a probe; 0 is none.
 */
typedef uint32_t dtrace_probeid;

/*
 Identifies an enabled probe: one ECB of one consumer. 0 stands for padding in a buffer.
 */
typedef uint32_t dtrace_epid;

/*
 Identifies an aggregating action of one consumer; 0 is none.
 */
typedef uint32_t dtrace_aggid;

/*
 The type of what a DIFO returns, or of a variable (`dtrace_diftype_t`).
 */
struct dtrace_diftype {
  /*
   `DIF_TYPE_CTF` or `DIF_TYPE_STRING`.
   */
  uint8_t kind;
  /*
   The consumer's own note on the type's kind.
   */
  uint8_t ckind;
  /*
   `DIF_TF_BYREF`, `DIF_TF_BYUREF`.
   */
  uint8_t flags;
  /*
   Zero.
   */
  uint8_t pad;
  /*
   Size in bytes.
   */
  uint32_t size;
};

/*
 A variable that a DIFO uses (`dtrace_difv_t`).
 */
struct dtrace_difvar {
  /*
   Offset of the name in the DIFO's string table.
   */
  uint32_t name;
  /*
   Variable id, see `crate::var`.
   */
  uint32_t id;
  /*
   `DIFV_KIND_*`.
   */
  uint8_t kind;
  /*
   `DIFV_SCOPE_*`.
   */
  uint8_t scope;
  /*
   `DIFV_F_*`.
   */
  uint16_t flags;
  /*
   The variable's type.
   */
  struct dtrace_diftype ty;
};

/*
 The beginning of a stack that is a value of D's (`dt_stack_t`); the addresses follow, 8 bytes each and innermost first, with
 zeros behind the last, or `STACK_LOST` and then zeros.
 */
struct dtrace_stackhead {
  /*
   Addresses that mean something.
   */
  uint32_t depth;
  /*
   1 for the stack of a process, 0 for the kernel's.
   */
  uint32_t is_user;
  /*
   The process whose stack it is, 0 for the kernel's.
   */
  uint32_t pid;
  /*
   What the program asked of `ustack()` for strings, bytes; no strings are kept.
   */
  uint32_t strsz;
};

/*
 Stability of a name, its data, and its dependency class (`dtrace_attribute_t`), as raw numbers.
 */
struct dtrace_attribute {
  /*
   A `Stability`.
   */
  uint8_t name;
  /*
   A `Stability`.
   */
  uint8_t data;
  /*
   A `Class`.
   */
  uint8_t class_;
};

/*
 The attributes of a provider, part by part of its probes' names (`dtrace_pattr_t`).
 */
struct dtrace_providerattributes {
  /*
   Of the provider's name.
   */
  struct dtrace_attribute provider;
  /*
   Of its modules' names.
   */
  struct dtrace_attribute module;
  /*
   Of its functions' names.
   */
  struct dtrace_attribute func;
  /*
   Of its probes' names.
   */
  struct dtrace_attribute name;
  /*
   Of its probes' arguments.
   */
  struct dtrace_attribute args;
};

/*
 * dif
 */

/*
 The version of DIF that this contract describes.
 */
#define DIF_VERSION 2

/*
 Integer registers, `%r0` to `%r7`.
 */
#define DIF_NREGS 8

/*
 Entries of the tuple stack.
 */
#define DIF_NTREGS 8

/*
 Greatest index into the integer table.
 */
#define DIF_INTOFF_MAX 65535

/*
 Greatest offset into the string table.
 */
#define DIF_STROFF_MAX 65535

/*
 Greatest index into an array variable.
 */
#define DIF_VARIDX_MAX 255



/*
 Operation codes.
 */
enum dif_op {
  /*
   `or` R3: r1,r2,rd (rd!=0).
   */
  DIF_OP_OR = 1,
  /*
   `xor` R3: r1,r2,rd (rd!=0).
   */
  DIF_OP_XOR = 2,
  /*
   `and` R3: r1,r2,rd (rd!=0).
   */
  DIF_OP_AND = 3,
  /*
   `sll` R3: r1,r2,rd (rd!=0).
   */
  DIF_OP_SLL = 4,
  /*
   `srl` R3: r1,r2,rd (rd!=0).
   */
  DIF_OP_SRL = 5,
  /*
   `sub` R3: r1,r2,rd (rd!=0).
   */
  DIF_OP_SUB = 6,
  /*
   `add` R3: r1,r2,rd (rd!=0).
   */
  DIF_OP_ADD = 7,
  /*
   `mul` R3: r1,r2,rd (rd!=0).
   */
  DIF_OP_MUL = 8,
  /*
   `sdiv` R3: r1,r2,rd (rd!=0).
   */
  DIF_OP_SDIV = 9,
  /*
   `udiv` R3: r1,r2,rd (rd!=0).
   */
  DIF_OP_UDIV = 10,
  /*
   `srem` R3: r1,r2,rd (rd!=0).
   */
  DIF_OP_SREM = 11,
  /*
   `urem` R3: r1,r2,rd (rd!=0).
   */
  DIF_OP_UREM = 12,
  /*
   `not` R2: r1,-,rd (r2=0, rd!=0).
   */
  DIF_OP_NOT = 13,
  /*
   `mov` R2: r1,-,rd (r2=0, rd!=0).
   */
  DIF_OP_MOV = 14,
  /*
   `cmp` C: r1,r2,- (rd=0).
   */
  DIF_OP_CMP = 15,
  /*
   `tst` C1: r1 (r2=rd=0).
   */
  DIF_OP_TST = 16,
  /*
   `ba` B: 24-bit label, forward only, < len.
   */
  DIF_OP_BA = 17,
  /*
   `be` B: 24-bit label, forward only, < len.
   */
  DIF_OP_BE = 18,
  /*
   `bne` B: 24-bit label, forward only, < len.
   */
  DIF_OP_BNE = 19,
  /*
   `bg` B: 24-bit label, forward only, < len.
   */
  DIF_OP_BG = 20,
  /*
   `bgu` B: 24-bit label, forward only, < len.
   */
  DIF_OP_BGU = 21,
  /*
   `bge` B: 24-bit label, forward only, < len.
   */
  DIF_OP_BGE = 22,
  /*
   `bgeu` B: 24-bit label, forward only, < len.
   */
  DIF_OP_BGEU = 23,
  /*
   `bl` B: 24-bit label, forward only, < len.
   */
  DIF_OP_BL = 24,
  /*
   `blu` B: 24-bit label, forward only, < len.
   */
  DIF_OP_BLU = 25,
  /*
   `ble` B: 24-bit label, forward only, < len.
   */
  DIF_OP_BLE = 26,
  /*
   `bleu` B: 24-bit label, forward only, < len.
   */
  DIF_OP_BLEU = 27,
  /*
   `ldsb` LD: \[r1\],-,rd (r2=0, rd!=0).
   */
  DIF_OP_LDSB = 28,
  /*
   `ldsh` LD: \[r1\],-,rd (r2=0, rd!=0).
   */
  DIF_OP_LDSH = 29,
  /*
   `ldsw` LD: \[r1\],-,rd (r2=0, rd!=0).
   */
  DIF_OP_LDSW = 30,
  /*
   `ldub` LD: \[r1\],-,rd (r2=0, rd!=0).
   */
  DIF_OP_LDUB = 31,
  /*
   `lduh` LD: \[r1\],-,rd (r2=0, rd!=0).
   */
  DIF_OP_LDUH = 32,
  /*
   `lduw` LD: \[r1\],-,rd (r2=0, rd!=0).
   */
  DIF_OP_LDUW = 33,
  /*
   `ldx` LD: \[r1\],-,rd (r2=0, rd!=0).
   */
  DIF_OP_LDX = 34,
  /*
   `ret` rd only (r1=r2=0); must be last instruction.
   */
  DIF_OP_RET = 35,
  /*
   `nop` no operands (all zero).
   */
  DIF_OP_NOP = 36,
  /*
   `setx` W: intindex16, rd!=0.
   */
  DIF_OP_SETX = 37,
  /*
   `sets` W: stroffset16, rd!=0.
   */
  DIF_OP_SETS = 38,
  /*
   `scmp` C: r1,r2,- (rd=0).
   */
  DIF_OP_SCMP = 39,
  /*
   `ldga` A: var8 (<=0xff), r2=index, rd!=0.
   */
  DIF_OP_LDGA = 40,
  /*
   `ldgs` V: var16 (0x100..0xffff), rd!=0.
   */
  DIF_OP_LDGS = 41,
  /*
   `stgs` V: var16 (>=0x500), rs.
   */
  DIF_OP_STGS = 42,
  /*
   `ldta` A: var8 (<=0xff), r2=index, rd!=0.
   */
  DIF_OP_LDTA = 43,
  /*
   `ldts` V: var16 (0x100..0xffff), rd!=0.
   */
  DIF_OP_LDTS = 44,
  /*
   `stts` V: var16 (>=0x500), rs.
   */
  DIF_OP_STTS = 45,
  /*
   `sra` R3: r1,r2,rd (rd!=0).
   */
  DIF_OP_SRA = 46,
  /*
   `call` V: subr16 (<=DIF_SUBR_MAX), rd!=0.
   */
  DIF_OP_CALL = 47,
  /*
   `pushtr` T: type8 (CTF 0 or STRING 1), r2=size reg, rs=value.
   */
  DIF_OP_PUSHTR = 48,
  /*
   `pushtv` T: type8 (CTF 0 only), r2=size reg, rs=value.
   */
  DIF_OP_PUSHTV = 49,
  /*
   `popts` no operands (all zero).
   */
  DIF_OP_POPTS = 50,
  /*
   `flushts` no operands (all zero).
   */
  DIF_OP_FLUSHTS = 51,
  /*
   `ldgaa` V: var16 (0x100..0xffff), rd!=0.
   */
  DIF_OP_LDGAA = 52,
  /*
   `ldtaa` V: var16 (0x100..0xffff), rd!=0.
   */
  DIF_OP_LDTAA = 53,
  /*
   `stgaa` V: var16 (>=0x500), rs.
   */
  DIF_OP_STGAA = 54,
  /*
   `sttaa` V: var16 (>=0x500), rs.
   */
  DIF_OP_STTAA = 55,
  /*
   `ldls` V: var16 (0x100..0xffff), rd!=0.
   */
  DIF_OP_LDLS = 56,
  /*
   `stls` V: var16 (>=0x500), rs.
   */
  DIF_OP_STLS = 57,
  /*
   `allocs` R2: r1,-,rd (r2=0, rd!=0).
   */
  DIF_OP_ALLOCS = 58,
  /*
   `copys` R3: r1,r2,rd (rd!=0).
   */
  DIF_OP_COPYS = 59,
  /*
   `stb` ST: r1,-,\[rd\] (rd!=0).
   */
  DIF_OP_STB = 60,
  /*
   `sth` ST: r1,-,\[rd\] (rd!=0).
   */
  DIF_OP_STH = 61,
  /*
   `stw` ST: r1,-,\[rd\] (rd!=0).
   */
  DIF_OP_STW = 62,
  /*
   `stx` ST: r1,-,\[rd\] (rd!=0).
   */
  DIF_OP_STX = 63,
  /*
   `uldsb` LD: \[r1\],-,rd (r2=0, rd!=0).
   */
  DIF_OP_ULDSB = 64,
  /*
   `uldsh` LD: \[r1\],-,rd (r2=0, rd!=0).
   */
  DIF_OP_ULDSH = 65,
  /*
   `uldsw` LD: \[r1\],-,rd (r2=0, rd!=0).
   */
  DIF_OP_ULDSW = 66,
  /*
   `uldub` LD: \[r1\],-,rd (r2=0, rd!=0).
   */
  DIF_OP_ULDUB = 67,
  /*
   `ulduh` LD: \[r1\],-,rd (r2=0, rd!=0).
   */
  DIF_OP_ULDUH = 68,
  /*
   `ulduw` LD: \[r1\],-,rd (r2=0, rd!=0).
   */
  DIF_OP_ULDUW = 69,
  /*
   `uldx` LD: \[r1\],-,rd (r2=0, rd!=0).
   */
  DIF_OP_ULDX = 70,
  /*
   `rldsb` LD: \[r1\],-,rd (r2=0, rd!=0).
   */
  DIF_OP_RLDSB = 71,
  /*
   `rldsh` LD: \[r1\],-,rd (r2=0, rd!=0).
   */
  DIF_OP_RLDSH = 72,
  /*
   `rldsw` LD: \[r1\],-,rd (r2=0, rd!=0).
   */
  DIF_OP_RLDSW = 73,
  /*
   `rldub` LD: \[r1\],-,rd (r2=0, rd!=0).
   */
  DIF_OP_RLDUB = 74,
  /*
   `rlduh` LD: \[r1\],-,rd (r2=0, rd!=0).
   */
  DIF_OP_RLDUH = 75,
  /*
   `rlduw` LD: \[r1\],-,rd (r2=0, rd!=0).
   */
  DIF_OP_RLDUW = 76,
  /*
   `rldx` LD: \[r1\],-,rd (r2=0, rd!=0).
   */
  DIF_OP_RLDX = 77,
  /*
   `xlate` X: xlref16, rd; user-level only, must be eliminated before kernel (rejected by validator).
   */
  DIF_OP_XLATE = 78,
  /*
   `xlarg` X: xlref16, rd; user-level only, must be eliminated before kernel (rejected by validator).
   */
  DIF_OP_XLARG = 79,
  /*
   `fadd` R3: r1,r2,rd (rd!=0).
   */
  DIF_OP_FADD = 200,
  /*
   `fsub` R3: r1,r2,rd (rd!=0).
   */
  DIF_OP_FSUB = 201,
  /*
   `fmul` R3: r1,r2,rd (rd!=0).
   */
  DIF_OP_FMUL = 202,
  /*
   `fdiv` R3: r1,r2,rd (rd!=0).
   */
  DIF_OP_FDIV = 203,
  /*
   `feq` R3: r1,r2,rd (rd!=0): 1 if the numbers are equal, else 0; NaN equals nothing.
   */
  DIF_OP_FEQ = 204,
  /*
   `flt` R3: r1,r2,rd (rd!=0): 1 if the first number is less, else 0.
   */
  DIF_OP_FLT = 205,
  /*
   `fle` R3: r1,r2,rd (rd!=0): 1 if the first number is less or equal, else 0.
   */
  DIF_OP_FLE = 206,
  /*
   `fxtod` R2: r1,-,rd (r2=0, rd!=0): a signed integer becomes a number.
   */
  DIF_OP_FXTOD = 207,
  /*
   `futod` R2: r1,-,rd (r2=0, rd!=0): an unsigned integer becomes a number.
   */
  DIF_OP_FUTOD = 208,
  /*
   `fdtox` R2: r1,-,rd (r2=0, rd!=0): the integer part as a signed integer, the nearest one if it has none; of NaN 0.
   */
  DIF_OP_FDTOX = 209,
  /*
   `fdtou` R2: r1,-,rd (r2=0, rd!=0): the same as an unsigned integer.
   */
  DIF_OP_FDTOU = 210,
  /*
   `fstod` R2: r1,-,rd (r2=0, rd!=0): a binary32 becomes a binary64.
   */
  DIF_OP_FSTOD = 211,
  /*
   `fdtos` R2: r1,-,rd (r2=0, rd!=0): a binary64 becomes a binary32.
   */
  DIF_OP_FDTOS = 212,
  /*
   `fxtos` R2: r1,-,rd (r2=0, rd!=0): a signed integer becomes a binary32.
   */
  DIF_OP_FXTOS = 213,
  /*
   `futos` R2: r1,-,rd (r2=0, rd!=0): an unsigned integer becomes a binary32.
   */
  DIF_OP_FUTOS = 214,
  /*
   `loop` B: 24-bit label, backward only. Each round takes from the firing's budget; the tuple stack is empty here and at the label.
   */
  DIF_OP_LOOP = 215,
};
typedef uint8_t dif_op;

/*
 One instruction word.
 */
typedef uint32_t dif_instr;

/*
 * var
 */

/*
 Greatest id of an array.
 */
#define DIF_ARRAY_MAX 255

/*
 First array of a program's own.
 */
#define DIF_ARRAY_UBASE 128

/*
 First id of a scalar or associative array.
 */
#define DIF_OTHER_MIN 256

/*
 First scalar or associative array of a program's own.
 */
#define DIF_OTHER_UBASE 1280

/*
 Greatest id.
 */
#define DIF_OTHER_MAX 65535

/*
 Built-in variables.
 */
enum dif_var {
  /*
   The probe's arguments, as an array.
   */
  DIF_VAR_ARGS = 0,
  /*
   The interrupted kernel registers.
   */
  DIF_VAR_REGS = 1,
  /*
   The interrupted thread's user registers.
   */
  DIF_VAR_UREGS = 2,
  /*
   What a walker knows of the frame that it runs for: see `interp`.
   */
  DIF_VAR_WALK = 64,
  /*
   Address of the current thread's `task_struct`.
   */
  DIF_VAR_CURTHREAD = 256,
  /*
   Nanoseconds of a clock that never steps back.
   */
  DIF_VAR_TIMESTAMP = 257,
  /*
   Nanoseconds that the current thread has spent on a CPU, less DTrace's own.
   */
  DIF_VAR_VTIMESTAMP = 258,
  /*
   Interrupt level: 0 in a thread, else nonzero.
   */
  DIF_VAR_IPL = 259,
  /*
   Id of the enabled probe.
   */
  DIF_VAR_EPID = 260,
  /*
   Id of the probe.
   */
  DIF_VAR_ID = 261,
  /*
   First argument.
   */
  DIF_VAR_ARG0 = 262,
  /*
   Second argument.
   */
  DIF_VAR_ARG1 = 263,
  /*
   Third argument.
   */
  DIF_VAR_ARG2 = 264,
  /*
   Fourth argument.
   */
  DIF_VAR_ARG3 = 265,
  /*
   Fifth argument.
   */
  DIF_VAR_ARG4 = 266,
  /*
   Sixth argument.
   */
  DIF_VAR_ARG5 = 267,
  /*
   Seventh argument.
   */
  DIF_VAR_ARG6 = 268,
  /*
   Eighth argument.
   */
  DIF_VAR_ARG7 = 269,
  /*
   Ninth argument.
   */
  DIF_VAR_ARG8 = 270,
  /*
   Tenth argument.
   */
  DIF_VAR_ARG9 = 271,
  /*
   Frames of the kernel stack.
   */
  DIF_VAR_STACKDEPTH = 272,
  /*
   Program counter that called the probe's function.
   */
  DIF_VAR_CALLER = 273,
  /*
   Name of the probe's provider.
   */
  DIF_VAR_PROBEPROV = 274,
  /*
   Name of the probe's module.
   */
  DIF_VAR_PROBEMOD = 275,
  /*
   Name of the probe's function.
   */
  DIF_VAR_PROBEFUNC = 276,
  /*
   Name of the probe.
   */
  DIF_VAR_PROBENAME = 277,
  /*
   Process id of the current thread.
   */
  DIF_VAR_PID = 278,
  /*
   Thread id of the current thread.
   */
  DIF_VAR_TID = 279,
  /*
   Name of the current process.
   */
  DIF_VAR_EXECNAME = 280,
  /*
   Name of the current container.
   */
  DIF_VAR_ZONENAME = 281,
  /*
   Nanoseconds since 1970-01-01 00:00 UTC.
   */
  DIF_VAR_WALLTIMESTAMP = 282,
  /*
   Frames of the user stack.
   */
  DIF_VAR_USTACKDEPTH = 283,
  /*
   Program counter that called the current user function.
   */
  DIF_VAR_UCALLER = 284,
  /*
   Process id of the parent.
   */
  DIF_VAR_PPID = 285,
  /*
   Real user id.
   */
  DIF_VAR_UID = 286,
  /*
   Real group id.
   */
  DIF_VAR_GID = 287,
  /*
   Error of the last system call of the current thread.
   */
  DIF_VAR_ERRNO = 288,
  /*
   Number of the current CPU.
   */
  DIF_VAR_CPU = 512,
  /*
   Arguments of the current process.
   */
  DIF_VAR_EXECARGS = 513,
};
typedef uint16_t dif_var;

/*
 * subr
 */

/*
 Subroutines of the DIF machine.
 */
enum dif_subr {
  /*
   `rand`: `int()`.
   */
  DIF_SUBR_RAND = 0,
  /*
   `mutex_owned`: `int(lock *)`.
   */
  DIF_SUBR_MUTEX_OWNED = 1,
  /*
   `mutex_owner`: `thread *(lock *)`.
   */
  DIF_SUBR_MUTEX_OWNER = 2,
  /*
   `mutex_type_adaptive`: `int(lock *)`.
   */
  DIF_SUBR_MUTEX_TYPE_ADAPTIVE = 3,
  /*
   `mutex_type_spin`: `int(lock *)`.
   */
  DIF_SUBR_MUTEX_TYPE_SPIN = 4,
  /*
   `rw_read_held`: `int(lock *)`.
   */
  DIF_SUBR_RW_READ_HELD = 5,
  /*
   `rw_write_held`: `int(lock *)`.
   */
  DIF_SUBR_RW_WRITE_HELD = 6,
  /*
   `rw_iswriter`: `int(lock *)`.
   */
  DIF_SUBR_RW_ISWRITER = 7,
  /*
   `copyin`: `void *(uintptr_t, size_t)`.
   */
  DIF_SUBR_COPYIN = 8,
  /*
   `copyinstr`: `string(uintptr_t, [size_t])`.
   */
  DIF_SUBR_COPYINSTR = 9,
  /*
   `speculation`: `int()`.
   */
  DIF_SUBR_SPECULATION = 10,
  /*
   `progenyof`: `int(pid_t)`.
   */
  DIF_SUBR_PROGENYOF = 11,
  /*
   `strlen`: `size_t(const char *)`.
   */
  DIF_SUBR_STRLEN = 12,
  /*
   `copyout`: `void(void *, uintptr_t, size_t)`.
   */
  DIF_SUBR_COPYOUT = 13,
  /*
   `copyoutstr`: `void(char *, uintptr_t, size_t)`.
   */
  DIF_SUBR_COPYOUTSTR = 14,
  /*
   `alloca`: `void *(size_t)`.
   */
  DIF_SUBR_ALLOCA = 15,
  /*
   `bcopy`: `void(void *, void *, size_t)`.
   */
  DIF_SUBR_BCOPY = 16,
  /*
   `copyinto`: `void(uintptr_t, size_t, void *)`.
   */
  DIF_SUBR_COPYINTO = 17,
  /*
   `msgdsize`: `size_t(mblk_t *)`.
   */
  DIF_SUBR_MSGDSIZE = 18,
  /*
   `msgsize`: `size_t(mblk_t *)`.
   */
  DIF_SUBR_MSGSIZE = 19,
  /*
   `getmajor`: `major_t(dev_t)`.
   */
  DIF_SUBR_GETMAJOR = 20,
  /*
   `getminor`: `minor_t(dev_t)`.
   */
  DIF_SUBR_GETMINOR = 21,
  /*
   `ddi_pathname`: `string(void *, int64_t)`.
   */
  DIF_SUBR_DDI_PATHNAME = 22,
  /*
   `strjoin`: `string(const char *, const char *)`.
   */
  DIF_SUBR_STRJOIN = 23,
  /*
   `lltostr`: `string(int64_t, [int])`.
   */
  DIF_SUBR_LLTOSTR = 24,
  /*
   `basename`: `string(const char *)`.
   */
  DIF_SUBR_BASENAME = 25,
  /*
   `dirname`: `string(const char *)`.
   */
  DIF_SUBR_DIRNAME = 26,
  /*
   `cleanpath`: `string(const char *)`.
   */
  DIF_SUBR_CLEANPATH = 27,
  /*
   `strchr`: `string(const char *, char)`.
   */
  DIF_SUBR_STRCHR = 28,
  /*
   `strrchr`: `string(const char *, char)`.
   */
  DIF_SUBR_STRRCHR = 29,
  /*
   `strstr`: `string(const char *, const char *)`.
   */
  DIF_SUBR_STRSTR = 30,
  /*
   `strtok`: `string(const char *, const char *)`.
   */
  DIF_SUBR_STRTOK = 31,
  /*
   `substr`: `string(const char *, int, [int])`.
   */
  DIF_SUBR_SUBSTR = 32,
  /*
   `index`: `int(const char *, const char *, [int])`.
   */
  DIF_SUBR_INDEX = 33,
  /*
   `rindex`: `int(const char *, const char *, [int])`.
   */
  DIF_SUBR_RINDEX = 34,
  /*
   `htons`: `uint16_t(uint16_t)`.
   */
  DIF_SUBR_HTONS = 35,
  /*
   `htonl`: `uint32_t(uint32_t)`.
   */
  DIF_SUBR_HTONL = 36,
  /*
   `htonll`: `uint64_t(uint64_t)`.
   */
  DIF_SUBR_HTONLL = 37,
  /*
   `ntohs`: `uint16_t(uint16_t)`.
   */
  DIF_SUBR_NTOHS = 38,
  /*
   `ntohl`: `uint32_t(uint32_t)`.
   */
  DIF_SUBR_NTOHL = 39,
  /*
   `ntohll`: `uint64_t(uint64_t)`.
   */
  DIF_SUBR_NTOHLL = 40,
  /*
   `inet_ntop`: `string(int, void *)`.
   */
  DIF_SUBR_INET_NTOP = 41,
  /*
   `inet_ntoa`: `string(ipaddr_t *)`.
   */
  DIF_SUBR_INET_NTOA = 42,
  /*
   `inet_ntoa6`: `string(in6_addr_t *)`.
   */
  DIF_SUBR_INET_NTOA6 = 43,
  /*
   `toupper`: `string(const char *)`.
   */
  DIF_SUBR_TOUPPER = 44,
  /*
   `tolower`: `string(const char *)`.
   */
  DIF_SUBR_TOLOWER = 45,
  /*
   `getf`: `file_t *(int)`.
   */
  DIF_SUBR_GETF = 46,
  /*
   `json`: `string(const char *, const char *)`.
   */
  DIF_SUBR_JSON = 47,
  /*
   `strtoll`: `int64_t(const char *, [int])`.
   */
  DIF_SUBR_STRTOLL = 48,
  /*
   `d_path`: `string(struct path *)`.
   */
  DIF_SUBR_D_PATH = 200,
  /*
   `link_ntop`: `string(int, void *)`.
   */
  DIF_SUBR_LINK_NTOP = 201,
  /*
   `uuidstr`: `string(void *)`.
   */
  DIF_SUBR_UUIDSTR = 202,
  /*
   `strip`: `ptr(ptr, int)`.
   */
  DIF_SUBR_STRIP = 203,
  /*
   `index out of bounds`: `void *(int64_t)`: always a fault, whose value is the index.
   */
  DIF_SUBR_OUTSIDE = 204,
  /*
   `stack as a value`: `dt_stack_t(uint32_t)`, of that many frames: a `StackHead` and the
   frames, in scratch memory.
   */
  DIF_SUBR_STACK = 205,
  /*
   `user stack as a value`: `dt_stack_t(uint32_t, uint32_t)`, the same; the second is its `strsz`.
   */
  DIF_SUBR_USTACK = 206,
  /*
   `taskargs`: `string(struct task_struct *)`.
   */
  DIF_SUBR_TASKARGS = 207,
  /*
   `__frame`: `void(uintptr_t, size_t, uintptr_t, size_t, uint32_t, uintptr_t, size_t, uint32_t)`: in a walker, puts a frame: address and greatest
   size of the function's name and of the file's, its line or its place in the table, address and size of the table, and what that counts from.
   */
  DIF_SUBR_FRAME = 208,
  /*
   `__caller`: `void(uint64_t, uint64_t, uint64_t)`: in a walker that is asked for it, tells the caller of a frame: where it goes on, its stack
   pointer, and its frame pointer, 0 if that is not known.
   */
  DIF_SUBR_CALLER = 209,
  /*
   `__scope`: `void(uintptr_t, size_t)`: in a walker, address and greatest size of the name of what the function of the next frame that is put
   belongs to.
   */
  DIF_SUBR_SCOPE = 210,
  /*
   `long double +`: `long double(long double, long double)`.
   */
  DIF_SUBR_LD_ADD = 220,
  /*
   `long double -`: `long double(long double, long double)`.
   */
  DIF_SUBR_LD_SUB = 221,
  /*
   `long double *`: `long double(long double, long double)`.
   */
  DIF_SUBR_LD_MUL = 222,
  /*
   `long double /`: `long double(long double, long double)`.
   */
  DIF_SUBR_LD_DIV = 223,
  /*
   `long double ==`: `int(long double, long double)`.
   */
  DIF_SUBR_LD_EQ = 224,
  /*
   `long double <`: `int(long double, long double)`.
   */
  DIF_SUBR_LD_LT = 225,
  /*
   `long double <=`: `int(long double, long double)`.
   */
  DIF_SUBR_LD_LE = 226,
  /*
   `long double copy`: `long double(long double)`.
   */
  DIF_SUBR_LD_VALUE = 227,
  /*
   `long double of double`: `long double(double)`.
   */
  DIF_SUBR_LD_FROM_DOUBLE = 228,
  /*
   `long double of int64_t`: `long double(int64_t)`.
   */
  DIF_SUBR_LD_FROM_SIGNED = 229,
  /*
   `long double of uint64_t`: `long double(uint64_t)`.
   */
  DIF_SUBR_LD_FROM_UNSIGNED = 230,
  /*
   `double of long double`: `double(long double)`.
   */
  DIF_SUBR_LD_TO_DOUBLE = 231,
  /*
   `float of long double`: `float(long double)`.
   */
  DIF_SUBR_LD_TO_SINGLE = 232,
  /*
   `int64_t of long double`: `int64_t(long double)`.
   */
  DIF_SUBR_LD_TO_SIGNED = 233,
  /*
   `uint64_t of long double`: `uint64_t(long double)`.
   */
  DIF_SUBR_LD_TO_UNSIGNED = 234,
};
typedef uint16_t dif_subr;

/*
 * action
 */

/*
 Class of actions that stop, signal or start processes: destructive.
 */
#define DTRACE_CLASS_PROC_DESTRUCTIVE 512

/*
 Class of actions that stop the kernel: destructive.
 */
#define DTRACE_CLASS_KERNEL_DESTRUCTIVE 1280

/*
 Class of speculative actions.
 */
#define DTRACE_CLASS_SPECULATIVE 1536

/*
 Class of aggregating functions.
 */
#define DTRACE_CLASS_AGGREGATION 1792

/*
 Buckets of `quantize()`.
 */
#define DTRACE_QUANTIZE_NBUCKETS 127

/*
 The bucket of zero.
 */
#define DTRACE_QUANTIZE_ZEROBUCKET 63

/*
 What an ECB does.
 */
enum dtrace_action {
  /*
   Nothing: the empty clause.
   */
  DTRACE_ACTION_NONE = 0,
  /*
   Record the value of an expression.
   */
  DTRACE_ACTION_DIFEXPR = 1,
  /*
   End the tracing with a status.
   */
  DTRACE_ACTION_EXIT = 2,
  /*
   Print a format: one record for each argument.
   */
  DTRACE_ACTION_PRINTF = 3,
  /*
   Print an aggregation.
   */
  DTRACE_ACTION_PRINTA = 4,
  /*
   Left to the consumer.
   */
  DTRACE_ACTION_LIBACT = 5,
  /*
   Record a piece of memory.
   */
  DTRACE_ACTION_TRACEMEM = 6,
  /*
   Record a piece of memory whose size is computed.
   */
  DTRACE_ACTION_TRACEMEM_DYNSIZE = 7,
  /*
   Record a user stack.
   */
  DTRACE_ACTION_USTACK = 257,
  /*
   Record a user stack; its frames of interpreted code have room of their own.
   */
  DTRACE_ACTION_JSTACK = 258,
  /*
   Record a user address, to be shown as a symbol.
   */
  DTRACE_ACTION_USYM = 259,
  /*
   Record a user address, to be shown as a module.
   */
  DTRACE_ACTION_UMOD = 260,
  /*
   Record a user address.
   */
  DTRACE_ACTION_UADDR = 261,
  /*
   Stop the current process.
   */
  DTRACE_ACTION_STOP = 513,
  /*
   Send the current process a signal.
   */
  DTRACE_ACTION_RAISE = 514,
  /*
   Run a command in the consumer.
   */
  DTRACE_ACTION_SYSTEM = 515,
  /*
   Redirect the consumer's output.
   */
  DTRACE_ACTION_FREOPEN = 516,
  /*
   Record a kernel stack.
   */
  DTRACE_ACTION_STACK = 1025,
  /*
   Record a kernel address, to be shown as a symbol.
   */
  DTRACE_ACTION_SYM = 1026,
  /*
   Record a kernel address, to be shown as a module.
   */
  DTRACE_ACTION_MOD = 1027,
  /*
   Enter the kernel's debugger.
   */
  DTRACE_ACTION_BREAKPOINT = 1281,
  /*
   Panic.
   */
  DTRACE_ACTION_PANIC = 1282,
  /*
   Spin for a while.
   */
  DTRACE_ACTION_CHILL = 1283,
  /*
   Record into a speculation from here on.
   */
  DTRACE_ACTION_SPECULATE = 1537,
  /*
   Keep what a speculation holds.
   */
  DTRACE_ACTION_COMMIT = 1538,
  /*
   Throw a speculation away.
   */
  DTRACE_ACTION_DISCARD = 1539,
  /*
   Aggregate: number of calls.
   */
  DTRACE_ACTION_COUNT = 1793,
  /*
   Aggregate: least value.
   */
  DTRACE_ACTION_MIN = 1794,
  /*
   Aggregate: greatest value.
   */
  DTRACE_ACTION_MAX = 1795,
  /*
   Aggregate: mean.
   */
  DTRACE_ACTION_AVG = 1796,
  /*
   Aggregate: sum.
   */
  DTRACE_ACTION_SUM = 1797,
  /*
   Aggregate: standard deviation.
   */
  DTRACE_ACTION_STDDEV = 1798,
  /*
   Aggregate: distribution over powers of two.
   */
  DTRACE_ACTION_QUANTIZE = 1799,
  /*
   Aggregate: distribution over equal steps.
   */
  DTRACE_ACTION_LQUANTIZE = 1800,
  /*
   Aggregate: distribution over equal steps within orders of magnitude.
   */
  DTRACE_ACTION_LLQUANTIZE = 1801,
  /*
   Aggregate: least floating-point number. The value is a binary64, as in all that follow, and so is the data, which
   is NaN as long as there was none.
   */
  DTRACE_ACTION_FLOAT_MIN = 1992,
  /*
   Aggregate: greatest floating-point number.
   */
  DTRACE_ACTION_FLOAT_MAX = 1993,
  /*
   Aggregate: count and sum of floating-point numbers.
   */
  DTRACE_ACTION_FLOAT_AVG = 1994,
  /*
   Aggregate: sum of floating-point numbers.
   */
  DTRACE_ACTION_FLOAT_SUM = 1995,
  /*
   Aggregate: count and mean of floating-point numbers, and the sum of the squares of their distances from it.
   */
  DTRACE_ACTION_FLOAT_STDDEV = 1996,
};
typedef uint32_t dtrace_action;

/*
 What `Action::Libact` asks of the consumer, in the action's `arg`.
 */
enum dtrace_libact {
  /*
   Not an action.
   */
  DTRACE_LIBACT_BAD = 0,
  /*
   `printa()` without a format.
   */
  DTRACE_LIBACT_PRINTA = 1,
  /*
   `clear()`.
   */
  DTRACE_LIBACT_CLEAR = 2,
  /*
   `normalize()`.
   */
  DTRACE_LIBACT_NORMALIZE = 3,
  /*
   `denormalize()`.
   */
  DTRACE_LIBACT_DENORMALIZE = 4,
  /*
   `trunc()`.
   */
  DTRACE_LIBACT_TRUNC = 5,
  /*
   `setopt()`.
   */
  DTRACE_LIBACT_SETOPT = 6,
  /*
   `ftruncate()`.
   */
  DTRACE_LIBACT_FTRUNCATE = 7,
  /*
   `print()`.
   */
  DTRACE_LIBACT_PRINT = 8,
};
typedef uint32_t dtrace_libact;

/*
 * fault
 */

/*
 What went wrong in probe context.
 */
enum dtrace_fault {
  /*
   Not known.
   */
  DTRACE_FAULT_UNKNOWN = 0,
  /*
   An address that cannot be accessed.
   */
  DTRACE_FAULT_BAD_ADDR = 1,
  /*
   An address that is not aligned as its access needs.
   */
  DTRACE_FAULT_BAD_ALIGN = 2,
  /*
   An illegal operation.
   */
  DTRACE_FAULT_ILL_OP = 3,
  /*
   Division by zero.
   */
  DTRACE_FAULT_DIV_ZERO = 4,
  /*
   Scratch memory is used up.
   */
  DTRACE_FAULT_NO_SCRATCH = 5,
  /*
   The consumer may not read kernel memory or state.
   */
  DTRACE_FAULT_KPRIV = 6,
  /*
   The consumer may not read this process' memory or state.
   */
  DTRACE_FAULT_UPRIV = 7,
  /*
   More than `crate::dif::DIF_NTREGS` entries on the tuple stack.
   */
  DTRACE_FAULT_TUP_OFLOW = 8,
  /*
   A stack that cannot be walked.
   */
  DTRACE_FAULT_BAD_STACK = 9,
  /*
   A size out of range.
   */
  DTRACE_FAULT_BAD_SIZE = 10,
  /*
   An index out of range.
   */
  DTRACE_FAULT_BAD_INDEX = 11,
  /*
   One firing would take too long with interrupts off: Linux' own.
   */
  DTRACE_FAULT_OVERRUN = 200,
  /*
   A fault of the library, not of the kernel.
   */
  DTRACE_FAULT_LIBRARY = 1000,
};
typedef uint32_t dtrace_fault;

/*
 * option
 */

/*
 Value of an option that nobody has set.
 */
#define DTRACEOPT_UNSET (uint64_t)-2ll

/*
 How many options of the common numbering there are.
 */
#define DTRACEOPT_MAX 32

/*
 The first number of Linux' own.
 */
#define DTRACEOPT_LINUX_MIN 200

/*
 How many options there are.
 */
#define DTRACEOPT_COUNT (DTRACEOPT_MAX + 3)

/*
 Value of `Opt::Bufpolicy`: keep the newest records.
 */
#define DTRACEOPT_BUFPOLICY_RING 0

/*
 Value of `Opt::Bufpolicy`: stop at the first full buffer.
 */
#define DTRACEOPT_BUFPOLICY_FILL 1

/*
 Value of `Opt::Bufpolicy`: two buffers, switched by the consumer.
 */
#define DTRACEOPT_BUFPOLICY_SWITCH 2

/*
 Value of `Opt::Bufresize`: halve the size until the allocation succeeds.
 */
#define DTRACEOPT_BUFRESIZE_AUTO 0

/*
 Value of `Opt::Bufresize`: fail where memory is short.
 */
#define DTRACEOPT_BUFRESIZE_MANUAL 1

/*
 Value of `Opt::Ustackmode`: by tables, and by frame pointers where there are none.
 */
#define DTRACEOPT_USTACKMODE_AUTO 0

/*
 Value of `Opt::Ustackmode`: by frame pointers alone.
 */
#define DTRACEOPT_USTACKMODE_FP 1

/*
 Value of `Opt::Ustackmode`: by tables alone; a stack ends where there is none.
 */
#define DTRACEOPT_USTACKMODE_TABLE 2

/*
 Value of `Opt::Ustackmode`: as `USTACKMODE_AUTO`, and what no table led to has `STACK_GUESSED` in records and
 keys.
 */
#define DTRACEOPT_USTACKMODE_TOLD 3

/*
 Options.
 */
enum dtrace_opt {
  /*
   Size of a CPU's principal buffer, bytes.
   */
  DTRACEOPT_OPT_BUFSIZE = 0,
  /*
   What happens when it is full.
   */
  DTRACEOPT_OPT_BUFPOLICY = 1,
  /*
   Size of the dynamic variables' space, bytes.
   */
  DTRACEOPT_OPT_DYNVARSIZE = 2,
  /*
   Size of a CPU's aggregation buffer, bytes.
   */
  DTRACEOPT_OPT_AGGSIZE = 3,
  /*
   Size of a speculation's buffer, bytes.
   */
  DTRACEOPT_OPT_SPECSIZE = 4,
  /*
   Number of speculations.
   */
  DTRACEOPT_OPT_NSPEC = 5,
  /*
   Size of a string, bytes, with its NUL.
   */
  DTRACEOPT_OPT_STRSIZE = 6,
  /*
   Time between two cleanings of dynamic variables, ns.
   */
  DTRACEOPT_OPT_CLEANRATE = 7,
  /*
   The only CPU to trace.
   */
  DTRACEOPT_OPT_CPU = 8,
  /*
   What happens when memory is short.
   */
  DTRACEOPT_OPT_BUFRESIZE = 9,
  /*
   Claim the anonymous state.
   */
  DTRACEOPT_OPT_GRABANON = 10,
  /*
   Indent function entry and return.
   */
  DTRACEOPT_OPT_FLOWINDENT = 11,
  /*
   Print only what is asked for.
   */
  DTRACEOPT_OPT_QUIET = 12,
  /*
   Frames of `stack()`.
   */
  DTRACEOPT_OPT_STACKFRAMES = 13,
  /*
   Frames of `ustack()`.
   */
  DTRACEOPT_OPT_USTACKFRAMES = 14,
  /*
   Time between two readings of aggregations, ns.
   */
  DTRACEOPT_OPT_AGGRATE = 15,
  /*
   Time between two readings of principal buffers, ns.
   */
  DTRACEOPT_OPT_SWITCHRATE = 16,
  /*
   Time between two readings of the status, ns.
   */
  DTRACEOPT_OPT_STATUSRATE = 17,
  /*
   Destructive actions are allowed.
   */
  DTRACEOPT_OPT_DESTRUCTIVE = 18,
  /*
   Blanks before a frame of a stack.
   */
  DTRACEOPT_OPT_STACKINDENT = 19,
  /*
   Print bytes as hexadecimal always.
   */
  DTRACEOPT_OPT_RAWBYTES = 20,
  /*
   Frames of `jstack()`.
   */
  DTRACEOPT_OPT_JSTACKFRAMES = 21,
  /*
   Bytes for frames of interpreted code in `jstack()`.
   */
  DTRACEOPT_OPT_JSTACKSTRSIZE = 22,
  /*
   Sort aggregations by key.
   */
  DTRACEOPT_OPT_AGGSORTKEY = 23,
  /*
   Sort the other way round.
   */
  DTRACEOPT_OPT_AGGSORTREV = 24,
  /*
   Which of several aggregations to sort by.
   */
  DTRACEOPT_OPT_AGGSORTPOS = 25,
  /*
   Which key to sort by.
   */
  DTRACEOPT_OPT_AGGSORTKEYPOS = 26,
  /*
   Print records in the order of time over all CPUs.
   */
  DTRACEOPT_OPT_TEMPORAL = 27,
  /*
   Print aggregations as histograms.
   */
  DTRACEOPT_OPT_AGGHIST = 28,
  /*
   Print quantizations packed.
   */
  DTRACEOPT_OPT_AGGPACK = 29,
  /*
   Scale the largest bar to the full width.
   */
  DTRACEOPT_OPT_AGGZOOM = 30,
  /*
   Trace one zone only: illumos'. It is refused here.
   */
  DTRACEOPT_OPT_ZONE = 31,
  /*
   Memory that a clause's `alloca()`, `copyin()` and `copyinstr()` may take, bytes.
   */
  DTRACEOPT_OPT_SCRATCHSIZE = 200,
  /*
   How the stacks of programs are walked.
   */
  DTRACEOPT_OPT_USTACKMODE = 201,
  /*
   Refuse programs that have a loop.
   */
  DTRACEOPT_OPT_NOLOOPS = 202,
};
typedef uint32_t dtrace_opt;

/*
 * dof
 */

/*
 Index in `Hdr::ident` of the data model.
 */
#define DOF_ID_MODEL 4

/*
 Index in `Hdr::ident` of the byte order.
 */
#define DOF_ID_ENCODING 5

/*
 Index in `Hdr::ident` of the version of DOF.
 */
#define DOF_ID_VERSION 6

/*
 Index in `Hdr::ident` of the version of DIF.
 */
#define DOF_ID_DIFVERS 7

/*
 Index in `Hdr::ident` of the number of integer registers used.
 */
#define DOF_ID_DIFIREG 8

/*
 Index in `Hdr::ident` of the number of tuple registers used.
 */
#define DOF_ID_DIFTREG 9

/*
 Index in `Hdr::ident` of the first byte that must be zero.
 */
#define DOF_ID_PAD 10

/*
 Data model: `int` of 32 bits, `long` and pointers of 64.
 */
#define DOF_MODEL_LP64 2

/*
 Data model: `int`, `long` and pointers of 32 bits.
 */
#define DOF_MODEL_ILP32 1

/*
 Byte order: least significant first.
 */
#define DOF_ENCODE_LSB 1

/*
 Byte order: most significant first.
 */
#define DOF_ENCODE_MSB 2

/*
 First version of DOF.
 */
#define DOF_VERSION_1 1

/*
 Version of DOF with is-enabled probes; what this project writes.
 */
#define DOF_VERSION_2 2

/*
 Version of DOF where a program that asks whether its probe is enabled passes the address of its answer.
 */
#define DOF_VERSION_3 3

/*
 `Sec::flags`: the kernel loads the section.
 */
#define DOF_SECF_LOAD 1

/*
 `RelocDesc::ty`: nothing to do.
 */
#define DOF_RELO_NONE 0

/*
 `RelocDesc::ty`: add the symbol's address to an integer of the integer table.
 */
#define DOF_RELO_SETX 1

/*
 `RelocDesc::ty`: make an offset relative to the image's load address.
 */
#define DOF_RELO_DOFREL 2

/*
 What a section holds.
 */
enum dof_sectype {
  /*
   Nothing.
   */
  DOF_SEC_TYPE_NONE = 0,
  /*
   Holds `text`.
   */
  DOF_SEC_TYPE_COMMENTS = 1,
  /*
   Holds `text`.
   */
  DOF_SEC_TYPE_SOURCE = 2,
  /*
   Holds `dof_ecbdesc`.
   */
  DOF_SEC_TYPE_ECB_DESC = 3,
  /*
   Holds `dof_probedesc`.
   */
  DOF_SEC_TYPE_PROBE_DESC = 4,
  /*
   Holds `dof_actdesc[]`.
   */
  DOF_SEC_TYPE_ACT_DESC = 5,
  /*
   Holds `dof_difohdr + links`.
   */
  DOF_SEC_TYPE_DIFO_HDR = 6,
  /*
   Holds `u32[]`.
   */
  DOF_SEC_TYPE_DIF = 7,
  /*
   Holds `bytes`.
   */
  DOF_SEC_TYPE_STRTAB = 8,
  /*
   Holds `dtrace_difv[]`.
   */
  DOF_SEC_TYPE_VARTAB = 9,
  /*
   Holds `dof_relodesc[]`.
   */
  DOF_SEC_TYPE_RELTAB = 10,
  /*
   Holds `dtrace_diftype[]`.
   */
  DOF_SEC_TYPE_TYPTAB = 11,
  /*
   Holds `dof_relohdr`.
   */
  DOF_SEC_TYPE_UREL_HDR = 12,
  /*
   Holds `dof_relohdr`.
   */
  DOF_SEC_TYPE_KREL_HDR = 13,
  /*
   Holds `dof_optdesc[]`.
   */
  DOF_SEC_TYPE_OPT_DESC = 14,
  /*
   Holds `dof_provider`.
   */
  DOF_SEC_TYPE_PROVIDER = 15,
  /*
   Holds `dof_probe[]`.
   */
  DOF_SEC_TYPE_PROBES = 16,
  /*
   Holds `u8[]`.
   */
  DOF_SEC_TYPE_PRARGS = 17,
  /*
   Holds `u32[]`.
   */
  DOF_SEC_TYPE_PROFFS = 18,
  /*
   Holds `u64[]`.
   */
  DOF_SEC_TYPE_INTTAB = 19,
  /*
   Holds `struct utsname`.
   */
  DOF_SEC_TYPE_UTSNAME = 20,
  /*
   Holds `dof_xlref[]`.
   */
  DOF_SEC_TYPE_XLTAB = 21,
  /*
   Holds `dof_xlmember[]`.
   */
  DOF_SEC_TYPE_XLMEMBERS = 22,
  /*
   Holds `dof_xlator`.
   */
  DOF_SEC_TYPE_XLIMPORT = 23,
  /*
   Holds `dof_xlator`.
   */
  DOF_SEC_TYPE_XLEXPORT = 24,
  /*
   Holds `u32[]`.
   */
  DOF_SEC_TYPE_PREXPORT = 25,
  /*
   Holds `u32[]`.
   */
  DOF_SEC_TYPE_PRENOFFS = 26,
};
typedef uint32_t dof_sectype;


/*
 Index of a section.
 */
typedef uint32_t dof_secidx;

/*
 Offset in a string table.
 */
typedef uint32_t dof_stridx;

/*
 The image's header (`dof_hdr_t`).
 */
struct dof_hdr {
  /*
   Magic, model, byte order, versions and register counts: see the `ID_*` constants.
   */
  uint8_t ident[16];
  /*
   Zero.
   */
  uint32_t flags;
  /*
   Size of this header, bytes.
   */
  uint32_t hdrsize;
  /*
   Size of a section header, bytes.
   */
  uint32_t secsize;
  /*
   Number of section headers.
   */
  uint32_t secnum;
  /*
   Offset of the first section header.
   */
  uint64_t secoff;
  /*
   Size of the part that the kernel loads, bytes.
   */
  uint64_t loadsz;
  /*
   Size of the whole image, bytes.
   */
  uint64_t filesz;
  /*
   Zero.
   */
  uint64_t pad;
};

/*
 A section's header (`dof_sec_t`).
 */
struct dof_sec {
  /*
   A `SecType`.
   */
  uint32_t ty;
  /*
   Alignment of the data, a power of two.
   */
  uint32_t align;
  /*
   `SECF_LOAD`.
   */
  uint32_t flags;
  /*
   Size of an entry of a table, bytes; 0 where the section is none.
   */
  uint32_t entsize;
  /*
   Offset of the data in the image.
   */
  uint64_t offset;
  /*
   Size of the data, bytes.
   */
  uint64_t size;
};

/*
 An ECB: a probe description, a predicate and actions (`dof_ecbdesc_t`).
 */
struct dof_ecbdesc {
  /*
   A `SecType::ProbeDesc`.
   */
  dof_secidx probes;
  /*
   A `SecType::DifoHdr` or none.
   */
  dof_secidx pred;
  /*
   A `SecType::ActDesc` or none.
   */
  dof_secidx actions;
  /*
   Zero.
   */
  uint32_t pad;
  /*
   The consumer's note.
   */
  uint64_t uarg;
};

/*
 Which probes an ECB is for (`dof_probedesc_t`).
 */
struct dof_probedesc {
  /*
   The strings of the following.
   */
  dof_secidx strtab;
  /*
   Glob for the provider.
   */
  dof_stridx provider;
  /*
   Glob for the module.
   */
  dof_stridx module;
  /*
   Glob for the function.
   */
  dof_stridx func;
  /*
   Glob for the name.
   */
  dof_stridx name;
  /*
   The probe's id, or 0.
   */
  uint32_t id;
};

/*
 An action (`dof_actdesc_t`).
 */
struct dof_actdesc {
  /*
   A `SecType::DifoHdr` or none.
   */
  dof_secidx difo;
  /*
   The strings of a format, or none.
   */
  dof_secidx strtab;
  /*
   An `Action`.
   */
  uint32_t kind;
  /*
   Of an aggregation: how many of the preceding actions are its tuple.
   */
  uint32_t ntuple;
  /*
   The action's argument, of a printf-like one the offset of its format.
   */
  uint64_t arg;
  /*
   The consumer's note.
   */
  uint64_t uarg;
};

/*
 Head of a DIFO; links to its sections, one `SecIdx` each, follow (`dof_difohdr_t`).
 */
struct dof_difohdr {
  /*
   Type of what the DIFO returns.
   */
  struct dtrace_diftype rtype;
};

/*
 Head of relocations (`dof_relohdr_t`).
 */
struct dof_relochdr {
  /*
   Names of symbols.
   */
  dof_secidx strtab;
  /*
   The `SecType::Reltab`.
   */
  dof_secidx relsec;
  /*
   The section to change.
   */
  dof_secidx tgtsec;
};

/*
 A relocation (`dof_relodesc_t`).
 */
struct dof_relocdesc {
  /*
   The symbol.
   */
  dof_stridx name;
  /*
   `RELO_*`.
   */
  uint32_t ty;
  /*
   Where in the target.
   */
  uint64_t offset;
  /*
   Addend.
   */
  uint64_t data;
};

/*
 An option's setting (`dof_optdesc_t`).
 */
struct dof_optdesc {
  /*
   An `Opt`.
   */
  uint32_t option;
  /*
   Strings, or none.
   */
  dof_secidx strtab;
  /*
   The value.
   */
  uint64_t value;
};

/*
 A provider of user-level probes (`dof_provider_t`); version 1 of DOF ends before `prenoffs`.
 */
struct dof_provider {
  /*
   Strings of the provider.
   */
  dof_secidx strtab;
  /*
   The `SecType::Probes`.
   */
  dof_secidx probes;
  /*
   The `SecType::Prargs`.
   */
  dof_secidx prargs;
  /*
   The `SecType::Proffs`.
   */
  dof_secidx proffs;
  /*
   The provider's name.
   */
  dof_stridx name;
  /*
   Attribute word of the provider: name << 24, data << 16, class << 8.
   */
  uint32_t provattr;
  /*
   Attribute word of the modules.
   */
  uint32_t modattr;
  /*
   Attribute word of the functions.
   */
  uint32_t funcattr;
  /*
   Attribute word of the names.
   */
  uint32_t nameattr;
  /*
   Attribute word of the arguments.
   */
  uint32_t argsattr;
  /*
   The `SecType::Prenoffs`.
   */
  dof_secidx prenoffs;
};

/*
 A user-level probe (`dof_probe_t`).
 */
struct dof_probe {
  /*
   Address of the function.
   */
  uint64_t addr;
  /*
   Name of the function.
   */
  dof_stridx func;
  /*
   Name of the probe.
   */
  dof_stridx name;
  /*
   Types of the native arguments.
   */
  dof_stridx nargv;
  /*
   Types of the translated arguments.
   */
  dof_stridx xargv;
  /*
   First entry in the argument map.
   */
  uint32_t argidx;
  /*
   First entry in the table of offsets.
   */
  uint32_t offidx;
  /*
   Number of native arguments.
   */
  uint8_t nargc;
  /*
   Number of translated arguments.
   */
  uint8_t xargc;
  /*
   Number of offsets.
   */
  uint16_t noffs;
  /*
   First entry in the table of is-enabled offsets.
   */
  uint32_t enoffidx;
  /*
   Number of is-enabled offsets.
   */
  uint16_t nenoffs;
  /*
   Zero.
   */
  uint16_t pad1;
  /*
   Zero.
   */
  uint32_t pad2;
};

/*
 A translator (`dof_xlator_t`).
 */
struct dof_xlator {
  /*
   The `SecType::Xlmembers`.
   */
  dof_secidx members;
  /*
   Strings of the translator.
   */
  dof_secidx strtab;
  /*
   Types of the input.
   */
  dof_stridx argv;
  /*
   Number of inputs.
   */
  uint32_t argc;
  /*
   Type of the output.
   */
  dof_stridx ty;
  /*
   Attribute word.
   */
  uint32_t attr;
};

/*
 A member of a translator (`dof_xlmember_t`).
 */
struct dof_xlmember {
  /*
   The `SecType::DifoHdr` that computes it.
   */
  dof_secidx difo;
  /*
   The member's name.
   */
  dof_stridx name;
  /*
   The member's type.
   */
  struct dtrace_diftype ty;
};

/*
 A reference to a translator's member (`dof_xlref_t`).
 */
struct dof_xlref {
  /*
   The translator.
   */
  dof_secidx xlator;
  /*
   The member's index.
   */
  uint32_t member;
  /*
   The argument's number.
   */
  uint32_t argn;
};

/*
 No section.
 */
#define DOF_SECIDX_NONE UINT32_MAX

/*
 No string.
 */
#define DOF_STRIDX_NONE UINT32_MAX

/*
 * process
 */

/*
 `Probe::kind`: fires when the function is called.
 */
#define DTRACE_PROCESS_ENTRY 0

/*
 `Probe::kind`: fires when the function returns, by whichever of its sites.
 */
#define DTRACE_PROCESS_RETURN 1

/*
 `Probe::kind`: fires before one instruction, which is named by its offset in a function.
 */
#define DTRACE_PROCESS_OFFSET 2

/*
 `Probe::kind`: fires before one instruction, which is named by its address in the program's file.
 */
#define DTRACE_PROCESS_ADDRESS 3

/*
 `Probe::kind`: fires where the program says so itself, by whichever of its sites; its provider is named by the program.
 */
#define DTRACE_PROCESS_USDT 4

/*
 `Probe::kind`: fires before one instruction, where a source line begins.
 */
#define DTRACE_PROCESS_LINE 5

/*
 Most probes of one `Probes`.
 */
#define DTRACE_PROCESS_PROBES_MAX 250000

/*
 Most instructions of one `Probes`.
 */
#define DTRACE_PROCESS_SITES_MAX 500000

/*
 Most arguments of one `Probes`.
 */
#define DTRACE_PROCESS_ARGS_MAX 1000000

/*
 Most arguments of one probe.
 */
#define DTRACE_PROCESS_PROBE_ARGS_MAX 32

/*
 Most bytes of text of one `Probes`.
 */
#define DTRACE_PROCESS_TEXT_MAX (32 << 20)

/*
 `Arg::base`, `Arg::index`: no register.
 */
#define DTRACE_PROCESS_NO_REGISTER 255

/*
 `Arg::base`: the first of 16 vector registers, of which the lowest bytes are meant. Not part of an address.
 */
#define DTRACE_PROCESS_VECTOR 32

/*
 Arguments of a function in a process have the words of the calling convention by their numbers. From this one on they are the lowest 8
 bytes of the 16 vector registers, in which numbers in floating point are passed (System V ABI, AMD64 §3.2.3).
 */
#define DTRACE_PROCESS_VECTOR_WORD (1 << 16)

/*
 `Arg::form`: a number.
 */
#define DTRACE_PROCESS_NUMBER 0

/*
 `Arg::form`: where a program asks whether its probe is enabled, the general register `base` itself becomes 1, which is
 that of a function's result.
 */
#define DTRACE_PROCESS_ANSWER 1

/*
 `Arg::form`: a number in floating point, of 4 or 8 bytes.
 */
#define DTRACE_PROCESS_FLOAT 2

/*
 Probes to be made in one process. Those that are there already stay as they are.
 */
struct dtrace_process_probes {
  /*
   The process, as the caller numbers it.
   */
  int32_t pid;
  /*
   How many probes.
   */
  uint32_t nprobes;
  /*
   How many instructions.
   */
  uint32_t nsites;
  /*
   Bytes of text.
   */
  uint32_t text_size;
  /*
   Address of the probes.
   */
  uint64_t probes;
  /*
   Address of the instructions' addresses in the process, `u64` each.
   */
  uint64_t sites;
  /*
   Address of the names, each of which ends with NUL.
   */
  uint64_t text;
  /*
   Out, where the call fails for one of the instructions: its index. Else `u32::MAX`.
   */
  uint32_t failed;
  /*
   How many arguments.
   */
  uint32_t nargs;
  /*
   Address of the arguments, `Arg`s, of all probes together.
   */
  uint64_t args;
};

/*
 One probe of `Probes`.
 */
struct dtrace_process_probe {
  /*
   `ENTRY`, `RETURN`, `OFFSET`, `ADDRESS`, `USDT`, `LINE`.
   */
  uint32_t kind;
  /*
   Where in the text its module's name begins.
   */
  uint32_t module;
  /*
   Its function's.
   */
  uint32_t func;
  /*
   Its own.
   */
  uint32_t name;
  /*
   Where its function begins in the process. Of `USDT`: the [registration](crate::ioctl::Registered) that it goes with; 0: none.
   */
  uint64_t start;
  /*
   Bytes of the function.
   */
  uint64_t size;
  /*
   The first of its instructions.
   */
  uint32_t first;
  /*
   How many there are; one but for `RETURN` and `USDT`.
   */
  uint32_t nsites;
  /*
   Of `USDT`: where in the text its provider's name begins, without the number of the process.
   */
  uint32_t provider;
  /*
   Of `USDT`: how many arguments it has.
   */
  uint32_t nargs;
  /*
   Of `USDT`: the first of its arguments: all of its first site, then all of the next.
   */
  uint32_t first_arg;
  /*
   Of `USDT`: at how many of its instructions, the last ones, the program only asks whether it is enabled. The first argument there is
   the address of a number of 4 bytes that becomes 1 while it is, or what becomes 1 itself (`ANSWER`).
   */
  uint32_t asks;
  /*
   Of `USDT`: where in the file the counter of two bytes is that says whether anybody has enabled the probe; 0: nowhere.
   */
  uint64_t semaphore;
};

/*
 How an argument of a probe is made at one site: `value + base + (index << shift)`, or what lies there.
 */
struct dtrace_process_arg {
  /*
   A constant, or a distance.
   */
  uint64_t value;
  /*
   A general register by the processor's number, one from `VECTOR` on, or `NO_REGISTER`.
   */
  uint8_t base;
  /*
   A general register, or `NO_REGISTER`.
   */
  uint8_t index;
  /*
   0 to 3.
   */
  uint8_t shift;
  /*
   Bytes: 1, 2, 4 or 8.
   */
  uint8_t size;
  /*
   Not 0: it is a number with a sign.
   */
  uint8_t is_signed;
  /*
   Not 0: it is what lies at that address.
   */
  uint8_t is_loaded;
  /*
   Not 0: it is bits 8 to 15 of the register.
   */
  uint8_t is_high;
  /*
   `NUMBER`, `ANSWER` or `FLOAT`.
   */
  uint8_t form;
};

/*
 * hold
 */

/*
 `Hold::kind`: the process executes the instruction at an address; that where the dynamic linker tells of changes, say.
 */
#define DTRACE_HOLD_INSTRUCTION 0

/*
 `Hold::kind`: the process has made another one with a memory of its own, which is held.
 */
#define DTRACE_HOLD_FORK 1

/*
 `Hold::kind`: some process has executed a program and is called by a name now. One that is traced by `ptrace()` is not held. A
 consumer has `NAMES_MAX` such names at most.
 */
#define DTRACE_HOLD_EXEC 2

/*
 `Hold::kind`: a process has mapped a file to execute it that the consumer does not [know](crate::ioctl::KNOWN). It waits for
 `Hold::wait`.
 */
#define DTRACE_HOLD_MAP 3

/*
 What a process is [held](Held::id) by that does not wait, and need not be let go.
 */
#define DTRACE_HOLD_TOLD UINT64_MAX

/*
 Longest time for which a process waits, ms.
 */
#define DTRACE_HOLD_WAIT_MS 1000

/*
 Most `Hold`s of a consumer.
 */
#define DTRACE_HOLD_HOLDS_MAX 16384

/*
 Most names of a consumer, for `EXEC`.
 */
#define DTRACE_HOLD_NAMES_MAX 64

/*
 Bytes of a process' name, with its NUL: a longer one is cut.
 */
#define DTRACE_HOLD_NAME_SIZE 16

/*
 An event at which a process is to wait.
 */
struct dtrace_hold {
  /*
   `INSTRUCTION`, `FORK`, `EXEC`.
   */
  uint32_t kind;
  /*
   The process, as the caller numbers it; 0 for `EXEC`, and for `MAP` where any process is meant.
   */
  int32_t pid;
  /*
   The address, for `INSTRUCTION`.
   */
  uint64_t address;
  /*
   The name, which ends with NUL, for `EXEC`.
   */
  uint8_t name[DTRACE_HOLD_NAME_SIZE];
  /*
   For `MAP`, the longest time for which processes wait, ms, up to `WAIT_MS`. 0: they do not wait, and are told of.
   */
  uint32_t wait;
  /*
   0.
   */
  uint32_t reserved;
};

/*
 A file, by a process that executes it.
 */
struct dtrace_known {
  /*
   An address in its text.
   */
  uint64_t address;
  /*
   The process, as the caller numbers it.
   */
  int32_t pid;
  /*
   0.
   */
  uint32_t reserved;
};

/*
 A process that waits.
 */
struct dtrace_held {
  /*
   What this wait is called by; `TOLD`: it does not wait; 0: none waits that the consumer has not been told of.
   */
  uint64_t id;
  /*
   Why: the `Hold::kind`.
   */
  uint32_t kind;
  /*
   The process, as the caller numbers it.
   */
  int32_t pid;
  /*
   For `FORK`, the process that has made it.
   */
  int32_t parent;
  /*
   How many went on before the consumer let them, so far, or could not be held.
   */
  uint32_t late;
};

/*
 * unwind
 */

/*
 Most bytes of a `Table`.
 */
#define DTRACE_UNWIND_TABLE_MAX (64 << 20)

/*
 The table of a file.
 */
struct dtrace_unwind_table {
  /*
   A descriptor of the file.
   */
  int32_t fd;
  /*
   How many bytes; 0: nothing is told of the file, which is not asked for again.
   */
  uint32_t size;
  /*
   Their address.
   */
  uint64_t bytes;
  /*
   When the file had been changed last before it was read (`st_ctim`), in nanoseconds.
   */
  uint64_t changed;
};

/*
 * remains
 */

/*
 `Remains::kind`: memory, or a file that the consumer cannot have.
 */
#define DTRACE_REMAINS_NONE 0

/*
 `Remains::kind`: a file.
 */
#define DTRACE_REMAINS_FILE 1

/*
 `Remains::kind`: the kernel's own code for processes.
 */
#define DTRACE_REMAINS_VDSO 2

/*
 A mapping of a process that has ended.
 */
struct dtrace_remains {
  /*
   Which was asked for before, 0 at first; the kernel puts this one's number here.
   */
  uint64_t after;
  /*
   The number of the process in records.
   */
  uint32_t pid;
  /*
   A descriptor of the file, which the kernel has opened for the caller, if it is of a `FILE`.
   */
  int32_t fd;
  /*
   Where it begins.
   */
  uint64_t start;
  /*
   Where it ends.
   */
  uint64_t end;
  /*
   Where in the file it begins, in bytes.
   */
  uint64_t offset;
  /*
   Of what it is.
   */
  uint32_t kind;
  /*
   1: it could be executed.
   */
  uint32_t is_code;
};

/*
 * interp
 */

/*
 Most walkers of a consumer.
 */
#define DTRACE_INTERP_WALKERS_MAX 16

/*
 Most frames of interpreted code in a stack.
 */
#define DTRACE_INTERP_WORDS_MAX 256

/*
 Most constants of a file.
 */
#define DTRACE_INTERP_CONSTANTS_MAX 64

/*
 Element of `walk[]`: how many frames of evaluators the stack had before this one.
 */
#define DTRACE_INTERP_WALK_NTH 0

/*
 Element of `walk[]`: where offset 0 of the evaluator's file is, or would be.
 */
#define DTRACE_INTERP_WALK_BASE 1

/*
 Element of `walk[]`: the evaluator's stack pointer.
 */
#define DTRACE_INTERP_WALK_SP 2

/*
 Element of `walk[]`: its frame pointer, 0 if it is not known.
 */
#define DTRACE_INTERP_WALK_FP 3

/*
 Element of `walk[]`: where it goes on.
 */
#define DTRACE_INTERP_WALK_PC 4

/*
 Element of `walk[]`: the thread's id, as the process sees it.
 */
#define DTRACE_INTERP_WALK_TID 5

/*
 Element of `walk[]`: the stack pointer of the next evaluator with the same walker, all ones if there is none. What lies below it in the stack
 is this one's, or of functions that this one has called.
 */
#define DTRACE_INTERP_WALK_NEXT 6

/*
 Element of `walk[]`: the thread pointer, from which the thread's own variables are addressed (System V ABI, AMD64 §3.4.6).
 */
#define DTRACE_INTERP_WALK_THREAD 7

/*
 Element of `walk[]`: what is wanted: 0 for frames, `ASKED_CALLER` or `ASKED_INTERRUPTED`.
 */
#define DTRACE_INTERP_WALK_ASKED 8

/*
 Element of `walk[]`: the first of the file's constants. One that is not there is 0.
 */
#define DTRACE_INTERP_WALK_CONSTANTS 16

/*
 What is wanted is the caller of a frame that has called, so that `WALK_PC` is behind the call.
 */
#define DTRACE_INTERP_ASKED_CALLER 1

/*
 What is wanted is the caller of a frame that was interrupted at `WALK_PC`.
 */
#define DTRACE_INTERP_ASKED_INTERRUPTED 2

/*
 No names.
 */
#define DTRACE_INTERP_NAMELESS 16777215

/*
 Greatest native frame that a word has; others are counted as this one.
 */
#define DTRACE_INTERP_NATIVE_MAX 1023

/*
 Greatest position, which others become.
 */
#define DTRACE_INTERP_POSITION_MAX 16777215


/*
 What the names of a frame begin with. The bytes of the function's, of the file's, of the table of lines and of what the function belongs to follow.
 */
struct dtrace_interp_namehead {
  /*
   The walker.
   */
  uint64_t walker;
  /*
   What the positions in the table of lines count from.
   */
  uint32_t first;
  /*
   Bytes of each.
   */
  uint16_t sizes[4];
  /*
   0.
   */
  uint16_t pad[2];
};

/*
 Asks for the names of frames.
 */
struct dtrace_interp_frame {
  /*
   Their number.
   */
  uint32_t name;
  /*
   How many bytes there is room for.
   */
  uint32_t size;
  /*
   Where: a `NameHead` and what follows.
   */
  uint64_t bytes;
};

/*
 * ioctl
 */

/*
 Version of all this, which a module tells (`Conf::interface`). It grows by one with every control call, field and number that is added,
 so that of a command and a module that are not of one build it can be said which is older. What there has been stays: an older
 command works with a newer module, and a newer one with an older module as far as that goes. But frames of interpreted code follow the addresses
 of a stack directly since 3: where one of the two is older than that, none of them are shown, or numbers in their place. 4 has
 `RETRACT` and `Status::unanswered`.
 */
#define DTRACE_INTERFACE 4

/*
 Type of the control calls of `/dev/dtrace`.
 */
#define DTRACE_IOC_TYPE 120

/*
 Type of the control calls of `/dev/dtracehelper`; Oracle's, so that what is built with its drti.o registers here.
 */
#define DTRACE_HELPER_IOC_TYPE 216

/*
 Size of the part of `Status` that all systems have in common: `dtrace_status_t`, bytes.
 */
#define DTRACE_STATUS_COMMON_SIZE 88

/*
 Size of `Status` up to its field `missed`, bytes.
 */
#define DTRACE_STATUS_FIRST_SIZE 128

/*
 Size of `Status` up to its field `unbuffered`, bytes.
 */
#define DTRACE_STATUS_SECOND_SIZE 136

/*
 Size of `Status` up to its field `unanswered`, bytes.
 */
#define DTRACE_STATUS_THIRD_SIZE 160

/*
 `ArgDesc::ndx`: the probe has no such argument.
 */
#define DTRACE_ARG_NONE -1

/*
 `ProviderPrivileges::flags`: needs rights over the kernel.
 */
#define DTRACE_PRIV_KERNEL 1

/*
 `ProviderPrivileges::flags`: needs rights over users.
 */
#define DTRACE_PRIV_USER 2

/*
 `ProviderPrivileges::flags`: needs rights over processes.
 */
#define DTRACE_PRIV_PROC 4

/*
 `ProviderPrivileges::flags`: only the owner's probes.
 */
#define DTRACE_PRIV_OWNER 8

/*
 Most bytes of an image that a process registers.
 */
#define DTRACE_REGISTERED_MAX (256 << 10)

/*
 Most registrations of a process, and most providers of all its images.
 */
#define DTRACE_REGISTRATIONS_MAX 32

/*
 Most bytes of the images that the processes of a user have registered.
 */
#define DTRACE_REGISTERED_USER_MAX (16 << 20)

/*
 Most bytes of the images that all processes have registered.
 */
#define DTRACE_REGISTERED_ALL_MAX (64 << 20)

/*
 What illumos' numbers of helper calls begin with; the number of the call follows: 1 for `HELPER_ADD`, 2, 3.
 */
#define DTRACE_HELPER_CLASSIC 1685350400

/*
 A probe's description, or globs for one (`dtrace_probedesc_t`). Strings end with NUL.
 */
struct dtrace_probedesc {
  /*
   The probe's id.
   */
  dtrace_probeid id;
  /*
   Its provider.
   */
  uint8_t provider[DTRACE_PROVNAMELEN];
  /*
   Its module.
   */
  uint8_t module[DTRACE_MODNAMELEN];
  /*
   Its function.
   */
  uint8_t func[DTRACE_FUNCNAMELEN];
  /*
   Its name.
   */
  uint8_t name[DTRACE_NAMELEN];
};

/*
 A pair of descriptions (`dtrace_repldesc_t`).
 */
struct dtrace_repldesc {
  /*
   Enablings of this description …
   */
  struct dtrace_probedesc matching;
  /*
   … are copied to this one.
   */
  struct dtrace_probedesc create;
};

/*
 An image to enable.
 */
struct dtrace_enable {
  /*
   Address of the DOF image.
   */
  uint64_t dof;
  /*
   Out: how many probes it matched.
   */
  uint32_t n_matched;
  /*
   Zero.
   */
  uint32_t pad;
};

/*
 Where the file of an anonymous enabling goes to.
 */
struct dtrace_anondesc {
  /*
   In: the room at `data`, bytes; out: the file's size. Nothing is copied where the room is less.
   */
  uint64_t size;
  /*
   Address of the room.
   */
  uint64_t data;
};

/*
 A record within an ECB's data (`dtrace_recdesc_t`).
 */
struct dtrace_recdesc {
  /*
   The `Action` that makes it.
   */
  uint32_t action;
  /*
   Its size, bytes.
   */
  uint32_t size;
  /*
   Its offset from the beginning of the ECB's data.
   */
  uint32_t offset;
  /*
   Its alignment, bytes.
   */
  uint16_t alignment;
  /*
   The number of its format, or 0.
   */
  uint16_t format;
  /*
   The action's argument.
   */
  uint64_t arg;
  /*
   The consumer's note on the action.
   */
  uint64_t uarg;
};

/*
 Head of an enabled probe's description; `RecDesc`s follow (`dtrace_eprobedesc_t`).
 */
struct dtrace_eprobedesc {
  /*
   The enabled probe.
   */
  dtrace_epid epid;
  /*
   Its probe.
   */
  dtrace_probeid probeid;
  /*
   The consumer's note on the ECB.
   */
  uint64_t uarg;
  /*
   Size of its data, with the `RecHdr`, bytes.
   */
  uint32_t size;
  /*
   In: room for records; out: how many there are.
   */
  int32_t nrecs;
};

/*
 Head of an aggregation's description; `RecDesc`s follow (`dtrace_aggdesc_t`).
 */
struct dtrace_aggdesc {
  /*
   The consumer's: address of the name.
   */
  uint64_t name;
  /*
   The consumer's: id of the variable.
   */
  int64_t varid;
  /*
   The consumer's.
   */
  int32_t flags;
  /*
   The aggregation.
   */
  dtrace_aggid id;
  /*
   The enabled probe that feeds it.
   */
  dtrace_epid epid;
  /*
   Size of its data, with the id in front, bytes.
   */
  uint32_t size;
  /*
   In: room for records; out: how many there are.
   */
  int32_t nrecs;
  /*
   Zero.
   */
  uint32_t pad;
};

/*
 A format (`dtrace_fmtdesc_t`).
 */
struct dtrace_fmtdesc {
  /*
   Address for the string.
   */
  uint64_t string;
  /*
   In: room there; out: length with the NUL.
   */
  int32_t length;
  /*
   The format's number.
   */
  uint16_t format;
  /*
   Zero.
   */
  uint16_t pad;
};

/*
 A snapshot of one CPU's buffer (`dtrace_bufdesc_t`).
 */
struct dtrace_bufdesc {
  /*
   In: room at `data`, which for a principal buffer is `crate::limits::buffer_room` of its size at least; out: size of
   the records there, bytes.
   */
  uint64_t size;
  /*
   The CPU.
   */
  uint32_t cpu;
  /*
   Out: faults since the last snapshot.
   */
  uint32_t errors;
  /*
   Out: records dropped since the last snapshot.
   */
  uint64_t drops;
  /*
   Address for the records.
   */
  uint64_t data;
  /*
   Out: offset of the oldest record.
   */
  uint64_t oldest;
  /*
   Out: time of the snapshot, ns.
   */
  uint64_t timestamp;
};

/*
 Head of each record in a principal buffer (`dtrace_rechdr_t`). An EPID of 0 alone is padding of four bytes.
 */
struct dtrace_rechdr {
  /*
   The enabled probe that made the record.
   */
  dtrace_epid epid;
  /*
   High half of its time, ns.
   */
  uint32_t timestamp_hi;
  /*
   Low half of its time, ns.
   */
  uint32_t timestamp_lo;
};

/*
 What happened to a consumer's tracing so far (`dtrace_status_t`).
 */
struct dtrace_status {
  /*
   Dynamic variables dropped: no space.
   */
  uint64_t dyndrops;
  /*
   Dynamic variables dropped: the space is being rinsed.
   */
  uint64_t dyndrops_rinsing;
  /*
   Dynamic variables dropped: the space is dirty.
   */
  uint64_t dyndrops_dirty;
  /*
   Speculative records dropped.
   */
  uint64_t specdrops;
  /*
   Speculations refused: buffers busy.
   */
  uint64_t specdrops_busy;
  /*
   Speculations refused: none free.
   */
  uint64_t specdrops_unavail;
  /*
   Faults.
   */
  uint64_t errors;
  /*
   Fill buffers that are full.
   */
  uint64_t filled;
  /*
   Overflows of the strings of stacks.
   */
  uint64_t stkstroverflows;
  /*
   Faults within the handling of a fault.
   */
  uint64_t dblerrors;
  /*
   The kernel has ended the tracing.
   */
  uint8_t killed;
  /*
   `exit()` was called.
   */
  uint8_t exiting;
  /*
   Zero.
   */
  uint8_t pad[6];
  /*
   Linux' own from here on: probes of this consumer that fired within probe context (what it calls is traced itself),
   and were lost.
   */
  uint64_t recursions;
  /*
   Probes of this consumer that an NMI fired on top of probe context, and were lost.
   */
  uint64_t nmis;
  /*
   Firings, of whichever consumer, in code that RCU does not watch.
   */
  uint64_t unwatched;
  /*
   Returns of functions, of whichever consumer, that could not be hooked when the function was called.
   */
  uint64_t returns;
  /*
   Probes that this consumer has described, which appeared later and could not be enabled.
   */
  uint64_t missed;
  /*
   Probes of this consumer that fired on CPUs which came while it traced, and were lost as there was no memory for their buffers;
   counted once for each clause, of whose predicate only what compares one built-in number is asked.
   */
  uint64_t unbuffered;
  /*
   How often a program, of whichever consumer, waited at a probe for memory of its own that a clause or an instruction misses, and got it
   or was disturbed by a signal.
   */
  uint64_t waits;
  /*
   How often one waited in vain: the memory cannot be had, or did not come in a second.
   */
  uint64_t waits_in_vain;
  /*
   Instructions, of whichever consumer's probes, that were left to the kernel's uprobes, which are slower, as their program has no room to
   execute them elsewhere.
   */
  uint64_t carried;
  /*
   How often it was not known in time whether this consumer may trace a process, which went unseen: each firing meanwhile counts, and
   each time that nobody answered.
   */
  uint64_t unanswered;
};

/*
 What the kernel's DIF machine is like (`dtrace_conf_t`).
 */
struct dtrace_conf {
  /*
   Version of DIF.
   */
  uint32_t difversion;
  /*
   Integer registers.
   */
  uint32_t difintregs;
  /*
   Tuple registers.
   */
  uint32_t diftupregs;
  /*
   Data model of the kernel, as in a DOF image.
   */
  uint32_t ctfmodel;
  /*
   Linux' own: the module's `INTERFACE`; 0 of a module from before there was one.
   */
  uint32_t interface;
  /*
   Zero.
   */
  uint32_t pad[7];
};

/*
 Type of a probe's argument (`dtrace_argdesc_t`).
 */
struct dtrace_argdesc {
  /*
   The probe.
   */
  dtrace_probeid id;
  /*
   In: which of `args[]`; out: the same, or `ARG_NONE`.
   */
  int32_t ndx;
  /*
   Which native argument it comes from.
   */
  int32_t mapping;
  /*
   Native type.
   */
  uint8_t native[DTRACE_ARGTYPELEN];
  /*
   Translated type; empty where it is the native one.
   */
  uint8_t xlate[DTRACE_ARGTYPELEN];
};

/*
 What a consumer needs to use a provider (`dtrace_ppriv_t`).
 */
struct dtrace_providerprivileges {
  /*
   `PRIV_*`.
   */
  uint32_t flags;
  /*
   The owner.
   */
  uint32_t uid;
  /*
   The owner's container.
   */
  uint32_t zoneid;
};

/*
 A provider (`dtrace_providerdesc_t`).
 */
struct dtrace_providerdesc {
  /*
   Its name, ending with NUL.
   */
  uint8_t name[DTRACE_PROVNAMELEN];
  /*
   Stability of its probes' names.
   */
  struct dtrace_providerattributes attr;
  /*
   Zero.
   */
  uint8_t pad;
  /*
   What it needs.
   */
  struct dtrace_providerprivileges privileges;
};

/*
 Why the last control call failed: a line of text that ends with NUL, empty where there is nothing to say.
 */
struct dtrace_reason {
  /*
   The text.
   */
  uint8_t text[DTRACE_REASONLEN];
};

/*
 A user-level object's DOF (`dof_helper_t`).
 */
struct dtrace_dofhelper {
  /*
   Name of the object.
   */
  uint8_t module[DTRACE_MODNAMELEN];
  /*
   Its load address.
   */
  uint64_t addr;
  /*
   Address of the DOF.
   */
  uint64_t dof;
};

/*
 DOF that a process has registered.
 */
struct dtrace_registered {
  /*
   The process, as the caller numbers it.
   */
  int32_t pid;
  /*
   What the registration is called by among those of its process, from 1; in: the one before.
   */
  uint32_t generation;
  /*
   What the image's addresses are relative to.
   */
  uint64_t addr;
  /*
   In: the room at `data`, bytes; out: the image's size.
   */
  uint64_t size;
  /*
   Address of the room.
   */
  uint64_t data;
  /*
   Name of the object, as the process says it; it ends with NUL.
   */
  uint8_t module[DTRACE_MODNAMELEN];
};

/* Fills in a `ProviderDesc` by its name. ESRCH: no such provider. */
#define DTRACEIOC_PROVIDER _IOWR(DTRACE_IOC_TYPE, 1, struct dtrace_providerdesc)

/* Replaces a `ProbeDesc` by that of the next probe whose id is greater. ESRCH: there is none. */
#define DTRACEIOC_PROBES _IOWR(DTRACE_IOC_TYPE, 2, struct dtrace_probedesc)

/* Switches a CPU's principal buffer and copies the full one into a `BufDesc`. ENOENT: no buffer there. */
#define DTRACEIOC_BUFSNAP _IOWR(DTRACE_IOC_TYPE, 4, struct dtrace_bufdesc)

/* As `PROBES`, of the probes that the description's globs match. */
#define DTRACEIOC_PROBEMATCH _IOWR(DTRACE_IOC_TYPE, 5, struct dtrace_probedesc)

/* Enables the DOF image of an `Enable`. EBUSY: the state is active already; EINVAL: a bad image. */
#define DTRACEIOC_ENABLE _IOWR(DTRACE_IOC_TYPE, 6, struct dtrace_enable)

/* As `BUFSNAP`, of the aggregation buffer. */
#define DTRACEIOC_AGGSNAP _IOWR(DTRACE_IOC_TYPE, 7, struct dtrace_bufdesc)

/* Fills in an `EprobeDesc` by its EPID, and as many records as it has room for. EINVAL: no such EPID. */
#define DTRACEIOC_EPROBE _IOWR(DTRACE_IOC_TYPE, 8, struct dtrace_eprobedesc)

/* Fills in an `ArgDesc` by probe and index. */
#define DTRACEIOC_PROBEARG _IOWR(DTRACE_IOC_TYPE, 9, struct dtrace_argdesc)

/* Fills in a `Conf`. */
#define DTRACEIOC_CONF _IOR(DTRACE_IOC_TYPE, 10, struct dtrace_conf)

/* Fills in a `Status`. ENOENT: not started yet. The number carries the structure's size, and so its version: fields are only ever added at its end, and a kernel answers each size that there has been. */
#define DTRACEIOC_STATUS _IOR(DTRACE_IOC_TYPE, 11, struct dtrace_status)

/* Starts the tracing; gives the CPU that fired `BEGIN`. */
#define DTRACEIOC_GO _IOR(DTRACE_IOC_TYPE, 12, uint32_t)

/* Ends the tracing; gives the CPU that fired `END`. */
#define DTRACEIOC_STOP _IOWR(DTRACE_IOC_TYPE, 13, uint32_t)

/* Fills in an `AggDesc` by its id, and as many records as it has room for. EINVAL: no such aggregation. */
#define DTRACEIOC_AGGDESC _IOWR(DTRACE_IOC_TYPE, 15, struct dtrace_aggdesc)

/* Gives a `FmtDesc`'s length, or, when it is given back with room enough, its string. */
#define DTRACEIOC_FORMAT _IOWR(DTRACE_IOC_TYPE, 16, struct dtrace_fmtdesc)

/* Copies the options as a DOF image to the address of a `crate::dof::Hdr` whose `loadsz` is the room there. */
#define DTRACEIOC_DOFGET _IOWR(DTRACE_IOC_TYPE, 17, struct dof_hdr)

/* Copies the enablings of a `ReplDesc`'s first description to its second. */
#define DTRACEIOC_REPLICATE _IOW(DTRACE_IOC_TYPE, 18, struct dtrace_repldesc)

/* Linux' own: why the last control call on this file failed, as a `Reason`. */
#define DTRACEIOC_REASON _IOR(DTRACE_IOC_TYPE, 64, struct dtrace_reason)

/* Linux' own: copies the file that the claimed anonymous state was made of to the address of an `AnonDesc`. ENOENT: none has been claimed. */
#define DTRACEIOC_ANONGET _IOWR(DTRACE_IOC_TYPE, 65, struct dtrace_anondesc)

/* Linux' own: makes the `Probes` of a process. ESRCH: there is no such process; EACCES: it, or an instruction of it, may not be traced; EINVAL: an instruction cannot be probed. */
#define DTRACEIOC_MAKEPROBES _IOWR(DTRACE_IOC_TYPE, 66, struct dtrace_process_probes)

/* Linux' own: from now on processes wait at a `Hold`'s event. ESRCH: there is no such process; EINVAL: the instruction cannot be stopped at; EACCES: the process may not be traced. */
#define DTRACEIOC_HOLD _IOW(DTRACE_IOC_TYPE, 70, struct dtrace_hold)

/* Linux' own: fills in a `Held`: a process that waits and has not been told of. */
#define DTRACEIOC_HELD _IOR(DTRACE_IOC_TYPE, 71, struct dtrace_held)

/* Linux' own: lets go who waits, by its `Held::id`, a `u64`. ENOENT: it went by itself. */
#define DTRACEIOC_RESUME _IOW(DTRACE_IOC_TYPE, 72, uint64_t)

/* Linux' own: removes the probes of a process, an `i32`, whose instructions it does not have any more where they were. ESRCH: there is no such process. */
#define DTRACEIOC_REVIEW _IOW(DTRACE_IOC_TYPE, 73, int32_t)

/* Linux' own: the file that a process, a `Known`, executes there has nothing for the caller: nobody waits for it again. ESRCH: there is no such process; EFAULT, EACCES: no text of a file is there. */
#define DTRACEIOC_KNOWN _IOW(DTRACE_IOC_TYPE, 75, struct dtrace_known)

/* Linux' own: takes back all that `REPLICATE` has copied to this very `ProbeDesc`. Later probes are not enabled by it any more. Those that are enabled stay so, and are enabled twice if it is copied again. ENOENT: nothing was copied to it. */
#define DTRACEIOC_RETRACT _IOW(DTRACE_IOC_TYPE, 76, struct dtrace_probedesc)

/* Linux' own: replaces the number that a process has for the caller, an `i32`, by the one that it has in records, which is that of the first pid namespace. ESRCH: there is no such process. */
#define DTRACEIOC_NUMBER _IOWR(DTRACE_IOC_TYPE, 74, int32_t)

/* Linux' own: fills in a `Registered`: what a process has registered next, by the helper device, after `Registered::generation`. ESRCH: there is no such process; ENOENT: there is nothing more; E2BIG: there is no room for the image. */
#define DTRACEIOC_REGISTERED _IOWR(DTRACE_IOC_TYPE, 80, struct dtrace_registered)

/* Linux' own: returns a descriptor of a file that a user stack leads into and that has no `Table`. ENOENT: there is none; EACCES: the caller may not make tables, which serve all. From the first call on such files are noted. */
#define DTRACEIOC_WANTED _IO(DTRACE_IOC_TYPE, 81)

/* Linux' own: gives a file its `Table`. EINVAL: it is damaged, or the file is none; EBADF: nothing is open there; EEXIST: the file has one; ESTALE: it has changed since; E2BIG, ENOSPC: it is larger than tables may be; EACCES: as above. */
#define DTRACEIOC_TABLE _IOW(DTRACE_IOC_TYPE, 82, struct dtrace_unwind_table)

/* Linux' own: fills in the names of a `Frame` of interpreted code; returns how many bytes they are. ENOENT: there are no such; EAGAIN: they are being written; E2BIG: there is no room for them. */
#define DTRACEIOC_FRAME _IOW(DTRACE_IOC_TYPE, 84, struct dtrace_interp_frame)

/* Helper call: registers the DOF at this address, whose addresses are the process' own. The result is a number to remove it by, from 1. EINVAL: it is no DOF of a program; E2BIG: it is too large; ENOSPC: the process, or its user, has registered too much; EFAULT: it is not there. */
#define DTRACEHIOC_ADD _IOW(DTRACE_HELPER_IOC_TYPE, 1, struct dof_hdr)

/* Helper call: removes what has this number. ENOENT: nothing has. */
#define DTRACEHIOC_REMOVE _IOW(DTRACE_HELPER_IOC_TYPE, 2, uint32_t)

/* Helper call: as `HELPER_ADD`, for a `DofHelper`. */
#define DTRACEHIOC_ADDDOF _IOW(DTRACE_HELPER_IOC_TYPE, 3, struct dtrace_dofhelper)

/* Helper call: the file that the process has mapped at this address has probes. The result is as that of `HELPER_ADD`. EFAULT: nothing is there; EACCES: it is no text of a file. */
#define DTRACEHIOC_LOOK _IOW(DTRACE_HELPER_IOC_TYPE, 4, uint64_t)

#endif /* _LINUX_DTRACE_H */
