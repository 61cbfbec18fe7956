// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Actions: statements that record something or do something, as calls.
//!
//! Each call becomes one statement for the consumer and as many actions for the kernel as it has records (see
//! [`crate::program`]). What the consumer alone does (`clear()`, `setopt()`, …) is an action nevertheless: its record
//! tells when to do it.

use super::call::{check_count, incompatible};
use super::clause::{Builder, Order};
use super::hir::Expr;
use super::printf::{check_printa, check_printf, same_keys, Arg, Call};
use super::Sema;
use crate::diag::{Diagnostic, Result};
use crate::format::Format;
use crate::program::{ActionDesc, Difo};
use crate::source::Span;
use crate::statement::{Kind, Print, Statement};
use crate::syntax::ast::{self, ExprKind};
use crate::types::Ty;
use dtrace_uapi::action::{ustack_arg, Action, Libact};
use dtrace_uapi::types::{DifType, DIF_TF_BYREF};

/// Every action with the least and the greatest number of its arguments.
const ACTIONS: &[(&str, usize, Option<usize>)] = &[
    ("breakpoint", 0, Some(0)),
    ("chill", 1, Some(1)),
    ("clear", 1, Some(1)),
    ("commit", 1, Some(1)),
    ("denormalize", 1, Some(1)),
    ("discard", 1, Some(1)),
    ("exit", 1, Some(1)),
    ("freopen", 1, None),
    ("ftruncate", 0, Some(0)),
    ("func", 1, Some(1)),
    ("jstack", 0, Some(2)),
    ("mod", 1, Some(1)),
    ("normalize", 2, Some(2)),
    ("panic", 0, Some(0)),
    ("printa", 1, None),
    ("printf", 1, None),
    ("raise", 1, Some(1)),
    ("setopt", 1, Some(2)),
    ("speculate", 1, Some(1)),
    ("stack", 0, Some(1)),
    ("stop", 0, Some(0)),
    ("sym", 1, Some(1)),
    ("system", 1, None),
    ("trace", 1, Some(1)),
    ("tracemem", 2, Some(3)),
    ("trunc", 1, Some(2)),
    ("uaddr", 1, Some(1)),
    ("ufunc", 1, Some(1)),
    ("umod", 1, Some(1)),
    ("ustack", 0, Some(2)),
    ("usym", 1, Some(1)),
];

/// Whether `name` is an action, which has no value.
pub fn is_action(name: &str) -> bool {
    ACTIONS.iter().any(|(known, ..)| *known == name)
}

/// Names of all actions.
pub fn names() -> impl Iterator<Item = &'static str> {
    ACTIONS.iter().map(|(name, ..)| *name)
}

/// A call of an action.
#[derive(Clone, Copy)]
struct Called<'a> {
    name: &'a str,
    args: &'a [ast::Expr],
    span: Span,
}

impl Called<'_> {
    fn error(&self, tag: &'static str, text: &str) -> Box<Diagnostic> {
        Diagnostic::new(tag, self.span, format!("{}( ) {text}", self.name))
    }

    /// Place of an argument, or of the call.
    fn place(&self, index: usize) -> Span {
        self.args.get(index).map_or(self.span, |arg| arg.span)
    }
}

fn desc(kind: Action, difo: Option<Difo>, arg: u64) -> ActionDesc {
    ActionDesc {
        kind,
        difo,
        format: None,
        ntuple: 0,
        arg,
        uarg: 0,
    }
}

