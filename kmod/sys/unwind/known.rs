// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! What is known of a program's text, as long as interrupts are off: mappings, and the rules of their files' tables.

use crate::bindings;
use crate::sys::percpu::CpuGuard;
use dtrace_unwind::cache::{Cache, Slot, SLOTS};
use dtrace_unwind::{rule, Evaluators, Place, Rule, Table};

/// What is known of the text of a mapping.
pub(super) enum Text<'a> {
    /// It is none.
    Nowhere,
    /// Nothing.
    Untold,
    /// No file has it: the program has made it.
    Made,
    /// Its file's rules, the number of its table, and where in the file it begins.
    Told(Table<'a>, u64, u64),
}

/// What is known of the text from the start to the end.
pub(super) struct Mapped<'a> {
    start: u64,
    end: u64,
    pub(super) text: Text<'a>,
}

impl<'a> Mapped<'a> {
    pub(super) fn has(&self, address: u64) -> bool {
        address >= self.start && address < self.end
    }

    /// Whether nothing is there that can be executed.
    pub(super) fn is_nowhere(&self) -> bool {
        matches!(self.text, Text::Nowhere)
    }

    /// The bytes of the rule of an instruction of it, if its file has any.
    pub(super) fn rule(&self, address: u64, rules: Cache<'_>) -> Option<[u8; rule::SIZE]> {
        let Text::Told(table, number, offset) = &self.text else {
            return None;
        };
        let offset = address.wrapping_sub(self.start).wrapping_add(*offset);
        Some(rules.rule(*number, table, offset))
    }

    /// What is known of that instruction.
    pub(super) fn place(&self, rule: Option<[u8; rule::SIZE]>) -> Place {
        match (&self.text, rule) {
            (Text::Nowhere, _) => Place::NoText,
            (_, None) => Place::Nothing,
            (_, Some(rule)) => Place::Rule(Rule::decode(rule).unwrap_or(Rule::UNKNOWN)),
        }
    }

    /// Whether a frame there is nothing but native code of a file that has rules.
    pub(super) fn is_only_native(&self, address: u64) -> bool {
        let is_free = |(told, base): (&Evaluators<'_>, u64)| {
            !told.have_made() && !told.cover(address.wrapping_sub(base))
        };
        matches!(self.text, Text::Told(..)) && self.evaluators().is_none_or(is_free)
    }

    /// What the file says of evaluators, and where offset 0 of the file is, or would be.
    pub(super) fn evaluators(&self) -> Option<(&Evaluators<'a>, u64)> {
        let Text::Told(table, _, offset) = &self.text else {
            return None;
        };
        Some((table.evaluators()?, self.start.wrapping_sub(*offset)))
    }

    /// Whether the file's walker tells the callers of frames in code that the program has made.
    pub(super) fn tells_callers(&self) -> bool {
        let told = self.evaluators();
        told.is_some_and(|(told, _)| told.tell_callers())
    }
}

/// What is known of text, as long as interrupts are off.
pub(super) struct Known<'a> {
    /// The mappings that were looked up last: most callers are in that of who they call, or of who called that.
    mapped: [Mapped<'a>; 2],
    /// Whether the last address was in the second.
    is_second: bool,
    pub(super) rules: Cache<'a>,
    guard: &'a CpuGuard,
}

// The rules are C's memory.
const _: () = assert!(
    size_of::<[Slot; SLOTS]>()
        == bindings::DTRACE_UNWIND_RULES as usize * size_of::<bindings::dtrace_unwind_rule>()
        && align_of::<Slot>() == align_of::<bindings::dtrace_unwind_rule>()
);

impl<'a> Known<'a> {
    pub(super) fn new(guard: &'a CpuGuard) -> Self {
        // SAFETY: No preconditions.
        let any = unsafe { bindings::dtrace_unwind_any() };
        // Without tables nothing is known anywhere.
        let nothing = |end| Mapped {
            start: 0,
            end,
            text: Text::Untold,
        };
        // SAFETY: The guard says that this CPU is claimed: until it is let go nobody else gets at its rules, of which there are so
        // many, zeroed when they were allocated and written as slots alone; they stay until all claims have ended.
        let rules = unsafe { &*bindings::dtrace_unwind_rules_here().cast::<[Slot; SLOTS]>() };
        Self {
            mapped: [nothing(if any { 0 } else { u64::MAX }), nothing(0)],
            is_second: false,
            rules: Cache(rules),
            guard,
        }
    }

    /// Whether the mapping of an address was looked up.
    pub(super) fn has(&self, address: u64) -> bool {
        self.mapped.iter().any(|mapped| mapped.has(address))
    }

    /// The mapping of an address.
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

/// From where to where there is the same text as at an address, and what is known of it as long as interrupts are off.
fn mapped(address: u64, interrupts_off: &CpuGuard) -> Mapped<'_> {
    let mut found = bindings::dtrace_unwind_place::default();
    // SAFETY: Interrupts are off; `found` is valid for the write.
    unsafe { bindings::dtrace_unwind_at(address, &mut found) };
    found_there(&found, interrupts_off)
}

/// What was found there.
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
        // SAFETY: They stay and do not change while interrupts are off.
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

/// Most files, and most mappings, that are looked at for whose the code is that the program has made: see the engine's `SOUGHT`.
const TEXTS_MAX: usize = 64;
const MAPPINGS_MAX: u32 = 512;

/// The text of the current program whose file says that its walker tells the callers of frames in code that the program has made; `seek` is called
/// if it has to be looked for.
pub(super) fn teller(guard: &CpuGuard, seek: impl FnOnce()) -> Option<Mapped<'_>> {
    // SAFETY: The guard says that this CPU is claimed, and interrupts are off.
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

/// The same among the mappings, from the highest address on: what a program has loaded first lies there.
fn search_teller(guard: &CpuGuard) -> Option<Mapped<'_>> {
    let mut place = bindings::dtrace_unwind_place::default();
    let mut left = MAPPINGS_MAX;
    let mut at = u64::MAX;
    for _ in 0..TEXTS_MAX {
        // SAFETY: Interrupts are off; `left` and `place` are valid for the writes.
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
