// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Random expressions against a model of C's arithmetic: folded by the compiler, and computed by the engine.
//!
//! Where C leaves open what an overflow gives, in signed types, D computes in 64 bits until the value is cast.

use super::language::value_of;
use proptest::prelude::*;

/// C's integer types: size and sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Type {
    size: u32,
    signed: bool,
    name: &'static str,
}

const fn ty(size: u32, signed: bool, name: &'static str) -> Type {
    Type { size, signed, name }
}

const INT: Type = ty(4, true, "int");
const TYPES: [Type; 8] = [
    ty(1, true, "signed char"),
    ty(1, false, "unsigned char"),
    ty(2, true, "short"),
    ty(2, false, "unsigned short"),
    INT,
    ty(4, false, "unsigned int"),
    ty(8, true, "long"),
    ty(8, false, "unsigned long"),
];

impl Type {
    fn cut(self, value: i128) -> i128 {
        let modulus = 1i128 << (self.size * 8);
        let low = value.rem_euclid(modulus);
        if self.signed && low >= modulus / 2 {
            low - modulus
        } else {
            low
        }
    }

    /// What a computation in this type gives.
    fn wrap(self, value: i128) -> i128 {
        match self.signed {
            true => TYPES[6].cut(value),
            false => self.cut(value),
        }
    }

    /// `value` of this type as one of the type `to`.
    fn convert(self, to: Self, value: i128) -> i128 {
        if self.promoted() == to {
            value
        } else {
            to.cut(value)
        }
    }

    fn promoted(self) -> Self {
        if self.size < 4 {
            INT
        } else {
            self
        }
    }

    fn with(self, other: Self) -> Self {
        let (a, b) = (self.promoted(), other.promoted());
        if a.size != b.size {
            return if a.size > b.size { a } else { b };
        }
        if a.signed {
            b
        } else {
            a
        }
    }
}

