// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Stacks as values.
//!
//! As an action, `stack()` is a record that the kernel writes. In an expression it is a value, an
//! ordinary structure: a head ([`StackHead`](dtrace_uapi::types::StackHead)) and as many addresses
//! as the program requested. The number of addresses is part of the type, so there is one type for
//! each number. All of them are named `dt_stack_t`; where a program writes that name, it means the
//! number that the option `stackframes` sets.

use super::{Kind, Ty, Types};
use dtrace_uapi::limits::FRAMES_MAX;
use dtrace_uapi::types::StackHead;

/// The common name of these types.
pub(super) const NAME: &str = "dt_stack_t";

const VALUE_AND_RECORD: &str =
    "the one is a stack that was kept, the other what stack( ) or ustack( ) records here";

impl Types<'_> {
    /// Returns the type of a stack of up to `frames` frames.
    pub fn stack_of(&mut self, frames: u32) -> Ty {
        if let Some(&known) = self.stacks.get(&frames) {
            return known;
        }
        let addrs = self.array_of(Ty::UINT64_T, Some(frames));
        let members = [
            ("depth", Ty::UINT32_T),
            ("is_user", Ty::UINT32_T),
            ("pid", Ty::PID_T),
            ("strsz", Ty::UINT32_T),
            ("addrs", addrs),
        ];
        let members = members.map(|(name, ty)| (name.to_owned(), ty, None));
        let record = self.declare_record(false, None, Some(members.into()));
        // Cannot fail: the five members have different names and types with a size.
        let record = record.unwrap_or(Ty::STACK);
        let ty = self.enter(Kind::Typedef(NAME.into(), record));
        self.stacks.insert(frames, ty);
        ty
    }

    /// Sets the number of frames of the type that `dt_stack_t` names, up to `FRAMES_MAX`.
    pub fn set_stack_frames(&mut self, frames: u32) {
        self.stack_frames = frames.min(FRAMES_MAX);
    }

    /// Explains the difference of two types of the same name, if both are stacks and they differ.
    pub fn stacks_differ(&self, one: Ty, other: Ty) -> Option<String> {
        let is_record = |ty| matches!(self.base(ty), Kind::Stack(_));
        match (self.frames_of(one), self.frames_of(other)) {
            (Some(one), Some(other)) if one != other => Some(format!(
                "the one is a stack of {one} frames, the other of {other}"
            )),
            (Some(_), None) if is_record(other) => Some(VALUE_AND_RECORD.to_owned()),
            (None, Some(_)) if is_record(one) => Some(VALUE_AND_RECORD.to_owned()),
            _ => None,
        }
    }

    /// Returns the number of frames for which a value of this type has room, if it is a stack
    /// value.
    pub fn frames_of(&self, ty: Ty) -> Option<u32> {
        let base = self.resolve(ty);
        let Kind::Record(_) = self.kind(base) else {
            return None;
        };
        let frames = self
            .size(base)?
            .checked_sub(size_of::<StackHead>() as u64)?
            / 8;
        let frames = u32::try_from(frames).ok()?;
        let stack = self.stacks.get(&frames)?;
        (self.resolve(*stack) == base).then_some(frames)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dtrace_objects::processes::Nowhere;

    #[test]
    fn a_stack_has_its_head_and_its_frames() {
        let mut types = Types::new(&Nowhere);
        let three = types.stack_of(3);
        assert_eq!(types.size(three), Some(size_of::<StackHead>() as u64 + 24));
        assert_eq!(types.stack_of(3), three);
        assert_eq!(types.frames_of(three), Some(3));
        assert_eq!(types.name(three), NAME);
        let place = |types: &mut Types<'_>, name| {
            let path = types.member(three, name).expect("a member");
            path.bit_offset / 8
        };
        assert_eq!(place(&mut types, "depth"), 0);
        assert_eq!(place(&mut types, "is_user"), 4);
        assert_eq!(place(&mut types, "pid"), 8);
        assert_eq!(place(&mut types, "strsz"), 12);
        assert_eq!(place(&mut types, "addrs"), size_of::<StackHead>() as u64);

        let five = types.stack_of(5);
        assert!(!types.assignable(three, five));
        types.set_stack_frames(5);
        assert_eq!(types.lookup_typedef(None, NAME), Some(five));
    }

    #[test]
    fn another_structure_of_that_size_is_no_stack() {
        let mut types = Types::new(&Nowhere);
        types.stack_of(1);
        let words = types.array_of(Ty::UINT64_T, Some(3));
        let members = vec![("words".to_owned(), words, None)];
        let other = types.declare_record(false, Some("other"), Some(members));
        assert_eq!(types.frames_of(other.expect("a structure")), None);
        assert_eq!(types.frames_of(Ty::STACK), None);
    }
}
