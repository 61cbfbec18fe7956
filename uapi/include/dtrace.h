/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
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
 Size of a provider's name including its NUL, bytes.
 */
#define DTRACE_PROVNAMELEN 64

/*
 Size of a module's name including its NUL, bytes.
 */
#define DTRACE_MODNAMELEN 64

/*
 Size of a function's name including its NUL, bytes.
 */
#define DTRACE_FUNCNAMELEN 192

/*
 Size of a probe's name including its NUL, bytes.
 */
#define DTRACE_NAMELEN 64

/*
 Size of `provider:module:function:name` including its NUL, bytes.
 */
#define DTRACE_FULLNAMELEN ((((DTRACE_PROVNAMELEN + DTRACE_MODNAMELEN) + DTRACE_FUNCNAMELEN) + DTRACE_NAMELEN) + 4)

/*
 Size of the name of an argument's type including its NUL, bytes.
 */
#define DTRACE_ARGTYPELEN 128

/*
 Size of the reason of the last failed ioctl including its NUL, bytes.
 */
#define DTRACE_REASONLEN 256

/*
 Default of `strsize`, bytes.
 */
#define DTRACE_STRSIZE_DEFAULT 256

/*
 Default of `dynvarsize`, bytes.
 */
#define DTRACE_DYNVARSIZE_DEFAULT (1 << 20)

/*
 Default of `bufsize` and `aggsize` in dtrace(8), bytes.
 */
#define DTRACE_BUFSIZE_DEFAULT (4 << 20)

/*
 Maximum room that a principal buffer has in addition to its `bufsize` for the times of its
 records, bytes.
 */
#define DTRACE_BUFFER_TIMES_MAX (8 << 10)

/*
 Default of `nspec`.
 */
#define DTRACE_NSPEC_DEFAULT 1

/*
 Default of `specsize`, bytes.
 */
#define DTRACE_SPECSIZE_DEFAULT (32 << 10)

/*
 Maximum number of frames of a stack.
 */
#define DTRACE_FRAMES_MAX 1024

/*
 Default of `stackframes`.
 */
#define DTRACE_STACKFRAMES_DEFAULT 20

/*
 Default of `ustackframes`.
 */
#define DTRACE_USTACKFRAMES_DEFAULT 100

/*
 Default of `jstackframes`.
 */
#define DTRACE_JSTACKFRAMES_DEFAULT 50

/*
 Default of `jstackstrsize`, bytes.
 */
#define DTRACE_JSTACKSTRSIZE_DEFAULT 512

/*
 Default of `stackindent`.
 */
#define DTRACE_STACKINDENT_DEFAULT 14

/*
 Default of `cleanrate`, ns.
 */
#define DTRACE_CLEANRATE_DEFAULT 9900990

/*
 Minimum of `cleanrate`, ns.
 */
#define DTRACE_CLEANRATE_MIN 200000

/*
 Maximum of `cleanrate`, ns.
 */
#define DTRACE_CLEANRATE_MAX 60000000000

/*
 Default of `aggrate` and `statusrate`, ns.
 */
#define DTRACE_RATE_DEFAULT 1000000000

/*
 Default of `switchrate`, ns. While buffers fill, dtrace(8) reads records more often.
 */
#define DTRACE_SWITCHRATE_DEFAULT 40000000

/*
 Maximum of `statusrate`, ns.
 */
#define DTRACE_STATUSRATE_MAX 10000000000

/*
 Maximum size of a DIFO's instructions, bytes.
 */
#define DIFO_MAX (256 << 10)

/*
 Maximum size of a DOF image, bytes.
 */
#define DOF_MAX (8 << 20)

/*
 Maximum size of the file of an anonymous enabling, bytes.
 */
#define DTRACE_ANON_MAX (16 << 20)

/*
 Maximum size of a by-reference global or clause-local variable, bytes.
 */
#define DTRACE_STATVAR_MAX (16 << 10)

/*
 Maximum number of actions of one enabling.
 */
#define DTRACE_ACTIONS_MAX 16384

/*
 Maximum number of retained enablings.
 */
#define DTRACE_RETAIN_MAX 1024

/*
 Maximum time that `chill()` may spend on one CPU in `CHILL_INTERVAL`, ns.
 */
#define DTRACE_CHILL_MAX 500000000

/*
 The interval to which `CHILL_MAX` applies, ns.
 */
#define DTRACE_CHILL_INTERVAL 1000000000

/*
 Time after which a consumer is killed that keeps a CPU or the machine from running processes,
 ns.
 */
#define DTRACE_DEADMAN_TIMEOUT 10000000000

/*
 Time without an ioctl after which a consumer counts as abandoned, ns. It is then killed after
 `DEADMAN_TIMEOUT`.
 */
#define DTRACE_DEADMAN_USER 30000000000

/*
 Interval of the deadman's checks, ns.
 */
#define DTRACE_DEADMAN_INTERVAL 1000000000

/*
 * types
 */

/*
 Value of `DifType::kind`: a type that only the consumer interprets. The name is that of the
 Compact C Type Format.
 */
#define DIF_TYPE_CTF 0

/*
 Value of `DifType::kind`: a D string.
 */
#define DIF_TYPE_STRING 1

/*
 Bit of `DifType::flags`: the value is the kernel address of the data.
 */
#define DIF_TF_BYREF 1

/*
 Bit of `DifType::flags`: the value is the user address of the data.
 */
#define DIF_TF_BYUREF 2

/*
 Value of `DifVar::kind`: an array.
 */
#define DIFV_KIND_ARRAY 0

/*
 Value of `DifVar::kind`: a scalar.
 */
#define DIFV_KIND_SCALAR 1

/*
 Value of `DifVar::scope`: a global variable.
 */
#define DIFV_SCOPE_GLOBAL 0

/*
 Value of `DifVar::scope`: a thread-local variable (`self->`).
 */
#define DIFV_SCOPE_THREAD 1

/*
 Value of `DifVar::scope`: a clause-local variable (`this->`).
 */
#define DIFV_SCOPE_LOCAL 2

/*
 Bit of `DifVar::flags`: the DIFO reads the variable.
 */
#define DIFV_F_REF 1

/*
 Bit of `DifVar::flags`: the DIFO writes the variable.
 */
#define DIFV_F_MOD 2

/*
 Follows the last address of a user stack whose next caller could not be found, if there is room.
 It is not an address of a program.
 */
#define DTRACE_STACK_LOST 2305843009213693952

/*
 Bit that marks an address of a user stack which was found by a frame pointer or by inspecting
 code, if the consumer requests such marks (`USTACKMODE_TOLD`).
 No address of a program has this bit.
 */
#define DTRACE_STACK_GUESSED 4611686018427387904

/*
 Bits that mark the address at which a user stack was interrupted if no program can be there: 0,
 or an address of more than 56 bits (Linux: `Documentation/arch/x86/x86_64/mm.rst`). The program
 may have jumped there, or may have forged the frame.
 */
#define DTRACE_STACK_NOWHERE 13835058055282163712ull

/*
 The machines on which a name or its data exists (`dtrace_class_t`).
 */
enum dtrace_class {
  /*
   Unknown.
   */
  DTRACE_CLASS_UNKNOWN = 0,
  /*
   Only this model of CPU.
   */
  DTRACE_CLASS_CPU = 1,
  /*
   Only this platform.
   */
  DTRACE_CLASS_PLATFORM = 2,
  /*
   Only this group of platforms.
   */
  DTRACE_CLASS_GROUP = 3,
  /*
   Only this instruction set.
   */
  DTRACE_CLASS_ISA = 4,
  /*
   All machines.
   */
  DTRACE_CLASS_COMMON = 5,
};
typedef uint8_t dtrace_class;

/*
 Stability of a name or its data (`dtrace_stability_t`).
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
   Will be removed.
   */
  DTRACE_STABILITY_OBSOLETE = 2,
  /*
   Controlled by another party.
   */
  DTRACE_STABILITY_EXTERNAL = 3,
  /*
   New or rapidly changing.
   */
  DTRACE_STABILITY_UNSTABLE = 4,
  /*
   Less likely to change than `Unstable`.
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
 ID of a probe; 0 means none.
 */
typedef uint32_t dtrace_probeid;

/*
 ID of an enabled probe: one ECB of one consumer. 0 means padding in a buffer.
 */
typedef uint32_t dtrace_epid;

/*
 ID of an aggregating action of one consumer; 0 means none.
 */
typedef uint32_t dtrace_aggid;

/*
 The type of a DIFO's result or of a variable (`dtrace_diftype_t`).
 */
