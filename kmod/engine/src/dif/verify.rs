// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The verifier of DIF objects.
//!
//! An object that passes has:
//! - operands within the machine, and indexes within their tables;
//! - branches that only go forward, and a `ret` at the end. So it ends after at most as many steps
//!   as it has instructions; only `loop` goes back, and takes from the budget each time (INV-9);
//! - declared variables, used as they are declared;
//! - calls of subroutines that exist, with the right number of arguments.
//!
//! What an instruction *does* with addresses is checked when it runs.
//!
//! The number of arguments is the depth of the tuple stack, followed along all paths. As branches
//! only go forward, one pass in the order of the instructions comes to each of them after all its
//! predecessors. At the target of a loop nothing is known but that the tuple stack is empty, which
//! is checked on both ways there.
// Arithmetic on indexes of instructions, of which an object has at most `DIFO_MAX` bytes.
#![allow(clippy::arithmetic_side_effects)]

use crate::consumer::{Features, Privileges};
use crate::dof::Difo;
use crate::error::Reason;
use crate::mem::Vec;
use crate::subr;
use crate::var::index::Index;
use dtrace_uapi::dif::{Instr, Op, DIF_NREGS, DIF_NTREGS};
use dtrace_uapi::limits::{DIFO_MAX, STATVAR_MAX};
use dtrace_uapi::subr::Subr;
use dtrace_uapi::types::{
    DifType, DifVar, DIFV_KIND_ARRAY, DIFV_KIND_SCALAR, DIFV_SCOPE_GLOBAL, DIFV_SCOPE_LOCAL,
    DIFV_SCOPE_THREAD, DIF_TF_BYREF, DIF_TF_BYUREF, DIF_TYPE_CTF, DIF_TYPE_STRING,
};
use dtrace_uapi::var::{Var, ARRAY_UBASE, OTHER_MIN, OTHER_UBASE};

/// What the verifier needs to know about the consumer.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// Rights of the opener.
    pub privileges: Privileges,
    /// Features of the platform.
    pub features: Features,
    /// Whether destructive actions are allowed *and* requested.
    pub destructive: bool,
    /// Size of a string, in bytes.
    pub strsize: usize,
    /// Loops are allowed.
    pub loops: bool,
    /// The object is a [walker](crate::interp), which may do only what walkers need.
    pub walker: bool,
}

/// The verifier's findings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// It calls a destructive subroutine.
    pub destructive: bool,
    /// Maximum size of a key of an associative array that the object uses, in bytes.
    pub key_size: usize,
    /// It uses speculations.
    pub speculation: bool,
    /// It reads `vtimestamp`.
    pub vtimestamp: bool,
}

/// What is known on the way to an instruction: the depth of the tuple stack, and constants.
#[derive(Clone, Copy)]
struct Path {
    /// `None` if it depends on the path taken.
    depth: Option<u8>,
    /// Maximum size of the stack's entries in a key, in bytes.
    key_size: usize,
    /// Values of registers that are constants.
    known: [Option<u64>; DIF_NREGS as usize],
}

impl Path {
    /// Whether the tuple stack is certainly empty.
    fn has_no_tuple(&self) -> bool {
        self.depth == Some(0)
    }

    const START: Self = Self {
        depth: Some(0),
        key_size: 0,
        known: [None; DIF_NREGS as usize],
    };

    /// Returns what is known where two paths meet.
    fn meet(self, other: Self) -> Self {
        let mut known = self.known;
        for (mine, theirs) in known.iter_mut().zip(other.known) {
            if *mine != theirs {
                *mine = None;
            }
        }
        Self {
            depth: self.depth.filter(|_| self.depth == other.depth),
            key_size: self.key_size.max(other.key_size),
            known,
        }
    }
}

struct Verifier<'a> {
    difo: &'a Difo,
    cx: &'a Context,
    facts: Facts,
    /// Index of the object's variables.
    vars: Index,
}

type Check = Result<(), &'static str>;

fn ensure(good: bool, text: &'static str) -> Check {
    if good {
        Ok(())
    } else {
        Err(text)
    }
}

fn reg(r: u8) -> Check {
    ensure(r < DIF_NREGS, "no such register")
}

fn writable(r: u8) -> Check {
    reg(r)?;
    ensure(r != 0, "register 0 cannot be written")
}

fn zero(field: u8) -> Check {
    ensure(field == 0, "unused operand is not zero")
}

