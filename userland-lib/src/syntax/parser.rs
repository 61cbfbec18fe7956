// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The parser's frame: tokens with one of look-ahead, places to go back to, errors; and the top of a program.
//!
//! Invariant: every loop consumes a token or returns, nesting is bounded by [`MAX_DEPTH`] and trees that grow without
//! nesting by [`MAX_CHAIN`], so parsing ends on every input, and what walks over the result needs a bounded stack.

use super::ast::{Ast, Item, Storage};
use super::lexer::{Lexer, Tok};
use super::macros::Macros;
use super::TYPE_SUFFIX;
use crate::diag::{Diagnostic, Result};
use crate::source::{Origin, Source, Span};
use crate::symbols::is_own_scope;
use std::collections::HashSet;

/// How deep expressions, statements and declarators may nest; a pair of brackets takes two to four levels.
const MAX_DEPTH: u32 = 300;

/// How many operators may follow each other, as in a long sum. Each makes the tree that they become one level higher,
/// and later walks over it go down level by level.
pub const MAX_CHAIN: u32 = 1000;

/// Knows which names are types.
pub trait TypeNames {
    /// Whether `name` is a typedef, in `module` where one is given.
    fn is_type(&mut self, module: Option<&str>, name: &str) -> bool;

    /// The typedef whose name is nearest to `name`.
    fn similar_type(&self, name: &str) -> Option<String>;
}

/// Parses the text of `source` as far as its syntax is right. With `descriptions` a word that may be a probe description
/// is one, with `loops` there is `while`.
pub fn parse(
    source: &Source,
    macros: &Macros,
    descriptions: bool,
    loops: bool,
    names: &mut dyn TypeNames,
) -> Ast {
    let mut parser = Parser {
        lexer: Lexer::new(&source.text, macros),
        source,
        descriptions,
        loops,
        names,
        typedefs: HashSet::new(),
        records: HashSet::new(),
        has_looked_ahead: false,
        begin: 0,
        token: Tok::End,
        span: Span::default(),
        last: Span::default(),
        in_predicate: false,
        depth: 0,
        height: 0,
    };
    let mut ast = Ast::default();
    ast.error = parser.items(&mut ast.items).err();
    ast.pragmas = std::mem::take(&mut parser.lexer.pragmas);
    // Looking ahead may have read a control line twice.
    ast.pragmas.sort_by_key(|pragma| pragma.span.start);
    ast.pragmas.dedup_by_key(|pragma| pragma.span.start);
    ast
}

pub(super) struct Parser<'a> {
    pub(super) lexer: Lexer<'a>,
    pub(super) source: &'a Source,
    descriptions: bool,
    pub(super) loops: bool,
    names: &'a mut dyn TypeNames,
    typedefs: HashSet<String>,
    /// Tags of the structures and unions that got their members so far.
    pub(super) records: HashSet<String>,
    /// Whether a star, which patterns have as well, is in the first word of the declaration at hand: DTrace's lexer then
    /// looks ahead for what it is, and has words of its own for an end of the text that it meets.
    has_looked_ahead: bool,
    /// Where the tokens of the predicate, body or declaration at hand begin.
    pub(super) begin: usize,
    /// The token to be read next, and its place.
    pub(super) token: Tok,
    pub(super) span: Span,
    /// Place of the token read last.
    pub(super) last: Span,
    pub(super) in_predicate: bool,
    depth: u32,
    /// How many operators follow each other, at most, in what the chain at hand has read.
    height: u32,
}

/// A place to go back to.
pub(super) struct Mark {
    position: usize,
    token: Tok,
    span: Span,
    last: Span,
}

