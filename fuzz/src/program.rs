// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! D programs made from choices: declarations, and clauses of statements whose expressions mostly
//! have the expected types.
//!
//! The choices are the bytes of the input, so that a small mutation of the input is a small change
//! of the program. When the input ends, the simplest choice is made. Therefore every input is a
//! program, and every program is finite.

use arbitrary::{Arbitrary, Result, Unstructured};
use std::fmt::Write;

/// Declarations at the start of every program.
const DECLARATIONS: &str = "\
struct pair { int a; struct pair *next; char c[8]; unsigned b : 5; int64_t w; double d; };\n\
enum color { RED, BLUE = 7 };\n\
typedef unsigned short small;\n\
translator struct pair < int i > { a = i; w = i + 1; };\n\
inline int one = 1;\n\
inline int twice[int n] = n * 2;\n\
int g; small h; double d; float f[int]; string s; struct pair sp; int arr[4]; int map[int, string]; string names[int];\n\
self int t; self string ts; self int tm[int];\n\
this int l; this float lf; this string ls; this struct pair lp; this char c;\n\
BEGIN { @a[1, \"\"] = count(); @b = sum(1); self->spec = speculation(); }\n";

/// Maximum nesting of expressions and of branches.
const DEEPEST: u32 = 6;
/// Maximum length of a program, bytes. A clause that has begun may exceed it.
const LONGEST: usize = 1 << 13;

/// A program under construction.
pub struct Writer<'u, 'd> {
    u: &'u mut Unstructured<'d>,
    text: String,
    depth: u32,
}

/// The intended type of an expression.
#[derive(Clone, Copy)]
enum Want {
    Int,
    Float,
    Str,
    Pair,
}

/// Writes the program for these choices.
pub fn program(u: &mut Unstructured<'_>) -> Result<String> {
    let mut writer = Writer {
        u,
        text: DECLARATIONS.to_owned(),
        depth: 0,
    };
    loop {
        writer.clause()?;
        if writer.u.is_empty() || writer.text.len() > LONGEST {
            return Ok(writer.text);
        }
    }
}