/// Verifies `difo`.
pub fn verify(difo: &Difo, cx: &Context) -> Result<Facts, Reason> {
    let mut this = Verifier {
        difo,
        cx,
        facts: Facts::default(),
        vars: Index::default(),
    };
    if difo.text.len() > DIFO_MAX / size_of::<Instr>() {
        return Err(Reason::invalid("DIF object is too long"));
    }
    if difo.strings.last().is_some_and(|b| *b != 0) {
        return Err(Reason::invalid("unterminated string table"));
    }
    check_type(&difo.rtype).map_err(Reason::invalid)?;
    if difo.rtype.flags & (DIF_TF_BYREF | DIF_TF_BYUREF) == 0 {
        if difo.rtype.kind == DIF_TYPE_STRING {
            return Err(Reason::invalid("string result is not by reference"));
        }
        if !matches!(difo.rtype.size, 0 | 1 | 2 | 4 | 8) {
            return Err(Reason::invalid("bad size of the result"));
        }
    }
    this.check_vars()?;
    this.check_text()?;
    Ok(this.facts)
}

fn check_type(ty: &DifType) -> Check {
    ensure(
        matches!(ty.kind, DIF_TYPE_CTF | DIF_TYPE_STRING),
        "unknown kind of type",
    )?;
    ensure(
        ty.flags & !(DIF_TF_BYREF | DIF_TF_BYUREF) == 0,
        "unknown flags of a type",
    )?;
    ensure(
        ty.flags != DIF_TF_BYREF | DIF_TF_BYUREF,
        "type is by kernel and by user reference",
    )
}

/// Checks one declaration by itself.
fn check_var(var: &DifVar) -> Check {
    ensure(
        matches!(var.kind, DIFV_KIND_ARRAY | DIFV_KIND_SCALAR),
        "unknown kind of variable",
    )?;
    ensure(
        matches!(
            var.scope,
            DIFV_SCOPE_GLOBAL | DIFV_SCOPE_THREAD | DIFV_SCOPE_LOCAL
        ),
        "unknown scope of a variable",
    )?;
    ensure(var.id <= 0xffff, "variable id out of range")?;
    if var.id < u32::from(OTHER_UBASE) {
        // The type of a built-in variable does not depend on the declaration.
        return Ok(());
    }
    check_type(&var.ty)?;
    ensure(
        !(var.kind == DIFV_KIND_ARRAY && var.scope == DIFV_SCOPE_LOCAL),
        "clause-local variable cannot be an associative array",
    )?;
    ensure(
        var.ty.flags & DIF_TF_BYUREF == 0,
        "variable cannot be by user reference",
    )?;
    if var.ty.flags & DIF_TF_BYREF != 0 {
        ensure(
            var.ty.size != 0 || var.ty.kind == DIF_TYPE_STRING,
            "variable has no size",
        )?;
        ensure(var.ty.size <= STATVAR_MAX, "variable is too big")
    } else {
        ensure(
            var.ty.kind == DIF_TYPE_CTF,
            "string variable is not by reference",
        )?;
        ensure(var.ty.size <= 8, "variable by value has more than 8 bytes")
    }
}

/// Maximum number of variables of one DIFO.
const VARS_MAX: usize = 4096;

/// Whether two declarations of one variable agree.
pub fn same_var(a: &DifVar, b: &DifVar) -> bool {
    a.kind == b.kind && a.ty.kind == b.ty.kind && a.ty.flags == b.ty.flags && a.ty.size == b.ty.size
}

