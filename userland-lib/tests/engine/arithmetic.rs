// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tests random expressions, folded by the compiler and computed by the engine, against a model of
//! C's arithmetic.
//!
//! Where C leaves a result undefined, D defines it. Overflows of signed types are computed in 64
//! bits until the value is converted; an expression of constants becomes a `long` instead. An
//! undeclared variable has 64 bits. The left operand is evaluated first.

use super::language::{run, value_of};
use proptest::prelude::*;
use std::cmp::Ordering;

/// An integer type of C: size, sign and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Type {
    size: u32,
    signed: bool,
    name: &'static str,
    /// Values have 64 bits regardless of `size`: for undeclared variables and for results computed
    /// from them.
    has_64_bits: bool,
}

const fn ty(size: u32, signed: bool, name: &'static str) -> Type {
    Type {
        size,
        signed,
        name,
        has_64_bits: size == 8,
    }
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
        let bits = if self.has_64_bits { 64 } else { self.size * 8 };
        let modulus = 1i128 << bits;
        let low = value.rem_euclid(modulus);
        if self.signed && low >= modulus / 2 {
            low - modulus
        } else {
            low
        }
    }

    /// The result of a computation in this type before it is converted.
    fn wrap(self, value: i128) -> i128 {
        match self.signed {
            true => TYPES[6].cut(value),
            false => self.cut(value),
        }
    }

    /// Converts `value` from this type to the type `to`.
    fn convert(self, to: Self, value: i128) -> i128 {
        if self.promoted() == to {
            value
        } else {
            to.cut(self.cut(value))
        }
    }

    /// The type of an undeclared variable to which a value of this type is assigned.
    fn undeclared(self) -> Self {
        Self {
            has_64_bits: true,
            ..self.promoted()
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
        let usual = match a.size.cmp(&b.size) {
            Ordering::Greater => a,
            Ordering::Less => b,
            Ordering::Equal if a.signed => b,
            Ordering::Equal => a,
        };
        Self {
            has_64_bits: a.has_64_bits || b.has_64_bits,
            ..usual
        }
    }
}

/// Kinds of variables: declaration and use. Each kind has one variable of each type.
const KINDS: [(&str, &str); 6] = [
    ("T gN;", "gN"),
    ("self T tN;", "self->tN"),
    ("this T lN;", "this->lN"),
    ("T mN[int, string];", "mN[N, \"key\"]"),
    ("T aN[3];", "aN[2]"),
    ("struct sN { char before; T it; } sN;", "sN.it"),
];
const VARIABLES: usize = KINDS.len() * TYPES.len();

/// Replaces the number in `pattern` by that of variable `n`, which is below [`VARIABLES`].
fn spelled(pattern: &str, n: usize) -> String {
    let number = (n % TYPES.len()).to_string();
    pattern.replace('N', &number)
}

/// The declaration of variable `n`.
fn declaration(n: usize) -> String {
    let (declaration, _) = KINDS[n / TYPES.len()];
    spelled(declaration, n).replace('T', TYPES[n % TYPES.len()].name)
}

/// Variable `n` as written in an expression.
fn variable(n: usize) -> String {
    spelled(KINDS[n / TYPES.len()].1, n)
}

