// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tests random structures of bit-fields and plain members against a model: every member keeps the
//! value that was last assigned to it, truncated to its width, regardless of assignments to its
//! neighbours.

use super::language::run;
use proptest::prelude::*;

/// Types of members: name, bits, and whether the type is signed.
const TYPES: [(&str, u32, bool); 8] = [
    ("signed char", 8, true),
    ("unsigned char", 8, false),
    ("short", 16, true),
    ("unsigned short", 16, false),
    ("int", 32, true),
    ("unsigned int", 32, false),
    ("long", 64, true),
    ("unsigned long", 64, false),
];

/// A member: its type, and its width if it is a bit-field.
#[derive(Clone, Copy, Debug)]
struct Member {
    ty: usize,
    width: Option<u32>,
}

impl Member {
    fn bits(self) -> u32 {
        self.width.unwrap_or(TYPES[self.ty].1)
    }

    /// Truncates `value` to the member's width.
    fn cut(self, value: i64) -> i64 {
        let unused = 64 - self.bits();
        match TYPES[self.ty].2 {
            true => value << unused >> unused,
            false => ((value as u64) << unused >> unused) as i64,
        }
    }

    fn declaration(self, number: usize) -> String {
        let name = TYPES[self.ty].0;
        match self.width {
            Some(width) => format!("{name} m{number} : {width};"),
            None => format!("{name} m{number};"),
        }
    }
}

fn member() -> impl Strategy<Value = Member> {
    let bits = |ty: usize| {
        let width = prop_oneof![4 => (1..=TYPES[ty].1).prop_map(Some), 1 => Just(None)];
        width.prop_map(move |width| Member { ty, width })
    };
    (0..TYPES.len()).prop_flat_map(bits)
}

/// Assignments: the member, the value, and the operator: `=`, `+=` or `^=`.
fn assignments() -> impl Strategy<Value = Vec<(prop::sample::Index, i64, u8)>> {
    prop::collection::vec((any::<prop::sample::Index>(), any::<i64>(), 0u8..3), 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn members_do_not_disturb_each_other(
        members in prop::collection::vec(member(), 1..8),
        assignments in assignments(),
        global in any::<bool>(),
    ) {
        let mut held = vec![0i64; members.len()];
        let (scope, prefix) = if global { ("", "") } else { ("this ", "this->") };
        let declared: String = members.iter().enumerate().map(|(n, m)| m.declaration(n)).collect();
        // All members are set to zero first.
        let mut body: String = (0..members.len()).map(|n| format!("{prefix}v.m{n} = 0; ")).collect();
        for (which, value, how) in assignments {
            let n = which.index(members.len());
            let (op, new) = match how {
                0 => ("=", value),
                1 => ("+=", held[n].wrapping_add(value)),
                _ => ("^=", held[n] ^ value),
            };
            held[n] = members[n].cut(new);
            body += &format!("{prefix}v.m{n} {op} (long){}ull; ", value as u64);
        }
        let shown: String = (0..members.len())
            .map(|n| format!("printf(\"%d \", (long){prefix}v.m{n}); "))
            .collect();
        let text = format!("struct s {{ {declared} }}; {scope}struct s v; BEGIN {{ {body}{shown} }}");
        let expected: String = held.iter().map(|value| format!("{value} ")).collect();
        prop_assert_eq!(run(&[&text]), format!("|{expected}"), "{}", text);
    }
}
