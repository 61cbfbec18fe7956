// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The frame of the parser: the current token, look-ahead and backtracking, errors, and the top
//! level of a program.
//!
//! Invariant: every loop consumes a token or returns. Nesting is limited by [`MAX_DEPTH`], and
//! trees that grow without nesting by [`MAX_CHAIN`]. Parsing therefore ends on every input, and a
//! recursive walk over the result needs a bounded stack.

use super::ast::{Ast, Item, Storage};
use super::lexer::{Lexer, Tok};
use super::macros::Macros;
use super::TYPE_SUFFIX;
use crate::diag::{Diagnostic, Result};
use crate::source::{Origin, Source, Span};
use dtrace_types::is_own_scope;
use std::collections::HashSet;

/// Maximum nesting of expressions, statements and declarators; a pair of brackets takes two to four
/// levels.
const MAX_DEPTH: u32 = 300;

/// Maximum number of operators in a row, as in a long sum. Each makes the tree one level higher,
/// and later passes walk it recursively.
pub const MAX_CHAIN: u32 = 1000;

/// Knows which names are types.
pub trait TypeNames {
    /// Whether `name` is a typedef, in `module` if one is given.
    fn is_type(&mut self, module: Option<&str>, name: &str) -> bool;

    /// Returns the typedef whose name is nearest to `name`.
    fn similar_type(&self, name: &str) -> Option<String>;
}

/// Parses the text of `source` up to the first syntax error, which is stored in the result.
///
/// With `descriptions`, a word that may be a probe description is one (`-xpspec`). With `loops`,
/// the statement `while` exists.
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
    // Look-ahead may have read a control line twice.
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
    /// Tags of the structures and unions whose members have been defined.
    pub(super) records: HashSet<String>,
    /// Whether a star directly follows the first word of the current declaration. Patterns also
    /// have stars, so DTrace's lexer looks ahead to decide what the word is, and it words the error
    /// for the end of the text differently.
    has_looked_ahead: bool,
    /// Start of the tokens of the current predicate, body or declaration.
    pub(super) begin: usize,
    /// The current token, which is the next to be consumed, and its location.
    pub(super) token: Tok,
    pub(super) span: Span,
    /// The location of the token consumed last.
    pub(super) last: Span,
    pub(super) in_predicate: bool,
    depth: u32,
    /// Greatest number of operators in a row that the current chain has read.
    height: u32,
}

/// A position to which the parser can return.
pub(super) struct Mark {
    position: usize,
    token: Tok,
    span: Span,
    last: Span,
}

impl Parser<'_> {
    /// Consumes the current token and reads the next one.
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

    /// Returns the token after the current one.
    pub(super) fn second(&mut self) -> Result<Tok> {
        Ok(self.second_token()?.0)
    }

    /// Returns the token after the current one, and its location.
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
            // The message already says what is wrong.
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

    /// Returns the error that the current token is not expected.
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

    /// Returns the error that the current token closes a bracket that is not open, or ends a
    /// predicate with an open bracket; `None` if the brackets are balanced.
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

    /// Returns how many `open` brackets are not closed between `begin` and the current token.
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

    /// Runs `parse` one level deeper. Fails if that exceeds [`MAX_DEPTH`].
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

    /// Runs `parse`, which reads a chain of operators. Chains in its operands add to its length;
    /// chains beside it do not.
    pub(super) fn chain<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let beside = std::mem::take(&mut self.height);
        let result = parse(self);
        self.height = self.height.max(beside);
        result
    }

    /// Counts one more operator of the current chain. Fails if there are more than [`MAX_CHAIN`].
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

    /// Returns the note that `name`, which stands where a type may stand, is not a type.
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

    /// Parses one item: a declaration, translator, provider or clause. A keyword of declarations,
    /// or a name that is followed by another name or a star, begins a declaration; everything else
    /// is a probe description.
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

    /// Ends an item of which the current token is the last. The next item is read directly from the
    /// lexer, from the end of this token on.
    pub(super) fn leave_tokens(&mut self) {
        self.lexer.rewind(self.span.end as usize);
        self.last = self.span;
    }

    /// Whether `word` was meant as a type in the declaration of a pointer; `ahead` stands after it.
    /// On the command line another description may follow a description, so there only a word with
    /// the usual suffix of types is.
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
            // Not a token of a declaration: the parser of descriptions reports it.
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
            // `read*` is a description. `foo_t*x` is a declaration if `foo_t` is a type, or if only
            // a declaration can continue like this.
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

/// Whether the word is a keyword that begins a declaration; no probe may have such a name at the
/// top level.
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

/// Whether the word is a keyword, which cannot be a name.
pub(super) fn is_reserved(word: &str) -> bool {
    begins_declaration(word)
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

/// Whether this keyword can be the first specifier of a type.
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