/// An expression. The leaves are constants and variables.
#[derive(Clone, Debug)]
enum Tree {
    Leaf(usize, i64),
    Var(usize),
    Unary(&'static str, Box<Tree>),
    Binary(&'static str, Box<Tree>, Box<Tree>),
    Shift(&'static str, Box<Tree>, u32),
    Cond(Box<Tree>, Box<Tree>, Box<Tree>),
    Cast(usize, Box<Tree>),
    Comma(Box<Tree>, Box<Tree>),
    /// `=`, or a compound assignment if the operator is not empty.
    Assign(&'static str, usize, Box<Tree>),
    /// `++` or `--`; the flag says whether it precedes the variable.
    Step(&'static str, bool, usize),
}

const ARITHMETIC: [&str; 8] = ["+", "-", "*", "/", "%", "&", "|", "^"];
const TRUTHS: [&str; 9] = ["<", "<=", ">", ">=", "==", "!=", "&&", "||", "^^"];

/// Generates expressions. They read and write variables if `variables` is set.
fn tree(variables: bool) -> impl Strategy<Value = Tree> {
    let number = prop_oneof![
        any::<i64>(),
        any::<i32>().prop_map(i64::from),
        -3i64..4,
        Just(i64::from(i32::MIN)),
        Just(i64::MIN),
    ];
    let leaf = (0..TYPES.len(), number).prop_map(|(ty, value)| Tree::Leaf(ty, value));
    let weight = u32::from(variables);
    let read = (0..VARIABLES).prop_map(Tree::Var);
    let leaf = prop_oneof![1 => leaf, weight => read];
    leaf.prop_recursive(5, 40, 3, move |inner| {
        let boxed = || inner.clone().prop_map(Box::new);
        let unary = prop::sample::select(&["-", "~", "!", "+"][..]);
        let binary = prop::sample::select([&ARITHMETIC[..], &TRUTHS].concat());
        let shift = prop::sample::select(&["<<", ">>"][..]);
        let assign = prop::sample::select([&ARITHMETIC[..], &["", "<<", ">>"]].concat());
        let step = prop::sample::select(&["++", "--"][..]);
        let to = 0..VARIABLES;
        prop_oneof![
            2 => (unary, boxed()).prop_map(|(op, e)| Tree::Unary(op, e)),
            4 => (binary, boxed(), boxed()).prop_map(|(op, a, b)| Tree::Binary(op, a, b)),
            2 => (shift, boxed(), 0u32..32).prop_map(|(op, e, n)| Tree::Shift(op, e, n)),
            2 => (boxed(), boxed(), boxed()).prop_map(|(c, a, b)| Tree::Cond(c, a, b)),
            2 => (0..TYPES.len(), boxed()).prop_map(|(ty, e)| Tree::Cast(ty, e)),
            1 => (boxed(), boxed()).prop_map(|(a, b)| Tree::Comma(a, b)),
            4 * weight => (assign, to.clone(), boxed()).prop_map(|(op, to, e)| Tree::Assign(op, to, e)),
            weight => (step, any::<bool>(), to).prop_map(|(op, before, to)| Tree::Step(op, before, to)),
        ]
    })
}

/// The text of the right operand of `op`, changed so that a divisor is never zero and a shift count
/// is below 32.
fn right_operand(op: &str, text: String) -> String {
    match op {
        "/" | "%" => format!("({text} | 1)"),
        "<<" | ">>" => format!("({text} & 31)"),
        _ => text,
    }
}

impl Tree {
    /// The expression in D. If `declare` is set, constants become variables, whose assignments are
    /// collected there.
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
            Self::Var(n) => variable(*n),
            Self::Unary(op, e) => format!("({op} {})", e.text(declare)),
            Self::Binary(op, a, b) => {
                let a = a.text(declare);
                format!("({a} {op} {})", right_operand(op, b.text(declare)))
            }
            Self::Shift(op, e, n) => format!("({} {op} {n})", e.text(declare)),
            Self::Cond(c, a, b) => {
                let [c, a, b] = [c, a, b].map(|e| e.text(declare));
                format!("({c} ? {a} : {b})")
            }
            Self::Cast(ty, e) => format!("({})({})", TYPES[*ty].name, e.text(declare)),
            Self::Comma(a, b) => format!("({}, {})", a.text(declare), b.text(declare)),
            Self::Assign(op, to, e) => {
                let value = right_operand(op, e.text(declare));
                format!("({} {op}= {value})", variable(*to))
            }
            Self::Step(op, true, to) => format!("({op}{})", variable(*to)),
            Self::Step(op, false, to) => format!("({}{op})", variable(*to)),
        }
    }

    /// Evaluates the expression by the model and updates the variables. The leaves are undeclared
    /// variables if `undeclared`, otherwise constants.
    fn eval(&self, vars: &mut [i128; VARIABLES], undeclared: bool) -> Value {
        match self {
            Self::Leaf(ty, value) => {
                let ty = TYPES[*ty];
                let value = ty.cut(i128::from(*value as u64));
                match undeclared {
                    true => Value::of(ty.undeclared(), value),
                    false => Value::constant(ty, value),
                }
            }
            Self::Var(n) => Value::of(TYPES[n % TYPES.len()], vars[*n]),
            Self::Unary("!", e) => {
                let operand = e.eval(vars, undeclared);
                operand.truth(operand.cut() == 0)
            }
            Self::Unary(op, e) => {
                let operand = e.eval(vars, undeclared);
                let value = match *op {
                    "-" => -operand.value,
                    "~" => !operand.value,
                    _ => operand.value,
                };
                operand.computed(operand.ty.promoted(), value)
            }
            Self::Binary(op @ ("&&" | "||"), a, b) => {
                let first = a.eval(vars, undeclared);
                let decided = (first.cut() != 0) == (*op == "||");
                // Both operands determine the type, even if only one is evaluated.
                let mut unused = *vars;
                let second = b.eval(if decided { &mut unused } else { vars }, undeclared);
                first.with(second).truth(match *op {
                    "&&" => first.cut() != 0 && second.cut() != 0,
                    _ => first.cut() != 0 || second.cut() != 0,
                })
            }
            Self::Binary(op, a, b) => {
                let a = a.eval(vars, undeclared);
                binary(op, a, b.eval(vars, undeclared))
            }
            Self::Shift(op, e, n) => {
                let e = e.eval(vars, undeclared);
                binary(op, e, Value::constant(INT, i128::from(*n)))
            }
            Self::Cond(c, a, b) => {
                let condition = c.eval(vars, undeclared);
                let (taken, other) = match condition.cut() != 0 {
                    true => (a, b),
                    false => (b, a),
                };
                // Both operands determine the type, but only one is evaluated.
                let mut unused = *vars;
                let taken = taken.eval(vars, undeclared);
                let other = other.eval(&mut unused, undeclared);
                let ty = taken.ty.with(other.ty);
                Value {
                    ty,
                    value: taken.ty.convert(ty, taken.value),
                    constant: condition.constant && taken.constant,
                }
            }
            Self::Cast(ty, e) => {
                let operand = e.eval(vars, undeclared);
                let ty = TYPES[*ty];
                Value {
                    ty,
                    value: ty.cut(operand.cut()),
                    ..operand
                }
            }
            Self::Comma(a, b) => {
                a.eval(vars, undeclared);
                let last = b.eval(vars, undeclared);
                Value::of(last.ty, last.value)
            }
            Self::Assign(op, to, e) => {
                let ty = TYPES[to % TYPES.len()];
                let old = Value::of(ty, vars[*to]);
                let given = e.eval(vars, undeclared);
                let value = match *op {
                    "" => given.ty.convert(ty, given.value),
                    op => binary(op, old, given).value,
                };
                vars[*to] = ty.cut(value);
                Value::of(ty, vars[*to])
            }
            Self::Step(op, before, to) => {
                let ty = TYPES[to % TYPES.len()];
                let old = vars[*to];
                vars[*to] = ty.cut(if *op == "++" { old + 1 } else { old - 1 });
                Value::of(ty, if *before { vars[*to] } else { old })
            }
        }
    }

    /// The value after conversion to its type.
    fn value(&self, vars: &mut [i128; VARIABLES], undeclared: bool) -> i128 {
        self.eval(vars, undeclared).cut()
    }
}

/// The value of an expression in the model.
#[derive(Clone, Copy)]
struct Value {
    ty: Type,
    value: i128,
    /// The compiler knows the value.
    constant: bool,
}

impl Value {
    fn of(ty: Type, value: i128) -> Self {
        Self {
            ty,
            value,
            constant: false,
        }
    }

    fn constant(ty: Type, value: i128) -> Self {
        Self {
            ty,
            value,
            constant: true,
        }
    }

    fn cut(self) -> i128 {
        self.ty.cut(self.value)
    }

    /// This value, constant only if `other` is constant, too.
    fn with(self, other: Self) -> Self {
        Self {
            constant: self.constant && other.constant,
            ..self
        }
    }

    /// The result of a computation in the type `ty`. A constant that exceeds `int` becomes a
    /// `long`.
    fn computed(self, ty: Type, value: i128) -> Self {
        let value = ty.wrap(value);
        let leaves = self.constant && ty == INT && INT.cut(value) != value;
        Self {
            ty: if leaves { TYPES[6] } else { ty },
            value,
            ..self
        }
    }

    fn truth(self, value: bool) -> Self {
        Self {
            ty: INT,
            value: value.into(),
            ..self
        }
    }
}

/// Evaluates `a op b` with the right operand changed as [`right_operand`] does.
fn binary(op: &str, a: Value, b: Value) -> Value {
    let both = a.with(b);
    if let "<<" | ">>" = op {
        let n = b.value & 31;
        let value = if op == "<<" {
            a.value << n
        } else {
            a.value >> n
        };
        return both.computed(a.ty.promoted(), value);
    }
    let ty = a.ty.with(b.ty);
    // `| 1` is computed in the promoted type of the divisor.
    let divisor = match op {
        "/" | "%" => b.value | 1,
        _ => b.value,
    };
    let (a, b) = (a.ty.convert(ty, a.value), b.ty.convert(ty, divisor));
    let (left, right) = (ty.cut(a), ty.cut(b));
    let value = match op {
        "+" => a + b,
        "-" => a - b,
        "*" => a.wrapping_mul(b),
        "/" => a / b,
        "%" => a % b,
        "&" => a & b,
        "|" => a | b,
        "^" => a ^ b,
        "<" => return both.truth(left < right),
        "<=" => return both.truth(left <= right),
        ">" => return both.truth(left > right),
        ">=" => return both.truth(left >= right),
        "==" => return both.truth(left == right),
        "^^" => return both.truth((left != 0) != (right != 0)),
        _ => return both.truth(left != right),
    };
    both.computed(ty, value)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn expressions_are_what_c_makes_of_them(tree in tree(false)) {
        let expected = |undeclared| (tree.value(&mut [0; VARIABLES], undeclared) as u64 as i64).to_string();
        prop_assert_eq!(value_of("", &tree.text(&mut None)), expected(false));
        let mut variables = Some(Vec::new());
        let text = tree.text(&mut variables);
        let assignments = variables.unwrap_or_default().join(" ");
        prop_assert_eq!(value_of(&assignments, &text), expected(true));
    }

    /// Checks the value of each expression and the values of all variables after it.
    #[test]
    fn assignments_are_what_c_makes_of_them(trees in prop::collection::vec(tree(true), 1..4)) {
        let mut vars = [0; VARIABLES];
        let mut expected = String::new();
        let mut text: String = (0..VARIABLES).map(declaration).collect();
        text += "BEGIN {";
        for n in 0..VARIABLES {
            // Clause-local variables are not initialised.
            text += &format!("{} = 0;", variable(n));
        }
        for tree in &trees {
            text += &format!("printf(\"%d \", (long)({}));", tree.text(&mut None));
            expected += &format!("{} ", tree.value(&mut vars, false) as u64 as i64);
        }
        for (n, value) in vars.iter().enumerate() {
            text += &format!("printf(\"%d \", (long){});", variable(n));
            expected += &format!("{} ", *value as u64 as i64);
        }
        let output = run(&[&format!("{text}}}")]);
        prop_assert_eq!(output.trim_start_matches('|').trim(), expected.trim());
    }
}
