// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! What is known about a program's text while interrupts are off: mappings, and the rules of their
//! files' tables.

use crate::bindings;
use crate::sys::percpu::CpuGuard;
use dtrace_unwind::cache::{Cache, Slot, SLOTS};
use dtrace_unwind::{rule, Evaluators, Place, Rule, Table};

/// What is known about the text of a mapping.
pub(super) enum Text<'a> {
    /// It is no text.
    Nowhere,
    /// Nothing is known.
    Untold,
    /// It is in no file, so the program has generated it.
    Made,
    /// The rules of its file, the number of the table, and the offset of the mapping in the file.
    Told(Table<'a>, u64, u64),
}

/// What is known about the text from `start` to before `end`.
pub(super) struct Mapped<'a> {
    start: u64,
    end: u64,
    pub(super) text: Text<'a>,
}

impl<'a> Mapped<'a> {
    pub(super) fn has(&self, address: u64) -> bool {
        address >= self.start && address < self.end
    }

    /// Whether nothing there can be executed.
    pub(super) fn is_nowhere(&self) -> bool {
        matches!(self.text, Text::Nowhere)
    }

    /// Returns the bytes of the rule for an instruction of it, if its file has a table.
    pub(super) fn rule(&self, address: u64, rules: Cache<'_>) -> Option<[u8; rule::SIZE]> {
        let Text::Told(table, number, offset) = &self.text else {
            return None;
        };
        let offset = address.wrapping_sub(self.start).wrapping_add(*offset);
        Some(rules.rule(*number, table, offset))
    }

    /// Returns what is known about the instruction that has this rule.
    pub(super) fn place(&self, rule: Option<[u8; rule::SIZE]>) -> Place {
        match (&self.text, rule) {
            (Text::Nowhere, _) => Place::NoText,
            (_, None) => Place::Nothing,
            (_, Some(rule)) => Place::Rule(Rule::decode(rule).unwrap_or(Rule::UNKNOWN)),
        }
    }

    /// Whether a frame at this address is in native code of a file with rules, and nothing has to
    /// be noted for it.
    pub(super) fn is_only_native(&self, address: u64) -> bool {
        let is_free = |(told, base): (&Evaluators<'_>, u64)| {
            !told.have_made() && !told.cover(address.wrapping_sub(base))
        };
        matches!(self.text, Text::Told(..)) && self.evaluators().is_none_or(is_free)
    }

    /// Returns what the file says about evaluators, and the address at which offset 0 of the file
    /// is, or would be.
    pub(super) fn evaluators(&self) -> Option<(&Evaluators<'a>, u64)> {
        let Text::Told(table, _, offset) = &self.text else {
            return None;
        };
        Some((table.evaluators()?, self.start.wrapping_sub(*offset)))
    }

    /// Whether the file's walker finds the callers of frames in generated code.
    pub(super) fn tells_callers(&self) -> bool {
        let told = self.evaluators();
        told.is_some_and(|(told, _)| told.tell_callers())
    }
}

/// What is known about text while interrupts are off.
pub(super) struct Known<'a> {
    /// The two mappings that were looked up last: most callers are in the mapping of their callee,
    /// or in that of its callee.
    mapped: [Mapped<'a>; 2],
    /// Whether the last address was in the second one.
    is_second: bool,
    pub(super) rules: Cache<'a>,
    guard: &'a CpuGuard,
}

// The memory of the rules is declared in C.
const _: () = assert!(
    size_of::<[Slot; SLOTS]>()
        == bindings::DTRACE_UNWIND_RULES as usize * size_of::<bindings::dtrace_unwind_rule>()
        && align_of::<Slot>() == align_of::<bindings::dtrace_unwind_rule>()
);

impl<'a> Known<'a> {
    pub(super) fn new(guard: &'a CpuGuard) -> Self {
        // SAFETY: No preconditions.
        let any = unsafe { bindings::dtrace_unwind_any() };
        // Without tables nothing is known at any address.
        let nothing = |end| Mapped {
            start: 0,
            end,
            text: Text::Untold,
        };
        // SAFETY: The pointer is to this CPU's rules, of which there are `SLOTS`, with the size and
        // alignment of slots (asserted above). They were zeroed when they were allocated and are
        // written only as slots, and all-zero slots are valid. The guard claims this CPU while it
        // lives, so no other walk accesses them, and they are freed only after all claims have
        // ended.
        let rules = unsafe { &*bindings::dtrace_unwind_rules_here().cast::<[Slot; SLOTS]>() };
        Self {
            mapped: [nothing(if any { 0 } else { u64::MAX }), nothing(0)],
            is_second: false,
            rules: Cache(rules),
            guard,
        }
    }

