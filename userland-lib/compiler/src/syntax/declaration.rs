// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Declarations: C's specifiers and declarators, with D's storage classes and associative arrays.
//!
//! Programs may include C headers (`-C`). Functions that such a header defines are skipped: D
//! cannot call them, but they must not be errors either.

use super::ast::{
    BaseKind, BaseType, Declaration, Declarator, Derivation, Enumerator, InitDeclarator,
    MemberDecl, Storage, TypeName,
};
use super::lexer::Tok;
use super::parser::{begins_type, is_reserved, Parser};
use crate::diag::{Diagnostic, Result};
use crate::source::Span;

/// C's keywords for basic types.
const WORDS: &[&str] = &[
    "char", "double", "float", "int", "long", "short", "signed", "unsigned", "void", "_Bool",
];

/// Keywords that modify a type and also name one on their own.
const MODIFIERS: &[&str] = &["long", "short", "signed", "unsigned"];

/// The specifiers of a type that have been read.
#[derive(Default)]
struct Specifiers {
    kind: Option<BaseKind>,
    words: Vec<&'static str>,
    is_const: bool,
    userland: bool,
}

impl Specifiers {
    /// Fails if these specifiers already name a type, so that no type may follow at `span`.
    fn precede_type(&self, span: Span) -> Result<()> {
        match (&self.kind, &self.words[..]) {
            (None, []) => Ok(()),
            (None, words) => Err(misplaced(words, span)),
            (Some(_), _) => Err(misplaced(&["int"], span)),
        }
    }

    /// Stores the type that was just read. Fails if there is one already.
    fn take(&mut self, kind: BaseKind, span: Span) -> Result<()> {
        self.precede_type(span)?;
        self.kind = Some(kind);
        Ok(())
    }
}

/// Returns the error that a second storage class stands at `span`.
fn two_classes(span: Span) -> Box<Diagnostic> {
    let message = "only one storage class allowed in declaration";
    Diagnostic::new("D_DECL_CLASS", span, message)
}

/// Whether the declared object is itself a function.
fn is_function(declarator: &Declarator) -> bool {
    matches!(
        declarator.derivations.first(),
        Some(Derivation::Function { .. })
    )
}

/// Returns the error that `words` cannot be combined with the type at `span`.
fn misplaced(words: &[&str], span: Span) -> Box<Diagnostic> {
    if words.iter().any(|word| !MODIFIERS.contains(word)) {
        return Diagnostic::new("D_DECL_COMBO", span, "invalid type combination");
    }
    let signs = words.contains(&"signed") || words.contains(&"unsigned");
    let (tag, what) = match signs {
        true => (
            "D_DECL_SIGNINT",
            "signed and unsigned may only be used with integer type",
        ),
        false => (
            "D_DECL_LONGINT",
            "long and long long may only be used with integer or floating-point type",
        ),
    };
    Diagnostic::new(tag, span, format!("invalid type declaration: {what}"))
}

