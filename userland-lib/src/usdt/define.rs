// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! What a program's provider is, as its definition says: `provider name { probe name(parameters) : (arguments); };`.

use crate::arch::x86_64::Shape;
use dtrace_uapi::limits::PROVNAMELEN;
use dtrace_uapi::types::{Attribute, Class, ProviderAttributes, Stability};

/// Longest name of a provider: that of a process has the process' number behind it, ten digits, and a NUL.
pub const PROVIDER_MAX: usize = PROVNAMELEN - 11;

/// A provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    /// Its name.
    pub name: String,
    /// Its probes.
    pub probes: Vec<Definition>,
    /// How far its parts may be relied on.
    pub attributes: ProviderAttributes,
}

/// A probe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definition {
    /// Its name, as C has it: two underscores stand for a hyphen.
    pub name: String,
    /// What the program passes.
    pub parameters: Vec<Parameter>,
    /// What those who trace see, each by its type and which of the parameters it is.
    pub arguments: Vec<(String, u8)>,
}

/// What a program passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its type, as D and C write it.
    pub ty: String,
    /// How a value is passed.
    pub form: Form,
}

/// How a value is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As an integer of this many bytes, with or without a sign.
    Int(u64, bool),
    /// As an address.
    Pointer,
    /// As a number in floating point of this many bytes.
    Float(u8),
    /// Not at all.
    None,
}

/// What a file has for a provider whose author says nothing.
pub const ATTRIBUTES: ProviderAttributes = {
    let usual = Attribute::new(Stability::Unstable, Stability::Unstable, Class::Common);
    ProviderAttributes {
        provider: usual,
        module: usual,
        func: usual,
        name: usual,
        args: usual,
    }
};

/// How far that is to be relied on: nobody has promised anything.
pub const UNSAID: ProviderAttributes = {
    let private = Attribute::new(Stability::Private, Stability::Private, Class::Unknown);
    ProviderAttributes {
        provider: private,
        module: private,
        func: private,
        name: private,
        args: private,
    }
};

/// What an author has said who has left these: all of them as they are where nothing is said is nothing.
pub fn said(attributes: ProviderAttributes) -> Option<ProviderAttributes> {
    (attributes != ATTRIBUTES).then_some(attributes)
}

impl Parameter {
    /// Its type as DOF has it, where the type says how a value is passed: a name of a program's own would be taken for a number of the largest.
    pub fn in_dof(&self) -> &str {
        let shape = |size: u64, is_signed, is_float| Shape {
            size: size as u8,
            is_signed,
            is_float,
        };
        let (own, other) = match self.form {
            Form::Int(size, is_signed) => (shape(size, is_signed, false), number(size, is_signed)),
            Form::Float(4) => (shape(4, false, true), Some("float")),
            Form::Float(8) => (shape(8, false, true), Some("double")),
            _ => return &self.ty,
        };
        match super::dof::shape(&self.ty, true) {
            Some(told) if told == own => &self.ty,
            _ => other.unwrap_or(&self.ty),
        }
    }
}

/// The type of C for a number of this many bytes.
pub fn number(size: u64, is_signed: bool) -> Option<&'static str> {
    Some(match (size, is_signed) {
        (1, true) => "signed char",
        (1, false) => "unsigned char",
        (2, true) => "short",
        (2, false) => "unsigned short",
        (4, true) => "int",
        (4, false) => "unsigned int",
        (8, true) => "long long",
        (8, false) => "unsigned long long",
        _ => return None,
    })
}

impl Definition {
    /// Its name, as those know it who trace.
    pub fn shown(&self) -> String {
        self.name.replace("__", "-")
    }
}