struct dtrace_diftype {
  /*
   `DIF_TYPE_CTF` or `DIF_TYPE_STRING`.
   */
  uint8_t kind;
  /*
   The consumer's number of the kind of type. Only the consumer interprets it.
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
   The variable's ID: see `crate::var`.
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
 Header of a stack that is a value in D (`dt_stack_t`). Room for as many addresses follows as the
 type says, 8 bytes each, innermost first. The rest of that room is zero, except for a
 `STACK_LOST` directly behind the last address. Behind it may be room for frames of interpreted
 code, each a `Word`; the rest of that is zero as well.
 */
struct dtrace_stackhead {
  /*
   Number of valid addresses.
   */
  uint32_t depth;
  /*
   1 for the stack of a process, 0 for a kernel stack.
   */
  uint32_t is_user;
  /*
   ID of the process whose stack it is, 0 for a kernel stack.
   */
  uint32_t pid;
  /*
   The string size that the program passed to `ustack()`, bytes. No strings are stored.
   */
  uint32_t strsz;
};

/*
 Stability of a name and of its data, and the dependency class (`dtrace_attribute_t`), as raw
 numbers.
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
 The attributes of a provider, for each part of its probes' names (`dtrace_pattr_t`).
 */
struct dtrace_providerattributes {
  /*
   The provider's name.
   */
  struct dtrace_attribute provider;
  /*
   The modules' names.
   */
  struct dtrace_attribute module;
  /*
   The functions' names.
   */
  struct dtrace_attribute func;
  /*
   The probes' names.
   */
  struct dtrace_attribute name;
  /*
   The probes' arguments.
   */
  struct dtrace_attribute args;
};

/*
 * dif
 */

/*
 The version of DIF that is described here.
 */
#define DIF_VERSION 2

/*
 Number of integer registers, `%r0` to `%r7`.
 */
#define DIF_NREGS 8

/*
 Number of entries of the tuple stack.
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
   `ret` rd only (r1=r2=0); the last instruction must be a `ret`.
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
   `call` V: subr16 (a `Subr`), rd!=0.
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
   `xlate` X: xlref16, rd; user-level only, must be eliminated before kernel (rejected by
   verifier).
   */
  DIF_OP_XLATE = 78,
  /*
   `xlarg` X: xlref16, rd; user-level only, must be eliminated before kernel (rejected by
   verifier).
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
   `feq` R3: r1,r2,rd (rd!=0): 1 if the numbers are equal, otherwise 0; NaN is not equal to
   anything.
   */
  DIF_OP_FEQ = 204,
  /*
   `flt` R3: r1,r2,rd (rd!=0): 1 if the first number is less, otherwise 0.
   */
  DIF_OP_FLT = 205,
  /*
   `fle` R3: r1,r2,rd (rd!=0): 1 if the first number is less or equal, otherwise 0.
   */
  DIF_OP_FLE = 206,
  /*
   `fxtod` R2: r1,-,rd (r2=0, rd!=0): converts a signed integer to a binary64.
   */
  DIF_OP_FXTOD = 207,
  /*
   `futod` R2: r1,-,rd (r2=0, rd!=0): converts an unsigned integer to a binary64.
   */
  DIF_OP_FUTOD = 208,
  /*
   `fdtox` R2: r1,-,rd (r2=0, rd!=0): converts a binary64 to a signed integer, truncating; out
   of range gives the nearest integer, NaN gives 0.
   */
  DIF_OP_FDTOX = 209,
  /*
   `fdtou` R2: r1,-,rd (r2=0, rd!=0): the same, to an unsigned integer.
   */
  DIF_OP_FDTOU = 210,
  /*
   `fstod` R2: r1,-,rd (r2=0, rd!=0): converts a binary32 to a binary64.
   */
  DIF_OP_FSTOD = 211,
  /*
   `fdtos` R2: r1,-,rd (r2=0, rd!=0): converts a binary64 to a binary32.
   */
  DIF_OP_FDTOS = 212,
  /*
   `fxtos` R2: r1,-,rd (r2=0, rd!=0): converts a signed integer to a binary32.
   */
  DIF_OP_FXTOS = 213,
  /*
   `futos` R2: r1,-,rd (r2=0, rd!=0): converts an unsigned integer to a binary32.
   */
  DIF_OP_FUTOS = 214,
  /*
   `loop` B: 24-bit label, backward only (or to itself). Each round draws on the firing's
   budget. The tuple stack must be empty here and at the label.
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
 Greatest ID of an array.
 */
#define DIF_ARRAY_MAX 255

/*
 First ID of a program's own arrays.
 */
#define DIF_ARRAY_UBASE 128

/*
 First ID of scalars and associative arrays.
 */
#define DIF_OTHER_MIN 256

/*
 First ID of a program's own scalars and associative arrays.
 */
#define DIF_OTHER_UBASE 1280

/*
 Greatest ID.
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
   The kernel registers at the interruption.
   */
  DIF_VAR_REGS = 1,
  /*
   The current thread's user registers.
   */
  DIF_VAR_UREGS = 2,
  /*
   The properties of the frame that a walker runs for: see `interp`.
   */
  DIF_VAR_WALK = 64,
  /*
   Address of the current thread's `task_struct`.
   */
  DIF_VAR_CURTHREAD = 256,
  /*
   Nanoseconds of a monotonic clock.
   */
  DIF_VAR_TIMESTAMP = 257,
  /*
   Nanoseconds that the current thread has run on a CPU, without the time spent in DTrace.
   */
  DIF_VAR_VTIMESTAMP = 258,
  /*
   Interrupt level: 0 in a thread, otherwise not 0.
   */
  DIF_VAR_IPL = 259,
  /*
   ID of the enabled probe.
   */
  DIF_VAR_EPID = 260,
  /*
   ID of the probe.
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
   Number of frames of the kernel stack.
   */
  DIF_VAR_STACKDEPTH = 272,
  /*
   Return address in the caller of the probe's function.
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
   Process ID of the current thread.
   */
  DIF_VAR_PID = 278,
  /*
   Thread ID of the current thread.
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
   Number of frames of the user stack.
   */
  DIF_VAR_USTACKDEPTH = 283,
  /*
   Return address in the caller of the current user function.
   */
  DIF_VAR_UCALLER = 284,
  /*
   Process ID of the parent.
   */
  DIF_VAR_PPID = 285,
  /*
   Real user ID.
   */
  DIF_VAR_UID = 286,
  /*
   Real group ID.
   */
  DIF_VAR_GID = 287,
  /*
   Error number of the current thread's last system call.
   */
  DIF_VAR_ERRNO = 288,
  /*
   Number of the current CPU.
   */
  DIF_VAR_CPU = 512,
  /*
   Command-line arguments of the current process.
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
   `stack as a value`: `dt_stack_t(uint32_t, [uint32_t])`: the kernel stack with at most that
   many frames. The result, a `StackHead` and the frames, is in
   scratch memory. It ends with as many further words, all zero, as the second argument says.
   */
  DIF_SUBR_STACK = 205,
  /*
   `user stack as a value`: `dt_stack_t(uint32_t, uint32_t, [uint32_t])`: the same for the user
   stack; the second argument is `strsz`. The further words, up to
   `WORDS_MAX`, are frames of interpreted code, then zeros.
   */
  DIF_SUBR_USTACK = 206,
  /*
   `taskargs`: `string(struct task_struct *)`.
   */
  DIF_SUBR_TASKARGS = 207,
  /*
   `__frame`: `void(uintptr_t, size_t, uintptr_t, size_t, uint32_t, uintptr_t, size_t,
   uint32_t)`: adds a frame, in a walker. The arguments are address and maximum size of the
   function's name, the same for the file's name, the line or the position in the line table,
   address and size of the line table, and the first line of the table.
   */
  DIF_SUBR_FRAME = 208,
  /*
   `__caller`: `void(uint64_t, uint64_t, uint64_t)`: returns the caller of a frame, in a walker
   that runs for this purpose. The arguments are the caller's program counter, its stack
   pointer, and its frame pointer, 0 if that is not known.
   */
  DIF_SUBR_CALLER = 209,
  /*
   `__scope`: `void(uintptr_t, size_t)`: sets address and maximum size of the name of the scope
   to which the function of the next added frame belongs, in a walker.
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
 Number of buckets of `quantize()`.
 */
#define DTRACE_QUANTIZE_NBUCKETS 127

/*
 Index of the bucket of zero.
 */
#define DTRACE_QUANTIZE_ZEROBUCKET 63

/*
 An action of a clause.
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
   End tracing with an exit status.
   */
  DTRACE_ACTION_EXIT = 2,
  /*
   Print by a format; one record for each argument.
   */
  DTRACE_ACTION_PRINTF = 3,
  /*
   Print an aggregation.
   */
  DTRACE_ACTION_PRINTA = 4,
  /*
   An action that the consumer performs: see `Libact`.
   */
  DTRACE_ACTION_LIBACT = 5,
  /*
   Record a block of memory.
   */
  DTRACE_ACTION_TRACEMEM = 6,
  /*
   Record a block of memory of computed size.
   */
  DTRACE_ACTION_TRACEMEM_DYNSIZE = 7,
  /*
   Record a user stack.
   */
  DTRACE_ACTION_USTACK = 257,
  /*
   Record a user stack with separate room for frames of interpreted code.
   */
  DTRACE_ACTION_JSTACK = 258,
  /*
   Record a user address, to be printed as a symbol.
   */
  DTRACE_ACTION_USYM = 259,
  /*
   Record a user address, to be printed as a module.
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
   Send a signal to the current process.
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
   Record a kernel address, to be printed as a symbol.
   */
  DTRACE_ACTION_SYM = 1026,
  /*
   Record a kernel address, to be printed as a module.
   */
  DTRACE_ACTION_MOD = 1027,
  /*
   Enter the kernel debugger.
   */
  DTRACE_ACTION_BREAKPOINT = 1281,
  /*
   Panic.
   */
  DTRACE_ACTION_PANIC = 1282,
  /*
   Spin for a given time.
   */
  DTRACE_ACTION_CHILL = 1283,
  /*
   Record into a speculation from this action on.
   */
  DTRACE_ACTION_SPECULATE = 1537,
  /*
   Commit the records of a speculation.
   */
  DTRACE_ACTION_COMMIT = 1538,
  /*
   Discard a speculation.
   */
  DTRACE_ACTION_DISCARD = 1539,
  /*
   Aggregate: number of firings.
   */
  DTRACE_ACTION_COUNT = 1793,
  /*
   Aggregate: minimum.
   */
  DTRACE_ACTION_MIN = 1794,
  /*
   Aggregate: maximum.
   */
  DTRACE_ACTION_MAX = 1795,
  /*
   Aggregate: arithmetic mean.
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
   Aggregate: distribution over linear steps within orders of magnitude.
   */
  DTRACE_ACTION_LLQUANTIZE = 1801,
  /*
   Aggregate: minimum of floating-point numbers. In this and the following actions the value
   and the aggregated data are binary64. The minimum and the maximum are NaN until the first
   value arrives.
   */
  DTRACE_ACTION_FLOAT_MIN = 1992,
  /*
   Aggregate: maximum of floating-point numbers.
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
   Aggregate: count and mean of floating-point numbers, and the sum of the squares of their
   distances from the mean.
   */
  DTRACE_ACTION_FLOAT_STDDEV = 1996,
};
typedef uint32_t dtrace_action;