impl Verifier<'_> {
    fn check_vars(&mut self) -> Result<(), Reason> {
        let vars = &self.difo.vars;
        if vars.len() > VARS_MAX {
            return Err(Reason::invalid("too many variables"));
        }
        for (i, var) in vars.iter().enumerate() {
            check_var(var).map_err(Reason::invalid)?;
            let twin = self.vars.add(var.id, var.scope, i)?;
            let twin = twin.and_then(|twin| vars.get(twin));
            if twin.is_some_and(|twin| !same_var(twin, var)) {
                return Err(Reason::invalid(
                    "variable is declared twice, in different ways",
                ));
            }
        }
        Ok(())
    }

    fn check_text(&mut self) -> Result<(), Reason> {
        let text = &self.difo.text;
        let mut incoming: Vec<Option<Path>> =
            Vec::try_from_fn(text.len(), |_| Ok::<_, Reason>(None))?;
        let heads = self.loop_heads()?;
        let mut path = Some(Path::START);
        for (pc, instr) in text.iter().enumerate() {
            let here = match (path, incoming.get(pc).copied().flatten()) {
                (Some(a), Some(b)) => Some(a.meet(b)),
                (a, b) => a.or(b),
            };
            // Code that no path reaches is checked like all other code.
            let mut here = here.unwrap_or(Path::START);
            let fail = |text| Reason::pc(text, pc as u32);
            if heads.get(pc).is_some_and(|is_head| *is_head) {
                ensure(here.has_no_tuple(), "loop begins with a tuple").map_err(fail)?;
                here = Path::START;
            }
            let op = instr.op().ok_or_else(|| fail("unknown operation"))?;
            self.check_operands(op, *instr, pc).map_err(fail)?;
            self.check_meaning(op, *instr, &here)
                .map_err(|(text, name)| fail(text).about(name))?;
            follow(op, *instr, self.difo, self.cx.strsize, &mut here);
            if is_branch(op) {
                if let Some(slot) = incoming.get_mut(instr.label() as usize) {
                    *slot = Some(slot.map_or(here, |other| other.meet(here)));
                }
            }
            path = Some(here).filter(|_| !matches!(op, Op::Ba | Op::Loop | Op::Ret));
        }
        match text.last().map(|last| last.op()) {
            Some(Some(Op::Ret)) => Ok(()),
            Some(_) => Err(Reason::pc(
                "last instruction is not ret",
                text.len() as u32 - 1,
            )),
            None => Err(Reason::invalid("DIF object without instructions")),
        }
    }

    /// Returns which instructions loops go back to.
    fn loop_heads(&self) -> Result<Vec<bool>, Reason> {
        let text = &self.difo.text;
        let mut heads = Vec::try_from_fn(text.len(), |_| Ok::<_, Reason>(false))?;
        for instr in text.iter().filter(|instr| instr.op() == Some(Op::Loop)) {
            if let Some(head) = heads.get_mut(instr.label() as usize) {
                *head = true;
            }
        }
        Ok(heads)
    }

    fn check_operands(&self, op: Op, i: Instr, pc: usize) -> Check {
        use Op::*;
        match op {
            Or | Xor | And | Sll | Srl | Sra | Sub | Add | Mul | Sdiv | Udiv | Srem | Urem
            | Copys | Fadd | Fsub | Fmul | Fdiv | Feq | Flt | Fle => {
                reg(i.r1())?;
                reg(i.r2())?;
                writable(i.rd())
            }
            Not | Mov | Allocs | Ldsb | Ldsh | Ldsw | Ldub | Lduh | Lduw | Ldx | Uldsb | Uldsh
            | Uldsw | Uldub | Ulduh | Ulduw | Uldx | Rldsb | Rldsh | Rldsw | Rldub | Rlduh
            | Rlduw | Rldx | Stb | Sth | Stw | Stx | Fxtod | Futod | Fdtox | Fdtou | Fstod
            | Fdtos | Fxtos | Futos => {
                reg(i.r1())?;
                zero(i.r2())?;
                writable(i.rd())
            }
            Cmp | Scmp => {
                reg(i.r1())?;
                reg(i.r2())?;
                zero(i.rd())
            }
            Tst => {
                reg(i.r1())?;
                zero(i.r2())?;
                zero(i.rd())
            }
            Ba | Be | Bne | Bg | Bgu | Bge | Bgeu | Bl | Blu | Ble | Bleu => {
                let label = i.label() as usize;
                ensure(label < self.difo.text.len(), "branch out of the text")?;
                ensure(label > pc, "branch does not go forward")
            }
            Loop => {
                ensure(self.cx.loops, "loops are not allowed")?;
                ensure(i.label() as usize <= pc, "loop does not go back")
            }
            Ret => {
                zero(i.r1())?;
                zero(i.r2())?;
                reg(i.rd())
            }
            Nop | Popts | Flushts => ensure(i.0 & 0x00ff_ffff == 0, "unused operand is not zero"),
            Setx => {
                let index = usize::from(i.index());
                ensure(index < self.difo.ints.len(), "integer out of the table")?;
                writable(i.rd())
            }
            Sets => {
                let offset = usize::from(i.index());
                ensure(offset < self.difo.strings.len(), "string out of the table")?;
                writable(i.rd())
            }
            Ldga | Ldta => {
                reg(i.r2())?;
                writable(i.rd())
            }
            Ldgs | Ldts | Ldls | Ldgaa | Ldtaa | Call => writable(i.rd()),
            Stgs | Stts | Stls | Stgaa | Sttaa => reg(i.rd()),
            Pushtr => {
                ensure(
                    matches!(i.r1(), DIF_TYPE_CTF | DIF_TYPE_STRING),
                    "unknown type of a tuple's entry",
                )?;
                reg(i.r2())?;
                reg(i.rd())
            }
            Pushtv => {
                ensure(i.r1() == DIF_TYPE_CTF, "unknown type of a tuple's entry")?;
                reg(i.r2())?;
                reg(i.rd())
            }
            Xlate | Xlarg => Err("translators are to be resolved by the consumer"),
        }
    }

    /// Checks variables and subroutines. An error has the name of what it is about.
    fn check_meaning(
        &mut self,
        op: Op,
        i: Instr,
        path: &Path,
    ) -> Result<(), (&'static str, &'static str)> {
        let plain = |text| (text, "");
        if self.cx.walker {
            self.check_walker(op, i)?;
        }
        match op {
            Op::Ldga | Op::Ldta => self.check_array(op, i.r1()),
            Op::Ldgs if i.index() < OTHER_UBASE => self.check_builtin(i.index()),
            Op::Ldgs | Op::Stgs => self
                .declared(i, DIFV_SCOPE_GLOBAL, DIFV_KIND_SCALAR)
                .map_err(plain),
            Op::Ldts | Op::Stts => self
                .declared(i, DIFV_SCOPE_THREAD, DIFV_KIND_SCALAR)
                .map_err(plain),
            Op::Ldls | Op::Stls => self
                .declared(i, DIFV_SCOPE_LOCAL, DIFV_KIND_SCALAR)
                .map_err(plain),
            Op::Ldgaa | Op::Stgaa | Op::Ldtaa | Op::Sttaa => {
                let scope = match op {
                    Op::Ldgaa | Op::Stgaa => DIFV_SCOPE_GLOBAL,
                    _ => DIFV_SCOPE_THREAD,
                };
                self.declared(i, scope, DIFV_KIND_ARRAY).map_err(plain)?;
                ensure(path.depth != Some(0), "associative array without a key").map_err(plain)?;
                self.facts.key_size = self.facts.key_size.max(path.key_size);
                Ok(())
            }
            Op::Call => self.check_call(i.index(), path),
            Op::Loop => ensure(path.has_no_tuple(), "loop ends with a tuple").map_err(plain),
            _ => Ok(()),
        }
    }

    /// Checks an instruction of a walker. It reads the memory of the process, keeps what it needs
    /// in clause-local variables, and puts frames. So it leaves nothing behind, and requests no
    /// stack itself (INV-15).
    fn check_walker(&self, op: Op, i: Instr) -> Result<(), (&'static str, &'static str)> {
        let is_good = match op {
            Op::Call => Subr::from_raw(i.index())
                .is_some_and(|subr| subr.is_walkers() || subr == Subr::Copyin),
            Op::Ldga => Var::from_raw(u16::from(i.r1())) == Some(Var::Walk),
            Op::Ldgs | Op::Stgs | Op::Ldts | Op::Stts | Op::Ldta => false,
            Op::Ldgaa | Op::Stgaa | Op::Ldtaa | Op::Sttaa => false,
            Op::Stb | Op::Sth | Op::Stw | Op::Stx | Op::Copys => false,
            _ => true,
        };
        ensure(is_good, "a walker cannot do this").map_err(|text| (text, ""))
    }

    fn check_array(&self, op: Op, id: u8) -> Result<(), (&'static str, &'static str)> {
        if op == Op::Ldta || u16::from(id) >= ARRAY_UBASE {
            return Err(("no such array", ""));
        }
        let features = &self.cx.features;
        match Var::from_raw(u16::from(id)) {
            Some(Var::Args) => Ok(()),
            Some(Var::Regs) if features.regs => Ok(()),
            Some(Var::Uregs) if features.uregs => Ok(()),
            Some(Var::Walk) if self.cx.walker => Ok(()),
            Some(var @ Var::Walk) => Err(("for walkers only", var.name())),
            Some(var) => Err(("not available on this platform", var.name())),
            None => Err(("no such array", "")),
        }
    }

    fn check_builtin(&mut self, id: u16) -> Result<(), (&'static str, &'static str)> {
        if id < OTHER_MIN {
            return Err(("array is used as a scalar", ""));
        }
        match Var::from_raw(id) {
            Some(var @ (Var::Ustackdepth | Var::Ucaller)) if !self.cx.features.ustack => {
                Err(("not available on this platform", var.name()))
            }
            Some(var) => {
                self.facts.vtimestamp |= var == Var::Vtimestamp;
                Ok(())
            }
            None => Err(("no such built-in variable", "")),
        }
    }

    fn declared(&self, i: Instr, scope: u8, kind: u8) -> Check {
        ensure(
            i.index() >= OTHER_UBASE,
            "built-in variable cannot be used so",
        )?;
        let number = self.vars.find(i.index().into(), scope);
        let var = number.and_then(|number| self.difo.vars.get(number));
        let var = var.ok_or("variable is not declared")?;
        ensure(var.kind == kind, "variable is not of this kind")
    }

    fn check_call(&mut self, raw: u16, path: &Path) -> Result<(), (&'static str, &'static str)> {
        let subr = Subr::from_raw(raw).ok_or(("no such subroutine", ""))?;
        let name = subr.name();
        let spec = subr::spec(subr);
        if subr == Subr::Ustack && !self.cx.features.ustack {
            return Err(("not available on this platform", name));
        }
        if subr.is_walkers() && !self.cx.walker {
            return Err(("for walkers only", name));
        }
        if subr.is_destructive() {
            ensure(
                self.cx.features.user_store,
                "not available on this platform",
            )
            .and_then(|()| {
                ensure(
                    self.cx.destructive,
                    "needs destructive actions to be enabled",
                )
            })
            .map_err(|text| (text, name))?;
            self.facts.destructive = true;
        }
        self.facts.speculation |= subr == Subr::Speculation;
        match path.depth {
            None => Err(("number of arguments depends on the path", name)),
            // The push that overflows the stack faults before the call.
            Some(depth) if depth > DIF_NTREGS => Ok(()),
            Some(depth) if !(spec.min..=spec.max).contains(&depth) => {
                Err(("wrong number of arguments", name))
            }
            Some(_) => Ok(()),
        }
    }
}