impl Sema<'_, '_> {
    /// Checks a statement that calls `name` and adds its actions; `false` if that is no action.
    pub(super) fn action(
        &mut self,
        name: &str,
        _name_span: Span,
        args: &[ast::Expr],
        span: Span,
        builder: &mut Builder,
    ) -> Result<bool> {
        let Some(&(name, least, most)) = ACTIONS.iter().find(|(known, ..)| *known == name) else {
            return Ok(false);
        };
        check_count(name, args.len(), least, most, span)?;
        let call = Called { name, args, span };
        self.check_order(&call, &mut builder.order)?;
        let (statement, actions) = match name {
            "trace" => self.trace(&call)?,
            "printf" | "system" | "freopen" => self.print(&call)?,
            "printa" => self.printa(&call)?,
            "tracemem" => self.tracemem(&call)?,
            "exit" => {
                let status = self.integer(&call, 0, Ty::INT)?;
                (
                    Statement::Exit,
                    vec![desc(Action::Exit, Some(self.value(&status)?), 0)],
                )
            }
            "clear" | "denormalize" | "normalize" | "trunc" => self.on_aggregation(&call)?,
            "setopt" => self.setopt(&call)?,
            "ftruncate" => (Statement::Ftruncate, vec![libact(Libact::Ftruncate, None)]),
            "speculate" | "commit" | "discard" => self.speculation(&call)?,
            "raise" => {
                let signal = self.integer(&call, 0, Ty::INT)?;
                (
                    Statement::Action,
                    vec![desc(Action::Raise, Some(self.unrecorded(&signal)?), 0)],
                )
            }
            "chill" => {
                let time = self.integer(&call, 0, Ty::UINT64_T)?;
                (
                    Statement::Action,
                    vec![desc(Action::Chill, Some(self.unrecorded(&time)?), 0)],
                )
            }
            "stop" => (Statement::Action, vec![desc(Action::Stop, None, 0)]),
            "panic" => (Statement::Action, vec![desc(Action::Panic, None, 0)]),
            "breakpoint" => (Statement::Action, vec![desc(Action::Breakpoint, None, 0)]),
            _ => {
                let found = self.address_action(name, args, span)?;
                let action = found.map(|(action, _)| action);
                (Statement::Action, action.into_iter().collect())
            }
        };
        let uarg = self.add_statement(statement, span);
        builder.actions.extend(
            actions
                .into_iter()
                .map(|action| ActionDesc { uarg, ..action }),
        );
        Ok(true)
    }

    /// Refuses what may not stand after `speculate()` or `commit()`, or they after something recorded.
    fn check_order(&self, call: &Called<'_>, order: &mut Order) -> Result<()> {
        let follows = |tag, text: &str| Err(call.error(tag, &format!("may not follow {text}")));
        match call.name {
            "speculate" if order.speculated => return follows("D_SPEC_SPEC", "speculate( )"),
            "speculate" if order.committed => return follows("D_SPEC_COMM", "commit( )"),
            "speculate" if order.recorded => {
                return follows("D_SPEC_DREC", "data-recording action(s)")
            }
            "speculate" => order.speculated = true,
            "commit" if order.committed => return follows("D_COMM_COMM", "commit( )"),
            "commit" if order.recorded => {
                return follows("D_COMM_DREC", "data-recording action(s)")
            }
            "commit" => order.committed = true,
            "exit" if order.speculated => return follows("D_EXIT_SPEC", "speculate( )"),
            "breakpoint" | "chill" | "copyout" | "panic" | "raise" | "stop" | "system"
                if order.speculated =>
            {
                return follows("D_ACT_SPEC", "speculate( )")
            }
            "breakpoint" | "chill" | "discard" | "panic" | "raise" | "stop" => (),
            _ if order.committed => {
                let message = "data-recording actions may not follow commit( )";
                return Err(Diagnostic::new("D_DREC_COMM", call.span, message));
            }
            _ => order.recorded = true,
        }
        Ok(())
    }

    /// Argument `index` as an integer of type `ty`.
    fn integer(&mut self, call: &Called<'_>, index: usize, ty: Ty) -> Result<Expr> {
        let Some(arg) = call.args.get(index) else {
            return Err(call.error("D_PROTO_LEN", "prototype mismatch"));
        };
        let arg = self.expression(arg)?;
        let types = &self.state.types;
        if types.int(arg.ty).is_none() {
            let (wanted, given) = (types.name(ty), types.name(arg.ty));
            return Err(incompatible(call.name, index, &wanted, &given, arg.span));
        }
        Ok(self.convert(arg, ty))
    }

