// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT

//! Subroutine numbers: the operands of `call`.
//!
//! 0 to 43 are the same in every DTrace; 44 to 48 are from illumos; 200 and above are specific to
//! Linux.
//!
//! A program cannot call subroutines whose names contain a blank; the compiler generates their
//! calls. The numbers from 220 on are the operators of `long double`. A register cannot hold such a
//! number, so these subroutines pass the address of its 16 bytes, which hold x87's extended format.
//! Results are in scratch memory. Address 0 stands for zero, the value of a variable that was never
//! assigned.

use crate::numbered::numbered;
use zerocopy_derive::{Immutable, IntoBytes, KnownLayout, TryFromBytes};

/// Subroutines of the DIF machine.
#[repr(u16)]
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    TryFromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
)]
pub enum Subr {
    /// `rand`: `int()`.
    Rand = 0,
    /// `mutex_owned`: `int(lock *)`.
    MutexOwned = 1,
    /// `mutex_owner`: `thread *(lock *)`.
    MutexOwner = 2,
    /// `mutex_type_adaptive`: `int(lock *)`.
    MutexTypeAdaptive = 3,
    /// `mutex_type_spin`: `int(lock *)`.
    MutexTypeSpin = 4,
    /// `rw_read_held`: `int(lock *)`.
    RwReadHeld = 5,
    /// `rw_write_held`: `int(lock *)`.
    RwWriteHeld = 6,
    /// `rw_iswriter`: `int(lock *)`.
    RwIswriter = 7,
    /// `copyin`: `void *(uintptr_t, size_t)`.
    Copyin = 8,
    /// `copyinstr`: `string(uintptr_t, [size_t])`.
    Copyinstr = 9,
    /// `speculation`: `int()`.
    Speculation = 10,
    /// `progenyof`: `int(pid_t)`.
    Progenyof = 11,
    /// `strlen`: `size_t(const char *)`.
    Strlen = 12,
    /// `copyout`: `void(void *, uintptr_t, size_t)`.
    Copyout = 13,
    /// `copyoutstr`: `void(char *, uintptr_t, size_t)`.
    Copyoutstr = 14,
    /// `alloca`: `void *(size_t)`.
    Alloca = 15,
    /// `bcopy`: `void(void *, void *, size_t)`.
    Bcopy = 16,
    /// `copyinto`: `void(uintptr_t, size_t, void *)`.
    Copyinto = 17,
    /// `msgdsize`: `size_t(mblk_t *)`.
    Msgdsize = 18,
    /// `msgsize`: `size_t(mblk_t *)`.
    Msgsize = 19,
    /// `getmajor`: `major_t(dev_t)`.
    Getmajor = 20,
    /// `getminor`: `minor_t(dev_t)`.
    Getminor = 21,
    /// `ddi_pathname`: `string(void *, int64_t)`.
    DdiPathname = 22,
    /// `strjoin`: `string(const char *, const char *)`.
    Strjoin = 23,
    /// `lltostr`: `string(int64_t, [int])`.
    Lltostr = 24,
    /// `basename`: `string(const char *)`.
    Basename = 25,
    /// `dirname`: `string(const char *)`.
    Dirname = 26,
    /// `cleanpath`: `string(const char *)`.
    Cleanpath = 27,
    /// `strchr`: `string(const char *, char)`.
    Strchr = 28,
    /// `strrchr`: `string(const char *, char)`.
    Strrchr = 29,
    /// `strstr`: `string(const char *, const char *)`.
    Strstr = 30,
    /// `strtok`: `string(const char *, const char *)`.
    Strtok = 31,
    /// `substr`: `string(const char *, int, [int])`.
    Substr = 32,
    /// `index`: `int(const char *, const char *, [int])`.
    Index = 33,
    /// `rindex`: `int(const char *, const char *, [int])`.
    Rindex = 34,
    /// `htons`: `uint16_t(uint16_t)`.
    Htons = 35,
    /// `htonl`: `uint32_t(uint32_t)`.
    Htonl = 36,
    /// `htonll`: `uint64_t(uint64_t)`.
    Htonll = 37,
    /// `ntohs`: `uint16_t(uint16_t)`.
    Ntohs = 38,
    /// `ntohl`: `uint32_t(uint32_t)`.
    Ntohl = 39,
    /// `ntohll`: `uint64_t(uint64_t)`.
    Ntohll = 40,
    /// `inet_ntop`: `string(int, void *)`.
    InetNtop = 41,
    /// `inet_ntoa`: `string(ipaddr_t *)`.
    InetNtoa = 42,
    /// `inet_ntoa6`: `string(in6_addr_t *)`.
    InetNtoa6 = 43,
    /// `toupper`: `string(const char *)`.
    Toupper = 44,
    /// `tolower`: `string(const char *)`.
    Tolower = 45,
    /// `getf`: `file_t *(int)`.
    Getf = 46,
    /// `json`: `string(const char *, const char *)`.
    Json = 47,
    /// `strtoll`: `int64_t(const char *, [int])`.
    Strtoll = 48,
    /// `d_path`: `string(struct path *)`.
    DPath = 200,
    /// `link_ntop`: `string(int, void *)`.
    LinkNtop = 201,
    /// `uuidstr`: `string(void *)`.
    Uuidstr = 202,
    /// `strip`: `ptr(ptr, int)`.
    Strip = 203,
    /// `index out of bounds`: `void *(int64_t)`: always a fault, whose value is the index.
    Outside = 204,
    /// `stack as a value`: `dt_stack_t(uint32_t, [uint32_t])`: the kernel stack with at most that
    /// many frames. The result, a [`StackHead`](crate::types::StackHead) and the frames, is in
    /// scratch memory. It ends with as many further words, all zero, as the second argument says.
    Stack = 205,
    /// `user stack as a value`: `dt_stack_t(uint32_t, uint32_t, [uint32_t])`: the same for the user
    /// stack; the second argument is `strsz`. The further words, up to
    /// [`WORDS_MAX`](crate::interp::WORDS_MAX), are frames of interpreted code, then zeros.
    Ustack = 206,
    /// `taskargs`: `string(struct task_struct *)`.
    Taskargs = 207,
    /// `__frame`: `void(uintptr_t, size_t, uintptr_t, size_t, uint32_t, uintptr_t, size_t,
    /// uint32_t)`: adds a frame, in a walker. The arguments are address and maximum size of the
    /// function's name, the same for the file's name, the line or the position in the line table,
    /// address and size of the line table, and the first line of the table.
    Frame = 208,
    /// `__caller`: `void(uint64_t, uint64_t, uint64_t)`: returns the caller of a frame, in a walker
    /// that runs for this purpose. The arguments are the caller's program counter, its stack
    /// pointer, and its frame pointer, 0 if that is not known.
    Caller = 209,
    /// `__scope`: `void(uintptr_t, size_t)`: sets address and maximum size of the name of the scope
    /// to which the function of the next added frame belongs, in a walker.
    Scope = 210,
    /// `long double +`: `long double(long double, long double)`.
    LdAdd = 220,
    /// `long double -`: `long double(long double, long double)`.
    LdSub = 221,
    /// `long double *`: `long double(long double, long double)`.
    LdMul = 222,
    /// `long double /`: `long double(long double, long double)`.
    LdDiv = 223,
    /// `long double ==`: `int(long double, long double)`.
    LdEq = 224,
    /// `long double <`: `int(long double, long double)`.
    LdLt = 225,
    /// `long double <=`: `int(long double, long double)`.
    LdLe = 226,
    /// `long double copy`: `long double(long double)`.
    LdValue = 227,
    /// `long double of double`: `long double(double)`.
    LdFromDouble = 228,
    /// `long double of int64_t`: `long double(int64_t)`.
    LdFromSigned = 229,
    /// `long double of uint64_t`: `long double(uint64_t)`.
    LdFromUnsigned = 230,
    /// `double of long double`: `double(long double)`.
    LdToDouble = 231,
    /// `float of long double`: `float(long double)`.
    LdToSingle = 232,
    /// `int64_t of long double`: `int64_t(long double)`.
    LdToSigned = 233,
    /// `uint64_t of long double`: `uint64_t(long double)`.
    LdToUnsigned = 234,
}

