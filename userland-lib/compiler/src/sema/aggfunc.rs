// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Aggregating functions and their arguments.
//!
//! The first argument is the value, which must be a scalar. The parameters of a distribution follow
//! ([`super::distribution`]), and last the increment, if the distribution counts by more than one.
//! Sums, means and extremes of floating-point numbers are separate functions ([`of_floats`]); a
//! distribution uses the integer part.

use super::distribution::{llquantize, lquantize};
use crate::diag::{Diagnostic, Result};
use crate::hir::Expr;
use crate::source::Span;
use dtrace_types::Types;
use dtrace_uapi::action::Action;

/// A checked call of an aggregating function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aggregating {
    /// The function.
    pub func: Action,
    /// The packed parameters of a distribution, or 0.
    pub arg: u64,
    /// Index of the argument that is aggregated.
    pub value: Option<usize>,
    /// Index of the argument by which the bucket of the value grows; `None`: it grows by one.
    pub increment: Option<usize>,
}

/// Names of the aggregating functions.
pub const NAMES: &[&str] = &[
    "avg",
    "count",
    "llquantize",
    "lquantize",
    "max",
    "min",
    "quantize",
    "stddev",
    "sum",
];

/// Returns the aggregating function called `name`.
pub fn function(name: &str) -> Option<Action> {
    Some(match name {
        "count" => Action::Count,
        "min" => Action::Min,
        "max" => Action::Max,
        "avg" => Action::Avg,
        "sum" => Action::Sum,
        "stddev" => Action::Stddev,
        "quantize" => Action::Quantize,
        "lquantize" => Action::Lquantize,
        "llquantize" => Action::Llquantize,
        _ => return None,
    })
}

/// Returns the name of an aggregating function.
pub fn name(func: Action) -> &'static str {
    match func {
        Action::Count => "count",
        Action::Min | Action::FloatMin => "min",
        Action::Max | Action::FloatMax => "max",
        Action::Avg | Action::FloatAvg => "avg",
        Action::Sum | Action::FloatSum => "sum",
        Action::Stddev | Action::FloatStddev => "stddev",
        Action::Quantize => "quantize",
        Action::Lquantize => "lquantize",
        Action::Llquantize => "llquantize",
        _ => "?",
    }
}

/// Returns the variant of `func` for floating-point numbers, if it has a separate one.
pub fn of_floats(func: Action) -> Option<Action> {
    Some(match func {
        Action::Min => Action::FloatMin,
        Action::Max => Action::FloatMax,
        Action::Avg => Action::FloatAvg,
        Action::Sum => Action::FloatSum,
        Action::Stddev => Action::FloatStddev,
        _ => return None,
    })
}

/// Returns a call of the function as messages show it.
pub fn called(func: Action) -> String {
    let what = if func.is_float() {
        " of floating-point numbers"
    } else {
        ""
    };
    format!("{}( ){what}", name(func))
}

/// Returns the least and the greatest number of arguments.
fn arity(func: Action) -> (usize, usize) {
    match func {
        Action::Count => (0, 0),
        Action::Quantize => (1, 2),
        Action::Lquantize => (3, 5),
        Action::Llquantize => (5, 6),
        _ => (1, 1),
    }
}

/// Checks the arguments of a call of `func`.
pub fn check(types: &Types<'_>, func: Action, args: &[Expr], span: Span) -> Result<Aggregating> {
    let name = name(func);
    let (least, most) = arity(func);
    if args.len() < least || args.len() > most {
        let expected = match args.len() < least {
            true if least < most => format!("at least {least}"),
            true => least.to_string(),
            false if least < most => format!("at most {most}"),
            false => most.to_string(),
        };
        let (n, plural) = (args.len(), if args.len() == 1 { "" } else { "s" });
        return Err(Diagnostic::new(
            "D_PROTO_LEN",
            span,
            format!("{name}( ) prototype mismatch: {n} arg{plural} passed, {expected} expected"),
        ));
    }
    if let Some(value) = args.first().filter(|value| !types.is_scalar(value.ty)) {
        return Err(Diagnostic::new(
            "D_AGG_SCALAR",
            value.span,
            format!("{name}( ) argument #1 must be of scalar type"),
        ));
    }
    let arg = match func {
        Action::Lquantize => lquantize(args, span)?,
        Action::Llquantize => llquantize(args)?,
        _ => 0,
    };
    let increment = matches!(
        func,
        Action::Quantize | Action::Lquantize | Action::Llquantize
    )
    .then(|| most - 1)
    .filter(|&at| at < args.len());
    if let Some(at) = increment {
        scalar_increment(types, name, at, &args[at])?;
    }
    Ok(Aggregating {
        func,
        arg,
        value: (!args.is_empty()).then_some(0),
        increment,
    })
}