/*
 What the consumer must do for an `Action::Libact`: the action's `arg`.
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
 Why a clause failed in probe context.
 */
enum dtrace_fault {
  /*
   Unknown.
   */
  DTRACE_FAULT_UNKNOWN = 0,
  /*
   An address that cannot be accessed.
   */
  DTRACE_FAULT_BAD_ADDR = 1,
  /*
   An address without the alignment that its access needs.
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
   Scratch memory is exhausted.
   */
  DTRACE_FAULT_NO_SCRATCH = 5,
  /*
   The consumer has no right to read kernel memory or state.
   */
  DTRACE_FAULT_KPRIV = 6,
  /*
   The consumer has no right to read the memory or state of this process.
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
   Specific to Linux: one firing would run too long with interrupts off.
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
 Value of an option that is not set.
 */
#define DTRACEOPT_UNSET (uint64_t)-2ll

/*
 Number of options that all systems share.
 */
#define DTRACEOPT_MAX 32

/*
 The first number that is specific to Linux.
 */
#define DTRACEOPT_LINUX_MIN 200

/*
 Number of all options.
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
 Value of `Opt::Bufpolicy`: two buffers, which each snapshot switches.
 */
#define DTRACEOPT_BUFPOLICY_SWITCH 2

/*
 Value of `Opt::Bufresize`: halve the size until the allocation succeeds.
 */
#define DTRACEOPT_BUFRESIZE_AUTO 0

/*
 Value of `Opt::Bufresize`: fail if there is not enough memory.
 */
#define DTRACEOPT_BUFRESIZE_MANUAL 1

/*
 Value of `Opt::Ustackmode`: walk by unwind tables, and by frame pointers where a file has no
 table.
 */
#define DTRACEOPT_USTACKMODE_AUTO 0

/*
 Value of `Opt::Ustackmode`: walk by frame pointers only.
 */
#define DTRACEOPT_USTACKMODE_FP 1

/*
 Value of `Opt::Ustackmode`: walk by unwind tables only; a stack ends where a file has no
 table.
 */
#define DTRACEOPT_USTACKMODE_TABLE 2

/*
 Value of `Opt::Ustackmode`: as `USTACKMODE_AUTO`, but addresses that were not found by a
 table are marked with `STACK_GUESSED` in records and keys.
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
   What happens when a principal buffer is full: `BUFPOLICY_*`.
   */
  DTRACEOPT_OPT_BUFPOLICY = 1,
  /*
   Size of the space for dynamic variables, bytes.
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
   Size of a string including its NUL, bytes.
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
   What happens if there is not enough memory for buffers: `BUFRESIZE_*`.
   */
  DTRACEOPT_OPT_BUFRESIZE = 9,
  /*
   Claim the anonymous enabling.
   */
  DTRACEOPT_OPT_GRABANON = 10,
  /*
   Indent output by function entry and return.
   */
  DTRACEOPT_OPT_FLOWINDENT = 11,
  /*
   Print only what the program prints explicitly.
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
   Time between two reads of the aggregations, ns.
   */
  DTRACEOPT_OPT_AGGRATE = 15,
  /*
   Time between two reads of the principal buffers, ns.
   */
  DTRACEOPT_OPT_SWITCHRATE = 16,
  /*
   Time between two reads of the status, ns.
   */
  DTRACEOPT_OPT_STATUSRATE = 17,
  /*
   Permit destructive actions.
   */
  DTRACEOPT_OPT_DESTRUCTIVE = 18,
  /*
   Spaces before a frame of a printed stack.
   */
  DTRACEOPT_OPT_STACKINDENT = 19,
  /*
   Always print bytes in hexadecimal.
   */
  DTRACEOPT_OPT_RAWBYTES = 20,
  /*
   Frames of `jstack()`.
   */
  DTRACEOPT_OPT_JSTACKFRAMES = 21,
  /*
   Bytes for frames of interpreted code in a `jstack()`.
   */
  DTRACEOPT_OPT_JSTACKSTRSIZE = 22,
  /*
   Sort aggregations by key.
   */
  DTRACEOPT_OPT_AGGSORTKEY = 23,
  /*
   Reverse the sort order.
   */
  DTRACEOPT_OPT_AGGSORTREV = 24,
  /*
   Index of the aggregation to sort by, if several are printed together.
   */
  DTRACEOPT_OPT_AGGSORTPOS = 25,
  /*
   Index of the key to sort by.
   */
  DTRACEOPT_OPT_AGGSORTKEYPOS = 26,
  /*
   Print the records of all CPUs in the order of time.
   */
  DTRACEOPT_OPT_TEMPORAL = 27,
  /*
   Print aggregations as histograms.
   */
  DTRACEOPT_OPT_AGGHIST = 28,
  /*
   Print quantizations in packed form.
   */
  DTRACEOPT_OPT_AGGPACK = 29,
  /*
   Scale the largest bar to the full width.
   */
  DTRACEOPT_OPT_AGGZOOM = 30,
  /*
   Trace one zone only. An option of illumos, refused here.
   */
  DTRACEOPT_OPT_ZONE = 31,
  /*
   Memory that `alloca()`, `copyin()` and `copyinstr()` of a clause may take together, bytes.
   */
  DTRACEOPT_OPT_SCRATCHSIZE = 200,
  /*
   How user stacks are walked: `USTACKMODE_*`.
   */
  DTRACEOPT_OPT_USTACKMODE = 201,
  /*
   Refuse programs that contain a loop.
   */
  DTRACEOPT_OPT_NOLOOPS = 202,
};
typedef uint32_t dtrace_opt;

/*
 * dof
 */

/*
 Index of the data model in `Hdr::ident`.
 */
#define DOF_ID_MODEL 4

/*
 Index of the byte order in `Hdr::ident`.
 */
#define DOF_ID_ENCODING 5

/*
 Index of the version of DOF in `Hdr::ident`.
 */
#define DOF_ID_VERSION 6