impl Parser<'_> {
    /// Parses a declaration up to its semicolon, or to the closing brace of a C function. The lexer
    /// is left just after it.
    pub(super) fn declaration(&mut self) -> Result<Declaration> {
        let start = self.span;
        let (storage, base) = self.specifiers()?;
        let mut declarators: Vec<InitDeclarator> = Vec::new();
        // Without declarators it declares a type, or nothing.
        if !self.at(";") {
            loop {
                let declarator = self.declarator(true)?;
                let value = match storage == Storage::Inline && self.eat("=")? {
                    true => Some(self.assignment()?),
                    false => None,
                };
                declarators.push(InitDeclarator { declarator, value });
                if !self.eat(",")? {
                    break;
                }
            }
        }
        let functions = !declarators.is_empty()
            && declarators
                .iter()
                .all(|declared| is_function(&declared.declarator));
        let defines = self.at("{") && functions && declarators.len() == 1;
        if defines {
            self.skip_body()?;
        } else if !self.at(";") {
            return Err(self.unexpected());
        }
        let storage = match (storage, functions) {
            // C headers declare functions with these storage classes.
            (Storage::CFunction | Storage::Foreign(_), true) => Storage::Extern,
            (Storage::Inline, _) if defines => Storage::Extern,
            (Storage::CFunction, false) => return Err(two_classes(start)),
            (storage, _) => storage,
        };
        let span = start.to(self.last);
        self.leave_tokens();
        Ok(Declaration {
            storage,
            base,
            declarators,
            span,
        })
    }

    /// Skips the body of a C function up to its closing brace, which is not consumed.
    fn skip_body(&mut self) -> Result<()> {
        let mut depth = 0u32;
        loop {
            match self.token {
                Tok::Punct("{") => depth += 1,
                Tok::Punct("}") if depth <= 1 => return Ok(()),
                Tok::Punct("}") => depth -= 1,
                Tok::End => return Err(self.unexpected()),
                _ => (),
            }
            self.advance()?;
        }
    }

    /// Returns the storage class that the current word names.
    fn storage_class(&self) -> Option<Storage> {
        let Tok::Ident(word) = &self.token else {
            return None;
        };
        Some(match word.as_str() {
            "extern" => Storage::Extern,
            "typedef" => Storage::Typedef,
            "self" => Storage::Thread,
            "this" => Storage::Clause,
            "inline" => Storage::Inline,
            "auto" => Storage::Foreign("auto"),
            "static" => Storage::Foreign("static"),
            "register" => Storage::Foreign("register"),
            _ => return None,
        })
    }

    /// Parses a storage class, if there is one, and the specifiers of a type, in any order.
    fn specifiers(&mut self) -> Result<(Storage, BaseType)> {
        let start = self.span;
        let mut storage = Storage::Global;
        let mut read = Specifiers::default();
        loop {
            if let Some(class) = self.storage_class() {
                storage = match (storage, class) {
                    (Storage::Global, class) => class,
                    (Storage::Foreign("static") | Storage::Extern, Storage::Inline)
                    | (Storage::Inline, Storage::Foreign("static") | Storage::Extern) => {
                        Storage::CFunction
                    }
                    _ => return Err(two_classes(self.span)),
                };
                self.advance()?;
                continue;
            }
            if !self.specifier(&mut read, storage != Storage::Global)? {
                break;
            }
        }
        let base = self.base_of(read, storage != Storage::Global, start)?;
        Ok((storage, base))
    }

    /// Parses the specifiers of a type.
    fn base_type(&mut self) -> Result<BaseType> {
        let start = self.span;
        let mut read = Specifiers::default();
        while self.specifier(&mut read, false)? {}
        self.base_of(read, false, start)
    }

    /// Returns the type that the specifiers `read` name. Without a name it is `int` if something
    /// else shows that a type is meant.
    fn base_of(&mut self, read: Specifiers, declares: bool, start: Span) -> Result<BaseType> {
        let kind = match (read.kind, read.words.is_empty()) {
            (Some(kind), _) => kind,
            (None, false) => BaseKind::Words(read.words),
            (None, true) if declares || read.is_const => BaseKind::Words(vec!["int"]),
            (None, true) => return Err(self.unexpected()),
        };
        Ok(BaseType {
            kind,
            is_const: read.is_const,
            userland: read.userland,
            span: start.to(self.last),
        })
    }

    /// Reads one specifier; returns `false` if there is none. With `may_lack` the type may be
    /// omitted (`self x;`): a name that is followed by the end of a declarator is then the declared
    /// name.
    fn specifier(&mut self, read: &mut Specifiers, may_lack: bool) -> Result<bool> {
        let Tok::Ident(word) = self.token.clone() else {
            if self.at("`") && read.kind.is_none() && read.words.is_empty() {
                read.kind = Some(self.named()?);
                return Ok(true);
            }
            return Ok(false);
        };
        match word.as_str() {
            "const" => read.is_const = true,
            "volatile" | "restrict" => (),
            "userland" => read.userland = true,
            "struct" | "union" => {
                let record = self.record(read)?;
                return read.take(record, self.last).map(|()| true);
            }
            "enum" => {
                let enumeration = self.enumeration()?;
                return read.take(enumeration, self.last).map(|()| true);
            }
            "string" => {
                self.advance()?;
                return read.take(BaseKind::Str, self.last).map(|()| true);
            }
            _ => {
                if let Some(known) = WORDS.iter().find(|known| **known == word) {
                    if read.kind.is_some() {
                        return Err(self.combination());
                    }
                    read.words.push(known);
                } else if !self.names_type(read, &word, may_lack)? {
                    return Ok(false);
                } else {
                    let named = self.named()?;
                    return read.take(named, self.last).map(|()| true);
                }
            }
        }
        self.advance()?;
        Ok(true)
    }

    /// Whether the name here is that of a type: the first name is, unless it is the declared name.
    fn names_type(&mut self, read: &Specifiers, word: &str, may_lack: bool) -> Result<bool> {
        if read.kind.is_some() || is_reserved(word) {
            return Ok(false);
        }
        let second = self.second()?;
        let ends = matches!(second, Tok::Punct(";" | "," | "=" | "[" | "("));
        if !read.words.is_empty() {
            // `unsigned foo_t x` is invalid. Reading `foo_t` as a type gives the error for that.
            return Ok(matches!(second, Tok::Ident(_)) && self.is_type(None, word));
        }
        Ok(!((may_lack || read.is_const) && ends && !self.is_type(None, word)))
    }

    fn combination(&self) -> Box<Diagnostic> {
        Diagnostic::new("D_DECL_COMBO", self.span, "invalid type combination")
    }

    fn named(&mut self) -> Result<BaseKind> {
        let start = self.span;
        let mut module = None;
        if !self.at("`") {
            let name = self.ident()?;
            if !self.at("`") {
                let span = self.last;
                return Ok(BaseKind::Named { module, name, span });
            }
            module = Some(name);
        }
        self.advance()?;
        // After a module D's keywords are ordinary names.
        let name = self.member_name()?;
        Ok(BaseKind::Named {
            module: module.or(Some(String::new())),
            name,
            span: start.to(self.last),
        })
    }

    /// Parses a tag; returns its module and the tag, as far as they are present.
    fn tag(&mut self) -> Result<(Option<String>, Option<String>)> {
        if self.eat("`")? {
            return Ok((Some(String::new()), Some(self.ident()?)));
        }
        let Tok::Ident(_) = self.token else {
            return Ok((None, None));
        };
        let word = self.ident()?;
        Ok(match self.eat("`")? {
            true => (Some(word), Some(self.ident()?)),
            false => (None, Some(word)),
        })
    }

    fn record(&mut self, before: &Specifiers) -> Result<BaseKind> {
        let is_union = self.at_word("union");
        let start = self.span;
        self.advance()?;
        let (module, tag) = self.tag()?;
        before.precede_type(self.span)?;
        let members = match self.at("{") {
            true => {
                self.defines(is_union, tag.as_deref(), start)?;
                self.advance()?;
                Some(self.nested(Self::members)?)
            }
            false if tag.is_none() => return Err(self.unexpected()),
            false => None,
        };
        Ok(BaseKind::Record {
            is_union,
            module,
            tag,
            members,
        })
    }

    /// Notes that the members of a record are defined here. Fails if the tag already has members.
    fn defines(&mut self, is_union: bool, tag: Option<&str>, start: Span) -> Result<()> {
        let Some(tag) = tag else {
            return Ok(());
        };
        let name = format!("{} {tag}", if is_union { "union" } else { "struct" });
        if self.records.contains(&name) {
            let message = format!("type redeclared: {name}");
            let error = Diagnostic::new("D_DECL_TYPERED", start.to(self.last), message);
            return Err(error.counted_at(self.span.start));
        }
        self.records.insert(name);
        Ok(())
    }

    fn members(&mut self) -> Result<Vec<MemberDecl>> {
        let mut members = Vec::new();
        while members.is_empty() || !self.at("}") {
            let start = self.span;
            let base = self.base_type()?;
            let mut declarators = Vec::new();
            while !self.at(";") {
                let declarator = match self.at(":") {
                    true => Declarator {
                        span: self.last,
                        ..Declarator::default()
                    },
                    false => self.declarator(true)?,
                };
                let width = match self.eat(":")? {
                    true => Some(self.conditional_expression()?),
                    false => None,
                };
                declarators.push((declarator, width));
                if !self.eat(",")? {
                    break;
                }
            }
            let span = start.to(self.last);
            self.expect(";")?;
            members.push(MemberDecl {
                base,
                declarators,
                span,
            });
        }
        self.advance()?;
        Ok(members)
    }

    fn enumeration(&mut self) -> Result<BaseKind> {
        self.advance()?;
        let (module, tag) = self.tag()?;
        let items = match self.eat("{")? {
            true => Some(self.enumerators()?),
            false if tag.is_none() => return Err(self.unexpected()),
            false => None,
        };
        Ok(BaseKind::Enum { module, tag, items })
    }

    fn enumerators(&mut self) -> Result<Vec<Enumerator>> {
        let mut items = Vec::new();
        while items.is_empty() || !self.at("}") {
            let name = self.ident()?;
            let span = self.last;
            let value = match self.eat("=")? {
                true => Some(self.conditional_expression()?),
                false => None,
            };
            items.push(Enumerator {
                name,
                value,
                span,
                next: self.span.start,
            });
            if !self.eat(",")? {
                break;
            }
        }
        self.expect("}")?;
        Ok(items)
    }

    /// Parses a declarator. With `named` it must have a name.
    fn declarator(&mut self, named: bool) -> Result<Declarator> {
        self.nested(|parser| parser.declarator_unbounded(named))
    }

    fn declarator_unbounded(&mut self, named: bool) -> Result<Declarator> {
        let mut pointers = 0;
        loop {
            if self.eat("*")? {
                pointers += 1;
            } else if !(self.eat_word("const")?
                || self.eat_word("volatile")?
                || self.eat_word("restrict")?)
            {
                break;
            }
        }
        let mut declarator = self.direct_declarator(named)?;
        declarator
            .derivations
            .extend(std::iter::repeat_with(|| Derivation::Pointer).take(pointers));
        Ok(declarator)
    }

    fn direct_declarator(&mut self, named: bool) -> Result<Declarator> {
        let mut declarator = Declarator {
            span: self.span,
            ..Declarator::default()
        };
        if self.at("(") && matches!(self.second()?, Tok::Punct("*" | "(" | "[")) {
            self.advance()?;
            declarator = self.declarator(named)?;
            self.expect(")")?;
        } else if let (Tok::Ident(word), true) = (&self.token, named || !self.keyword_here()) {
            if begins_type(word) {
                return Err(self.unexpected());
            }
            declarator.name = self.ident()?;
            declarator.span = self.last;
            if self.at("`") {
                return Err(self.scoped_declarator(declarator.span));
            }
        } else if named && self.at("`") {
            return Err(self.scoped_declarator(self.span));
        } else if named {
            return Err(self.unexpected());
        }
        loop {
            if self.eat("[")? {
                let derivation = self.brackets()?;
                declarator.derivations.push(derivation);
            } else if self.eat("(")? {
                let (params, variadic) = self.parameters(")")?;
                let derivation = Derivation::Function { params, variadic };
                declarator.derivations.push(derivation);
            } else {
                return Ok(declarator);
            }
        }
    }

    /// Returns the error that the declared name has a module. The current token is the backquote
    /// between the two.
    fn scoped_declarator(&mut self, start: Span) -> Box<Diagnostic> {
        if let Err(error) = self.advance() {
            return error;
        }
        let span = start.to(self.span);
        let message = format!(
            "D scoping operator may not be used in a declaration name ({})",
            self.source.slice(span)
        );
        Diagnostic::new("D_DECL_SCOPE", span, message)
    }

    fn keyword_here(&self) -> bool {
        matches!(&self.token, Tok::Ident(word) if super::parser::is_reserved(word))
    }

    fn brackets(&mut self) -> Result<Derivation> {
        if self.eat("]")? {
            return Ok(Derivation::Array(None));
        }
        let types = self.type_ahead()? || self.at("...") || self.storage_class().is_some();
        if types || self.key_ahead()? {
            let (keys, variadic) = self.parameters("]")?;
            return Ok(Derivation::Keys { keys, variadic });
        }
        let size = self.conditional_expression()?;
        self.expect("]")?;
        Ok(Derivation::Array(Some(size)))
    }

    /// Parses parameters up to and including `close`. Also returns whether the list ends in `...`.
    pub(super) fn parameters(&mut self, close: &'static str) -> Result<(Vec<TypeName>, bool)> {
        let mut params = Vec::new();
        if self.eat(close)? {
            return Ok((params, false));
        }
        loop {
            if self.eat("...")? {
                self.expect(close)?;
                return Ok((params, true));
            }
            params.push(self.parameter()?);
            if self.eat(close)? {
                return Ok((params, false));
            }
            self.expect(",")?;
        }
    }

    fn parameter(&mut self) -> Result<TypeName> {
        let start = self.span;
        let (storage, base) = self.specifiers()?;
        if !matches!(
            storage,
            Storage::Global | Storage::Foreign("auto" | "register")
        ) {
            return Err(Diagnostic::new(
                "D_DECL_PARMCLASS",
                start,
                "inappropriate storage class for function or associative array parameter",
            ));
        }
        let declarator = self.declarator(false)?;
        Ok(TypeName {
            base,
            declarator,
            span: start.to(self.last),
        })
    }

    /// Parses a type, with or without a declared name.
    pub(super) fn type_name(&mut self) -> Result<TypeName> {
        let start = self.span;
        let base = self.base_type()?;
        let declarator = self.declarator(false)?;
        Ok(TypeName {
            base,
            declarator,
            span: start.to(self.last),
        })
    }
}