/// An expression, of which constants and variables are the leaves.
#[derive(Clone, Debug)]
enum Tree {
    Leaf(usize, i64),
    Unary(&'static str, Box<Tree>),
    Binary(&'static str, Box<Tree>, Box<Tree>),
    Shift(&'static str, Box<Tree>, u32),
    Cond(Box<Tree>, Box<Tree>, Box<Tree>),
    Cast(usize, Box<Tree>),
}

fn tree() -> impl Strategy<Value = Tree> {
    let number = prop_oneof![
        any::<i64>(),
        any::<i32>().prop_map(i64::from),
        -3i64..4,
        Just(i64::from(i32::MIN)),
        Just(i64::MIN),
    ];
    let leaf = (0..TYPES.len(), number).prop_map(|(ty, value)| Tree::Leaf(ty, value));
    leaf.prop_recursive(5, 40, 3, |inner| {
        let boxed = || inner.clone().prop_map(Box::new);
        let unary = prop::sample::select(&["-", "~", "!", "+"][..]);
        let binary = prop::sample::select(
            &[
                "+", "-", "*", "/", "%", "&", "|", "^", "<", "<=", ">", ">=", "==", "!=", "&&",
                "||", "^^",
            ][..],
        );
        let shift = prop::sample::select(&["<<", ">>"][..]);
        prop_oneof![
            (unary, boxed()).prop_map(|(op, e)| Tree::Unary(op, e)),
            (binary, boxed(), boxed()).prop_map(|(op, a, b)| Tree::Binary(op, a, b)),
            (shift, boxed(), 0u32..32).prop_map(|(op, e, n)| Tree::Shift(op, e, n)),
            (boxed(), boxed(), boxed()).prop_map(|(c, a, b)| Tree::Cond(c, a, b)),
            (0..TYPES.len(), boxed()).prop_map(|(ty, e)| Tree::Cast(ty, e)),
        ]
    })
}

impl Tree {
    /// The expression in D; leaves become variables, which `declare` collects, if it is there.
    fn text(&self, declare: &mut Option<Vec<String>>) -> String {
        match self {
            Self::Leaf(ty, value) => {
                let name = TYPES[*ty].name;
                let constant = format!("({name})({}ull)", *value as u64);
                match declare {
                    Some(variables) => {
                        let n = variables.len();
                        variables.push(format!("v{n} = {constant};"));
                        format!("v{n}")
                    }
                    None => constant,
                }
            }
            Self::Unary(op, e) => format!("({op} {})", e.text(declare)),
            // A divisor is never zero.
            Self::Binary(op @ ("/" | "%"), a, b) => {
                format!("({} {op} ({} | 1))", a.text(declare), b.text(declare))
            }
            Self::Binary(op, a, b) => format!("({} {op} {})", a.text(declare), b.text(declare)),
            Self::Shift(op, e, n) => format!("({} {op} {n})", e.text(declare)),
            Self::Cond(c, a, b) => {
                format!(
                    "({} ? {} : {})",
                    c.text(declare),
                    a.text(declare),
                    b.text(declare)
                )
            }
            Self::Cast(ty, e) => format!("({})({})", TYPES[*ty].name, e.text(declare)),
        }
    }

    /// Type and value by the model.
    fn eval(&self) -> (Type, i128) {
        match self {
            Self::Leaf(ty, value) => (TYPES[*ty], TYPES[*ty].cut(i128::from(*value as u64))),
            Self::Unary("!", e) => (INT, i128::from(e.eval().1 == 0)),
            Self::Unary(op, e) => {
                let (ty, value) = e.eval();
                let ty = ty.promoted();
                let value = match *op {
                    "-" => -value,
                    "~" => !value,
                    _ => value,
                };
                (ty, ty.wrap(value))
            }
            Self::Binary(op @ ("&&" | "||" | "^^"), a, b) => {
                let (a, b) = (a.eval().1 != 0, b.eval().1 != 0);
                let value = match *op {
                    "&&" => a && b,
                    "||" => a || b,
                    _ => a != b,
                };
                (INT, i128::from(value))
            }
            Self::Binary(op, a, b) => binary(op, a.eval(), b.eval()),
            Self::Shift(op, e, n) => {
                let (ty, value) = e.eval();
                let ty = ty.promoted();
                let value = match *op {
                    "<<" => value << n,
                    _ => value >> n,
                };
                (ty, ty.wrap(value))
            }
            Self::Cond(c, a, b) => {
                let ((a_ty, a), (b_ty, b)) = (a.eval(), b.eval());
                let ty = a_ty.with(b_ty);
                let value = match c.eval().1 != 0 {
                    true => a_ty.convert(ty, a),
                    false => b_ty.convert(ty, b),
                };
                (ty, value)
            }
            Self::Cast(ty, e) => (TYPES[*ty], TYPES[*ty].cut(e.eval().1)),
        }
    }
}

fn binary(op: &str, (a_ty, a): (Type, i128), (b_ty, b): (Type, i128)) -> (Type, i128) {
    let ty = a_ty.with(b_ty);
    // The divisor's `| 1` computes in its own promoted type.
    let b = match op {
        "/" | "%" => b | 1,
        _ => b,
    };
    let (a, b) = (a_ty.convert(ty, a), b_ty.convert(ty, b));
    let truth = |value| (INT, i128::from(value));
    let value = match op {
        "+" => a + b,
        "-" => a - b,
        "*" => a.wrapping_mul(b),
        "/" => a / b,
        "%" => a % b,
        "&" => a & b,
        "|" => a | b,
        "^" => a ^ b,
        "<" => return truth(a < b),
        "<=" => return truth(a <= b),
        ">" => return truth(a > b),
        ">=" => return truth(a >= b),
        "==" => return truth(a == b),
        _ => return truth(a != b),
    };
    (ty, ty.wrap(value))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn expressions_are_what_c_makes_of_them(tree in tree()) {
        let expected = (tree.eval().1 as u64 as i64).to_string();
        prop_assert_eq!(value_of("", &tree.text(&mut None)), expected.clone());
        let mut variables = Some(Vec::new());
        let text = tree.text(&mut variables);
        let assignments = variables.unwrap_or_default().join(" ");
        prop_assert_eq!(value_of(&assignments, &text), expected);
    }
}