/// All subroutines with their names in D.
pub const NAMES: &[(Subr, &str)] = &[
    (Subr::Rand, "rand"),
    (Subr::MutexOwned, "mutex_owned"),
    (Subr::MutexOwner, "mutex_owner"),
    (Subr::MutexTypeAdaptive, "mutex_type_adaptive"),
    (Subr::MutexTypeSpin, "mutex_type_spin"),
    (Subr::RwReadHeld, "rw_read_held"),
    (Subr::RwWriteHeld, "rw_write_held"),
    (Subr::RwIswriter, "rw_iswriter"),
    (Subr::Copyin, "copyin"),
    (Subr::Copyinstr, "copyinstr"),
    (Subr::Speculation, "speculation"),
    (Subr::Progenyof, "progenyof"),
    (Subr::Strlen, "strlen"),
    (Subr::Copyout, "copyout"),
    (Subr::Copyoutstr, "copyoutstr"),
    (Subr::Alloca, "alloca"),
    (Subr::Bcopy, "bcopy"),
    (Subr::Copyinto, "copyinto"),
    (Subr::Msgdsize, "msgdsize"),
    (Subr::Msgsize, "msgsize"),
    (Subr::Getmajor, "getmajor"),
    (Subr::Getminor, "getminor"),
    (Subr::DdiPathname, "ddi_pathname"),
    (Subr::Strjoin, "strjoin"),
    (Subr::Lltostr, "lltostr"),
    (Subr::Basename, "basename"),
    (Subr::Dirname, "dirname"),
    (Subr::Cleanpath, "cleanpath"),
    (Subr::Strchr, "strchr"),
    (Subr::Strrchr, "strrchr"),
    (Subr::Strstr, "strstr"),
    (Subr::Strtok, "strtok"),
    (Subr::Substr, "substr"),
    (Subr::Index, "index"),
    (Subr::Rindex, "rindex"),
    (Subr::Htons, "htons"),
    (Subr::Htonl, "htonl"),
    (Subr::Htonll, "htonll"),
    (Subr::Ntohs, "ntohs"),
    (Subr::Ntohl, "ntohl"),
    (Subr::Ntohll, "ntohll"),
    (Subr::InetNtop, "inet_ntop"),
    (Subr::InetNtoa, "inet_ntoa"),
    (Subr::InetNtoa6, "inet_ntoa6"),
    (Subr::Toupper, "toupper"),
    (Subr::Tolower, "tolower"),
    (Subr::Getf, "getf"),
    (Subr::Json, "json"),
    (Subr::Strtoll, "strtoll"),
    (Subr::DPath, "d_path"),
    (Subr::LinkNtop, "link_ntop"),
    (Subr::Uuidstr, "uuidstr"),
    (Subr::Strip, "strip"),
    (Subr::Outside, "index out of bounds"),
    (Subr::Stack, "stack as a value"),
    (Subr::Ustack, "user stack as a value"),
    (Subr::Taskargs, "taskargs"),
    (Subr::Frame, "__frame"),
    (Subr::Caller, "__caller"),
    (Subr::Scope, "__scope"),
    (Subr::LdAdd, "long double +"),
    (Subr::LdSub, "long double -"),
    (Subr::LdMul, "long double *"),
    (Subr::LdDiv, "long double /"),
    (Subr::LdEq, "long double =="),
    (Subr::LdLt, "long double <"),
    (Subr::LdLe, "long double <="),
    (Subr::LdValue, "long double copy"),
    (Subr::LdFromDouble, "long double of double"),
    (Subr::LdFromSigned, "long double of int64_t"),
    (Subr::LdFromUnsigned, "long double of uint64_t"),
    (Subr::LdToDouble, "double of long double"),
    (Subr::LdToSingle, "float of long double"),
    (Subr::LdToSigned, "int64_t of long double"),
    (Subr::LdToUnsigned, "uint64_t of long double"),
];

