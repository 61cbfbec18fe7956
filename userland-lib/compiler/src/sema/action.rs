// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Actions: statements in the form of a call that record data or have an effect.
//!
//! Each call becomes one statement for the consumer, and one action for the kernel for each of its
//! records (see [`crate::program`]). Operations of the consumer alone (`clear()`, `setopt()`, …)
//! are actions too: their record tells the consumer when to perform them.

use super::actions::{self, Id, Row};
use super::call::incompatible;
use super::clause::{Builder, Order};
use super::Sema;
use crate::diag::{Diagnostic, Result};
use crate::hir::{self, Expr};
use crate::source::Span;
use crate::statement::Statement;
use crate::syntax::ast::{self, ExprKind};
use dtrace_types::Ty;
use dtrace_uapi::action::{ustack_arg, Action, Libact};
use dtrace_uapi::limits::FRAMES_MAX;
use dtrace_uapi::subr::Subr;

/// A call of an action.
#[derive(Clone, Copy)]
pub(super) struct Called<'a> {
    pub(super) row: &'static Row,
    pub(super) args: &'a [ast::Expr],
    pub(super) span: Span,
}

impl Called<'_> {
    /// Returns the action's name.
    pub(super) fn name(&self) -> &'static str {
        self.row.name
    }

    pub(super) fn error(&self, tag: &'static str, text: &str) -> Box<Diagnostic> {
        Diagnostic::new(tag, self.span, format!("{}( ) {text}", self.name()))
    }

    /// Returns argument `index` if it is a string constant.
    pub(super) fn constant_text(&self, index: usize) -> Option<&[u8]> {
        match &self.args.get(index)?.kind {
            ExprKind::Str(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the span of argument `index`, or that of the call if there is no such argument.
    pub(super) fn place(&self, index: usize) -> Span {
        self.args.get(index).map_or(self.span, |arg| arg.span)
    }
}

impl Sema<'_, '_> {
    /// Checks a statement that calls `name` and adds its actions. Returns `false` if `name` is not
    /// an action.
    pub(super) fn action(
        &mut self,
        name: &str,
        _name_span: Span,
        args: &[ast::Expr],
        span: Span,
        builder: &mut Builder,
    ) -> Result<bool> {
        let Some(row) = actions::find(name) else {
            return Ok(false);
        };
        row.check_count(args.len(), span)?;
        let call = Called { row, args, span };
        self.check_order(&call, &mut builder.order)?;
        let one = |statement, value| (statement, vec![hir::Action::new(row.kernel, value, 0)]);
        let (statement, actions) = match row.id {
            Id::Trace => self.trace(&call)?,
            Id::Printf | Id::System | Id::Freopen => self.formatted(&call)?,
            Id::Print => self.print(&call)?,
            Id::Printa => self.printa(&call)?,
            Id::Tracemem => self.tracemem(&call)?,
            Id::Exit => {
                let status = self.integer(&call, 0, Ty::INT)?;
                one(Statement::Exit, Some(self.value(&status)?))
            }
            Id::Clear | Id::Denormalize | Id::Normalize | Id::Trunc => {
                self.on_aggregation(&call)?
            }
            Id::Setopt => self.setopt(&call)?,
            Id::Ftruncate => (Statement::Ftruncate, vec![libact(Libact::Ftruncate, None)]),
            Id::Speculate if builder.branches => {
                self.speculate_on(&call, builder)?;
                return Ok(true);
            }
            Id::Speculate | Id::Commit | Id::Discard => self.speculation(&call)?,
            Id::Raise => {
                let signal = self.integer(&call, 0, Ty::INT)?;
                one(Statement::Action, Some(self.unrecorded(&signal)?))
            }
            Id::Chill => {
                // The prototype says `int`, but a duration in nanoseconds may need more bits.
                let time = self.integral(&call, 0, Ty::INT)?;
                let time = self.convert(time, Ty::UINT64_T);
                one(Statement::Action, Some(self.unrecorded(&time)?))
            }
            Id::Stop | Id::Panic | Id::Breakpoint => one(Statement::Action, None),
            Id::Address => (Statement::Action, vec![self.address(&call)?]),
        };
        let uarg = self.add_statement(statement, span);
        builder.actions.extend(
            actions
                .into_iter()
                .map(|action| hir::Action { uarg, ..action }),
        );
        Ok(true)
    }

    /// Enforces the order rules of speculations: what may not follow `speculate()` or `commit()`,
    /// and that neither may follow a data-recording action.
    fn check_order(&self, call: &Called<'_>, order: &mut Order) -> Result<()> {
        let follows = |tag, text: &str| Err(call.error(tag, &format!("may not follow {text}")));
        match call.row.id {
            Id::Speculate if order.speculated => return follows("D_SPEC_SPEC", "speculate( )"),
            Id::Speculate if order.committed => return follows("D_SPEC_COMM", "commit( )"),
            Id::Speculate if order.recorded => {
                return follows("D_SPEC_DREC", "data-recording action(s)")
            }
            Id::Speculate => order.speculated = true,
            Id::Commit if order.speculated => return follows("D_COMM_DREC", "speculate( )"),
            Id::Commit if order.recorded => {
                return follows("D_COMM_DREC", "data-recording action(s)")
            }
            Id::Commit => order.committed = true,
            Id::Exit if order.speculated => return follows("D_EXIT_SPEC", "speculate( )"),
            _ if call.row.is_destructive() && order.speculated => {
                let message = "destructive actions may not follow speculate( )";
                return Err(Diagnostic::new("D_ACT_SPEC", call.span, message));
            }
            _ if !call.row.records() => {}
            _ if order.committed => {
                let message = "data-recording actions may not follow commit( )";
                return Err(Diagnostic::new("D_DREC_COMM", call.span, message));
            }
            _ => order.recorded = true,
        }
        Ok(())
    }

    /// Returns argument `index`, typed.
    pub(super) fn argument(&mut self, call: &Called<'_>, index: usize) -> Result<Expr> {
        match call.args.get(index) {
            Some(arg) => self.expression(arg),
            None => Err(call.error("D_PROTO_LEN", "prototype mismatch")),
        }
    }

    /// Returns the type of argument `index`; `void` if it was not given.
    pub(super) fn type_of_argument(&mut self, call: &Called<'_>, index: usize) -> Result<Ty> {
        match call.args.get(index) {
            Some(arg) => Ok(self.expression(arg)?.ty),
            None => Ok(Ty::VOID),
        }
    }

    /// Returns argument `index`, which must be an integer. `ty` is the type in the prototype, for
    /// messages.
    fn integral(&mut self, call: &Called<'_>, index: usize, ty: Ty) -> Result<Expr> {
        let arg = self.argument(call, index)?;
        let types = &self.state.types;
        if types.int(arg.ty).is_none() {
            let (wanted, given) = (types.name(ty), types.name(arg.ty));
            return Err(incompatible(call.name(), index, &wanted, &given, arg.span));
        }
        Ok(arg)
    }

    /// Returns argument `index`, which must be an integer, converted to the integer type `ty`.
    pub(super) fn integer(&mut self, call: &Called<'_>, index: usize, ty: Ty) -> Result<Expr> {
        let arg = self.integral(call, index, ty)?;
        Ok(self.convert(arg, ty))
    }

    /// Returns argument `index`, a constant above 0 that fits 32 bits, or `None` if it was not
    /// given. `ty` is the type in the prototype; `tag` and `what` describe the error.
    pub(super) fn positive_size(
        &mut self,
        call: &Called<'_>,
        index: usize,
        ty: Ty,
        tag: &'static str,
        what: &str,
    ) -> Result<Option<u32>> {
        if index >= call.args.len() {
            return Ok(None);
        }
        let value = self.integral(call, index, ty)?;
        let constant = value.constant().and_then(|value| u32::try_from(value).ok());
        match constant.filter(|&value| value > 0) {
            Some(value) => Ok(Some(value)),
            None => {
                let text =
                    format!("{what} must be a non-zero positive integral constant expression");
                let message = format!("{}( ) {text}", call.name());
                Err(Diagnostic::new(tag, value.span, message))
            }
        }
    }

    fn on_aggregation(&mut self, call: &Called<'_>) -> Result<(Statement, Vec<hir::Action>)> {
        let (act, tag) = match call.row.id {
            Id::Clear => (Libact::Clear, "D_CLEAR_AGGARG"),
            Id::Trunc => (Libact::Trunc, "D_TRUNC_AGGARG"),
            Id::Normalize => (Libact::Normalize, "D_NORMALIZE_AGGARG"),
            _ => (Libact::Denormalize, "D_NORMALIZE_AGGARG"),
        };
        let known = match call.args.first() {
            Some(ast::Expr {
                kind: ExprKind::Agg { name, .. },
                span,
                ..
            }) => self.known_aggregation(name, call.name(), *span)?,
            Some(other) => {
                let ty = self.expression(other)?.ty;
                let given = self.state.types.name(ty);
                let mut error = incompatible(call.name(), 0, "aggregation", &given, other.span);
                error.tag = tag;
                return Err(error);
            }
            None => return Err(call.error("D_PROTO_LEN", "prototype mismatch")),
        };
        let code = match call.args.len() {
            2 => {
                let number = self.integer(call, 1, Ty::INT64_T)?;
                if act == Libact::Normalize && number.constant() == Some(0) {
                    let text = "argument #2 (normalization factor) may not be 0";
                    return Err(call.error("D_NORMALIZE_SCALAR", text));
                }
                Some(self.value(&number)?)
            }
            _ => None,
        };
        let statement = match act {
            Libact::Clear => Statement::Clear(known.id),
            Libact::Trunc => Statement::Trunc(known.id),
            Libact::Normalize => Statement::Normalize(known.id),
            _ => Statement::Denormalize(known.id),
        };
        Ok((statement, vec![libact(act, code)]))
    }

    fn setopt(&mut self, call: &Called<'_>) -> Result<(Statement, Vec<hir::Action>)> {
        let mut actions = Vec::new();
        for index in 0..call.args.len() {
            let text = self.argument(call, index)?;
            let types = &self.state.types;
            if !types.is_string_like(text.ty) {
                let given = types.name(text.ty);
                return Err(incompatible(
                    call.name(),
                    index,
                    "char *",
                    &given,
                    text.span,
                ));
            }
            // A constant is recorded whole, whatever `strsize` is.
            let whole = match &text.kind {
                hir::ExprKind::Str(text) => u32::try_from(text.len() + 1).ok(),
                _ => None,
            };
            let text = self.string_value(text).retype(Ty::STRING);
            let code = match whole {
                Some(size) => self.bytes_at(&text, size, false)?,
                None => self.value(&text)?,
            };
            actions.push(libact(Libact::Setopt, Some(code)));
        }
        Ok((Statement::Setopt, actions))
    }

    /// Returns the arguments of a call that records a stack: the number of frames, and the bytes
    /// for strings (0 if not given). If the call gives no number of frames, the number is `unasked`
    /// if `maxframes` is set, else `None`. `maxframes` limits a given number.
    fn stack_sizes(&mut self, call: &Called<'_>, unasked: u32) -> Result<(Option<u32>, u32)> {
        let ty = Ty::UINT32_T;
        let (tag, what) = size_words(call);
        let frames = self.positive_size(call, 0, ty, tag, what)?;
        let strings = self.positive_size(call, 1, ty, "D_USTACK_STRSIZE", "argument #2")?;
        let frames = match self.settings.maxframes {
            Some(most) => Some(frames.map_or(unasked, |n| n.min(most))),
            None => frames,
        };
        check_frames(call, frames)?;
        Ok((frames, strings.unwrap_or(0)))
    }

    /// Returns the value of a call of `stack()` or `ustack()` in an expression; `None` for any
    /// other `name`.
    pub(super) fn stack_value(
        &mut self,
        name: &str,
        args: &[ast::Expr],
        span: Span,
    ) -> Result<Option<Expr>> {
        let Some(row) = actions::find(name) else {
            return Ok(None);
        };
        let subr = match row.kernel {
            Action::Stack => Subr::Stack,
            Action::Ustack => Subr::Ustack,
            _ => return Ok(None),
        };
        row.check_count(args.len(), span)?;
        let call = Called { row, args, span };
        let unasked = self.settings.value_frames(name);
        let (frames, strings) = self.stack_sizes(&call, unasked)?;
        let frames = frames.unwrap_or(unasked);
        check_frames(&call, Some(frames))?;
        let size = |value: u32| Expr::int(value.into(), Ty::UINT32_T, span);
        let mut args = vec![size(frames)];
        if subr == Subr::Ustack {
            self.note_user_stack();
            args.push(size(strings));
        }
        let room = self.state.types.stack_room(frames);
        if room != 0 {
            args.push(size(room));
        }
        let ty = self.state.types.stack_of(frames);
        Ok(Some(Expr::new(hir::ExprKind::Call(subr, args), ty, span)))
    }

    /// Returns action and record type of a call that records a stack or an address, which can also
    /// be a key; `None` if `name` is something else.
    pub(super) fn address_action(
        &mut self,
        name: &str,
        args: &[ast::Expr],
        span: Span,
    ) -> Result<Option<(hir::Action, Ty)>> {
        let Some(row) = actions::find(name).filter(|row| row.id == Id::Address) else {
            return Ok(None);
        };
        row.check_count(args.len(), span)?;
        let action = self.address(&Called { row, args, span })?;
        Ok(Some((action, row.ty)))
    }

    /// Returns the action of a call that records a stack or an address.
    fn address(&mut self, call: &Called<'_>) -> Result<hir::Action> {
        let kind = call.row.kernel;
        let unasked = self.settings.frames(call.name());
        Ok(match kind {
            Action::Stack => {
                let (frames, _) = self.stack_sizes(call, unasked)?;
                hir::Action::new(kind, None, frames.unwrap_or(0).into())
            }
            Action::Ustack | Action::Jstack => {
                let (frames, strings) = self.stack_sizes(call, unasked)?;
                hir::Action::new(kind, None, ustack_arg(frames.unwrap_or(0), strings))
            }
            _ => {
                let address = self.argument(call, 0)?;
                let types = &self.state.types;
                if types.int(address.ty).is_none() && types.pointee(address.ty).is_none() {
                    let (wanted, given) = (types.name(Ty::UINTPTR_T), types.name(address.ty));
                    return Err(incompatible(call.name(), 0, &wanted, &given, address.span));
                }
                let address = match types.int(address.ty) {
                    Some(_) => self.convert(address, Ty::UINTPTR_T),
                    None => address.retype(Ty::UINTPTR_T),
                };
                hir::Action::new(kind, Some(self.value(&address)?), 0)
            }
        })
    }
}

/// Returns the tag and the words of an error about the number of frames.
fn size_words(call: &Called<'_>) -> (&'static str, &'static str) {
    match call.row.kernel {
        Action::Stack => ("D_STACK_SIZE", "size"),
        _ => ("D_USTACK_FRAMES", "argument #1"),
    }
}

/// Fails if no stack can have this number of frames.
fn check_frames(call: &Called<'_>, frames: Option<u32>) -> Result<()> {
    if frames.is_none_or(|frames| (1..=FRAMES_MAX).contains(&frames)) {
        return Ok(());
    }
    let (tag, what) = size_words(call);
    Err(call.error(
        tag,
        &format!("{what} must be from 1 to {FRAMES_MAX} frames"),
    ))
}

fn libact(act: Libact, code: Option<hir::Code>) -> hir::Action {
    hir::Action::new(Action::Libact, code, act as u64)
}
