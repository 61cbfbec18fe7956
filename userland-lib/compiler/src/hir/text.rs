// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Prints a typed program as text: one line for each expression, with its type, indented below the
//! expression that uses it.
//!
//! It shows what analysis has made of a program: conversions, folded constants, offsets of members,
//! the parts of a clause with branches, and the actions with their records.

use super::{Action, Bits, Clause, Code, Expr, ExprKind, Place, Program, Purpose};
use crate::outline::Outline;
use crate::source::Source;
use dtrace_types::Types;

/// Returns the typed program `program` of the source `source` as text.
pub fn text(source: &Source, program: &Program, types: &Types<'_>) -> String {
    let mut outline = Outline::new(source);
    for clause in &program.clauses {
        outline.typed_clause(clause, types);
    }
    outline.text()
}

impl Outline<'_> {
    fn typed_clause(&mut self, clause: &Clause, types: &Types<'_>) {
        let words = format!("clause {}", clause.probes);
        self.node(clause.span, &words, |outline| {
            if let Some(predicate) = &clause.predicate {
                outline.node(predicate.expr.span, "predicate", |outline| {
                    outline.typed(&predicate.expr, types);
                });
            }
            for action in &clause.actions {
                outline.typed_action(action, clause, types);
            }
        });
    }

    fn typed_action(&mut self, action: &Action, clause: &Clause, types: &Types<'_>) {
        let span = action
            .code
            .as_ref()
            .map_or(clause.span, |code| code.expr.span);
        let mut words = format!("action {:?}", action.kind);
        if let Some(code) = &action.code {
            words += &format!(" {}", purpose(code));
        }
        if action.ntuple != 0 {
            words += &format!(" by {} keys", action.ntuple);
        }
        if action.uarg != 0 {
            words += &format!(" for statement {}", action.uarg);
        }
        self.node(span, &words, |outline| {
            if let Some(code) = &action.code {
                outline.typed(&code.expr, types);
            }
        });
    }

    fn typed(&mut self, expr: &Expr, types: &Types<'_>) {
        let user = if expr.user { ", in user space" } else { "" };
        let space = if types.is_pointer(expr.ty) && types.is_userland(expr.ty) {
            "userland "
        } else {
            ""
        };
        let words = format!("{} : {space}{}{user}", operation(expr), types.name(expr.ty));
        self.node(expr.span, &words, |outline| {
            expr.children()
                .for_each(|child| outline.typed(child, types));
        });
    }
}

fn purpose(code: &Code) -> String {
    match code.purpose {
        Purpose::Recorded => "records".into(),
        Purpose::Bytes { size, user: false } => format!("records {size} bytes at"),
        Purpose::Bytes { size, user: true } => format!("records {size} bytes of user space at"),
        Purpose::Used => "uses".into(),
        Purpose::Decides => "if".into(),
        Purpose::Discarded => "evaluates".into(),
    }
}

/// Returns what an expression does with its operands.
fn operation(expr: &Expr) -> String {
    match &expr.kind {
        ExprKind::Int(value) => format!("{:#x}", value),
        ExprKind::Float(value) => format!("{value:?}"),
        ExprKind::Str(text) => format!("{:?}", String::from_utf8_lossy(text)),
        ExprKind::Builtin(var) => format!("{var:?}"),
        ExprKind::BuiltinArray(var, _) => format!("{var:?}[]"),
        ExprKind::Var(var) => var.shown(),
        ExprKind::Element(var, _) => format!("{}[]", var.shown()),
        ExprKind::Load { user, .. } => format!("load{}", space(*user)),
        ExprKind::LoadBits { bits, user, .. } => format!("load{}{}", field(bits), space(*user)),
        ExprKind::Retype(_) => "retype".into(),
        ExprKind::Translated { translator, .. } => format!("translator {translator}"),
        ExprKind::Convert(_) => "convert".into(),
        ExprKind::Neg(_) => "-".into(),
        ExprKind::BitNot(_) => "~".into(),
        ExprKind::Not(_) => "!".into(),
        ExprKind::Arith(op, ..) | ExprKind::CompareFloat(op, ..) | ExprKind::CompareStr(op, ..) => {
            op.text().into()
        }
        ExprKind::Compare { op, signed, .. } => match signed {
            true => format!("{} signed", op.text()),
            false => op.text().into(),
        },
        ExprKind::Logic(op, ..) => op.text().into(),
        ExprKind::Cond(..) => "?:".into(),
        ExprKind::Comma(..) => ",".into(),
        ExprKind::While(..) => "while".into(),
        ExprKind::Assign(place, _) => format!("{} =", target(place)),
        ExprKind::Update {
            place, op, post, ..
        } => {
            let post = if *post { ", old value" } else { "" };
            format!("{} {}={post}", target(place), op.text())
        }
        ExprKind::Call(subr, _) => format!("{subr:?}()"),
        ExprKind::Valueless => "no value".into(),
    }
}