numbered!(Subr: u16, "subroutine", NAMES);

impl Subr {
    /// Whether this is an operator of D or a part of one, not a function. The names of operators
    /// appear only in listings.
    pub fn is_operator(self) -> bool {
        matches!(self, Self::Outside | Self::Stack | Self::Ustack) || self >= Self::LdAdd
    }

    /// Whether only walkers may call it: see [`interp`](crate::interp).
    pub fn is_walkers(self) -> bool {
        matches!(self, Self::Frame | Self::Caller | Self::Scope)
    }

    /// Whether a call matters even if nobody uses its value: it changes memory, frames, or what
    /// later calls return. That `rand()` returns another number next time does not count.
    pub const fn has_effect(self) -> bool {
        matches!(
            self,
            Self::Copyout
                | Self::Copyoutstr
                | Self::Copyinto
                | Self::Bcopy
                | Self::Speculation
                | Self::Strtok
                | Self::Frame
                | Self::Caller
                | Self::Scope
        )
    }

    /// Whether a second call with the same arguments may return something else than the first,
    /// though nothing else happened in between. Another address of the same data does not count.
    pub const fn may_differ(self) -> bool {
        matches!(self, Self::Rand | Self::Speculation | Self::Strtok)
    }

    /// Whether the subroutine modifies the traced process, so that only a destructive consumer may
    /// call it.
    pub fn is_destructive(self) -> bool {
        matches!(self, Self::Copyout | Self::Copyoutstr)
    }
}