    /// Whether the mapping of an address has been looked up.
    pub(super) fn has(&self, address: u64) -> bool {
        self.mapped.iter().any(|mapped| mapped.has(address))
    }

    /// Returns the mapping of an address, which is looked up if necessary.
    pub(super) fn at(&mut self, address: u64) -> &Mapped<'a> {
        let [first, second] = &mut self.mapped;
        let (last, other) = match self.is_second {
            false => (first, second),
            true => (second, first),
        };
        if last.has(address) {
            return last;
        }
        self.is_second = !self.is_second;
        if !other.has(address) {
            *other = mapped(address, self.guard);
        }
        other
    }
}

/// Returns from where to where there is the same text as at an address, and what is known about it
/// while interrupts are off.
fn mapped(address: u64, interrupts_off: &CpuGuard) -> Mapped<'_> {
    let mut found = bindings::dtrace_unwind_place::default();
    // SAFETY: The guard proves that interrupts are off and the CPU is claimed, as the helper
    // requires; `found` is valid for the write.
    unsafe { bindings::dtrace_unwind_at(address, &mut found) };
    found_there(&found, interrupts_off)
}

/// Converts what C has found.
fn found_there<'a>(
    found: &bindings::dtrace_unwind_place,
    _interrupts_off: &'a CpuGuard,
) -> Mapped<'a> {
    let text = if found.is_nowhere {
        Text::Nowhere
    } else if found.is_made {
        Text::Made
    } else if found.bytes.is_null() {
        Text::Untold
    } else {
        // SAFETY: C has returned a table of that many bytes, which is neither changed nor freed
        // while interrupts are off, so during `'a`.
        let bytes = unsafe { core::slice::from_raw_parts(found.bytes, found.size as usize) };
        match Table::new(bytes) {
            Some(table) => Text::Told(table, found.number, found.offset),
            None => Text::Untold,
        }
    };
    Mapped {
        start: found.start,
        end: found.end,
        text,
    }
}

/// The most files, and the most mappings, that are searched for the owner of generated code: see
/// the engine's `SOUGHT`.
const TEXTS_MAX: usize = 64;
const MAPPINGS_MAX: u32 = 512;

/// Returns the text of the current program whose file says that its walker finds the callers of
/// frames in generated code. Calls `seek` if it has to be searched for.
pub(super) fn teller(guard: &CpuGuard, seek: impl FnOnce()) -> Option<Mapped<'_>> {
    // SAFETY: The guard proves that this CPU is claimed and interrupts are off, as the helper
    // requires.
    let kept = unsafe { bindings::dtrace_unwind_teller() };
    match kept {
        u64::MAX => return None,
        0 => {}
        kept => {
            let found = mapped(kept, guard);
            if found.tells_callers() {
                return Some(found);
            }
        }
    }
    seek();
    let found = search_teller(guard);
    let start = found.as_ref().map_or(u64::MAX, |found| found.start);
    // SAFETY: As above.
    unsafe { bindings::dtrace_unwind_keep_teller(start) };
    found
}

/// Searches the mappings for it, from the highest address down, because the text that a program has
/// loaded first lies highest.
fn search_teller(guard: &CpuGuard) -> Option<Mapped<'_>> {
    let mut place = bindings::dtrace_unwind_place::default();
    let mut left = MAPPINGS_MAX;
    let mut at = u64::MAX;
    for _ in 0..TEXTS_MAX {
        // SAFETY: Interrupts are off, as the guard proves; `left` and `place` are valid for the
        // writes.
        at = unsafe { bindings::dtrace_unwind_below(at, &mut left, &mut place) };
        if at == 0 {
            return None;
        }
        let found = found_there(&place, guard);
        if found.tells_callers() {
            return Some(found);
        }
    }
    None
}