fn space(user: bool) -> &'static str {
    if user {
        " from user space"
    } else {
        ""
    }
}

fn field(bits: &Bits) -> String {
    format!(
        " bits {} to {} of a word of {} bytes",
        bits.shift,
        bits.shift + bits.width - 1,
        bits.word
    )
}

fn target(place: &Place) -> String {
    match place {
        Place::Var(var) => var.shown(),
        Place::Element(var, _) => format!("{}[]", var.shown()),
        Place::Memory { bits, .. } => {
            format!("memory{}", bits.as_ref().map_or(String::new(), field))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::compile::{Compiler, Settings};
    use crate::source::Source;
    use dtrace_objects::processes::Nowhere;
    use expect_test::{expect, Expect};

    fn check(text: &str, expected: Expect) {
        let source = Source::file("x.d", text);
        let settings = Settings {
            tree: 2,
            ..Settings::default()
        };
        let program = Compiler::new(&Nowhere).compile(&source, &settings);
        expected.assert_eq(&program.expect("a program").tree);
    }

    #[test]
    fn types_conversions_and_constants_are_shown() {
        check(
            "struct pair { char a; int b:3; };\n\
             BEGIN\n/pid == 2 + 1/\n{\n\
             \tself->x = (short)arg0;\n\
             \tthis->p = (struct pair *)alloca(8);\n\
             \tthis->p->b++;\n\
             \ttrace(((userland struct pair *)arg1)->a);\n\
             \tx[1] = 2;\n\t@[execname, x[1]] = quantize(arg2);\n}\n",
            expect![[r#"
                2   clause :::BEGIN
                3     predicate
                3       == signed : int
                3         Pid : pid_t
                3         0x3 : pid_t
                5     action Difexpr evaluates
                5       self->x = : short
                5         convert : short
                5           convert : short
                5             Arg0 : int64_t
                6     action Difexpr evaluates
                6       this->p = : struct pair *
                6         retype : struct pair *
                6           retype : struct pair *
                6             Alloca() : void *
                6               0x8 : size_t
                7     action Difexpr evaluates
                7       memory bits 8 to 10 of a word of 4 bytes +=, old value : int
                7         0x1 : int
                7         retype : uintptr_t
                7           this->p : struct pair *
                8     action Difexpr records for statement 1
                8       load from user space : char
                8         retype : uintptr_t, in user space
                8           retype : userland struct pair *, in user space
                8             Arg1 : int64_t
                9     action Difexpr evaluates
                9       x[] = : int
                9         0x2 : int
                9         0x1 : int
                10    action Difexpr records for statement 2
                10      Execname : string
                10    action Difexpr records for statement 2
                10      x[] : int
                10        0x1 : int
                10    action Quantize records by 2 keys for statement 2
                10      Arg2 : int64_t
            "#]],
        );
    }

    #[test]
    fn a_clause_with_branches_becomes_several() {
        check(
            "BEGIN { if (arg0 > 1) { trace(\"more\"); } else { exit(0); } }",
            expect![[r#"
                1   clause :::BEGIN
                1     action Difexpr evaluates
                1       this-><goes on 1> = : int
                1         0x1 : int
                1   clause :::BEGIN
                1     predicate
                1       && : int
                1         == : int
                1           this-><goes on 1> : int
                1           0x1 : int
                1         , : int
                1           this-><goes on 1> = : int
                1             0x0 : int
                1           0x1 : int
                1     action Difexpr evaluates
                1       this-><condition 0> = : int
                1         > signed : int
                1           Arg0 : int64_t
                1           0x1 : int64_t
                1     action Difexpr evaluates
                1       this-><goes on 1> = : int
                1         0x1 : int
                1   clause :::BEGIN
                1     predicate
                1       && : int
                1         && : int
                1           == : int
                1             this-><goes on 1> : int
                1             0x1 : int
                1           == : int
                1             this-><condition 0> : int
                1             0x1 : int
                1         , : int
                1           this-><goes on 1> = : int
                1             0x0 : int
                1           0x1 : int
                1     action Difexpr records for statement 1
                1       "more" : string
                1     action Difexpr evaluates
                1       this-><goes on 1> = : int
                1         0x1 : int
                1   clause :::BEGIN
                1     predicate
                1       && : int
                1         == : int
                1           this-><goes on 1> : int
                1           0x1 : int
                1         == : int
                1           this-><condition 0> : int
                1           0x0 : int
                1     action Exit records for statement 2
                1       0x0 : int
            "#]],
        );
    }
}