    /// Argument `index` as a constant above 0 that fits 32 bits, if it is given.
    fn positive_size(
        &mut self,
        call: &Called<'_>,
        index: usize,
        tag: &'static str,
        what: &str,
    ) -> Result<Option<u32>> {
        let Some(arg) = call.args.get(index) else {
            return Ok(None);
        };
        let value = self.expression(arg)?;
        let constant = match self.state.types.int(value.ty) {
            Some(_) => value.constant().map(|value| value as i64),
            None => None,
        };
        match constant
            .and_then(|value| u32::try_from(value).ok())
            .filter(|&value| value > 0)
        {
            Some(value) => Ok(Some(value)),
            None => {
                let text =
                    format!("{what} must be a non-zero positive integral constant expression");
                Err(Diagnostic::new(
                    tag,
                    value.span,
                    format!("{}( ) {text}", call.name),
                ))
            }
        }
    }

    /// Argument `index` as a string constant.
    fn text(&mut self, call: &Called<'_>, index: usize) -> Result<String> {
        let arg = call.args.get(index);
        if let Some(ExprKind::Str(text)) = arg.map(|arg| &arg.kind) {
            return Ok(String::from_utf8_lossy(text).into_owned());
        }
        let given = match arg {
            Some(arg) => {
                let ty = self.expression(arg)?.ty;
                self.state.types.name(ty)
            }
            None => "void".to_owned(),
        };
        Err(incompatible(
            call.name,
            index,
            "string constant",
            &given,
            call.place(index),
        ))
    }

    fn format(&mut self, call: &Called<'_>) -> Result<(String, Format)> {
        let text = self.text(call, 0).map_err(|mut error| {
            if error.tag == "D_PROTO_ARG" {
                error.tag = "D_PRINTF_ARG_FMT";
            }
            error
        })?;
        match Format::parse(&text) {
            Ok(format) => Ok((text, format)),
            Err(error) => {
                let message = format!("{}( ) {error}", call.name);
                Err(Diagnostic::new("D_PRINTF_FMT", call.place(0), message))
            }
        }
    }

    fn trace(&mut self, call: &Called<'_>) -> Result<(Statement, Vec<ActionDesc>)> {
        if let Some(ast::Expr {
            kind: ExprKind::Agg { name, .. },
            span,
        }) = call.args.first()
        {
            let known = self.known_aggregation(name, call.name, *span)?;
            let statement = Statement::Printa {
                format: None,
                aggs: vec![known.id],
            };
            return Ok((statement, vec![desc(Action::Printa, None, 0)]));
        }
        let Some(arg) = call.args.first() else {
            return Err(call.error("D_PROTO_LEN", "prototype mismatch"));
        };
        let value = self.expression(arg)?;
        let value = self.typed(value)?;
        let types = &self.state.types;
        if types.resolve(value.ty) == Ty::VOID {
            return Err(call.error("D_TRACE_VOID", "may not be applied to a void expression"));
        }
        let statement = Statement::Trace(types.record_kind(value.ty));
        Ok((
            statement,
            vec![desc(Action::Difexpr, Some(self.value(&value)?), 0)],
        ))
    }

    fn print(&mut self, call: &Called<'_>) -> Result<(Statement, Vec<ActionDesc>)> {
        let (text, format) = self.format(call)?;
        let kind = match call.name {
            "system" => Action::System,
            "freopen" => Action::Freopen,
            _ => Action::Printf,
        };
        let mut actions = Vec::new();
        let mut shapes = Vec::new();
        for arg in call.args.get(1..).unwrap_or(&[]) {
            let called = match &arg.kind {
                ExprKind::Agg { .. } => {
                    shapes.push(Arg::Aggregation);
                    continue;
                }
                ExprKind::Call { name, args, .. } => self.address_action(name, args, arg.span)?,
                _ => None,
            };
            let (action, ty) = match called {
                Some(called) => called,
                None => {
                    let value = self.expression(arg)?;
                    let value = self.typed(value)?;
                    (desc(kind, Some(self.value(&value)?), 0), value.ty)
                }
            };
            shapes.push(Arg::Value(ty));
            actions.push(action);
        }
        let checked = Call {
            name: call.name,
            before: 1,
            span: call.span,
        };
        let args: Vec<Kind> = check_printf(&self.state.types, checked, &format, &shapes)?;
        if actions.is_empty() {
            actions.push(desc(kind, None, 0));
        }
        if let Some(first) = actions.first_mut() {
            first.format = Some(text);
        }
        let print = Print { format, args };
        let statement = match kind {
            Action::System => Statement::System(print),
            Action::Freopen => Statement::Freopen(print),
            _ => Statement::Printf(print),
        };
        Ok((statement, actions))
    }

