// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Builds programs by hand from the compiler's intermediate representation.
//!
//! They test the interfaces between compiler, engine and consumer independently of the compiler's
//! front end.

use dtrace::{
    codegen::{
        asm::assemble,
        ir::{Func, Inst, VReg},
    },
    format::Format,
    pattern::ProbePattern,
    program::{ActionDesc, Clause, Difo, Program},
    source::Span,
    statement::{self, AggVarId, Kind, Print, Statement},
};
use dtrace_uapi::{
    action::Action,
    dif::Op,
    types::{DifType, DIF_TF_BYREF, DIF_TYPE_CTF, DIF_TYPE_STRING},
    var::Var,
};

/// Size of a D string, bytes.
const STRSIZE: u32 = 256;

/// An expression and the kind of its D type.
#[derive(Clone)]
pub struct Value {
    difo: Difo,
    kind: Kind,
}

fn scalar(size: u32) -> DifType {
    DifType {
        kind: DIF_TYPE_CTF,
        size,
        ..DifType::default()
    }
}

fn value(kind: Kind, rtype: DifType, inst: impl FnOnce(&mut Func, VReg) -> Inst) -> Value {
    let mut func = Func::new();
    let dst = func.vreg();
    let inst = inst(&mut func, dst);
    func.push(inst, Span::default());
    func.push(Inst::Ret { src: dst }, Span::default());
    Value {
        difo: assemble(&func, rtype).expect("a small function"),
        kind,
    }
}

/// Returns a signed constant of `size` bytes.
pub fn int(size: u32, constant: i64) -> Value {
    value(Kind::Signed, scalar(size), |_, dst| Inst::Const {
        dst,
        value: constant as u64,
    })
}

/// Returns a string constant.
pub fn string(text: &str) -> Value {
    let rtype = DifType {
        kind: DIF_TYPE_STRING,
        flags: DIF_TF_BYREF,
        size: STRSIZE,
        ..DifType::default()
    };
    value(Kind::String, rtype, |func, dst| Inst::Str {
        dst,
        string: func.string(text.as_bytes()),
    })
}

/// Returns a built-in variable that is an unsigned integer.
pub fn var(size: u32, var: Var) -> Value {
    value(Kind::Unsigned, scalar(size), |_, dst| Inst::LoadVar {
        op: Op::Ldgs,
        dst,
        var: var as u16,
    })
}

/// Returns a built-in variable that is a string.
pub fn text_var(var: Var) -> Value {
    let mut value = string("");
    value.difo = self::var(8, var).difo;
    value.difo.rtype = string("").difo.rtype;
    value
}

/// Returns an 8-byte load from `address`.
pub fn load(address: u64) -> Value {
    let mut func = Func::new();
    let (addr, dst) = (func.vreg(), func.vreg());
    for inst in [
        Inst::Const {
            dst: addr,
            value: address,
        },
        Inst::Load {
            op: Op::Ldx,
            dst,
            addr,
        },
        Inst::Ret { src: dst },
    ] {
        func.push(inst, Span::default());
    }
    Value {
        difo: assemble(&func, scalar(8)).expect("a small function"),
        kind: Kind::Signed,
    }
}

/// A program under construction.
#[derive(Default)]
pub struct Builder {
    clauses: Vec<Clause>,
    statements: Vec<Statement>,
}

impl Builder {
    /// Begins a clause for the probes that match `pattern`.
    pub fn clause(&mut self, pattern: &str) -> &mut Self {
        let parts: Vec<String> = pattern.split(':').map(str::to_owned).collect();
        let [provider, module, func, name] = parts.try_into().expect("four parts");
        self.clauses.push(Clause {
            probes: ProbePattern {
                id: 0,
                provider,
                module,
                func,
                name,
            },
            predicate: None,
            actions: Vec::new(),
            number: self.clauses.len() as u64,
            span: Span::default(),
        });
        self
    }

    /// Adds a predicate to the clause.
    pub fn when(&mut self, value: &Value) -> &mut Self {
        self.last().predicate = Some(value.difo.clone());
        self
    }

    fn last(&mut self) -> &mut Clause {
        self.clauses.last_mut().expect("a clause was begun")
    }

    /// Adds a statement with one action.
    pub fn act(&mut self, kind: Action, statement: Statement, value: Option<&Value>) -> &mut Self {
        self.actions(statement, &[kind], value.into_iter().collect(), 0, None)
    }

    fn actions(
        &mut self,
        statement: Statement,
        kinds: &[Action],
        values: Vec<&Value>,
        arg: u64,
        format: Option<&str>,
    ) -> &mut Self {
        let uarg = statement::FIRST + self.statements.len() as u64;
        self.statements.push(statement);
        let count = kinds.len();
        for (index, &kind) in kinds.iter().enumerate() {
            let ntuple = if kind.is_aggregation() { count - 1 } else { 0 };
            self.last().actions.push(ActionDesc {
                kind,
                difo: values.get(index).map(|value| value.difo.clone()),
                format: format.filter(|_| index == 0).map(Into::into),
                ntuple: ntuple as u32,
                arg,
                uarg,
            });
        }
        self
    }

    /// `trace(value)`.
    pub fn trace(&mut self, value: &Value) -> &mut Self {
        self.act(Action::Difexpr, Statement::Trace(value.kind), Some(value))
    }

    /// `exit(status)`.
    pub fn exit(&mut self, status: i64) -> &mut Self {
        self.act(Action::Exit, Statement::Exit, Some(&int(4, status)))
    }

    /// `stack(frames)`.
    pub fn stack(&mut self, frames: u64) -> &mut Self {
        self.actions(
            Statement::Action,
            &[Action::Stack],
            Vec::new(),
            frames,
            None,
        )
    }

    /// `printf(format, values…)`.
    pub fn printf(&mut self, format: &str, values: &[&Value]) -> &mut Self {
        let statement = Statement::Printf(Print {
            format: Format::parse(format).expect("a good format"),
            args: values.iter().map(|value| value.kind).collect(),
        });
        let kinds = vec![Action::Printf; values.len().max(1)];
        self.actions(statement, &kinds, values.to_vec(), 0, Some(format))
    }

    /// `@var[keys…] = func(value)`. `arg` has the parameters of a distribution.
    pub fn aggregate(
        &mut self,
        var: AggVarId,
        keys: &[&Value],
        func: Action,
        arg: u64,
        of: Option<&Value>,
    ) -> &mut Self {
        let statement = Statement::Aggregate {
            var,
            keys: keys.iter().map(|key| key.kind).collect(),
        };
        let mut kinds = vec![Action::Difexpr; keys.len()];
        kinds.push(func);
        let values = keys.iter().copied().chain(of).collect();
        self.actions(statement, &kinds, values, arg, None)
    }

    /// `printa(format, @vars…)`.
    pub fn printa(&mut self, format: Option<&str>, aggs: &[AggVarId]) -> &mut Self {
        let statement = Statement::Printa {
            format: format.map(|format| Format::parse(format).expect("a good format")),
            aggs: aggs.to_vec(),
        };
        self.act(Action::Printa, statement, None)
    }

    /// Returns the program.
    pub fn finish(&mut self) -> Program {
        Program {
            spans: vec![Span::default(); self.statements.len()],
            clauses: std::mem::take(&mut self.clauses),
            statements: std::mem::take(&mut self.statements),
            first_uarg: statement::FIRST,
            ..Program::default()
        }
    }
}