fn scalar_increment(types: &Types<'_>, name: &str, at: usize, arg: &Expr) -> Result<()> {
    if types.is_scalar(arg.ty) {
        return Ok(());
    }
    Err(Diagnostic::new(
        "D_PROTO_ARG",
        arg.span,
        format!(
            "{name}( ) argument #{} is incompatible with prototype:\n\tprototype: int64_t\n\t argument: {}",
            at + 1,
            types.name(arg.ty)
        ),
    ))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::hir::ExprKind;
    use dtrace_objects::processes::Nowhere;
    use dtrace_types::Ty;

    pub fn constants(values: &[i64]) -> Vec<Expr> {
        let int = |&value: &i64| Expr::int(value as u64, Ty::INT, Span::default());
        values.iter().map(int).collect()
    }

    fn variable(ty: Ty) -> Expr {
        let kind = ExprKind::Builtin(dtrace_uapi::var::Var::Arg0);
        Expr::new(kind, ty, Span::default())
    }

    pub fn call(name: &str, args: &[Expr]) -> Result<Aggregating> {
        check(
            &Types::new(&Nowhere),
            function(name).unwrap(),
            args,
            Span::default(),
        )
    }

    #[test]
    fn names_and_functions_agree() {
        let all = "count min max avg sum stddev quantize lquantize llquantize";
        for text in all.split(' ') {
            let func = function(text).unwrap();
            assert_eq!(name(func), text);
            assert_eq!(name(of_floats(func).unwrap_or(func)), text);
        }
        assert_eq!(function("median"), None);
    }

    #[test]
    fn calls_give_parameters_value_and_increment() {
        for (name, args, arg, value, increment) in [
            ("count", &[][..], 0, None, None),
            ("sum", &[7], 0, Some(0), None),
            ("quantize", &[7], 0, Some(0), None),
            ("quantize", &[7, 2], 0, Some(0), Some(1)),
            (
                "lquantize",
                &[7, -10, 10],
                1 << 48 | 20 << 32 | 0xffff_fff6,
                Some(0),
                None,
            ),
            (
                "lquantize",
                &[7, 0, 100, 10],
                10 << 48 | 10 << 32,
                Some(0),
                None,
            ),
            (
                "lquantize",
                &[7, 0, 100, 10, 3],
                10 << 48 | 10 << 32,
                Some(0),
                Some(4),
            ),
            (
                "llquantize",
                &[7, 10, 0, 6, 20],
                10 << 48 | 6 << 16 | 20,
                Some(0),
                None,
            ),
            (
                "llquantize",
                &[7, 10, 0, 6, 20, 1],
                10 << 48 | 6 << 16 | 20,
                Some(0),
                Some(5),
            ),
        ] {
            let expected = Aggregating {
                func: function(name).unwrap(),
                arg,
                value,
                increment,
            };
            assert_eq!(call(name, &constants(args)), Ok(expected), "{name}{args:?}");
        }
    }

    #[test]
    fn numbers_of_arguments_are_checked() {
        for (name, n, text) in [
            (
                "count",
                1,
                "count( ) prototype mismatch: 1 arg passed, 0 expected",
            ),
            (
                "avg",
                0,
                "avg( ) prototype mismatch: 0 args passed, 1 expected",
            ),
            (
                "quantize",
                0,
                "quantize( ) prototype mismatch: 0 args passed, at least 1 expected",
            ),
            (
                "quantize",
                3,
                "quantize( ) prototype mismatch: 3 args passed, at most 2 expected",
            ),
            (
                "llquantize",
                4,
                "llquantize( ) prototype mismatch: 4 args passed, at least 5 expected",
            ),
        ] {
            let error = call(name, &constants(&vec![1; n])).unwrap_err();
            assert_eq!((error.tag, error.message.as_str()), ("D_PROTO_LEN", text));
        }
    }

    #[test]
    fn parameters_must_be_constants_and_values_scalars() {
        let int = |value| Expr::int(value, Ty::INT, Span::default());
        let x = || variable(Ty::INT);
        for (name, args, tag) in [
            ("lquantize", vec![x(), x(), int(2)], "D_LQUANT_BASETYPE"),
            ("lquantize", vec![x(), int(1), x()], "D_LQUANT_LIMTYPE"),
            (
                "lquantize",
                vec![x(), int(1), int(9), x()],
                "D_LQUANT_STEPTYPE",
            ),
            (
                "llquantize",
                vec![x(), x(), int(0), int(6), int(20)],
                "D_LLQUANT_FACTORTYPE",
            ),
            (
                "llquantize",
                vec![x(), int(10), x(), int(6), int(20)],
                "D_LLQUANT_LMAGTYPE",
            ),
            (
                "llquantize",
                vec![x(), int(10), int(0), x(), int(20)],
                "D_LLQUANT_HMAGTYPE",
            ),
            (
                "llquantize",
                vec![x(), int(10), int(0), int(6), x()],
                "D_LLQUANT_STEPTYPE",
            ),
            ("sum", vec![variable(Ty::STRING)], "D_AGG_SCALAR"),
            ("quantize", vec![x(), variable(Ty::STRING)], "D_PROTO_ARG"),
        ] {
            assert_eq!(call(name, &args).unwrap_err().tag, tag, "{name}");
        }
    }
}