impl Parser<'_> {
    /// Reads the next token in.
    pub(super) fn advance(&mut self) -> Result<()> {
        self.last = self.span;
        (self.token, self.span) = self.lexer.token(self.in_predicate)?;
        Ok(())
    }

    pub(super) fn mark(&self) -> Mark {
        Mark {
            position: self.lexer.position(),
            token: self.token.clone(),
            span: self.span,
            last: self.last,
        }
    }

    pub(super) fn reset(&mut self, mark: Mark) {
        self.lexer.rewind(mark.position);
        self.token = mark.token;
        self.span = mark.span;
        self.last = mark.last;
    }

    /// The token after the next one.
    pub(super) fn second(&mut self) -> Result<Tok> {
        Ok(self.second_token()?.0)
    }

    /// The token after the next one, and its place.
    pub(super) fn second_token(&mut self) -> Result<(Tok, Span)> {
        let mut ahead = self.lexer.clone();
        ahead.token(self.in_predicate)
    }

    pub(super) fn at(&self, punctuator: &str) -> bool {
        matches!(self.token, Tok::Punct(p) if p == punctuator)
    }

    pub(super) fn eat(&mut self, punctuator: &str) -> Result<bool> {
        let hit = self.at(punctuator);
        if hit {
            self.advance()?;
        }
        Ok(hit)
    }

    pub(super) fn expect(&mut self, punctuator: &str) -> Result<()> {
        if self.eat(punctuator)? {
            return Ok(());
        }
        let error = self.unexpected();
        Err(match error.message.starts_with("syntax error") {
            true => error.note(format!("`{punctuator}` expected")),
            // What is wrong is said already.
            false => error,
        })
    }

    pub(super) fn at_word(&self, word: &str) -> bool {
        matches!(&self.token, Tok::Ident(w) if w == word)
    }

    pub(super) fn eat_word(&mut self, word: &str) -> Result<bool> {
        let hit = self.at_word(word);
        if hit {
            self.advance()?;
        }
        Ok(hit)
    }

    pub(super) fn ident(&mut self) -> Result<String> {
        match &self.token {
            Tok::Ident(name) if !is_reserved(name) => {
                let name = name.clone();
                self.advance()?;
                Ok(name)
            }
            _ => Err(self.unexpected()),
        }
    }

    /// The error that the next token does not fit.
    pub(super) fn unexpected(&self) -> Box<Diagnostic> {
        if let Some(error) = self.unbalanced() {
            return error;
        }
        let near = match self.token {
            Tok::End if self.has_looked_ahead => "end-of-input".to_owned(),
            Tok::End => "end of input".to_owned(),
            _ => format!("\"{}\"", self.source.slice(self.span)),
        };
        Diagnostic::new("D_SYNTAX", self.span, format!("syntax error near {near}"))
    }

    /// The error that the next token closes a bracket that is not open, or leaves one open at a predicate's end.
    fn unbalanced(&self) -> Option<Box<Diagnostic>> {
        let pairs: &[(&str, &str)] = match self.token {
            Tok::Punct(")") => &[("(", ")")],
            Tok::Punct("]") => &[("[", "]")],
            Tok::EndPredicate => &[("(", ")"), ("[", "]")],
            _ => return None,
        };
        for (open, close) in pairs {
            let depth = self.open_brackets(open, close);
            if self.token != Tok::EndPredicate && depth == 0 {
                let message = format!("extra {close} in input stream");
                return Some(Diagnostic::new("D_SYNTAX", self.span, message));
            }
            if self.token == Tok::EndPredicate && depth > 0 {
                let message = format!("closing {close} expected in predicate before /");
                let error = Diagnostic::new("D_SYNTAX", self.span, message);
                return Some(error.counted_at(self.lexer.next_token() as u32));
            }
        }
        None
    }

    /// How many of `open` are not closed between the beginning and the next token.
    fn open_brackets(&self, open: &str, close: &str) -> u32 {
        let mut tokens = self.lexer.clone();
        tokens.rewind(self.begin);
        let mut depth = 0u32;
        while let Ok((token, span)) = tokens.token(self.in_predicate) {
            if token == Tok::End || span.start >= self.span.start {
                break;
            }
            match token {
                Tok::Punct(p) if p == open => depth += 1,
                Tok::Punct(p) if p == close => depth = depth.saturating_sub(1),
                _ => (),
            }
        }
        depth
    }

    /// Runs `parse` one level deeper.
    pub(super) fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            return Err(Diagnostic::new(
                "D_SYNTAX",
                self.span,
                format!("nesting deeper than {MAX_DEPTH} levels"),
            ));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    /// Runs `parse`, which reads operators that follow each other. Chains in its operands count with it, those beside it
    /// do not.
    pub(super) fn chain<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let beside = std::mem::take(&mut self.height);
        let result = parse(self);
        self.height = self.height.max(beside);
        result
    }

    /// Notes one more operator of the chain at hand; the error is that there are too many.
    pub(super) fn link(&mut self) -> Result<()> {
        self.height += 1;
        if self.height > MAX_CHAIN {
            let message = format!("more than {MAX_CHAIN} operators in a row");
            return Err(Diagnostic::new("D_SYNTAX", self.span, message));
        }
        Ok(())
    }

    pub(super) fn is_type(&mut self, module: Option<&str>, name: &str) -> bool {
        (is_own_scope(module) && self.typedefs.contains(name)) || self.names.is_type(module, name)
    }

    /// What to say of `name`, which stands where a type might.
    pub(super) fn no_type(&self, name: &str) -> String {
        match self.names.similar_type(name) {
            Some(known) => format!("`{name}` is no type; did you mean `{known}`?"),
            None => format!("`{name}` is no type"),
        }
    }

    pub(super) fn is_argument(&self) -> bool {
        self.source.origin == Origin::Argument
    }

    fn items(&mut self, items: &mut Vec<Item>) -> Result<()> {
        self.lexer.skip_trivia()?;
        while !self.lexer.remaining().is_empty() {
            items.extend(self.item()?);
            self.lexer.skip_trivia()?;
        }
        Ok(())
    }

    /// A declaration or a clause. What stands here tells which: a keyword of declarations, or a name that another
    /// name or a star follows, begins a declaration; all else is a probe description.
    fn item(&mut self) -> Result<Vec<Item>> {
        self.has_looked_ahead = false;
        if !self.declaration_ahead()? {
            return Ok(vec![Item::Clause(self.clause()?)]);
        }
        self.begin = self.lexer.position();
        self.advance()?;
        self.has_looked_ahead = self.lexer.remaining().starts_with('*');
        if self.at(";") {
            self.leave_tokens();
            return Ok(Vec::new());
        }
        if self.at_word("translator") {
            return Ok(vec![Item::Translator(self.translator()?)]);
        }
        if self.at_word("provider") {
            return Ok(vec![Item::Provider(self.provider()?)]);
        }
        let declaration = self.declaration()?;
        if declaration.storage == Storage::Typedef {
            for declared in &declaration.declarators {
                self.typedefs.insert(declared.declarator.name.clone());
            }
        }
        Ok(vec![Item::Declaration(declaration)])
    }

    /// Forgets the token that is read ahead: its text has not been consumed by what was parsed. Call it with the
    /// last token of an item as the current one.
    pub(super) fn leave_tokens(&mut self) {
        self.lexer.rewind(self.span.end as usize);
        self.last = self.span;
    }

    /// Whether `word`, which `ahead` stands behind, was meant as a type in the declaration of a pointer. On the command line what
    /// follows a description may be another one, so that there only a type's usual name is.
    fn meant_as_type(&self, word: &str, ahead: Lexer<'_>, glued: bool) -> bool {
        (!self.is_argument() || word.ends_with(TYPE_SUFFIX)) && self.declares_pointer(ahead, glued)
    }

    fn declaration_ahead(&mut self) -> Result<bool> {
        let mut ahead = self.lexer.clone();
        let start = ahead.position();
        if ahead.remaining().starts_with([';', '`']) {
            return Ok(true);
        }
        let (Tok::Ident(word), span) = (match ahead.token(false) {
            Ok(token) => token,
            // Not a token of declarations: let the description's parser speak.
            Err(_) => return Ok(false),
        }) else {
            return Ok(false);
        };
        let end = span.end as usize - start;
        let after = self.lexer.remaining()[end..].chars().next();
        if self.descriptions && after == Some('*') {
            return Ok(false);
        }
        if matches!(after, Some(':' | '-' | '.' | '?' | '[' | '\\' | '!' | '$')) {
            return Ok(false);
        }
        if begins_declaration(&word) || after == Some('`') {
            return Ok(true);
        }
        if after == Some('*') {
            // `read*` is a description; `foo_t*x` needs a name right after the star.
            return Ok(self.is_type(None, &word) || self.meant_as_type(&word, ahead, true));
        }
        Ok(match ahead.token(false) {
            Ok((Tok::Ident(next), _)) => {
                self.is_type(None, &word)
                    || !begins_declaration(&next)
                        && matches!(
                            ahead.token(false),
                            Ok((Tok::Punct(";" | "=" | "," | "[" | "("), _))
                        )
            }
            Ok((Tok::Punct("*"), _)) => {
                self.is_type(None, &word) || self.meant_as_type(&word, ahead, false)
            }
            _ => false,
        })
    }
}

