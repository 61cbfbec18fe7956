// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Stacks as values.
//!
//! As an action, `stack()` is a record that the kernel writes. In an expression it is a value, an
//! ordinary structure: a head ([`StackHead`](dtrace_uapi::types::StackHead)) and as many addresses
//! as the program requested. The number of addresses is part of the type, so there is one type for
//! each number. All of them are named `dt_stack_t`; where a program writes that name, it means the
//! number that the option `stackframes` sets.
//!
//! Behind the addresses there may be [room](Types::set_stack_room) for frames of interpreted code,
//! which have no names in D. A user stack and a kernel stack have one type, so both have this room;
//! therefore it is there only if a program makes values of user stacks.

use super::{Kind, Ty, Types};
use dtrace_uapi::interp::WORDS_MAX;
use dtrace_uapi::limits::FRAMES_MAX;
use dtrace_uapi::types::StackHead;

/// The common name of these types.
pub(super) const NAME: &str = "dt_stack_t";

/// Minimum room for frames of interpreted code, if there is any.
const ROOM_LEAST: u32 = 16;

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
        // Unnamed bit-fields take up space, and are no members.
        let word = (String::new(), Ty::UINT64_T, Some(64));
        let room = match self.has_stack_room {
            true => frames.clamp(ROOM_LEAST, WORDS_MAX as u32),
            false => 0,
        };
        let room = std::iter::repeat_n(word, room as usize);
        let members = members.into_iter().chain(room).collect();
        let record = self.declare_record(false, None, Some(members));
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

    /// Gives the types that are made from now on room for frames of interpreted code.
    pub fn set_stack_room(&mut self) {
        self.has_stack_room = true;
    }

    /// Whether types that are made now get this room.
    pub fn has_stack_room(&self) -> bool {
        self.has_stack_room
    }

    /// Whether types of stack values were made.
    pub fn has_stacks(&self) -> bool {
        !self.stacks.is_empty()
    }

    /// Returns the number of frames of interpreted code for which a stack value of `frames` frames
    /// has room.
    pub fn stack_room(&mut self, frames: u32) -> u32 {
        let ty = self.stack_of(frames);
        let size = self.size(ty).unwrap_or(0);
        let words = size.saturating_sub(size_of::<StackHead>() as u64) / 8;
        words.saturating_sub(frames.into()) as u32
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
        let mut stacks = self.stacks.iter();
        let known = stacks.find(|(_, stack)| self.resolve(**stack) == base);
        known.map(|(frames, _)| *frames)
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
    fn a_stack_may_have_room_behind_its_frames() {
        let mut types = Types::new(&Nowhere);
        let small = types.stack_of(2);
        types.set_stack_room();
        assert!(types.has_stack_room());
        // A type that is made already stays as it is.
        assert_eq!((types.stack_of(2), types.stack_room(2)), (small, 0));
        for (frames, room) in [(3, 16), (20, 20), (1024, 256)] {
            let ty = types.stack_of(frames);
            let size = size_of::<StackHead>() as u64 + 8 * u64::from(frames + room);
            assert_eq!(
                (types.size(ty), types.stack_room(frames)),
                (Some(size), room)
            );
            assert_eq!(types.frames_of(ty), Some(frames));
            let addrs = types.member(ty, "addrs").expect("a member").ty;
            assert_eq!(types.size(addrs), Some(8 * u64::from(frames)));
            assert_eq!(types.record(ty).expect("a structure").members.len(), 5);
        }
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
