// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Prints a syntax tree as text: one line for each node, indented below its parent.
//!
//! It shows how a program was parsed: precedence, which `else` belongs to which `if`, what a
//! declaration declares. Names have not been looked up at this point, so it shows no types.

use super::ast::{
    Ast, Clause, Declaration, Expr, ExprKind, Item, Provider, Scope, Stmt, Translator,
};
use crate::outline::Outline;
use crate::source::Source;

/// Returns the tree `ast` of the program `source` as text.
pub fn text(source: &Source, ast: &Ast) -> String {
    let mut printer = Outline::new(source);
    for pragma in &ast.pragmas {
        let words = format!("pragma {} {}", pragma.name, pragma.words.join(" "));
        printer.line(pragma.span, &words);
    }
    for item in &ast.items {
        match item {
            Item::Declaration(declaration) => printer.declaration(declaration),
            Item::Clause(clause) => printer.clause(clause),
            Item::Translator(translator) => printer.translator(translator),
            Item::Provider(provider) => printer.provider(provider),
        }
    }
    printer.text()
}

impl Outline<'_> {
    fn declaration(&mut self, declaration: &Declaration) {
        let words = format!("{:?} declaration", declaration.storage);
        self.node(declaration.span, &words, |printer| {
            for declared in &declaration.declarators {
                let declarator = &declared.declarator;
                let words = format!("declarator {}", declarator.name);
                printer.node(declarator.span, &words, |printer| {
                    printer.expressions(&declared.value);
                });
            }
        });
    }

    fn translator(&mut self, translator: &Translator) {
        let output = self.words(translator.output.span);
        let input = self.words(translator.input.span);
        let words = format!("translator {output} < {input} >");
        self.node(translator.span, &words, |printer| {
            for (name, value) in &translator.members {
                printer.node(value.span, &format!("member {name}"), |printer| {
                    printer.expression(value);
                });
            }
        });
    }

    fn provider(&mut self, provider: &Provider) {
        let words = format!("provider {}", provider.name);
        self.node(provider.span, &words, |printer| {
            for probe in &provider.probes {
                printer.line(probe.span, &printer.words(probe.span));
            }
        });
    }

    fn clause(&mut self, clause: &Clause) {
        self.node(clause.span, "clause", |printer| {
            for (text, span) in &clause.probes {
                printer.line(*span, &format!("probe {text}"));
            }
            if let Some(predicate) = &clause.predicate {
                printer.node(predicate.span, "predicate", |printer| {
                    printer.expression(predicate);
                });
            }
            printer.statements(&clause.body);
        });
    }

    fn statements(&mut self, statements: &[Stmt]) {
        for statement in statements {
            match statement {
                Stmt::Expr(expr) => self.expression(expr),
                Stmt::If {
                    condition,
                    then,
                    otherwise,
                } => self.conditional(condition, then, otherwise),
                Stmt::While { condition, body } => {
                    self.node(condition.span, "while", |printer| {
                        printer.expression(condition);
                        printer.statements(body);
                    });
                }
            }
        }
    }

    fn conditional(&mut self, condition: &Expr, then: &[Stmt], otherwise: &[Stmt]) {
        self.node(condition.span, "if", |printer| {
            printer.expression(condition);
            printer.node(condition.span, "then", |printer| printer.statements(then));
            if !otherwise.is_empty() {
                printer.node(condition.span, "else", |printer| {
                    printer.statements(otherwise);
                });
            }
        });
    }

    fn expressions<'e>(&mut self, parts: impl IntoIterator<Item = &'e Expr>) {
        for part in parts {
            self.expression(part);
        }
    }

    fn expression(&mut self, expr: &Expr) {
        let words = self.describe(expr);
        self.node(expr.span, &words, |printer| match &expr.kind {
            ExprKind::Int(..)
            | ExprKind::Float(..)
            | ExprKind::Str(_)
            | ExprKind::Name { .. }
            | ExprKind::Scoped(..)
            | ExprKind::SizeofType(_)
            | ExprKind::Offsetof(..) => {}
            ExprKind::Agg { keys, .. } => printer.expressions(keys),
            ExprKind::Call { args, .. } => printer.expressions(args),
            ExprKind::Index(base, index) => {
                printer.expression(base);
                printer.expressions(index);
            }
            ExprKind::Member { base, .. }
            | ExprKind::Unary(_, base)
            | ExprKind::Step { target: base, .. }
            | ExprKind::Cast(_, base)
            | ExprKind::SizeofExpr(base)
            | ExprKind::Stringof(base)
            | ExprKind::Xlate(_, base) => printer.expression(base),
            ExprKind::Binary(_, left, right) | ExprKind::Comma(left, right) => {
                printer.expressions([&**left, &**right]);
            }
            ExprKind::Assign { target, value, .. } => printer.expressions([&**target, &**value]),
            ExprKind::Cond(condition, yes, no) => {
                printer.expressions([&**condition, &**yes, &**no]);
            }
        });
    }

    fn describe(&self, expr: &Expr) -> String {
        match &expr.kind {
            ExprKind::Int(value, _) => format!("int {value}"),
            ExprKind::Float(value, _) => format!("float {value:?}"),
            ExprKind::Str(bytes) => format!("string \"{}\"", bytes.escape_ascii()),
            ExprKind::Name { module: None, name } => format!("name {name}"),
            ExprKind::Name {
                module: Some(module),
                name,
            } => format!("symbol {module}`{name}"),
            ExprKind::Scoped(Scope::Thread, name) => format!("variable self->{name}"),
            ExprKind::Scoped(Scope::Clause, name) => format!("variable this->{name}"),
            ExprKind::Agg { name, .. } => format!("aggregation @{name}"),
            ExprKind::Call { name, .. } => format!("call {name}"),
            ExprKind::Index(..) => "index".to_owned(),
            ExprKind::Member { name, arrow, .. } => {
                format!("member {}{name}", if *arrow { "->" } else { "." })
            }
            ExprKind::Unary(op, _) => format!("unary {}", op.text()),
            ExprKind::Binary(op, ..) => format!("binary {}", op.text()),
            ExprKind::Step { up, post, .. } => {
                let op = if *up { "++" } else { "--" };
                let when = if *post { "post" } else { "pre" };
                format!("{when}fix {op}")
            }
            ExprKind::Assign { op, .. } => format!("assign {}=", op.map_or("", |op| op.text())),
            ExprKind::Cond(..) => "condition ?:".to_owned(),
            ExprKind::Comma(..) => "comma".to_owned(),
            ExprKind::Cast(ty, _) => format!("cast ({})", self.words(ty.span)),
            ExprKind::SizeofType(ty) => format!("sizeof ({})", self.words(ty.span)),
            ExprKind::SizeofExpr(_) => "sizeof".to_owned(),
            ExprKind::Offsetof(ty, member) => {
                format!("offsetof ({}, {member})", self.words(ty.span))
            }
            ExprKind::Stringof(_) => "stringof".to_owned(),
            ExprKind::Xlate(ty, _) => format!("xlate <{}>", self.words(ty.span)),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::compile::{Compiler, Settings};
    use crate::source::Source;
    use dtrace_objects::processes::Nowhere;
    use expect_test::expect;

    #[test]
    fn the_tree_shows_how_a_program_was_understood() {
        let source = Source::file(
            "x.d",
            "self int t;\ninline int two = 1 + 1;\n\
             BEGIN,\nEND\n/pid == 3 || two * 3/\n{\n\
             \tself->t = (char)x++;\n\t@a[execname] = count();\n\
             \tif (two) { trace(-1); } else trace(\"no\\n\");\n}\n",
        );
        let settings = Settings {
            tree: 1,
            ..Settings::default()
        };
        let source_and = Source::file("y.d", format!("int x;\n{}", source.text));
        let program = Compiler::new(&Nowhere).compile(&source_and, &settings);
        expect![[r#"
            1   Global declaration
            1     declarator x
            2   Thread declaration
            2     declarator t
            3   Inline declaration
            3     declarator two
            3       binary +
            3         int 1
            3         int 1
            4   clause
            4     probe BEGIN
            5     probe END
            6     predicate
            6       binary ||
            6         binary ==
            6           name pid
            6           int 3
            6         binary *
            6           name two
            6           int 3
            8     assign =
            8       variable self->t
            8       cast (char)
            8         postfix ++
            8           name x
            9     assign =
            9       aggregation @a
            9         name execname
            9       call count
            10    if
            10      name two
            10      then
            10        call trace
            10          unary -
            10            int 1
            10      else
            10        call trace
            10          string "no\n"
        "#]]
        .assert_eq(&program.unwrap().tree);
    }
}
