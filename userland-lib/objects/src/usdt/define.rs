// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! A program's provider as its definition states it: `provider name { probe name(parameters) :
//! (arguments); };`.

use dtrace_files::arch::programs::Shape;
use dtrace_uapi::limits::PROVNAMELEN;
use dtrace_uapi::types::{Attribute, Class, ProviderAttributes, Stability};

/// Longest name of a provider. In a process it is followed by the process ID (up to ten digits) and
/// a NUL.
pub const PROVIDER_MAX: usize = PROVNAMELEN - 11;

/// A provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    /// Its name.
    pub name: String,
    /// Its probes.
    pub probes: Vec<Definition>,
    /// The stability of its parts.
    pub attributes: ProviderAttributes,
}

/// A probe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definition {
    /// Its name as C spells it: two underscores stand for a hyphen.
    pub name: String,
    /// The values that the program passes.
    pub parameters: Vec<Parameter>,
    /// The arguments that a consumer sees: the type of each, and the index of its parameter.
    pub arguments: Vec<(String, u8)>,
}

/// A value that a program passes to a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its type, as D and C spell it.
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
    /// As a floating-point number of this many bytes.
    Float(u8),
    /// Not at all: the type cannot be passed, or the form is unknown.
    None,
}

/// The attributes in a file for a provider whose author has stated none.
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

/// The attributes of a provider whose author has stated none: nothing is promised.
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

/// Returns the attributes if the author has stated them. If all are [`ATTRIBUTES`], nothing was
/// stated.
pub fn said(attributes: ProviderAttributes) -> Option<ProviderAttributes> {
    (attributes != ATTRIBUTES).then_some(attributes)
}

impl Parameter {
    /// Its type as written into DOF. Readers derive from this text how a value is passed, and would
    /// take a program's own type name for a number of word size. So if the text would give another
    /// form, a standard type of the right form is used instead.
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

/// Returns C's type for an integer of this many bytes.
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
    /// Its name as consumers see it.
    pub fn shown(&self) -> String {
        self.name.replace("__", "-")
    }
}
