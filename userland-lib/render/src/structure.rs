// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! `print()` of a pointer: the object that it points to, member by member, each with its type.
//!
//! Members that are zero are omitted: in a kernel structure most are, and the others are the
//! interesting ones. Pointers are printed as numbers and not followed. The record may hold less
//! than the object (`printsize`); the first member beyond its end is printed as `...`, and nothing
//! after it.
//!
//! A closing brace is printed when the next member is reached, not when the previous one ends. So
//! the dots appear inside the innermost structure that is still open.

use std::ops::ControlFlow;

use super::place::{enumerator, Place};
use super::{float, pad, Renderer};
use dtrace_compiler::shape::{Form, Shape, DEPTH};

/// Indentation of the outermost type, columns.
const INDENT: usize = 44;

impl Renderer<'_> {
    /// Appends the object at `address`. `data` is its recorded bytes, which may be truncated.
    pub fn structure(&self, out: &mut Vec<u8>, address: u64, shape: &Shape, data: &[u8]) {
        put!(out, "{address:#x} = *\n");
        let mut printer = Printer {
            out,
            data,
            open: Vec::new(),
        };
        let end = printer.visit("", shape, 0, 0, 0);
        // Behind a truncated array there may be no member that would have printed the dots.
        if end.is_continue() && (data.len() as u64) < shape.size {
            printer.close(1);
            printer.line(1, "...");
        }
        printer.close(0);
    }
}

struct Printer<'a> {
    out: &'a mut Vec<u8>,
    data: &'a [u8],
    /// Depths of the structures whose closing brace is not printed yet, outermost first.
    open: Vec<usize>,
}

impl Printer<'_> {
    fn line(&mut self, depth: usize, text: &str) {
        pad::fill(self.out, b' ', INDENT + depth);
        put!(self.out, "{text}\n");
    }

    /// Prints the closing braces of the structures at `depth` and deeper.
    fn close(&mut self, depth: usize) {
        while let Some(&level) = self.open.last().filter(|level| **level >= depth) {
            self.open.pop();
            self.line(level, if level == 0 { "}" } else { "}," });
        }
    }

    /// Returns the recorded bytes of a value at `offset`, fewer if the record ends before.
    fn bytes(&self, offset: u64, size: u64) -> &[u8] {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = self.data.get(start..).unwrap_or_default();
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        &rest[..size.min(rest.len())]
    }

    /// Prints a value with its members. Breaks after printing the dots: at the end of the record,
    /// or at [`DEPTH`].
    fn visit(
        &mut self,
        name: &str,
        shape: &Shape,
        bit_offset: u64,
        bits: u32,
        depth: usize,
    ) -> ControlFlow<()> {
        let offset = bit_offset / 8;
        if offset >= self.data.len() as u64 || depth >= DEPTH {
            self.line(depth, "...");
            return ControlFlow::Break(());
        }
        self.close(depth);
        let bytes = self.bytes(offset, shape.size);
        let is_zero = bytes.iter().all(|&b| b == 0);
        if depth > 0 && is_zero && bits == 0 {
            return ControlFlow::Continue(());
        }
        let head = if name.is_empty() {
            format!("({})", shape.name)
        } else {
            format!(".{name} = ({})", shape.name)
        };
        match &shape.form {
            Form::Record(fields) => {
                self.line(depth, &format!("{head} {{"));
                self.open.push(depth);
                for field in fields {
                    let at = bit_offset + field.bit_offset;
                    self.visit(&field.name, &field.shape, at, field.bits, depth + 1)?;
                }
            }
            Form::Array {
                element,
                count,
                text,
            } => self.array(&head, element, *count, *text, offset, depth)?,
            form => match scalar(form, shape, self.data, bit_offset, bits) {
                Some(value) if bits != 0 && value == "0" => {}
                Some(value) => self.line(depth, &format!("{head}{value},")),
                None => {}
            },
        }
        ControlFlow::Continue(())
    }

    fn array(
        &mut self,
        head: &str,
        element: &Shape,
        count: u64,
        text: bool,
        offset: u64,
        depth: usize,
    ) -> ControlFlow<()> {
        if count == 0 {
            self.line(depth, &format!("{head} [],"));
            return ControlFlow::Continue(());
        }
        self.line(depth, &format!("{head} ["));
        for i in 0..count {
            let at = offset.saturating_add(i.saturating_mul(element.size));
            // For unrecorded elements behind the first, the next member prints the dots.
            let recorded = at < self.data.len() as u64;
            if text && self.bytes(at, 1) == [0] || i > 0 && !recorded {
                break;
            }
            self.visit("", element, at.saturating_mul(8), 0, depth + 1)?;
        }
        self.close(depth + 1);
        self.line(depth, "],");
        ControlFlow::Continue(())
    }
}