/// Words that begin a declaration and cannot be a probe's name there.
fn begins_declaration(word: &str) -> bool {
    matches!(
        word,
        "_Bool"
            | "auto"
            | "char"
            | "const"
            | "double"
            | "enum"
            | "extern"
            | "float"
            | "inline"
            | "int"
            | "long"
            | "provider"
            | "register"
            | "restrict"
            | "self"
            | "short"
            | "signed"
            | "static"
            | "string"
            | "struct"
            | "this"
            | "translator"
            | "typedef"
            | "union"
            | "unsigned"
            | "userland"
            | "void"
            | "volatile"
    )
}

/// Words that cannot be names.
pub(super) fn is_reserved(word: &str) -> bool {
    begins_declaration(word) && word != "self" && word != "this"
        || matches!(
            word,
            "break"
                | "case"
                | "continue"
                | "counter"
                | "default"
                | "do"
                | "else"
                | "for"
                | "goto"
                | "if"
                | "import"
                | "offsetof"
                | "probe"
                | "return"
                | "self"
                | "sizeof"
                | "stringof"
                | "switch"
                | "this"
                | "while"
                | "xlate"
        )
}

/// Whether specifiers of a type begin with this keyword.
pub(super) fn begins_type(word: &str) -> bool {
    begins_declaration(word)
        && !matches!(
            word,
            "auto"
                | "extern"
                | "inline"
                | "provider"
                | "register"
                | "self"
                | "static"
                | "this"
                | "translator"
                | "typedef"
        )
}
