// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Declarations: C's specifiers and declarators, with D's storage classes and associative arrays.

use super::ast::{
    BaseKind, BaseType, Declaration, Declarator, Derivation, Expr, InitDeclarator, MemberDecl,
    Storage, TypeName,
};
use super::lexer::Tok;
use super::parser::{begins_type, Parser};
use crate::diag::{Diagnostic, Result};

/// C's words for scalar types.
const WORDS: &[&str] = &[
    "char", "double", "float", "int", "long", "short", "signed", "unsigned", "void",
];

impl Parser<'_> {
    /// A declaration up to its semicolon, of which the lexer is left standing behind.
    pub(super) fn declaration(&mut self) -> Result<Declaration> {
        let start = self.span;
        let mut storage = Storage::Global;
        while let Some(class) = self.storage_class()? {
            if storage != Storage::Global {
                return Err(Diagnostic::new(
                    "D_DECL_CLASS",
                    self.last,
                    "only one storage class allowed in declaration",
                ));
            }
            storage = class;
        }
        let base = self.base_type(true)?;
        let mut declarators = Vec::new();
        if !(self.at(";") && base.kind.stands_alone()) {
            loop {
                let declarator = self.declarator(true)?;
                let value = match self.eat("=")? {
                    true => Some(self.assignment()?),
                    false => None,
                };
                declarators.push(InitDeclarator { declarator, value });
                if !self.eat(",")? {
                    break;
                }
            }
        }
        if !self.at(";") {
            return Err(self.unexpected());
        }
        let span = start.to(self.last);
        self.leave_tokens();
        Ok(Declaration {
            storage,
            base,
            declarators,
            span,
        })
    }

    fn storage_class(&mut self) -> Result<Option<Storage>> {
        let Tok::Ident(word) = &self.token else {
            return Ok(None);
        };
        let class = match word.as_str() {
            "extern" => Storage::Extern,
            "typedef" => Storage::Typedef,
            "self" => Storage::Thread,
            "this" => Storage::Clause,
            "inline" => Storage::Inline,
            "auto" => Storage::Foreign("auto"),
            "static" => Storage::Foreign("static"),
            "register" => Storage::Foreign("register"),
            _ => return Ok(None),
        };
        self.advance()?;
        Ok(Some(class))
    }

    /// Specifiers of a type. A name counts as a type where one must stand (`trusting`).
    fn base_type(&mut self, trusting: bool) -> Result<BaseType> {
        let start = self.span;
        let mut kind: Option<BaseKind> = None;
        let mut words: Vec<&'static str> = Vec::new();
        let (mut is_const, mut userland) = (false, false);
        while let Tok::Ident(word) = self.token.clone() {
            match word.as_str() {
                "const" => is_const = true,
                "volatile" | "restrict" => (),
                "userland" => userland = true,
                "string" if kind.is_none() && words.is_empty() => kind = Some(BaseKind::Str),
                "struct" | "union" if kind.is_none() && words.is_empty() => {
                    kind = Some(self.record()?);
                    continue;
                }
                "enum" if kind.is_none() && words.is_empty() => {
                    kind = Some(self.enumeration()?);
                    continue;
                }
                _ => {
                    if let Some(known) = WORDS.iter().find(|known| **known == word) {
                        if kind.is_some() {
                            return Err(self.combination());
                        }
                        words.push(known);
                    } else if kind.is_some() || !words.is_empty() || begins_type(&word) {
                        break;
                    } else if trusting || self.type_ahead()? {
                        kind = Some(self.named()?);
                        continue;
                    } else {
                        break;
                    }
                }
            }
            self.advance()?;
        }
        let kind = match (kind, words.is_empty()) {
            (Some(kind), _) => kind,
            (None, false) => BaseKind::Words(words),
            (None, true) => return Err(self.unexpected()),
        };
        Ok(BaseType {
            kind,
            is_const,
            userland,
            span: start.to(self.last),
        })
    }

    fn combination(&self) -> Box<Diagnostic> {
        Diagnostic::new("D_DECL_COMBO", self.span, "invalid type combination")
    }

    fn named(&mut self) -> Result<BaseKind> {
        if self.at("`") {
            self.advance()?;
            let name = self.ident()?;
            return Ok(BaseKind::Named {
                module: Some(String::new()),
                name,
            });
        }
        let name = self.ident()?;
        if self.eat("`")? {
            let module = Some(name);
            let name = self.ident()?;
            return Ok(BaseKind::Named { module, name });
        }
        Ok(BaseKind::Named { module: None, name })
    }

    fn record(&mut self) -> Result<BaseKind> {
        let is_union = self.at_word("union");
        self.advance()?;
        let (mut module, mut tag) = (None, None);
        if self.eat("`")? {
            module = Some(String::new());
            tag = Some(self.ident()?);
        } else if let Tok::Ident(_) = self.token {
            let word = self.ident()?;
            if self.eat("`")? {
                module = Some(word);
                tag = Some(self.ident()?);
            } else {
                tag = Some(word);
            }
        }
        let members = match self.eat("{")? {
            true => Some(self.nested(Self::members)?),
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

    fn members(&mut self) -> Result<Vec<MemberDecl>> {
        let mut members = Vec::new();
        while !self.eat("}")? {
            let start = self.span;
            let base = self.base_type(true)?;
            let mut declarators = Vec::new();
            while !self.at(";") {
                let declarator = match self.at(":") {
                    true => Declarator::default(),
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
        Ok(members)
    }

    fn enumeration(&mut self) -> Result<BaseKind> {
        self.advance()?;
        let tag = match self.token {
            Tok::Ident(_) => Some(self.ident()?),
            _ => None,
        };
        let items = match self.eat("{")? {
            true => Some(self.enumerators()?),
            false if tag.is_none() => return Err(self.unexpected()),
            false => None,
        };
        Ok(BaseKind::Enum { tag, items })
    }

    fn enumerators(&mut self) -> Result<Vec<(String, Option<Expr>)>> {
        let mut items = Vec::new();
        while !self.eat("}")? {
            let name = self.ident()?;
            let value = match self.eat("=")? {
                true => Some(self.conditional_expression()?),
                false => None,
            };
            items.push((name, value));
            if !self.eat(",")? {
                self.expect("}")?;
                break;
            }
        }
        Ok(items)
    }

    /// A declarator, with a name where `named`.
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
        if self.at("(")
            && matches!(
                self.second()?,
                Tok::Punct("*" | "(" | "[") | Tok::Punct("^")
            )
        {
            self.advance()?;
            declarator = self.declarator(named)?;
            self.expect(")")?;
        } else if let (Tok::Ident(word), true) = (&self.token, named || !self.keyword_here()) {
            if begins_type(word) {
                return Err(self.unexpected());
            }
            declarator.name = self.ident()?;
            declarator.span = self.last;
        } else if named {
            return Err(self.unexpected());
        }
        loop {
            if self.eat("[")? {
                let derivation = self.brackets()?;
                declarator.derivations.push(derivation);
            } else if self.eat("(")? {
                let derivation = self.parameters()?;
                declarator.derivations.push(derivation);
            } else {
                return Ok(declarator);
            }
        }
    }

    fn keyword_here(&self) -> bool {
        matches!(&self.token, Tok::Ident(word) if super::parser::is_reserved(word))
    }

    fn brackets(&mut self) -> Result<Derivation> {
        if self.eat("]")? {
            return Ok(Derivation::Array(None));
        }
        if self.type_ahead()? {
            let mut keys = Vec::new();
            loop {
                keys.push(self.type_name()?);
                if self.eat("]")? {
                    return Ok(Derivation::Keys(keys));
                }
                self.expect(",")?;
            }
        }
        let size = self.conditional_expression()?;
        self.expect("]")?;
        Ok(Derivation::Array(Some(size)))
    }

    fn parameters(&mut self) -> Result<Derivation> {
        let mut params = Vec::new();
        let mut variadic = false;
        if !self.eat(")")? {
            loop {
                if self.eat("...")? {
                    variadic = true;
                    self.expect(")")?;
                    break;
                }
                params.push(self.type_name()?);
                if self.eat(")")? {
                    break;
                }
                self.expect(",")?;
            }
        }
        Ok(Derivation::Function { params, variadic })
    }

    /// A type's name, perhaps with the name of what has it.
    pub(super) fn type_name(&mut self) -> Result<TypeName> {
        let start = self.span;
        let base = self.base_type(true)?;
        let declarator = self.declarator(false)?;
        Ok(TypeName {
            base,
            declarator,
            span: start.to(self.last),
        })
    }
}
