// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Converts call frame information (DWARF 5, section 6.4) to rules.

use super::rows::Rows;
use dtrace_files::arch::Registers;
use dtrace_unwind::{Base, Cfa, FramePointer, Rule};
use gimli::{
    BaseAddresses, CfaRule, CieOrFde, Encoding, Expression, FrameDescriptionEntry, Operation,
    Reader, ReaderOffset as _, Register, RegisterRule, UnwindContext, UnwindSection,
    UnwindTableRow,
};

/// Maximum size in bytes of a CIE, the part that many functions share, because it is interpreted
/// again for each of them.
const COMMON_MAX: u64 = 1024;
/// Maximum number of operations in an expression.
const OPERATIONS_MAX: usize = 16;

/// Reads a section's entries. Damaged entries are skipped; a damaged entry header ends the reading,
/// because the next entry cannot be found.
pub(super) fn read<R: Reader, S: UnwindSection<R>>(
    section: &S,
    bases: &BaseAddresses,
    registers: &Registers,
    rows: &mut Rows,
) where
    S::Offset: gimli::UnwindOffset<R::Offset>,
{
    let mut context = UnwindContext::new();
    let mut entries = section.entries(bases);
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(entry) = entry else {
            continue;
        };
        let entry = entry.parse(S::cie_from_offset).ok();
        if let Some(entry) = entry.filter(|entry| entry.cie().entry_len().into_u64() <= COMMON_MAX)
        {
            // Keep the rows that precede damage.
            let _ = read_entry(section, bases, registers, &entry, &mut context, rows);
        }
    }
}

fn read_entry<R: Reader, S: UnwindSection<R>>(
    section: &S,
    bases: &BaseAddresses,
    registers: &Registers,
    entry: &FrameDescriptionEntry<R>,
    context: &mut UnwindContext<R::Offset>,
    rows: &mut Rows,
) -> gimli::Result<()> {
    let mut table = entry.rows(section, bases, context)?;
    while let Some(row) = table.next_row()? {
        let reading = Reading {
            section,
            registers,
            encoding: entry.cie().encoding(),
        };
        let rule = match entry.is_signal_trampoline() {
            true => reading.signal(row),
            false => reading.rule(row),
        };
        let rule = rule.unwrap_or(Rule::UNKNOWN);
        rows.add(row.start_address(), row.end_address(), rule);
    }
    Ok(())
}

struct Reading<'a, S> {
    section: &'a S,
    registers: &'a Registers,
    encoding: Encoding,
}