/*
 Index of the version of DIF in `Hdr::ident`.
 */
#define DOF_ID_DIFVERS 7

/*
 Index of the number of integer registers in `Hdr::ident`.
 */
#define DOF_ID_DIFIREG 8

/*
 Index of the number of tuple registers in `Hdr::ident`.
 */
#define DOF_ID_DIFTREG 9

/*
 Index of the first byte of `Hdr::ident` that must be zero.
 */
#define DOF_ID_PAD 10

/*
 Data model: `int` has 32 bits, `long` and pointers have 64 bits.
 */
#define DOF_MODEL_LP64 2

/*
 Data model: `int`, `long` and pointers have 32 bits.
 */
#define DOF_MODEL_ILP32 1

/*
 Byte order: little-endian.
 */
#define DOF_ENCODE_LSB 1

/*
 Byte order: big-endian.
 */
#define DOF_ENCODE_MSB 2

/*
 First version of DOF.
 */
#define DOF_VERSION_1 1

/*
 Version of DOF with is-enabled probes. This project writes this version.
 */
#define DOF_VERSION_2 2

/*
 Version of DOF in which an is-enabled site passes the address of the answer.
 */
#define DOF_VERSION_3 3

/*
 Bit of `Sec::flags`: the kernel loads the section.
 */
#define DOF_SECF_LOAD 1

/*
 Value of `RelocDesc::ty`: nothing to do.
 */
#define DOF_RELO_NONE 0

/*
 Value of `RelocDesc::ty`: add the symbol's address to an integer of the integer table.
 */
#define DOF_RELO_SETX 1

/*
 Value of `RelocDesc::ty`: make an offset relative to the load address of the image.
 */
#define DOF_RELO_DOFREL 2

/*
 The type of a section's contents.
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
 The header of an image (`dof_hdr_t`).
 */
