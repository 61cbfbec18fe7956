// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Properties of the processor of this machine.

use object::elf::RelocationType;
use object::Architecture;

/// Properties of a processor.
#[derive(Debug)]
pub struct Host {
    /// The architecture of object files for it.
    pub architecture: Architecture,
    /// The relocation that stores a symbol's address in 8 bytes.
    pub address: RelocationType,
    /// The number of registers in `regs[]` and `uregs[]`.
    pub registers: u64,
    /// The names of these registers, as a D library.
    pub names: &'static str,
    /// The macros that the preprocessor is given.
    pub definitions: &'static [&'static str],
    /// Maximum alignment of a number in a structure of a 32-bit program, in bytes.
    pub narrow_alignment: u64,
}

/// x86-64. The registers are those that the kernel saves on entry, followed by the segment
/// registers and the trap number. On i386 no number is aligned to more than a word.
#[cfg(target_arch = "x86_64")]
pub const HOST: Host = Host {
    architecture: Architecture::X86_64,
    address: super::x86_64::ABSOLUTE,
    registers: 26,
    names: include_str!("../../../dlib/regs-x86_64.d"),
    definitions: &["-D__amd64"],
    narrow_alignment: 4,
};

/// AArch64. The registers are those that the kernel saves on entry.
#[cfg(target_arch = "aarch64")]
pub const HOST: Host = Host {
    architecture: Architecture::Aarch64,
    address: object::elf::R_AARCH64_ABS64,
    registers: 34,
    names: include_str!("../../../dlib/regs-aarch64.d"),
    definitions: &[],
    narrow_alignment: 8,
};

#[cfg(test)]
mod tests {
    use super::*;

    /// The names that the D library gives to numbers, in its order, in lower case.
    fn names() -> Vec<(String, u64)> {
        let lines = HOST.names.lines();
        let names = lines.filter_map(|line| {
            let (name, number) = line.strip_prefix("inline int R_")?.split_once(" = ")?;
            let number = number.strip_suffix(';')?.parse().ok()?;
            Some((name.to_lowercase(), number))
        });
        names.collect()
    }

    #[test]
    fn each_register_has_one_number() {
        let numbers: Vec<u64> = names().into_iter().map(|(_, number)| number).collect();
        assert_eq!(numbers, (0..HOST.registers).collect::<Vec<_>>());
    }

    /// The words of `struct pt_regs` are the first ones of what ptrace(2) gives; the module numbers
    /// what is not in it from its end on.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn numbers_are_those_of_the_kernel() {
        use nix::libc::user_regs_struct;
        use std::mem::offset_of;
        macro_rules! words {
            ($($field:ident)*) => {
                [$((stringify!($field), offset_of!(user_regs_struct, $field) as u64 / 8)),*]
            };
        }
        let mut known = words!(
            r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss
        )
        .to_vec();
        let saved = known.len() as u64;
        let source = include_str!("../../../../kmod/arch/x86_64/program.c");
        let (_, function) = source.split_once("bool dtrace_user_segment(").unwrap();
        let (function, _) = function.split_once("default:").unwrap();
        assert!(function.contains("n - sizeof(struct pt_regs) / sizeof(u64)"));
        for case in function.split("case ").skip(1) {
            let (number, read) = case.split_once(':').unwrap();
            let segment = read.split_once("savesegment(");
            let segment = segment.and_then(|(_, rest)| rest.split(',').next());
            assert!(segment.is_some() || read.contains("thread.trap_nr"));
            let number: u64 = number.parse().unwrap();
            known.push((segment.unwrap_or("trapno"), saved + number));
        }
        let names = names();
        let names = names.iter().map(|(name, number)| match name.as_str() {
            "err" => ("orig_rax", *number),
            "rfl" => ("eflags", *number),
            name => (name, *number),
        });
        assert_eq!(names.collect::<Vec<_>>(), known);
    }
}
