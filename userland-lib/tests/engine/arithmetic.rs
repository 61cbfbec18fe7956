// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Random expressions against a model of C's arithmetic: folded by the compiler, and computed by the engine.
//!
//! Where C leaves open what an overflow gives, in signed types, D computes in 64 bits until the value leaves the type.
//! Where it leaves open which operand comes first, in D the left one does.

use super::language::{run, value_of};
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
            to.cut(self.cut(value))
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

/// Kinds of variables: there is one of each type of each kind.
const KINDS: [(&str, &str); 6] = [
    ("T gN;", "gN"),
    ("self T tN;", "self->tN"),
    ("this T lN;", "this->lN"),
    ("T mN[int, string];", "mN[N, \"key\"]"),
    ("T aN[3];", "aN[2]"),
    ("struct sN { char before; T it; } sN;", "sN.it"),
];
const VARIABLES: usize = KINDS.len() * TYPES.len();

/// How often variable `n` of [`VARIABLES`] is what `pattern` says, with its type and number put in.
fn spelled(pattern: &str, n: usize) -> String {
    let number = (n % TYPES.len()).to_string();
    pattern.replace('N', &number)
}

/// The declaration of variable `n`.
fn declaration(n: usize) -> String {
    let (declaration, _) = KINDS[n / TYPES.len()];
    spelled(declaration, n).replace('T', TYPES[n % TYPES.len()].name)
}

/// Variable `n` in an expression.
fn variable(n: usize) -> String {
    spelled(KINDS[n / TYPES.len()].1, n)
}

/// An expression, of which constants and variables are the leaves.
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
    /// `=` with an operator before it, or none.
    Assign(&'static str, usize, Box<Tree>),
    /// `++` or `--`, before or after the variable.
    Step(&'static str, bool, usize),
}

const ARITHMETIC: [&str; 8] = ["+", "-", "*", "/", "%", "&", "|", "^"];
const TRUTHS: [&str; 9] = ["<", "<=", ">", ">=", "==", "!=", "&&", "||", "^^"];

/// Expressions, in which variables are read and written if `variables`.
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

/// The right operand of `op` as it is written: a divisor is never zero, and nothing is shifted too far.
fn right_operand(op: &str, text: String) -> String {
    match op {
        "/" | "%" => format!("({text} | 1)"),
        "<<" | ">>" => format!("({text} & 31)"),
        _ => text,
    }
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

    /// Type and value by the model, and what becomes of the variables.
    fn eval(&self, vars: &mut [i128; VARIABLES]) -> (Type, i128) {
        match self {
            Self::Leaf(ty, value) => (TYPES[*ty], TYPES[*ty].cut(i128::from(*value as u64))),
            Self::Var(n) => (TYPES[n % TYPES.len()], vars[*n]),
            Self::Unary("!", e) => (INT, i128::from(e.value(vars) == 0)),
            Self::Unary(op, e) => {
                let (ty, value) = e.eval(vars);
                let ty = ty.promoted();
                let value = match *op {
                    "-" => -value,
                    "~" => !value,
                    _ => value,
                };
                (ty, ty.wrap(value))
            }
            Self::Binary("&&", a, b) => {
                let both = a.value(vars) != 0 && b.value(vars) != 0;
                (INT, i128::from(both))
            }
            Self::Binary("||", a, b) => {
                let any = a.value(vars) != 0 || b.value(vars) != 0;
                (INT, i128::from(any))
            }
            Self::Binary(op, a, b) => binary(op, a.eval(vars), b.eval(vars)),
            Self::Shift(op, e, n) => binary(op, e.eval(vars), (INT, i128::from(*n))),
            Self::Cond(c, a, b) => {
                let condition = c.value(vars) != 0;
                // The type is of both, though only one is computed.
                let mut unused = *vars;
                let (taken, other) = if condition { (a, b) } else { (b, a) };
                let (taken, other) = (taken.eval(vars), other.eval(&mut unused));
                let ty = taken.0.with(other.0);
                (ty, taken.0.convert(ty, taken.1))
            }
            Self::Cast(ty, e) => (TYPES[*ty], TYPES[*ty].cut(e.value(vars))),
            Self::Comma(a, b) => {
                a.eval(vars);
                b.eval(vars)
            }
            Self::Assign(op, to, e) => {
                let ty = TYPES[to % TYPES.len()];
                let value = match *op {
                    "" => {
                        let (from, value) = e.eval(vars);
                        from.convert(ty, value)
                    }
                    op => {
                        let old = (ty, vars[*to]);
                        binary(op, old, e.eval(vars)).1
                    }
                };
                vars[*to] = ty.cut(value);
                (ty, vars[*to])
            }
            Self::Step(op, before, to) => {
                let ty = TYPES[to % TYPES.len()];
                let old = vars[*to];
                vars[*to] = ty.cut(if *op == "++" { old + 1 } else { old - 1 });
                (ty, if *before { vars[*to] } else { old })
            }
        }
    }

    /// The value once it leaves its type.
    fn value(&self, vars: &mut [i128; VARIABLES]) -> i128 {
        let (ty, value) = self.eval(vars);
        ty.cut(value)
    }
}

/// `a op b` with the right operand as [`right_operand`] writes it.
fn binary(op: &str, (a_ty, a): (Type, i128), (b_ty, b): (Type, i128)) -> (Type, i128) {
    if let "<<" | ">>" = op {
        let (ty, n) = (a_ty.promoted(), b & 31);
        return (ty, ty.wrap(if op == "<<" { a << n } else { a >> n }));
    }
    let ty = a_ty.with(b_ty);
    // The divisor's `| 1` computes in its own promoted type.
    let b = match op {
        "/" | "%" => b | 1,
        _ => b,
    };
    let (a, b) = (a_ty.convert(ty, a), b_ty.convert(ty, b));
    let truth = |value| (INT, i128::from(value));
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
        "<" => return truth(left < right),
        "<=" => return truth(left <= right),
        ">" => return truth(left > right),
        ">=" => return truth(left >= right),
        "==" => return truth(left == right),
        "^^" => return truth((left != 0) != (right != 0)),
        _ => return truth(left != right),
    };
    (ty, ty.wrap(value))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn expressions_are_what_c_makes_of_them(tree in tree(false)) {
        let expected = (tree.value(&mut [0; VARIABLES]) as u64 as i64).to_string();
        prop_assert_eq!(value_of("", &tree.text(&mut None)), expected.clone());
        let mut variables = Some(Vec::new());
        let text = tree.text(&mut variables);
        let assignments = variables.unwrap_or_default().join(" ");
        prop_assert_eq!(value_of(&assignments, &text), expected);
    }

    /// The value is right, and so is what every variable holds after it.
    #[test]
    fn assignments_are_what_c_makes_of_them(trees in prop::collection::vec(tree(true), 1..4)) {
        let mut vars = [0; VARIABLES];
        let mut expected = String::new();
        let mut text: String = (0..VARIABLES).map(declaration).collect();
        text += "BEGIN {";
        for n in 0..VARIABLES {
            // What is local to a clause holds anything at first.
            text += &format!("{} = 0;", variable(n));
        }
        for tree in &trees {
            text += &format!("printf(\"%d \", (long)({}));", tree.text(&mut None));
            expected += &format!("{} ", tree.value(&mut vars) as u64 as i64);
        }
        for (n, value) in vars.iter().enumerate() {
            text += &format!("printf(\"%d \", (long){});", variable(n));
            expected += &format!("{} ", *value as u64 as i64);
        }
        let output = run(&[&format!("{text}}}")]);
        prop_assert_eq!(output.trim_start_matches('|').trim(), expected.trim());
    }
}
