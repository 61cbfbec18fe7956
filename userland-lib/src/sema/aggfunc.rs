// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Aggregating functions: their arguments, and the parameters of distributions.
//!
//! The parameters must be constants, for the kernel lays out the buckets before anything fires; they are packed
//! into the action's `arg`. All uses of one aggregation must agree on them.

use super::hir::Expr;
use crate::diag::{Diagnostic, Result};
use crate::source::Span;
use crate::types::Types;
use dtrace_uapi::action::{Action, Llquantize, Lquantize};

/// A checked call of an aggregating function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aggregating {
    /// The function.
    pub func: Action,
    /// The packed parameters of a distribution, or 0.
    pub arg: u64,
    /// Which of the arguments is aggregated.
    pub value: Option<usize>,
    /// Which of the arguments says by how much the value's bucket grows, if not by one.
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

/// The aggregating function `name`.
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

/// The name of an aggregating function.
pub fn name(func: Action) -> &'static str {
    match func {
        Action::Count => "count",
        Action::Min => "min",
        Action::Max => "max",
        Action::Avg => "avg",
        Action::Sum => "sum",
        Action::Stddev => "stddev",
        Action::Quantize => "quantize",
        Action::Lquantize => "lquantize",
        Action::Llquantize => "llquantize",
        _ => "?",
    }
}

/// The least and the greatest number of arguments.
fn arity(func: Action) -> (usize, usize) {
    match func {
        Action::Count => (0, 0),
        Action::Quantize => (1, 2),
        Action::Lquantize => (3, 5),
        Action::Llquantize => (5, 6),
        _ => (1, 1),
    }
}

/// Checks a call of `func`.
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

/// An argument that must be constant, with what its errors need. DTrace counts the arguments of distributions from
/// the one after the value.
struct Constant<'a> {
    function: &'a str,
    number: usize,
    expr: &'a Expr,
}

impl Constant<'_> {
    fn error(&self, tag: &'static str, text: &str) -> Box<Diagnostic> {
        let Self {
            function, number, ..
        } = self;
        let text = format!("{function}( ) argument #{number} {text}");
        Diagnostic::new(tag, self.expr.span, text)
    }

    fn value(&self, tag: &'static str) -> Result<i64> {
        let value = self.expr.constant();
        value
            .map(|value| value as i64)
            .ok_or_else(|| self.error(tag, "must be an integer constant"))
    }

    fn positive(&self, tag: &'static str) -> Result<i64> {
        let value = self.expr.constant().map(|value| value as i64);
        value
            .filter(|&value| value > 0)
            .ok_or_else(|| self.error(tag, "must be a non-zero positive integer constant"))
    }
}

fn lquantize(args: &[Expr], span: Span) -> Result<u64> {
    let constant = |number: usize| {
        let expr = args.get(number)?;
        Some(Constant {
            function: "lquantize",
            number,
            expr,
        })
    };
    let bound = |number, type_tag, value_tag| -> Result<i32> {
        let constant = constant(number).ok_or_else(|| missing(span))?;
        i32::try_from(constant.value(type_tag)?)
            .map_err(|_| constant.error(value_tag, "must be a 32-bit quantity"))
    };
    let base = bound(1, "D_LQUANT_BASETYPE", "D_LQUANT_BASEVAL")?;
    let limit = bound(2, "D_LQUANT_LIMTYPE", "D_LQUANT_LIMVAL")?;
    if limit <= base {
        return Err(Diagnostic::new(
            "D_LQUANT_MISMATCH",
            span,
            "lquantize( ) base (argument #1) must be less than limit (argument #2)",
        ));
    }
    let step = match constant(3) {
        None => 1,
        Some(constant) => u16::try_from(constant.positive("D_LQUANT_STEPTYPE")?)
            .map_err(|_| constant.error("D_LQUANT_STEPVAL", "must be a 16-bit quantity"))?,
    };
    let levels = (i64::from(limit) - i64::from(base)) / i64::from(step);
    if levels == 0 {
        return Err(Diagnostic::new(
            "D_LQUANT_STEPLARGE",
            span,
            "lquantize( ) step (argument #3) too large: must have at least one quantization level",
        ));
    }
    let levels = u16::try_from(levels).map_err(|_| {
        Diagnostic::new(
            "D_LQUANT_STEPSMALL",
            span,
            "lquantize( ) step (argument #3) too small: number of quantization levels must be a \
             16-bit quantity",
        )
    })?;
    Ok(Lquantize { base, step, levels }.pack())
}

/// What is said of an argument that [`check`] has already seen to be there.
fn missing(span: Span) -> Box<Diagnostic> {
    Diagnostic::new("D_PROTO_LEN", span, "prototype mismatch: missing argument")
}