    fn printa(&mut self, call: &Called<'_>) -> Result<(Statement, Vec<ActionDesc>)> {
        let has_format = !matches!(
            call.args.first().map(|arg| &arg.kind),
            Some(ExprKind::Agg { .. })
        );
        let format = match has_format {
            true if call.args.len() < 2 => {
                let text = "prototype mismatch: 1 args passed, 2 expected";
                return Err(call.error("D_PRINTA_PROTO", text));
            }
            true => Some(self.printa_format(call)?),
            false => None,
        };
        let mut known = Vec::new();
        for (index, arg) in call.args.iter().enumerate().skip(usize::from(has_format)) {
            let ExprKind::Agg { name, .. } = &arg.kind else {
                let ty = self.expression(arg)?.ty;
                let given = self.state.types.name(ty);
                let mut error = incompatible(call.name, index, "aggregation", &given, arg.span);
                error.tag = "D_PRINTA_AGGARG";
                return Err(error);
            };
            known.push(self.known_aggregation(name, call.name, arg.span)?);
        }
        if let [first, others @ ..] = known.as_slice() {
            for other in others {
                same_keys(&self.state.types, first.keyed(), other.keyed(), call.span)?;
            }
            if let Some((_, format)) = &format {
                let checked = Call {
                    name: call.name,
                    before: 1,
                    span: call.span,
                };
                check_printa(&self.state.types, checked, format, &first.keys)?;
            }
        }
        let aggs = known.iter().map(|known| known.id).collect();
        let (text, format) = format.unzip();
        let action = ActionDesc {
            format: text,
            ..desc(Action::Printa, None, 0)
        };
        Ok((Statement::Printa { format, aggs }, vec![action]))
    }

    fn printa_format(&mut self, call: &Called<'_>) -> Result<(String, Format)> {
        self.format(call).map_err(|mut error| {
            if error.tag == "D_PROTO_ARG" {
                error.tag = "D_PRINTA_AGGARG";
            }
            error
        })
    }

    fn tracemem(&mut self, call: &Called<'_>) -> Result<(Statement, Vec<ActionDesc>)> {
        let Some(arg) = call.args.first() else {
            return Err(call.error("D_PROTO_LEN", "prototype mismatch"));
        };
        let address = self.expression(arg)?;
        let types = &self.state.types;
        if types.int(address.ty).is_none() && types.pointee(address.ty).is_none() {
            let given = types.name(address.ty);
            let mut error = incompatible(call.name, 0, "pointer or integer", &given, arg.span);
            error.tag = "D_TRACEMEM_ADDR";
            return Err(error);
        }
        let size = self
            .positive_size(call, 1, "D_TRACEMEM_SIZE", "argument #2")?
            .unwrap_or(0);
        let mut actions = Vec::new();
        if call.args.len() > 2 {
            let dynamic = self.integer(call, 2, Ty::UINT64_T)?;
            actions.push(desc(
                Action::TracememDynsize,
                Some(self.value(&dynamic)?),
                0,
            ));
        }
        let rtype = DifType {
            flags: DIF_TF_BYREF,
            size,
            ..DifType::default()
        };
        let difo = Difo {
            rtype,
            ..self.value(&address)?
        };
        actions.push(desc(Action::Tracemem, Some(difo), size.into()));
        Ok((Statement::Tracemem, actions))
    }

