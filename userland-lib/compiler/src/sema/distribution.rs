// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The parameters of `lquantize()` and `llquantize()`.
//!
//! They must be constants, because the kernel lays out the buckets before any probe fires. They are
//! packed into the `arg` of the action. All uses of one aggregation must agree on them. Each bound
//! has an error of its own, as in DTrace.

use super::aggfunc::name;
use crate::diag::{Diagnostic, Result};
use crate::hir::Expr;
use crate::source::Span;
use dtrace_uapi::action::{Action, Llquantize, Lquantize};

/// An argument that must be constant, with what its errors need. DTrace counts the arguments of
/// distributions from the one after the value.
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

/// Returns the packed parameters of `lquantize(value, base, limit, step, …)`.
pub(super) fn lquantize(args: &[Expr], span: Span) -> Result<u64> {
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

/// Returns the error for a missing argument. It does not occur, because [`super::aggfunc::check`]
/// has already counted the arguments.
fn missing(span: Span) -> Box<Diagnostic> {
    Diagnostic::new("D_PROTO_LEN", span, "prototype mismatch: missing argument")
}

/// Returns the packed parameters of `llquantize(value, factor, low, high, steps, …)`.
pub(super) fn llquantize(args: &[Expr]) -> Result<u64> {
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

/// Checks that a later use of an aggregation has the parameters of the first.
pub(super) fn same_parameters(func: Action, old: u64, new: u64, span: Span) -> Result<()> {
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
    use super::super::aggfunc::function;
    use super::super::aggfunc::tests::{call, constants};
    use super::*;
    use expect_test::{expect, Expect};

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