fn llquantize(args: &[Expr]) -> Result<u64> {
    let [_, args @ ..] = args else {
        return Err(missing(Span::default()));
    };
    let [factor, low, high, steps, ..] = args else {
        return Err(missing(Span::default()));
    };
    let constant = |number, expr| Constant {
        function: "llquantize",
        number,
        expr,
    };
    let small = |constant: &Constant<'_>, type_tag, value_tag| -> Result<u16> {
        u16::try_from(constant.value(type_tag)?)
            .map_err(|_| constant.error(value_tag, "must be an unsigned 16-bit quantity"))
    };
    let first = constant(1, factor);
    let factor = first.value("D_LLQUANT_FACTORTYPE")?;
    let factor = u16::try_from(factor).ok().filter(|&factor| factor >= 2);
    let factor = factor.ok_or_else(|| {
        let text = "must be an unsigned 16-bit quantity greater than or equal to 2";
        first.error("D_LLQUANT_FACTORVAL", text)
    })?;
    let low = small(&constant(2, low), "D_LLQUANT_LMAGTYPE", "D_LLQUANT_LMAGVAL")?;
    let third = constant(3, high);
    let high = small(&third, "D_LLQUANT_HMAGTYPE", "D_LLQUANT_HMAGVAL")?;
    if high < low {
        let text = "(high magnitude) must be at least argument #2 (low magnitude)";
        return Err(third.error("D_LLQUANT_HMAGVAL", text));
    }
    if i64::from(factor).checked_pow(u32::from(high) + 1).is_none() {
        let text = "(high magnitude) will cause overflow of 64 bits";
        return Err(third.error("D_LLQUANT_HMAGVAL", text));
    }
    let fourth = constant(4, steps);
    let nsteps = fourth.positive("D_LLQUANT_STEPTYPE")?;
    let nsteps = u16::try_from(nsteps)
        .map_err(|_| fourth.error("D_LLQUANT_STEPVAL", "must be an unsigned 16-bit quantity"))?;
    let parameters = Llquantize {
        factor,
        low,
        high,
        nsteps,
    };
    if parameters.is_valid() {
        return Ok(parameters.pack());
    }
    let text = if nsteps < factor {
        "(steps) must evenly divide argument #1 (factor) when steps<factor"
    } else if nsteps % factor != 0 {
        "(steps) must be a multiple of argument #1 (factor) when steps>factor"
    } else if low == 0 {
        "(steps) must evenly divide the square of argument #1 (factor) when steps>factor and lmag==0"
    } else {
        "(steps) must evenly divide pow(argument #1 (factor), lmag (argument #2) + 1) when \
         steps>factor and lmag>0"
    };
    Err(fourth.error("D_LLQUANT_STEPVAL", text))
}