    fn on_aggregation(&mut self, call: &Called<'_>) -> Result<(Statement, Vec<ActionDesc>)> {
        let (act, tag) = match call.name {
            "clear" => (Libact::Clear, "D_CLEAR_AGGARG"),
            "trunc" => (Libact::Trunc, "D_TRUNC_AGGARG"),
            "normalize" => (Libact::Normalize, "D_NORMALIZE_AGGARG"),
            _ => (Libact::Denormalize, "D_NORMALIZE_AGGARG"),
        };
        let known = match call.args.first() {
            Some(ast::Expr {
                kind: ExprKind::Agg { name, .. },
                span,
            }) => self.known_aggregation(name, call.name, *span)?,
            Some(other) => {
                let ty = self.expression(other)?.ty;
                let given = self.state.types.name(ty);
                let mut error = incompatible(call.name, 0, "aggregation", &given, other.span);
                error.tag = tag;
                return Err(error);
            }
            None => return Err(call.error("D_PROTO_LEN", "prototype mismatch")),
        };
        let difo = match call.args.len() {
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
        Ok((statement, vec![libact(act, difo)]))
    }

    fn setopt(&mut self, call: &Called<'_>) -> Result<(Statement, Vec<ActionDesc>)> {
        let name = self.text(call, 0)?;
        let value = match call.args.len() {
            2 => Some(self.text(call, 1)?),
            _ => None,
        };
        Ok((
            Statement::Setopt { name, value },
            vec![libact(Libact::Setopt, None)],
        ))
    }

    fn speculation(&mut self, call: &Called<'_>) -> Result<(Statement, Vec<ActionDesc>)> {
        let kind = match call.name {
            "speculate" => Action::Speculate,
            "commit" => Action::Commit,
            _ => Action::Discard,
        };
        let id = self.integer(call, 0, Ty::INT)?;
        Ok((
            Statement::Speculative,
            vec![desc(kind, Some(self.unrecorded(&id)?), 0)],
        ))
    }

    /// The action and type of what `name` makes of an address or a stack, which can be a key as well; `None` if it
    /// is something else.
    pub(super) fn address_action(
        &mut self,
        name: &str,
        args: &[ast::Expr],
        span: Span,
    ) -> Result<Option<(ActionDesc, Ty)>> {
        let Some(&(name, least, most)) = ACTIONS.iter().find(|(known, ..)| *known == name) else {
            return Ok(None);
        };
        let (kind, ty) = match name {
            "stack" => (Action::Stack, Ty::STACK),
            "ustack" => (Action::Ustack, Ty::STACK),
            "jstack" => (Action::Jstack, Ty::STACK),
            "sym" | "func" => (Action::Sym, Ty::SYMBOL),
            "mod" => (Action::Mod, Ty::SYMBOL),
            "usym" | "ufunc" => (Action::Usym, Ty::USYMBOL),
            "umod" => (Action::Umod, Ty::USYMBOL),
            "uaddr" => (Action::Uaddr, Ty::USYMBOL),
            _ => return Ok(None),
        };
        check_count(name, args.len(), least, most, span)?;
        let call = Called { name, args, span };
        let action = match kind {
            Action::Stack => {
                let frames = self.positive_size(&call, 0, "D_STACK_SIZE", "size")?;
                desc(kind, None, frames.unwrap_or(0).into())
            }
            Action::Ustack | Action::Jstack => {
                let frames = self.positive_size(&call, 0, "D_USTACK_FRAMES", "argument #1")?;
                let strings = self.positive_size(&call, 1, "D_USTACK_STRSIZE", "argument #2")?;
                desc(
                    kind,
                    None,
                    ustack_arg(frames.unwrap_or(0), strings.unwrap_or(0)),
                )
            }
            _ => {
                let Some(arg) = args.first() else {
                    return Err(call.error("D_PROTO_LEN", "prototype mismatch"));
                };
                let address = self.expression(arg)?;
                let types = &self.state.types;
                if types.int(address.ty).is_none() && types.pointee(address.ty).is_none() {
                    let (wanted, given) = (types.name(Ty::UINTPTR_T), types.name(address.ty));
                    return Err(incompatible(name, 0, &wanted, &given, arg.span));
                }
                let address = match types.int(address.ty) {
                    Some(_) => self.convert(address, Ty::UINTPTR_T),
                    None => address.retype(Ty::UINTPTR_T),
                };
                desc(kind, Some(self.value(&address)?), 0)
            }
        };
        Ok(Some((action, ty)))
    }
}

fn libact(act: Libact, difo: Option<Difo>) -> ActionDesc {
    desc(Action::Libact, difo, act as u64)
}