impl Writer<'_, '_> {
    fn put(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn choose(&mut self, words: &[&str]) -> Result<()> {
        let word = self.u.choose(words)?;
        self.text.push_str(word);
        Ok(())
    }

    /// Writes `pattern` with placeholders replaced: `#` by an integer, `^` by a floating-point
    /// number, `$` by a string, `&` by a pointer to a pair, and `~` by C's `&`.
    fn fill(&mut self, pattern: &str) -> Result<()> {
        self.depth += 1;
        for c in pattern.chars() {
            match c {
                '#' => self.expression(Want::Int)?,
                '^' => self.expression(Want::Float)?,
                '$' => self.expression(Want::Str)?,
                '&' => self.expression(Want::Pair)?,
                '~' => self.put("&"),
                c => self.text.push(c),
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn fill_one(&mut self, patterns: &[&str]) -> Result<()> {
        let pattern = self.u.choose(patterns)?;
        self.fill(pattern)
    }

    fn is_deep(&self) -> bool {
        self.depth > DEEPEST || self.u.is_empty() || self.text.len() > LONGEST
    }

    fn clause(&mut self) -> Result<()> {
        self.choose(&[
            "BEGIN",
            "syscall::read:entry",
            "fbt::schedule:entry, END",
            "tick-1s",
        ])?;
        if self.u.ratio(1, 3)? {
            self.fill("\n/#/")?;
        }
        self.put("\n{\n");
        self.statements()?;
        self.put("}\n");
        Ok(())
    }

    fn statements(&mut self) -> Result<()> {
        for _ in 0..self.u.int_in_range(0..=5)? {
            self.statement()?;
        }
        Ok(())
    }

    fn statement(&mut self) -> Result<()> {
        if !self.is_deep() && self.u.ratio(1, 8)? {
            self.depth += 1;
            self.fill("if (#) {\n")?;
            self.statements()?;
            if bool::arbitrary(self.u)? {
                self.put("} else {\n");
                self.statements()?;
            }
            self.put("}\n");
            self.depth -= 1;
            return Ok(());
        }
        self.fill_one(&[
            "trace(#)",
            "trace($)",
            "trace(^)",
            "d = ^",
            "d *= ^",
            "this->lf = ^",
            "f[#] = ^",
            "sp.d = ^",
            "printf(\"%f %.3e %g\\n\", ^, ^, ^)",
            "@i[^] = avg(^)",
            "@j = max(^)",
            "g = #",
            "s = $",
            "self->t = #",
            "self->ts = $",
            "self->tm[#] = #",
            "this->l = #",
            "this->ls = $",
            "this->c = #",
            "map[#, $] = #",
            "names[#] = $",
            "arr[1] = #",
            "sp.a = #",
            "this->lp.w = #",
            "this->lp = *&",
            "sp = *&",
            "h += #",
            "g <<= #",
            "g++",
            "--self->t",
            "printf(\"%d %s\\n\", #, $)",
            "printf(\"%*.*x|%-8c|%5u\\n\", #, #, #, #, #)",
            "@a[#, $] = count()",
            "@b = sum(#)",
            "@c[$] = quantize(#)",
            "@d[#] = lquantize(#, 0, 100, 10)",
            "@e = llquantize(#, 10, 0, 6, 20)",
            "@f[stack(3)] = avg(#)",
            "@g = stddev(#)",
            "@h[#, #, #] = min(#)",
            "printa(@a)",
            "printa(\"%d %s %@u\\n\", @a)",
            "clear(@b)",
            "normalize(@b, 7)",
            "trunc(@a, #)",
            "tracemem(#, 16)",
            "tracemem(#, 16, #)",
            "print(&)",
            "stack()",
            "ustack(4)",
            "exit(#)",
            "self->spec = speculation()",
            "speculate(#)",
            "commit(#)",
            "discard(#)",
            "bcopy($, alloca(8), 4)",
            "copyinto(#, 8, alloca(8))",
            "trace(xlate <struct pair> (#).w)",
            "mod(#)",
            "sym(#)",
            "raise(#)",
            "stop()",
            "chill(#)",
            "setopt(\"quiet\")",
            "system(\"%d\", #)",
            "#",
            "$",
        ])?;
        self.put(";\n");
        Ok(())
    }

    fn expression(&mut self, want: Want) -> Result<()> {
        // Occasionally use an expression of another type.
        let want = match self.u.ratio(1, 255)? {
            true => *self
                .u
                .choose(&[Want::Int, Want::Float, Want::Str, Want::Pair])?,
            false => want,
        };
        match want {
            Want::Int => self.integer(),
            Want::Float => self.float(),
            Want::Str => self.string(),
            Want::Pair => self.pair(),
        }
    }

    fn integer(&mut self) -> Result<()> {
        if self.is_deep() || self.u.ratio(1, 3)? {
            return self.plain_integer();
        }
        if bool::arbitrary(self.u)? {
            self.fill("(#")?;
            self.choose(&[
                "+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", "<", "<=", ">", ">=", "==",
                "!=", "&&", "||", "^^", ",",
            ])?;
            return self.fill(" #)");
        }
        self.fill_one(&[
            "(# ? # : #)",
            "-(#)",
            "!#",
            "(g = #)",
            "(this->c += #)",
            "(self->t |= #)",
            "(h -= #)",
            "(int)#",
            "(int)^",
            "(uint64_t)^",
            "(^ < ^)",
            "(^ == ^)",
            "!^",
            "(char)#",
            "(unsigned short)#",
            "(uint64_t)#",
            "(enum color)#",
            "($ == $)",
            "($ < $)",
            "strlen($)",
            "index($, $)",
            "rindex($, $, #)",
            "(strstr($, $) != (void *)0)",
            "strtoll($)",
            "strtoll($, 16)",
            "map[#, $]",
            "self->tm[#]",
            "arr[# ~ 3]",
            "twice[#]",
            "&->a",
            "&->w",
            "&->b",
            "&->c[# ~ 7]",
            "(int)(intptr_t)&",
            "*(int *)#",
            "*(int *)copyin(#, 4)",
            "(& == (void *)0)",
            "(&+1 - &)",
            "htons(#)",
            "ntohl(#)",
            "htonll(#)",
            "progenyof(#)",
            "sizeof (struct pair)",
            "sizeof ($)",
            "offsetof(struct pair, w)",
            "getmajor(#)",
        ])
    }

    fn plain_integer(&mut self) -> Result<()> {
        if self.u.ratio(1, 3)? {
            let number = match bool::arbitrary(self.u)? {
                true => u64::from(u8::arbitrary(self.u)?),
                false => u64::arbitrary(self.u)?,
            };
            let suffix = *self.u.choose(&["", "u", "l", "ull"])?;
            let _ = write!(self.text, "{number}{suffix}");
            return Ok(());
        }
        self.choose(&[
            "g",
            "h",
            "self->t",
            "this->l",
            "this->c",
            "arg0",
            "arg1",
            "pid",
            "tid",
            "timestamp",
            "errno",
            "one",
            "RED",
            "BLUE",
            "sp.a",
            "sp.b",
            "this->lp.w",
            "self->spec",
            "'x'",
            "curthread->pid",
            "`total_forks",
            "args[1]",
            "rand()",
            "id",
            "stackdepth",
            "(g++)",
            "(--this->l)",
        ])
    }

    fn float(&mut self) -> Result<()> {
        if self.is_deep() || self.u.ratio(1, 3)? {
            return self.choose(&[
                "d", "this->lf", "sp.d", "0.0", "1.5", "2.5e10", "1e-300", "3.4e38f",
            ]);
        }
        self.fill_one(&[
            "(^ + ^)",
            "(^ - ^)",
            "(^ * ^)",
            "(^ / ^)",
            "(^ + #)",
            "-(^)",
            "(double)#",
            "(float)^",
            "(long double)^",
            "f[#]",
            "&->d",
            "(d = ^)",
            "(# ? ^ : ^)",
        ])
    }

    fn string(&mut self) -> Result<()> {
        if self.is_deep() || self.u.ratio(1, 3)? {
            return self.choose(&[
                "s",
                "self->ts",
                "this->ls",
                "execname",
                "probefunc",
                "\"\"",
                "\"/usr//lib/../x\"",
                "\"a,b;c\"",
                "\"{\\\"k\\\": [1, 2]}\"",
                "curthread->comm",
            ]);
        }
        self.fill_one(&[
            "strjoin($, $)",
            "substr($, #)",
            "substr($, #, #)",
            "strchr($, #)",
            "strrchr($, #)",
            "strstr($, $)",
            "strtok($, $)",
            "basename($)",
            "dirname($)",
            "cleanpath($)",
            "lltostr(#)",
            "lltostr(#, 16)",
            "toupper($)",
            "tolower($)",
            "copyinstr(#)",
            "copyinstr(#, #)",
            "json($, \"k[1]\")",
            "inet_ntop(2, alloca(16))",
            "stringof($)",
            "stringof(&->c)",
            "names[#]",
            "(s = $)",
            "(this->ls = $)",
            "(# ? $ : $)",
            "(#, $)",
        ])
    }

    fn pair(&mut self) -> Result<()> {
        if self.is_deep() || self.u.ratio(1, 3)? {
            return self.choose(&["sp.next", "this->lp.next", "((struct pair *)arg0)"]);
        }
        self.fill_one(&[
            "((struct pair *)alloca(sizeof (struct pair)))",
            "((struct pair *)copyin(#, sizeof (struct pair)))",
            "((struct pair *)#)",
            "((userland struct pair *)#)",
            "&->next",
            "(& + #)",
            "(# ? & : &)",
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::program;
    use arbitrary::Unstructured;
    use dtrace::compile::{Compiler, Settings};
    use dtrace::fixture::Little;
    use dtrace::source::Source;

    /// If most programs were refused for one error, only that error would be tested.
    #[test]
    fn many_programs_are_right() {
        let (world, mut right, mut state) = (Little::default(), 0, 1u64);
        for _ in 0..100 {
            let choices: Vec<u8> = (0..200)
                .map(|_| {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    (state >> 56) as u8
                })
                .collect();
            let text = program(&mut Unstructured::new(&choices)).expect("a program");
            let source = Source::argument(text);
            let compiled = Compiler::new(&world).compile(&source, &Settings::default());
            right += u32::from(compiled.is_ok());
        }
        assert!(right >= 25, "{right} of 100");
    }
}