/// Checks that a second use of an aggregation has the parameters of the first.
pub fn same_parameters(func: Action, old: u64, new: u64, span: Span) -> Result<()> {
    let differ = |tag, what: &str, old: i64, new: i64| {
        if old == new {
            return Ok(());
        }
        let name = name(func);
        Err(Diagnostic::new(
            tag,
            span,
            format!(
                "{name}( ) {what} doesn't match previous declaration: expected {old}, found {new}"
            ),
        ))
    };
    match func {
        Action::Lquantize => {
            let (old, new) = (Lquantize::unpack(old), Lquantize::unpack(new));
            let limit = |l: Lquantize| i64::from(l.base) + i64::from(l.levels) * i64::from(l.step);
            let step = |l: Lquantize| i64::from(l.step);
            let (base, other) = (old.base.into(), new.base.into());
            differ("D_LQUANT_MATCHBASE", "base (argument #1)", base, other)?;
            differ(
                "D_LQUANT_MATCHLIM",
                "limit (argument #2)",
                limit(old),
                limit(new),
            )?;
            differ(
                "D_LQUANT_MATCHSTEP",
                "step (argument #3)",
                step(old),
                step(new),
            )
        }
        Action::Llquantize => {
            let (old, new) = (Llquantize::unpack(old), Llquantize::unpack(new));
            for (tag, what, old, new) in [
                (
                    "D_LLQUANT_MATCHFACTOR",
                    "factor (argument #1)",
                    old.factor,
                    new.factor,
                ),
                (
                    "D_LLQUANT_MATCHLMAG",
                    "lmag (argument #2)",
                    old.low,
                    new.low,
                ),
                (
                    "D_LLQUANT_MATCHHMAG",
                    "hmag (argument #3)",
                    old.high,
                    new.high,
                ),
                (
                    "D_LLQUANT_MATCHSTEPS",
                    "steps (argument #4)",
                    old.nsteps,
                    new.nsteps,
                ),
            ] {
                differ(tag, what, old.into(), new.into())?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::hir::ExprKind;
    use super::*;
    use crate::types::Ty;
    use crate::world::Nowhere;
    use expect_test::{expect, Expect};

    fn constants(values: &[i64]) -> Vec<Expr> {
        let int = |&value: &i64| Expr::int(value as u64, Ty::INT, Span::default());
        values.iter().map(int).collect()
    }

    fn variable(ty: Ty) -> Expr {
        let kind = ExprKind::Builtin(dtrace_uapi::var::Var::Arg0);
        Expr::new(kind, ty, Span::default())
    }

    fn call(name: &str, args: &[Expr]) -> Result<Aggregating> {
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
            assert_eq!(name(function(text).unwrap()), text);
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
    fn parameters_out_of_range_have_tags() {
        for (name, args, tag) in [
            ("lquantize", &[1, 1 << 40, 2][..], "D_LQUANT_BASEVAL"),
            ("lquantize", &[1, 0, 1 << 40], "D_LQUANT_LIMVAL"),
            ("lquantize", &[1, 10, 10], "D_LQUANT_MISMATCH"),
            ("lquantize", &[1, 0, 10, 0], "D_LQUANT_STEPTYPE"),
            ("lquantize", &[1, 0, 1 << 30, 1 << 16], "D_LQUANT_STEPVAL"),
            ("lquantize", &[1, 0, 10, 20], "D_LQUANT_STEPLARGE"),
            ("lquantize", &[1, 0, 1 << 20, 1], "D_LQUANT_STEPSMALL"),
            (
                "lquantize",
                &[1, i32::MIN as i64, i32::MAX as i64],
                "D_LQUANT_STEPSMALL",
            ),
            ("llquantize", &[1, 65536, 0, 6, 20], "D_LLQUANT_FACTORVAL"),
            ("llquantize", &[1, 1, 0, 6, 20], "D_LLQUANT_FACTORVAL"),
            ("llquantize", &[1, 10, -1, 6, 20], "D_LLQUANT_LMAGVAL"),
            ("llquantize", &[1, 10, 4, 3, 20], "D_LLQUANT_HMAGVAL"),
            ("llquantize", &[1, 10, 0, 65536, 20], "D_LLQUANT_HMAGVAL"),
            ("llquantize", &[1, 10, 0, 30, 20], "D_LLQUANT_HMAGVAL"),
            ("llquantize", &[1, 10, 0, 6, 0], "D_LLQUANT_STEPTYPE"),
            ("llquantize", &[1, 10, 0, 6, 65536], "D_LLQUANT_STEPVAL"),
            ("llquantize", &[1, 10, 0, 6, 3], "D_LLQUANT_STEPVAL"),
            ("llquantize", &[1, 10, 0, 6, 25], "D_LLQUANT_STEPVAL"),
            ("llquantize", &[1, 10, 0, 6, 30], "D_LLQUANT_STEPVAL"),
            ("llquantize", &[1, 10, 2, 6, 80], "D_LLQUANT_STEPVAL"),
        ] {
            let error = call(name, &constants(args)).unwrap_err();
            assert_eq!(error.tag, tag, "{name}{args:?}");
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

    #[test]
    fn later_uses_agree_with_the_first() {
        let pack = |name, args: &[i64]| call(name, &constants(args)).unwrap().arg;
        let check = |name, a: &[i64], b: &[i64], expected: Expect| {
            let func = function(name).unwrap();
            let result = same_parameters(func, pack(name, a), pack(name, b), Span::default());
            let error = result.unwrap_err();
            expected.assert_eq(&format!("[{}] {}", error.tag, error.message));
        };
        let same = same_parameters(Action::Lquantize, 5, 5, Span::default());
        assert_eq!(same, Ok(()));
        check(
            "lquantize",
            &[1, 0, 100, 10],
            &[1, 10, 100, 10],
            expect!["[D_LQUANT_MATCHBASE] lquantize( ) base (argument #1) doesn't match previous declaration: expected 0, found 10"],
        );
        check(
            "lquantize",
            &[1, 0, 100, 10],
            &[1, 0, 200, 10],
            expect!["[D_LQUANT_MATCHLIM] lquantize( ) limit (argument #2) doesn't match previous declaration: expected 100, found 200"],
        );
        check(
            "lquantize",
            &[1, 0, 100, 10],
            &[1, 0, 100, 20],
            expect!["[D_LQUANT_MATCHSTEP] lquantize( ) step (argument #3) doesn't match previous declaration: expected 10, found 20"],
        );
        check(
            "llquantize",
            &[1, 10, 0, 6, 20],
            &[1, 20, 0, 6, 20],
            expect!["[D_LLQUANT_MATCHFACTOR] llquantize( ) factor (argument #1) doesn't match previous declaration: expected 10, found 20"],
        );
        check(
            "llquantize",
            &[1, 10, 0, 6, 20],
            &[1, 10, 1, 6, 20],
            expect!["[D_LLQUANT_MATCHLMAG] llquantize( ) lmag (argument #2) doesn't match previous declaration: expected 0, found 1"],
        );
        check(
            "llquantize",
            &[1, 10, 0, 6, 20],
            &[1, 10, 0, 5, 20],
            expect!["[D_LLQUANT_MATCHHMAG] llquantize( ) hmag (argument #3) doesn't match previous declaration: expected 6, found 5"],
        );
        check(
            "llquantize",
            &[1, 10, 0, 6, 20],
            &[1, 10, 0, 6, 50],
            expect!["[D_LLQUANT_MATCHSTEPS] llquantize( ) steps (argument #4) doesn't match previous declaration: expected 20, found 50"],
        );
    }
}