/// Returns the text of a value without members; `None` if it is not printed or lies beyond the
/// record.
fn scalar(form: &Form, shape: &Shape, data: &[u8], bit_offset: u64, bits: u32) -> Option<String> {
    if let Form::Float = form {
        let start = usize::try_from(bit_offset / 8).ok()?;
        let end = start.checked_add(usize::try_from(shape.size).ok()?)?;
        return float::text(data.get(start..end)?);
    }
    let place = Place {
        bit: bit_offset,
        bits,
    };
    let (value, signed) = place.number(shape, data)?;
    Some(match form {
        Form::Int { signed: true } if shape.name == "char" => {
            format!("'{}'", char::from(value as u8))
        }
        Form::Int { signed: true } => signed.to_string(),
        Form::Int { signed: false } => value.to_string(),
        Form::Pointer => format!("{value:#x}"),
        Form::Enum(items) => match enumerator(items, signed) {
            Some(name) => name.to_owned(),
            None => signed.to_string(),
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{
        testing::{render, visible},
        Style,
    };
    use super::*;
    use dtrace_compiler::shape::Field;
    use expect_test::{expect, Expect};

    fn int(name: &str, size: u64, signed: bool) -> Shape {
        Shape {
            name: name.into(),
            size,
            form: Form::Int { signed },
        }
    }

    fn pointer(name: &str) -> Shape {
        Shape {
            name: name.into(),
            size: 8,
            form: Form::Pointer,
        }
    }

    fn record(name: &str, size: u64, members: Vec<(&str, u64, Shape)>) -> Shape {
        let field = |(name, offset, shape): (&str, u64, Shape)| Field {
            name: name.into(),
            shape,
            bit_offset: offset * 8,
            bits: 0,
        };
        Shape {
            name: name.into(),
            size,
            form: Form::Record(members.into_iter().map(field).collect()),
        }
    }

    fn text(count: u64) -> Shape {
        Shape {
            name: format!("char [{count}]"),
            size: count,
            form: Form::Array {
                element: Box::new(int("char", 1, true)),
                count,
                text: true,
            },
        }
    }

    /// A structure of a number, text, a union, a structure and an enumeration.
    fn sample() -> Shape {
        let items = vec![("FIRST".into(), 0), ("SECOND".into(), 1)];
        let color = Shape {
            name: "enum color".into(),
            size: 4,
            form: Form::Enum(items),
        };
        let union = vec![
            ("c", 0, int("__u8", 1, false)),
            ("d", 0, int("__u64", 8, false)),
        ];
        let inner = vec![
            ("e", 0, pointer("void *")),
            ("f", 8, int("uint64_t", 8, false)),
        ];
        record(
            "struct sample",
            48,
            vec![
                ("a", 0, int("int", 4, true)),
                ("b", 4, text(5)),
                ("u", 16, record("union", 8, union)),
                ("s", 24, record("struct", 16, inner)),
                ("h", 40, color),
            ],
        )
    }

    fn data() -> Vec<u8> {
        let mut data = vec![0; 48];
        data[..4].copy_from_slice(&(-1i32).to_ne_bytes());
        data[4..8].copy_from_slice(b"test");
        data[16..24].copy_from_slice(&123_456_789u64.to_ne_bytes());
        data[24..32].copy_from_slice(&0xffff_8880_0000_0000u64.to_ne_bytes());
        data[32..40].copy_from_slice(&u64::MAX.to_ne_bytes());
        data[40] = 1;
        data
    }

    fn check(shape: &Shape, data: &[u8], expected: Expect) {
        let text = render(&Style::default(), |r, out| {
            r.structure(out, 0xffff_8881, shape, data);
        });
        let text = text.replace(&" ".repeat(INDENT), "<44>");
        expected.assert_eq(&visible(&text));
    }

    #[test]
    fn members_stand_under_each_other() {
        check(
            &sample(),
            &data(),
            expect![[r#"
            |0xffff8881 = *$
            |<44>(struct sample) {$
            |<44> .a = (int)-1,$
            |<44> .b = (char [5]) [$
            |<44>  (char)'t',$
            |<44>  (char)'e',$
            |<44>  (char)'s',$
            |<44>  (char)'t',$
            |<44> ],$
            |<44> .u = (union) {$
            |<44>  .c = (__u8)21,$
            |<44>  .d = (__u64)123456789,$
            |<44> },$
            |<44> .s = (struct) {$
            |<44>  .e = (void *)0xffff888000000000,$
            |<44>  .f = (uint64_t)18446744073709551615,$
            |<44> },$
            |<44> .h = (enum color)SECOND,$
            |<44>}$
        "#]],
        );
    }

    #[test]
    fn zeros_are_left_out() {
        let mut data = vec![0; 48];
        data[5] = b'x';
        data[40] = 7;
        check(
            &sample(),
            &data,
            expect![[r#"
            |0xffff8881 = *$
            |<44>(struct sample) {$
            |<44> .b = (char [5]) [$
            |<44> ],$
            |<44> .h = (enum color)7,$
            |<44>}$
        "#]],
        );
        check(
            &sample(),
            &[0; 48],
            expect![[r#"
            |0xffff8881 = *$
            |<44>(struct sample) {$
            |<44>}$
        "#]],
        );
    }

    #[test]
    fn what_was_not_recorded_becomes_dots() {
        check(
            &sample(),
            &data()[..16],
            expect![[r#"
            |0xffff8881 = *$
            |<44>(struct sample) {$
            |<44> .a = (int)-1,$
            |<44> .b = (char [5]) [$
            |<44>  (char)'t',$
            |<44>  (char)'e',$
            |<44>  (char)'s',$
            |<44>  (char)'t',$
            |<44> ],$
            |<44> ...$
            |<44>}$
        "#]],
        );
        check(
            &sample(),
            &data()[..24],
            expect![[r#"
            |0xffff8881 = *$
            |<44>(struct sample) {$
            |<44> .a = (int)-1,$
            |<44> .b = (char [5]) [$
            |<44>  (char)'t',$
            |<44>  (char)'e',$
            |<44>  (char)'s',$
            |<44>  (char)'t',$
            |<44> ],$
            |<44> .u = (union) {$
            |<44>  .c = (__u8)21,$
            |<44>  .d = (__u64)123456789,$
            |<44> ...$
            |<44> },$
            |<44>}$
        "#]],
        );
        check(
            &sample(),
            &[],
            expect![[r#"
            |0xffff8881 = *$
            |<44>...$
        "#]],
        );
    }

    #[test]
    fn bit_fields_and_arrays() {
        let bits = |name: &str, bit_offset, bits, signed| Field {
            name: name.into(),
            shape: int("int", 4, signed),
            bit_offset,
            bits,
        };
        let fields = vec![
            bits("low", 0, 3, false),
            bits("none", 3, 2, false),
            bits("high", 5, 4, true),
            Field {
                name: "list".into(),
                shape: Shape {
                    name: "short [3]".into(),
                    size: 6,
                    form: Form::Array {
                        element: Box::new(int("short", 2, true)),
                        count: 3,
                        text: false,
                    },
                },
                bit_offset: 32,
                bits: 0,
            },
        ];
        let shape = Shape {
            name: "struct bits".into(),
            size: 12,
            form: Form::Record(fields),
        };
        // low = 5, none = 0, high = -2; 7, 0, -1
        let word: u32 = 5 | 0b1110 << 5;
        let mut data = word.to_le_bytes().to_vec();
        for value in [7i16, 0, -1] {
            data.extend(value.to_ne_bytes());
        }
        data.extend([0, 0]);
        check(
            &shape,
            &data,
            expect![[r#"
            |0xffff8881 = *$
            |<44>(struct bits) {$
            |<44> .low = (int)5,$
            |<44> .high = (int)-2,$
            |<44> .list = (short [3]) [$
            |<44>  (short)7,$
            |<44>  (short)-1,$
            |<44> ],$
            |<44>}$
        "#]],
        );
    }

    #[test]
    fn nesting_is_bounded() {
        let mut shape = int("int", 4, true);
        for _ in 0..20 {
            shape = record("struct", 4, vec![("x", 0, shape)]);
        }
        let text = render(&Style::default(), |r, out| {
            r.structure(out, 1, &shape, &1u32.to_ne_bytes());
        });
        assert_eq!(text.matches("...").count(), 1);
        assert_eq!(text.matches('{').count(), DEPTH);
        assert_eq!(text.matches('}').count(), DEPTH);
    }

    #[test]
    fn nonsense_of_sizes_is_not_followed() {
        let huge = Shape {
            name: "int [0]".into(),
            size: u64::MAX,
            form: Form::Array {
                element: Box::new(int("int", u64::MAX, true)),
                count: u64::MAX,
                text: false,
            },
        };
        let text = render(&Style::default(), |r, out| {
            r.structure(out, 1, &huge, &[1; 8])
        });
        assert!(text.len() < 1000);
        let wide = record("struct", 8, vec![("x", 0, int("__int128", 16, true))]);
        let text = render(&Style::default(), |r, out| {
            r.structure(out, 1, &wide, &[1; 32])
        });
        assert!(!text.contains(".x"));
    }

    #[test]
    fn an_array_that_is_cut_off_is_closed() {
        check(
            &sample(),
            &data()[..8],
            expect![[r#"
            |0xffff8881 = *$
            |<44>(struct sample) {$
            |<44> .a = (int)-1,$
            |<44> .b = (char [5]) [$
            |<44>  (char)'t',$
            |<44>  (char)'e',$
            |<44>  (char)'s',$
            |<44>  (char)'t',$
            |<44> ],$
            |<44> ...$
            |<44>}$
        "#]],
        );
        let last = record(
            "struct last",
            104,
            vec![("n", 0, int("int", 4, true)), ("b", 4, text(100))],
        );
        check(
            &last,
            &data()[..8],
            expect![[r#"
            |0xffff8881 = *$
            |<44>(struct last) {$
            |<44> .n = (int)-1,$
            |<44> .b = (char [100]) [$
            |<44>  (char)'t',$
            |<44>  (char)'e',$
            |<44>  (char)'s',$
            |<44>  (char)'t',$
            |<44> ],$
            |<44> ...$
            |<44>}$
        "#]],
        );
    }
}