/// Whether `op` is a forward branch.
pub fn is_branch(op: Op) -> bool {
    (Op::Ba as u8..=Op::Bleu as u8).contains(&(op as u8))
}

/// Returns the maximum size of an entry of the tuple stack in a key, in bytes. The module
/// `variables` describes keys.
fn entry_size(i: Instr, op: Op, strsize: usize, path: &Path) -> usize {
    let size = match op {
        Op::Pushtr if i.r1() == DIF_TYPE_STRING => strsize,
        Op::Pushtr => match path.known.get(usize::from(i.r2())) {
            Some(Some(size)) => usize::try_from(*size).unwrap_or(usize::MAX).min(DIFO_MAX),
            _ => strsize,
        },
        _ => return 8,
    };
    size.saturating_add(8 + 7) & !7
}

/// Updates what is known by the effect of an instruction.
fn follow(op: Op, i: Instr, difo: &Difo, strsize: usize, path: &mut Path) {
    match op {
        Op::Pushtr | Op::Pushtv => {
            path.key_size = path
                .key_size
                .saturating_add(entry_size(i, op, strsize, path));
            path.depth = path.depth.map(|depth| depth.saturating_add(1));
        }
        Op::Popts => path.depth = path.depth.map(|depth| depth.saturating_sub(1)),
        Op::Flushts => {
            path.depth = Some(0);
            path.key_size = 0;
        }
        _ => {}
    }
    let written = match op {
        Op::Cmp | Op::Tst | Op::Scmp | Op::Ret | Op::Nop | Op::Pushtr | Op::Pushtv => 0,
        Op::Stgs | Op::Stts | Op::Stls | Op::Stgaa | Op::Sttaa => 0,
        Op::Stb | Op::Sth | Op::Stw | Op::Stx | Op::Copys | Op::Popts | Op::Flushts => 0,
        Op::Loop => 0,
        op if is_branch(op) => 0,
        _ => usize::from(i.rd()),
    };
    if written != 0 {
        let value = match op {
            Op::Setx => difo.ints.get(usize::from(i.index())).copied(),
            Op::Mov => path.known.get(usize::from(i.r1())).copied().flatten(),
            _ => None,
        };
        if let Some(slot) = path.known.get_mut(written) {
            *slot = value;
        }
    }
}