struct dof_hdr {
  /*
   Magic number, data model, byte order, versions and register counts: see the `ID_*`
   constants.
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
 The header of a section (`dof_sec_t`).
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
   `SECF_LOAD` or 0.
   */
  uint32_t flags;
  /*
   Size of an entry if the section is a table, otherwise 0, bytes.
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
 A clause: a probe description, a predicate and actions (`dof_ecbdesc_t`).
 */
struct dof_ecbdesc {
  /*
   Index of a `SecType::ProbeDesc`.
   */
  dof_secidx probes;
  /*
   Index of a `SecType::DifoHdr`, or none.
   */
  dof_secidx pred;
  /*
   Index of a `SecType::ActDesc`, or none.
   */
  dof_secidx actions;
  /*
   Zero.
   */
  uint32_t pad;
  /*
   A value that the consumer attaches to the ECB.
   */
  uint64_t uarg;
};

/*
 A probe description (`dof_probedesc_t`).
 */
struct dof_probedesc {
  /*
   Index of the string table of the description.
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
   The probe's ID, or 0.
   */
  uint32_t id;
};

/*
 An action (`dof_actdesc_t`).
 */
struct dof_actdesc {
  /*
   Index of a `SecType::DifoHdr`, or none.
   */
  dof_secidx difo;
  /*
   Index of the string table of the format, or none.
   */
  dof_secidx strtab;
  /*
   An `Action`.
   */
  uint32_t kind;
  /*
   For an aggregating function: how many of the preceding actions form its tuple.
   */
  uint32_t ntuple;
  /*
   The action's argument; for a printf-like action the offset of its format.
   */
  uint64_t arg;
  /*
   A value that the consumer attaches to the action.
   */
  uint64_t uarg;
};

/*
 Header of a DIFO, followed by the indices of its sections, one `SecIdx` each
 (`dof_difohdr_t`).
 */
struct dof_difohdr {
  /*
   Type of the returned value.
   */
  struct dtrace_diftype rtype;
};

/*
 Header of relocations (`dof_relohdr_t`).
 */
struct dof_relochdr {
  /*
   Index of the string table of the symbols.
   */
  dof_secidx strtab;
  /*
   Index of the `SecType::Reltab`.
   */
  dof_secidx relsec;
  /*
   Index of the section to change.
   */
  dof_secidx tgtsec;
};

/*
 A relocation (`dof_relodesc_t`).
 */
struct dof_relocdesc {
  /*
   Name of the symbol.
   */
  dof_stridx name;
  /*
   `RELO_*`.
   */
  uint32_t ty;
  /*
   Offset in the section to change.
   */
  uint64_t offset;
  /*
   Addend.
   */
  uint64_t data;
};

/*
 The setting of an option (`dof_optdesc_t`).
 */
struct dof_optdesc {
  /*
   An `Opt`.
   */
  uint32_t option;
  /*
   Index of a string table, or none.
   */
  dof_secidx strtab;
  /*
   The value.
   */
  uint64_t value;
};

/*
 A provider of user-level probes (`dof_provider_t`). In version 1 of DOF the structure ends
 before `prenoffs`.
 */
struct dof_provider {
  /*
   Index of the string table of the provider.
   */
  dof_secidx strtab;
  /*
   Index of the `SecType::Probes`.
   */
  dof_secidx probes;
  /*
   Index of the `SecType::Prargs`.
   */
  dof_secidx prargs;
  /*
   Index of the `SecType::Proffs`.
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
   Index of the `SecType::Prenoffs`.
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
   Types of the native arguments, consecutive strings.
   */
  dof_stridx xargv;
  /*
   Types of the translated arguments, consecutive strings.
   */
  uint32_t argidx;
  /*
   Index of its first entry in the argument map.
   */
  uint32_t offidx;
  /*
   Index of its first entry in the table of offsets.
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
   Index of its first entry in the table of is-enabled offsets.
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
   Index of the `SecType::Xlmembers`.
   */
  dof_secidx members;
  /*
   Index of the string table of the translator.
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
   Index of the `SecType::DifoHdr` that computes it.
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
   Index of the section of the translator.
   */
  dof_secidx xlator;
  /*
   Index of the member.
   */
  uint32_t member;
  /*
   Number of the argument.
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
 Value of `Probe::kind`: fires when the function is called.
 */
#define DTRACE_PROCESS_ENTRY 0

/*
 Value of `Probe::kind`: fires when the function returns, at any of its sites.
 */
#define DTRACE_PROCESS_RETURN 1

/*
 Value of `Probe::kind`: fires before one instruction, which is named by its offset in a
 function.
 */
#define DTRACE_PROCESS_OFFSET 2

/*
 Value of `Probe::kind`: fires before one instruction, which is named by its address in the
 program's file.
 */
#define DTRACE_PROCESS_ADDRESS 3

/*
 Value of `Probe::kind`: a probe that the program defines. Fires at any of its sites. The
 program names the provider.
 */
#define DTRACE_PROCESS_USDT 4

/*
 Value of `Probe::kind`: fires before the first instruction of a source line.
 */
#define DTRACE_PROCESS_LINE 5

/*
 Maximum number of probes of one `Probes`.
 */
#define DTRACE_PROCESS_PROBES_MAX 250000

/*
 Maximum number of instructions of one `Probes`.
 */
#define DTRACE_PROCESS_SITES_MAX 500000

/*
 Maximum number of arguments of one `Probes`.
 */
#define DTRACE_PROCESS_ARGS_MAX 1000000

/*
 Maximum number of arguments of one probe.
 */
#define DTRACE_PROCESS_PROBE_ARGS_MAX 32

/*
 Maximum size of the text of one `Probes`, bytes.
 */
#define DTRACE_PROCESS_TEXT_MAX (32 << 20)

/*
 Value of `Arg::base` and `Arg::index`: no register.
 */
#define DTRACE_PROCESS_NO_REGISTER 255

/*
 Value of `Arg::base`: the first of 16 vector registers, of which the lowest bytes are used.
 Cannot be part of an address.
 */
#define DTRACE_PROCESS_VECTOR 32

/*
 Arguments of a function in a process are numbered as the words of the calling convention. From
 this number on they are the lowest 8 bytes of the 16 vector registers, in which floating-point
 numbers are passed (System V ABI, AMD64 §3.2.3).
 */
#define DTRACE_PROCESS_VECTOR_WORD (1 << 16)

/*
 Value of `Arg::form`: an integer.
 */
#define DTRACE_PROCESS_NUMBER 0

/*
 Value of `Arg::form`: at a site where the program tests whether its probe is enabled, the
 general register `base` itself becomes 1. It must be the register of a function's result.
 */
#define DTRACE_PROCESS_ANSWER 1

/*
 Value of `Arg::form`: a floating-point number of 4 or 8 bytes.
 */
#define DTRACE_PROCESS_FLOAT 2

/*
 Probes to make in one process. Probes that exist stay as they are.
 */
struct dtrace_process_probes {
  /*
   The process ID in the caller's pid namespace.
   */
  int32_t pid;
  /*
   Number of probes.
   */
  uint32_t nprobes;
  /*
   Number of instructions.
   */
  uint32_t nsites;
  /*
   Size of the text, bytes.
   */
  uint32_t text_size;
  /*
   Address of the `Probe`s.
   */
  uint64_t probes;
  /*
   Address of the array of the instructions' addresses in the process, `u64` each.
   */
  uint64_t sites;
  /*
   Address of the text: the names, each of which ends with NUL.
   */
  uint64_t text;
  /*
   Out: index of the instruction for which the call fails; `u32::MAX` if the cause is not an
   instruction.
   */
  uint32_t failed;
  /*
   Number of arguments.
   */
  uint32_t nargs;
  /*
   Address of the `Arg`s of all probes.
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
   Offset of the module's name in the text.
   */
  uint32_t module;
  /*
   Offset of the function's name in the text.
   */
  uint32_t func;
  /*
   Offset of the probe's name in the text.
   */
  uint32_t name;
  /*
   Address of the function in the process. For `USDT`: number of the
   `Registered` that the probe belongs to, or 0.
   */
  uint64_t start;
  /*
   Size of the function, bytes.
   */
  uint64_t size;
  /*
   Index of the first of its instructions.
   */
  uint32_t first;
  /*
   Number of its instructions: 1, except for `RETURN` and `USDT`.
   */
  uint32_t nsites;
  /*
   For `USDT`: offset of the provider's name, without the process ID, in the text.
   */
  uint32_t provider;
  /*
   For `USDT`: number of its arguments.
   */
  uint32_t nargs;
  /*
   For `USDT`: index of its first argument. All arguments of its first site come first, then
   those of the next site.
   */
  uint32_t first_arg;
  /*
   For `USDT`: at how many of its instructions, the last ones, the program only tests whether
   the probe is enabled. The first argument of such a site is the address of a 4-byte number
   that becomes 1 while the probe is enabled, or the register that becomes 1 (`ANSWER`).
   */
  uint32_t asks;
  /*
   For `USDT`: offset in the file of the 2-byte counter of enablings of the probe; 0 if there
   is none.
   */
  uint64_t semaphore;
};

/*
 How to compute an argument of a probe at one site: `value + base + (index << shift)`, or the
 value in memory at that address.
 */
struct dtrace_process_arg {
  /*
   A constant or a displacement.
   */
  uint64_t value;
  /*
   A general register by its number in the instruction set, a vector register from `VECTOR`
   on, or `NO_REGISTER`.
   */
  uint8_t base;
  /*
   A general register, or `NO_REGISTER`.
   */
  uint8_t index;
  /*
   Shift of the index, 0 to 3.
   */
  uint8_t shift;
  /*
   Size of the argument: 1, 2, 4 or 8 bytes.
   */
  uint8_t size;
  /*
   Not 0 if the argument is signed.
   */
  uint8_t is_signed;
  /*
   Not 0 if the argument is in memory at the computed address.
   */
  uint8_t is_loaded;
  /*
   Not 0 if the argument is bits 8 to 15 of the register.
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
 Value of `Hold::kind`: the process executes the instruction at an address, for example where
 the dynamic linker reports changes.
 */
#define DTRACE_HOLD_INSTRUCTION 0

/*
 Value of `Hold::kind`: the process has created a process with a memory of its own. The new
 process is held.
 */
#define DTRACE_HOLD_FORK 1

/*
 Value of `Hold::kind`: a process has executed a program and has a given name since then. A
 process under `ptrace()` is not held. A consumer has at most `NAMES_MAX` such names.
 */
#define DTRACE_HOLD_EXEC 2

/*
 Value of `Hold::kind`: a process has mapped a file for execution that the consumer has not
 declared as `KNOWN`, or has registered probes. It waits for
 `Hold::wait`.
 */
#define DTRACE_HOLD_MAP 3

/*
 Value of `Held::id` for a process that does not wait and need not be resumed.
 */
#define DTRACE_HOLD_TOLD UINT64_MAX

/*
 Maximum time for which a process waits, ms.
 */
#define DTRACE_HOLD_WAIT_MS 1000

/*
 Maximum number of `Hold`s of a consumer.
 */
#define DTRACE_HOLD_HOLDS_MAX 16384

/*
 Maximum number of names of a consumer, for `EXEC`.
 */
#define DTRACE_HOLD_NAMES_MAX 64

/*
 Size of a process's name including its NUL, bytes. Longer names are truncated.
 */
#define DTRACE_HOLD_NAME_SIZE 16

/*
 An event at which a process has to wait.
 */
struct dtrace_hold {
  /*
   `INSTRUCTION`, `FORK`, `EXEC` or `MAP`.
   */
  uint32_t kind;
  /*
   The process ID in the caller's pid namespace; 0 for `EXEC`, and for `MAP` to hold any
   process.
   */
  int32_t pid;
  /*
   For `INSTRUCTION`: the address.
   */
  uint64_t address;
  /*
   For `EXEC`: the name, which ends with NUL.
   */
  uint8_t name[DTRACE_HOLD_NAME_SIZE];
  /*
   For `MAP`: the maximum time for which processes wait, ms, up to `WAIT_MS`. 0: processes
   do not wait, but the consumer is notified.
   */
  uint32_t wait;
  /*
   Zero.
   */
  uint32_t reserved;
};

/*
 A file, named by a process that executes it.
 */
struct dtrace_known {
  /*
   An address in the text of the file.
   */
  uint64_t address;
  /*
   The process ID in the caller's pid namespace.
   */
  int32_t pid;
  /*
   Zero.
   */
  uint32_t reserved;
};

/*
 A process that waits.
 */
struct dtrace_held {
  /*
   ID of this wait; `TOLD`: the process does not wait; 0: the consumer has been notified of
   all processes.
   */
  uint64_t id;
  /*
   Why the process waits: the `Hold::kind`.
   */
  uint32_t kind;
  /*
   The process ID in the caller's pid namespace.
   */
  int32_t pid;
  /*
   For `FORK`: ID of the process that has created it.
   */
  int32_t parent;
  /*
   Number of processes so far that resumed before the consumer let them, or that could not be
   held.
   */
  uint32_t late;
};

/*
 * unwind
 */

/*
 Maximum size of a `Table`, bytes.
 */
#define DTRACE_UNWIND_TABLE_MAX (64 << 20)

/*
 The unwind table of a file.
 */
struct dtrace_unwind_table {
  /*
   A descriptor of the file.
   */
  int32_t fd;
  /*
   Size of the table, bytes. 0: no table can be made of the file; the kernel does not request
   it again.
   */
  uint32_t size;
  /*
   Address of the table.
   */
  uint64_t bytes;
  /*
   Time of the last change of the file (`st_ctim`), taken before the file was read, ns.
   */
  uint64_t changed;
};

/*
 * remains
 */

/*
 Value of `Remains::kind`: anonymous memory, or a file that the consumer may not read.
 */
#define DTRACE_REMAINS_NONE 0

/*
 Value of `Remains::kind`: a file.
 */
#define DTRACE_REMAINS_FILE 1

/*
 Value of `Remains::kind`: the vDSO, the kernel's code for processes.
 */
#define DTRACE_REMAINS_VDSO 2

/*
 A mapping of a process that has ended.
 */
struct dtrace_remains {
  /*
   In: number of the previous mapping, 0 at first; out: number of this mapping.
   */
  uint64_t after;
  /*
   The process ID in records.
   */
  uint32_t pid;
  /*
   For `FILE`: a descriptor of the file, which the kernel has opened for the caller.
   */
  int32_t fd;
  /*
   First address of the mapping.
   */
  uint64_t start;
  /*
   Address behind the mapping.
   */
  uint64_t end;
  /*
   Offset of the mapping in the file, bytes.
   */
  uint64_t offset;
  /*
   `NONE`, `FILE` or `VDSO`.
   */
  uint32_t kind;
  /*
   1 if the mapping was executable.
   */
  uint32_t is_code;
};

/*
 * interp
 */

/*
 Maximum number of walkers of a consumer.
 */
#define DTRACE_INTERP_WALKERS_MAX 16

/*
 Maximum number of frames of interpreted code in a stack.
 */
#define DTRACE_INTERP_WORDS_MAX 256

/*
 Maximum number of constants of a file.
 */
#define DTRACE_INTERP_CONSTANTS_MAX 64

/*
 Element of `walk[]`: number of frames of evaluators with the same walker that precede this one
 in the stack, counted from the innermost.
 */
#define DTRACE_INTERP_WALK_NTH 0

/*
 Element of `walk[]`: the address at which offset 0 of the evaluator's file is mapped, or would
 be.
 */
#define DTRACE_INTERP_WALK_BASE 1

/*
 Element of `walk[]`: the evaluator's stack pointer.
 */
#define DTRACE_INTERP_WALK_SP 2

/*
 Element of `walk[]`: the evaluator's frame pointer, 0 if it is not known.
 */
#define DTRACE_INTERP_WALK_FP 3

/*
 Element of `walk[]`: the address at which the evaluator continues.
 */
#define DTRACE_INTERP_WALK_PC 4

/*
 Element of `walk[]`: the thread's ID in the process's own pid namespace.
 */
#define DTRACE_INTERP_WALK_TID 5

/*
 Element of `walk[]`: the stack pointer of the next (outer) evaluator with the same walker, all
 ones if there is none. Stack memory below it belongs to this evaluator or to functions that this
 evaluator has called.
 */
#define DTRACE_INTERP_WALK_NEXT 6

/*
 Element of `walk[]`: the thread pointer, the base address of thread-local variables (System V
 ABI, AMD64 §3.4.6).
 */
#define DTRACE_INTERP_WALK_THREAD 7

/*
 Element of `walk[]`: what the walker must do: 0: add frames; `ASKED_CALLER` or
 `ASKED_INTERRUPTED`: find the caller.
 */
#define DTRACE_INTERP_WALK_ASKED 8

/*
 Element of `walk[]`: the first of the file's constants. Constants that the file does not have
 are 0.
 */
#define DTRACE_INTERP_WALK_CONSTANTS 16

/*
 Find the caller of a frame that has made a call: `WALK_PC` is the return address.
 */
#define DTRACE_INTERP_ASKED_CALLER 1

/*
 Find the caller of a frame that was interrupted at `WALK_PC`.
 */
#define DTRACE_INTERP_ASKED_INTERRUPTED 2

/*
 Value of `Word::name`: no names.
 */
#define DTRACE_INTERP_NAMELESS 16777215

/*
 Maximum of `Word::native`. Greater values become this one.
 */
#define DTRACE_INTERP_NATIVE_MAX 1023

/*
 Maximum of `Word::position`. Greater values become this one.
 */
#define DTRACE_INTERP_POSITION_MAX 16777215


/*
 Header of the names of a frame. The bytes follow: the function's name, the file's name, the line
 table, and the name of the scope to which the function belongs.
 */
struct dtrace_interp_namehead {
  /*
   Number of the walker.
   */
  uint64_t walker;
  /*
   The value from which positions in the line table count.
   */
  uint32_t first;
  /*
   Size of each part, bytes.
   */
  uint16_t sizes[4];
  /*
   Zero.
   */
  uint16_t pad[2];
};

/*
 Request for the names of a frame.
 */
struct dtrace_interp_frame {
  /*
   The number of the names: `Word::name`.
   */
  uint32_t name;
  /*
   Size of the memory at `bytes`.
   */
  uint32_t size;
  /*
   Address to which the kernel writes a `NameHead` and the bytes that follow it.
   */
  uint64_t bytes;
};

/*
 * ioctl
 */

/*
 Version of this interface, which the module reports in `Conf::interface`. It grows by one with
 every ioctl, field and number that is added, so that a command and a module of different builds
 know which of them is older. Nothing is ever removed: an older command works with a newer
 module, and a newer command works with an older module as far as that module goes. One
 exception: since 3, frames of interpreted code directly follow the addresses of a stack. If the
 command or the module is older, such frames are not shown or are shown as numbers. 4 adds
 `RETRACT` and `Status::unanswered`. Since 5, `Subr::Stack` and
 `Subr::Ustack` take the room for frames of interpreted code.
 */
#define DTRACE_INTERFACE 5

/*
 Type of the ioctls of `/dev/dtrace`.
 */
#define DTRACE_IOC_TYPE 120

/*
 Type of the ioctls of `/dev/dtracehelper`. The same as in Oracle's DTrace, so that programs that
 are linked with its drti.o register here.
 */
#define DTRACE_HELPER_IOC_TYPE 216

/*
 Size of the part of `Status` that all systems share, `dtrace_status_t`, bytes.
 */
#define DTRACE_STATUS_COMMON_SIZE 88

/*
 Size of `Status` up to and including `missed`, bytes.
 */
#define DTRACE_STATUS_FIRST_SIZE 128

/*
 Size of `Status` up to and including `unbuffered`, bytes.
 */
#define DTRACE_STATUS_SECOND_SIZE 136

/*
 Size of `Status` up to and including `carried`, bytes.
 */
#define DTRACE_STATUS_THIRD_SIZE 160

/*
 Value of `ArgDesc::ndx`: the probe has no such argument.
 */
#define DTRACE_ARG_NONE -1

/*
 Bit of `ProviderPrivileges::flags`: needs rights over the kernel.
 */
#define DTRACE_PRIV_KERNEL 1

/*
 Bit of `ProviderPrivileges::flags`: needs rights over users.
 */
#define DTRACE_PRIV_USER 2

/*
 Bit of `ProviderPrivileges::flags`: needs rights over processes.
 */
#define DTRACE_PRIV_PROC 4

/*
 Bit of `ProviderPrivileges::flags`: only for probes of the owner.
 */
#define DTRACE_PRIV_OWNER 8

/*
 Maximum size of an image that a process registers, bytes.
 */
#define DTRACE_REGISTERED_MAX (256 << 10)

/*
 Maximum number of registrations of a process, and of providers in all its images.
 */
#define DTRACE_REGISTRATIONS_MAX 32

/*
 Maximum size of all images that the processes of one user have registered, bytes.
 */
#define DTRACE_REGISTERED_USER_MAX (16 << 20)

/*
 Maximum size of all registered images, bytes.
 */
#define DTRACE_REGISTERED_ALL_MAX (64 << 20)

/*
 The upper bytes of illumos' numbers of helper ioctls. The low byte is the number of the call: 1
 for `HELPER_ADD`, 2 for `HELPER_REMOVE`, 3 for `HELPER_ADDDOF`.
 */
#define DTRACE_HELPER_CLASSIC 1685350400

/*
 The description of a probe, or globs that match descriptions (`dtrace_probedesc_t`). Each string
 ends with NUL.
 */
struct dtrace_probedesc {
  /*
   The probe's ID.
   */
  dtrace_probeid id;
  /*
   The provider's name.
   */
  uint8_t provider[DTRACE_PROVNAMELEN];
  /*
   The module's name.
   */
  uint8_t module[DTRACE_MODNAMELEN];
  /*
   The function's name.
   */
  uint8_t func[DTRACE_FUNCNAMELEN];
  /*
   The probe's name.
   */
  uint8_t name[DTRACE_NAMELEN];
};

/*
 A pair of descriptions (`dtrace_repldesc_t`).
 */
struct dtrace_repldesc {
  /*
   The description whose enablings are copied …
   */
  struct dtrace_probedesc matching;
  /*
   … and the description that they are copied to.
   */
  struct dtrace_probedesc create;
};

/*
 A DOF image to enable.
 */
struct dtrace_enable {
  /*
   Address of the DOF image.
   */
  uint64_t dof;
  /*
   Out: number of matched probes.
   */
  uint32_t n_matched;
  /*
   Zero.
   */
  uint32_t pad;
};

/*
 Destination of the file of an anonymous enabling.
 */
struct dtrace_anondesc {
  /*
   In: size of the memory at `data`, bytes; out: size of the file. Nothing is copied if the
   file is larger than the memory.
   */
  uint64_t size;
  /*
   Address of the memory.
   */
  uint64_t data;
};

/*
 A record in the data of an ECB (`dtrace_recdesc_t`).
 */
struct dtrace_recdesc {
  /*
   The `Action` that writes the record.
   */
  uint32_t action;
  /*
   Size of the record, bytes.
   */
  uint32_t size;
  /*
   Offset of the record from the beginning of the ECB's data, bytes.
   */
  uint32_t offset;
  /*
   Alignment of the record, bytes.
   */
  uint16_t alignment;
  /*
   Number of the record's format, or 0.
   */
  uint16_t format;
  /*
   The action's argument.
   */
  uint64_t arg;
  /*
   A value that the consumer has attached to the action.
   */
  uint64_t uarg;
};

/*
 Header of the description of an enabled probe, followed by `RecDesc`s (`dtrace_eprobedesc_t`).
 */
struct dtrace_eprobedesc {
  /*
   ID of the enabled probe.
   */
  dtrace_epid epid;
  /*
   ID of its probe.
   */
  dtrace_probeid probeid;
  /*
   A value that the consumer has attached to the ECB.
   */
  uint64_t uarg;
  /*
   Size of the ECB's data including the `RecHdr`, bytes.
   */
  uint32_t size;
  /*
   In: number of records that there is room for; out: number of records.
   */
  int32_t nrecs;
};

/*
 Header of the description of an aggregation, followed by `RecDesc`s (`dtrace_aggdesc_t`).
 */
struct dtrace_aggdesc {
  /*
   For the consumer's use: address of the name. Returned as it was passed.
   */
  uint64_t name;
  /*
   For the consumer's use: ID of the variable. Returned as it was passed.
   */
  int64_t varid;
  /*
   For the consumer's use. Returned as it was passed.
   */
  int32_t flags;
  /*
   ID of the aggregation.
   */
  dtrace_aggid id;
  /*
   The first enabled probe whose ECB feeds it.
   */
  dtrace_epid epid;
  /*
   Size of its data including the ID at the beginning, bytes.
   */
  uint32_t size;
  /*
   In: number of records that there is room for; out: number of records.
   */
  int32_t nrecs;
  /*
   Zero.
   */
  uint32_t pad;
};

/*
 A format string (`dtrace_fmtdesc_t`).
 */
struct dtrace_fmtdesc {
  /*
   Address to which the string is copied.
   */
  uint64_t string;
  /*
   In: size of the memory there; out: length of the string including its NUL.
   */
  int32_t length;
  /*
   Number of the format.
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
   In: size of the memory at `data`; for a principal buffer at least
   `crate::limits::buffer_room` of the buffer's size. Out: size of the records there, bytes.
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
   Address to which the records are copied.
   */
  uint64_t data;
  /*
   Out: offset of the oldest record.
   */
  uint64_t oldest;
  /*
   Out: time of the switch, ns.
   */
  uint64_t timestamp;
};

/*
 Header of each record in a principal buffer (`dtrace_rechdr_t`). An EPID of 0 without the time
 is padding of four bytes.
 */
struct dtrace_rechdr {
  /*
   The enabled probe that has made the record.
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
 Counters and state of a consumer's tracing (`dtrace_status_t`).
 */
struct dtrace_status {
  /*
   Dynamic variables dropped because there was no space.
   */
  uint64_t dyndrops;
  /*
   Dynamic variables dropped while the free space was on a rinsing list.
   */
  uint64_t dyndrops_rinsing;
  /*
   Dynamic variables dropped while the free space was on a dirty list.
   */
  uint64_t dyndrops_dirty;
  /*
   Speculative records dropped.
   */
  uint64_t specdrops;
  /*
   Speculations refused because all buffers were busy.
   */
  uint64_t specdrops_busy;
  /*
   Speculations refused because no buffer was free.
   */
  uint64_t specdrops_unavail;
  /*
   Faults in probe context.
   */
  uint64_t errors;
  /*
   Number of fill buffers that are full.
   */
  uint64_t filled;
  /*
   Overflows of the string tables of stacks. Always 0, because the kernel records no such
   strings.
   */
  uint64_t stkstroverflows;
  /*
   Faults while the ERROR probe fired.
   */
  uint64_t dblerrors;
  /*
   1 if the kernel has ended the tracing.
   */
  uint8_t killed;
  /*
   1 if `exit()` was called.
   */
  uint8_t exiting;
  /*
   Zero.
   */
  uint8_t pad[6];
  /*
   The fields from here on are specific to Linux. Firings of this consumer's probes that were
   dropped because the code was called from probe context.
   */
  uint64_t recursions;
  /*
   Firings of this consumer's probes that were dropped because an NMI fired them during probe
   context.
   */
  uint64_t nmis;
  /*
   Firings, of any consumer, that were dropped because RCU does not watch the code.
   */
  uint64_t unwatched;
  /*
   Returns of functions, of this consumer's probes, that were dropped because the return could
   not be hooked when the function was called.
   */
  uint64_t returns;
  /*
   Probes that this consumer has described and that appeared later, but could not be enabled or
   kept.
   */
  uint64_t missed;
  /*
   Firings of this consumer's probes that were dropped on CPUs that came online during tracing,
   because there was no memory for their buffers. Each clause counts. Of its predicate only a
   comparison of one built-in variable with a number is evaluated first.
   */
  uint64_t unbuffered;
  /*
   How often a process, at a probe of any consumer, waited until its own memory that a clause
   or an instruction needs was paged in, and either got it or was interrupted by a signal.
   */
  uint64_t waits;
  /*
   How often such a wait failed: the memory cannot be paged in, or was not there after a
   second.
   */
  uint64_t waits_in_vain;
  /*
   Instructions, of any consumer's probes, that were left to the kernel's slower uprobes
   because the process has no room for an out-of-line copy.
   */
  uint64_t carried;
  /*
   How often the right of this consumer to trace a process was not known in time, so that it
   did not see the process. Each firing meanwhile counts, and each request that was not
   answered.
   */
  uint64_t unanswered;
};

/*
 Properties of the kernel's DIF machine (`dtrace_conf_t`).
 */
struct dtrace_conf {
  /*
   Version of DIF.
   */
  uint32_t difversion;
  /*
   Number of integer registers.
   */
  uint32_t difintregs;
  /*
   Number of tuple registers.
   */
  uint32_t diftupregs;
  /*
   Data model of the kernel, as in the header of a DOF image.
   */
  uint32_t ctfmodel;
  /*
   Specific to Linux: the module's `INTERFACE`; 0 from modules that are older than this
   field.
   */
  uint32_t interface;
  /*
   Zero.
   */
  uint32_t pad[7];
};

/*
 Type of an argument of a probe (`dtrace_argdesc_t`).
 */
struct dtrace_argdesc {
  /*
   The probe.
   */
  dtrace_probeid id;
  /*
   In: index in `args[]`; out: the same, or `ARG_NONE`.
   */
  int32_t ndx;
  /*
   Index of the native argument that it is translated from.
   */
  int32_t mapping;
  /*
   Name of the native type.
   */
  uint8_t native[DTRACE_ARGTYPELEN];
  /*
   Name of the translated type; empty if it is the native type.
   */
  uint8_t xlate[DTRACE_ARGTYPELEN];
};

/*
 Rights that a consumer needs to use a provider (`dtrace_ppriv_t`).
 */
struct dtrace_providerprivileges {
  /*
   Bits `PRIV_*`.
   */
  uint32_t flags;
  /*
   User ID of the owner.
   */
  uint32_t uid;
  /*
   Container of the owner.
   */
  uint32_t zoneid;
};

/*
 A provider (`dtrace_providerdesc_t`).
 */
struct dtrace_providerdesc {
  /*
   The provider's name, which ends with NUL.
   */
  uint8_t name[DTRACE_PROVNAMELEN];
  /*
   Stability of the parts of its probes' names.
   */
  struct dtrace_providerattributes attr;
  /*
   Zero.
   */
  uint8_t pad;
  /*
   Rights that a consumer needs.
   */
  struct dtrace_providerprivileges privileges;
};

/*
 Why the last ioctl failed: a line of text that ends with NUL, or an empty string if there is
 nothing to report.
 */
struct dtrace_reason {
  /*
   The text.
   */
  uint8_t text[DTRACE_REASONLEN];
};

/*
 DOF of an object of a process (`dof_helper_t`).
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
 One registration of a process with the helper device.
 */
struct dtrace_registered {
  /*
   ID of the process in the caller's pid namespace.
   */
  int32_t pid;
  /*
   In: number of the previous registration, 0 at first; out: number of this one among those of
   its process, from 1.
   */
  uint32_t generation;
  /*
   Base of the image's addresses.
   */
  uint64_t addr;
  /*
   In: size of the memory at `data`, bytes; out: size of the image.
   */
  uint64_t size;
  /*
   Address of the memory.
   */
  uint64_t data;
  /*
   Name of the object as given by the process; it ends with NUL.
   */
  uint8_t module[DTRACE_MODNAMELEN];
};

/* Fills in a `ProviderDesc` by its name. ESRCH: there is no such provider. */
#define DTRACEIOC_PROVIDER _IOWR(DTRACE_IOC_TYPE, 1, struct dtrace_providerdesc)

/* Replaces a `ProbeDesc` by that of the probe with the next greater ID. ESRCH: there is none. */
#define DTRACEIOC_PROBES _IOWR(DTRACE_IOC_TYPE, 2, struct dtrace_probedesc)

/* Switches a CPU's principal buffer and copies the filled half to the memory of a `BufDesc`. ENOENT: the CPU has no buffer. */
#define DTRACEIOC_BUFSNAP _IOWR(DTRACE_IOC_TYPE, 4, struct dtrace_bufdesc)

/* As `PROBES`, but only for probes that match the globs of the description. */
#define DTRACEIOC_PROBEMATCH _IOWR(DTRACE_IOC_TYPE, 5, struct dtrace_probedesc)

/* Enables the DOF image of an `Enable`. EBUSY: the consumer already traces; EINVAL: the image is invalid. */
#define DTRACEIOC_ENABLE _IOWR(DTRACE_IOC_TYPE, 6, struct dtrace_enable)

/* As `BUFSNAP`, for the aggregation buffer. */
#define DTRACEIOC_AGGSNAP _IOWR(DTRACE_IOC_TYPE, 7, struct dtrace_bufdesc)

/* Fills in an `EprobeDesc` by its EPID, and as many of its records as there is room for. EINVAL: there is no such EPID. */
#define DTRACEIOC_EPROBE _IOWR(DTRACE_IOC_TYPE, 8, struct dtrace_eprobedesc)

/* Fills in an `ArgDesc` by its probe and index. */
#define DTRACEIOC_PROBEARG _IOWR(DTRACE_IOC_TYPE, 9, struct dtrace_argdesc)

/* Fills in a `Conf`. */
#define DTRACEIOC_CONF _IOR(DTRACE_IOC_TYPE, 10, struct dtrace_conf)

/* Fills in a `Status`. ENOENT: tracing has not started. The ioctl number contains the size of the structure and thereby its version: fields are only added at the end, and the kernel supports every size that has existed. */
#define DTRACEIOC_STATUS _IOR(DTRACE_IOC_TYPE, 11, struct dtrace_status)

/* Starts tracing. Returns the CPU on which `BEGIN` fired. */
#define DTRACEIOC_GO _IOR(DTRACE_IOC_TYPE, 12, uint32_t)

/* Ends tracing. Returns the CPU on which `END` fired. */
#define DTRACEIOC_STOP _IOWR(DTRACE_IOC_TYPE, 13, uint32_t)

/* Fills in an `AggDesc` by its ID, and as many of its records as there is room for. EINVAL: there is no such aggregation. */
#define DTRACEIOC_AGGDESC _IOWR(DTRACE_IOC_TYPE, 15, struct dtrace_aggdesc)

/* Returns the length of a format in a `FmtDesc`, and copies its string if there is room for it. */
#define DTRACEIOC_FORMAT _IOWR(DTRACE_IOC_TYPE, 16, struct dtrace_fmtdesc)

/* Copies the options as a DOF image to the address of a `crate::dof::Hdr` whose `loadsz` is the size of the memory there. */
#define DTRACEIOC_DOFGET _IOWR(DTRACE_IOC_TYPE, 17, struct dof_hdr)

/* Enables everything that is enabled for the first description of a `ReplDesc` for its second description as well. */
#define DTRACEIOC_REPLICATE _IOW(DTRACE_IOC_TYPE, 18, struct dtrace_repldesc)

/* Specific to Linux: returns why the last ioctl on this file failed, as a `Reason`. */
#define DTRACEIOC_REASON _IOR(DTRACE_IOC_TYPE, 64, struct dtrace_reason)

/* Specific to Linux: copies the file of the claimed anonymous enabling to the address of an `AnonDesc`. ENOENT: no enabling has been claimed. */
#define DTRACEIOC_ANONGET _IOWR(DTRACE_IOC_TYPE, 65, struct dtrace_anondesc)

/* Specific to Linux: makes the `Probes` of a process. ESRCH: there is no such process; EPERM: the consumer may not trace the process; EACCES: the consumer may not make probes in processes, or not at one of the instructions; EINVAL: an instruction cannot be probed. */
#define DTRACEIOC_MAKEPROBES _IOWR(DTRACE_IOC_TYPE, 66, struct dtrace_process_probes)

/* Specific to Linux: makes processes wait at the event of a `Hold` from now on. ESRCH: there is no such process; EINVAL: a process cannot stop at the instruction; EPERM: the consumer may not trace the process; EACCES: the consumer may not make probes in processes, or not at the instruction. */
#define DTRACEIOC_HOLD _IOW(DTRACE_IOC_TYPE, 70, struct dtrace_hold)

/* Specific to Linux: fills in a `Held`: the next process that the consumer has not been notified of. */
#define DTRACEIOC_HELD _IOR(DTRACE_IOC_TYPE, 71, struct dtrace_held)

/* Specific to Linux: resumes a waiting process, named by its `Held::id`, a `u64`. ENOENT: the process has resumed by itself. */
#define DTRACEIOC_RESUME _IOW(DTRACE_IOC_TYPE, 72, uint64_t)

/* Specific to Linux: removes the probes of a process, an `i32`, at those instructions that the process no longer has at their old addresses. ESRCH: there is no such process. */
#define DTRACEIOC_REVIEW _IOW(DTRACE_IOC_TYPE, 73, int32_t)

/* Specific to Linux: declares that the file which a process executes, a `Known`, has no probes for the caller. No process waits for the file again. ESRCH: there is no such process; EFAULT, EACCES: the address is not in the text of a file. */
#define DTRACEIOC_KNOWN _IOW(DTRACE_IOC_TYPE, 75, struct dtrace_known)

/* Specific to Linux: undoes all `REPLICATE` calls with exactly this second `ProbeDesc`. Probes that appear later are not enabled for it. Probes that are enabled stay enabled, and are enabled twice if the enabling is replicated again. ENOENT: nothing was replicated to this description. */
#define DTRACEIOC_RETRACT _IOW(DTRACE_IOC_TYPE, 76, struct dtrace_probedesc)

/* Specific to Linux: replaces a process ID of the caller's pid namespace, an `i32`, by the process ID in records, which is that of the initial pid namespace. ESRCH: there is no such process. */
#define DTRACEIOC_NUMBER _IOWR(DTRACE_IOC_TYPE, 74, int32_t)

/* Specific to Linux: fills in a `Registered`: the first registration of a process with the helper device after `Registered::generation`. ESRCH: there is no such process; ENOENT: there are no more registrations; E2BIG: there is not enough room for the image. */
#define DTRACEIOC_REGISTERED _IOWR(DTRACE_IOC_TYPE, 80, struct dtrace_registered)

/* Specific to Linux: returns a descriptor of a file into which a user stack leads and that has no `Table`. ENOENT: there is none; EACCES: the caller may not provide tables, which the stacks of all users depend on. The kernel notes such files from the first call on. */
#define DTRACEIOC_WANTED _IO(DTRACE_IOC_TYPE, 81)

/* Specific to Linux: provides the `Table` of a file. EINVAL: the table is damaged, or the file is not a regular one; EBADF: the descriptor is not open; EEXIST: the file has a table; ESTALE: the file has changed since it was read; E2BIG: the table is too large; ENOSPC: there is no room for it; EACCES: as for WANTED. */
#define DTRACEIOC_TABLE _IOW(DTRACE_IOC_TYPE, 82, struct dtrace_unwind_table)

/* Specific to Linux: copies the names of a `Frame` of interpreted code and returns their size in bytes. ENOENT: there are no such names; EAGAIN: they are being written; E2BIG: there is not enough room for them. */
#define DTRACEIOC_FRAME _IOW(DTRACE_IOC_TYPE, 84, struct dtrace_interp_frame)

/* Helper ioctl: registers the DOF at this address. Addresses in the DOF are addresses of the process. Returns the number of the registration, from 1, by which it can be removed. EINVAL: this is not DOF of a program; E2BIG: it is too large; ENOSPC: the process, its user, or all users have registered too much; EFAULT: it cannot be read. */
#define DTRACEHIOC_ADD _IOW(DTRACE_HELPER_IOC_TYPE, 1, struct dof_hdr)

/* Helper ioctl: removes the registration with this number. ENOENT: there is none. */
#define DTRACEHIOC_REMOVE _IOW(DTRACE_HELPER_IOC_TYPE, 2, uint32_t)

/* Helper ioctl: as `HELPER_ADD`, with a `DofHelper`. */
#define DTRACEHIOC_ADDDOF _IOW(DTRACE_HELPER_IOC_TYPE, 3, struct dtrace_dofhelper)

/* Helper ioctl: declares that the file which the process has mapped at this address has probes. Returns a number as `HELPER_ADD` does. EFAULT: nothing is mapped there; EACCES: it is not text of a file. */
#define DTRACEHIOC_LOOK _IOW(DTRACE_HELPER_IOC_TYPE, 4, uint64_t)

#endif /* _LINUX_DTRACE_H */