impl<S> Reading<'_, S> {
    /// Returns the rule of a row of an ordinary function. `None` if it cannot be expressed: the
    /// return address must be right below the CFA.
    fn rule<R: Reader>(&self, row: &UnwindTableRow<R::Offset>) -> Option<Rule>
    where
        S: UnwindSection<R>,
    {
        let word = self.registers.word.bytes() as i64;
        let cfa = match row.register(self.registers.return_address) {
            // The outermost function has no return address.
            RegisterRule::Undefined => Cfa::End,
            RegisterRule::Offset(at) if at == -word => self.cfa(row.cfa())?,
            _ => return None,
        };
        let fp = match row.register(self.registers.fp) {
            RegisterRule::Undefined | RegisterRule::SameValue => FramePointer::Same,
            RegisterRule::Offset(at) => FramePointer::Saved(i16::try_from(at).ok()?),
            RegisterRule::Expression(at) => self.chained(&self.operations(at)),
            _ => FramePointer::Lost,
        };
        Some(Rule { cfa, fp })
    }

    fn cfa<R: Reader>(&self, cfa: &CfaRule<R::Offset>) -> Option<Cfa>
    where
        S: UnwindSection<R>,
    {
        match cfa {
            CfaRule::RegisterAndOffset { register, offset } => {
                Some(Cfa::At(self.base(*register)?, i32::try_from(*offset).ok()?))
            }
            CfaRule::Expression(expression) => match &self.operations(*expression)[..] {
                [from, Operation::Deref { .. }] => {
                    let (base, at) = self.register(from)?;
                    Some(Cfa::Loaded(base, at, 0))
                }
                [from, Operation::Deref { .. }, Operation::PlusConstant { value }] => {
                    let (base, at) = self.register(from)?;
                    Some(Cfa::Loaded(base, at, u8::try_from(*value).ok()?))
                }
                operations => self.linkage(operations),
            },
        }
    }

    /// Recognizes the CFA expression of the linker's stubs (PLT): from a certain byte of each
    /// 16-byte stub on, one more word has been pushed.
    fn linkage<R: Reader>(&self, operations: &[Operation<R>]) -> Option<Cfa> {
        let [sp, ip, Operation::UnsignedConstant { value: 15 }, Operation::And, Operation::UnsignedConstant { value: from }, Operation::Ge, Operation::UnsignedConstant { value: shift }, Operation::Shl, Operation::Plus] =
            operations
        else {
            return None;
        };
        let (Base::Sp, at) = self.register(sp)? else {
            return None;
        };
        let is_ip = matches!(ip, Operation::RegisterOffset { register, offset: 0, .. } if *register == self.registers.return_address);
        let is_word =
            1_u64.checked_shl(u32::try_from(*shift).ok()?)? == self.registers.word.bytes();
        (is_ip && is_word).then_some(Cfa::Linkage(at, i16::try_from(*from).ok()?))
    }

    /// Returns the rule of a signal frame, which says where the kernel saved the stack pointer.
    fn signal<R: Reader>(&self, row: &UnwindTableRow<R::Offset>) -> Option<Rule>
    where
        S: UnwindSection<R>,
    {
        let CfaRule::Expression(expression) = row.cfa() else {
            return None;
        };
        let operations = self.operations(*expression);
        let [from, Operation::Deref { .. }] = &operations[..] else {
            return None;
        };
        match self.register(from)? {
            (Base::Sp, at) => Some(Rule {
                cfa: Cfa::Signal(at),
                fp: FramePointer::Lost,
            }),
            _ => None,
        }
    }

    /// Returns the frame pointer's rule for an expression: it is saved at a distance from the frame
    /// pointer of this frame.
    fn chained<R: Reader>(&self, operations: &[Operation<R>]) -> FramePointer {
        let [from] = operations else {
            return FramePointer::Lost;
        };
        match self.register(from) {
            Some((Base::Fp, at)) => {
                i16::try_from(at).map_or(FramePointer::Lost, FramePointer::Chained)
            }
            _ => FramePointer::Lost,
        }
    }

    /// Returns the register and the offset of an operation that adds them.
    fn register<R: Reader>(&self, operation: &Operation<R>) -> Option<(Base, i32)> {
        match operation {
            Operation::RegisterOffset {
                register, offset, ..
            } => Some((self.base(*register)?, i32::try_from(*offset).ok()?)),
            _ => None,
        }
    }

    fn base(&self, register: Register) -> Option<Base> {
        match register {
            register if register == self.registers.sp => Some(Base::Sp),
            register if register == self.registers.fp => Some(Base::Fp),
            Register(n) if n < 16 => Some(Base::Other(n as u8)),
            _ => None,
        }
    }

    /// Returns the operations of an expression. Empty if it is damaged or too long.
    fn operations<R: Reader>(
        &self,
        expression: gimli::UnwindExpression<R::Offset>,
    ) -> Vec<Operation<R>>
    where
        S: UnwindSection<R>,
    {
        let found: gimli::Result<Expression<R>> = expression.get(self.section);
        let Ok(found) = found else {
            return Vec::new();
        };
        let mut operations = found.operations(self.encoding);
        let mut all = Vec::new();
        while all.len() <= OPERATIONS_MAX {
            match operations.next() {
                Ok(Some(operation)) => all.push(operation),
                Ok(None) => return all,
                Err(_) => break,
            }
        }
        Vec::new()
    }
}
