// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Stacks: an indented line for each frame.
//!
//! If the caller of a user stack's last frame was not found, a line says so. Frames of interpreted
//! code are printed in brackets below the frame of the evaluator that executes them. Functions that
//! the compiler inlined into a frame's function are not frames; with the option `inlines` they have
//! lines of their own above the frame, marked as inlined.

use super::pad::{self, Spec};
use super::{symbol, Renderer};
use dtrace_consumer::stack::{frames, Frame, Native};
use dtrace_consumer::value::Datum;

/// Indentation of a frame unless `stackindent` is set, columns.
const INDENT: usize = 14;
/// The line after a frame whose caller was not found.
const LOST: &str = "[lost]";
/// Marks a frame that was found without an unwind table.
const GUESSED: &str = " (guessed)";
/// Maximum indentation that an option or a format can set, columns.
const MAX_INDENT: usize = 65_535;

impl Renderer<'_> {
    /// Appends a stack; `spec` is that of the conversion that prints it, if a format does.
    pub(super) fn stack(&self, out: &mut Vec<u8>, datum: &Datum<'_>, spec: Option<&Spec>) {
        let indent = match spec {
            None => self.style.stackindent.unwrap_or(INDENT).min(MAX_INDENT),
            // One conversion formats many lines: a left-adjusted width indents them.
            Some(spec) if spec.flags.left => spec.width.min(MAX_INDENT),
            Some(_) => 0,
        };
        let layout = Layout {
            indent,
            spec: spec.copied().unwrap_or_default(),
        };
        out.push(b'\n');
        for frame in frames(datum) {
            match frame {
                Frame::Native(native) => self.native(out, &native, &layout),
                Frame::Interpreted(pid, word) => {
                    let text = self.symbols.interpreted(pid, word);
                    let text = text.unwrap_or_else(|| "?".to_owned());
                    layout.line(out, format!("  [ {text} ]").as_bytes());
                }
                Frame::Lost => layout.line(out, LOST.as_bytes()),
            }
        }
    }

    /// Appends the lines of a frame of native code.
    fn native(&self, out: &mut Vec<u8>, native: &Native, layout: &Layout) {
        let mut text = self.named(out, native, layout);
        if native.is_guess {
            text.push_str(GUESSED);
        }
        layout.line(out, text.as_bytes());
    }

    /// Returns the text of a frame. Appends a line for each function that is inlined there before,
    /// unless the text does not name the program or library.
    fn named(&self, out: &mut Vec<u8>, native: &Native, layout: &Layout) -> String {
        let build = (self.style.build_ids).then(|| native.build(self.symbols));
        if let Some((id, offset)) = build.flatten() {
            return format!("{id}+{offset:#x}");
        }
        let location = self.shown(native.location(self.symbols));
        if let Some(location) = location.as_ref().filter(|_| self.style.inlines) {
            let object = &location.object;
            for inlined in native.inlined(self.symbols).iter() {
                let mut text = format!("{object}`{} [inlined]", self.name(&inlined.name));
                if let Some((file, line)) = &inlined.source {
                    text.push_str(&format!(" at {file}:{line}"));
                }
                layout.line(out, text.as_bytes());
            }
        }
        symbol::address(native.address, location.as_ref())
    }
}

/// Indentation and padding of a stack's lines.
struct Layout {
    indent: usize,
    spec: Spec,
}

impl Layout {
    fn line(&self, out: &mut Vec<u8>, text: &[u8]) {
        pad::fill(out, b' ', self.indent);
        pad::string(out, &self.spec, text);
        out.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        testing::{render, visible},
        Style,
    };
    use super::*;
    use dtrace_compiler::format::Flags;
    use dtrace_consumer::value::Kind;
    use dtrace_uapi::interp::Word;
    use dtrace_uapi::types::{StackHead, STACK_GUESSED, STACK_LOST, STACK_NOWHERE};
    use expect_test::{expect, Expect};
    use zerocopy::IntoBytes;

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_ne_bytes()).collect()
    }

    fn check(kind: Kind, data: &[u8], style: Style, spec: Option<Spec>, expected: Expect) {
        let text = render(&style, |r, out| {
            r.stack(out, &Datum::new(kind, data), spec.as_ref());
        });
        expected.assert_eq(&visible(&text));
    }

    fn check_user(data: &[u8], expected: Expect) {
        check(Kind::Ustack, data, Style::default(), None, expected);
    }

    #[test]
    fn kernel_stacks_end_at_zero() {
        let data = bytes(&[0x1010, 0x2000, 0x3004, 0xffff_ffff_8000_0000, 0, 0x1010]);
        check(
            Kind::Stack,
            &data,
            Style::default(),
            None,
            expect![[r#"
                |$
                |              vmlinux`vfs_read+0x10$
                |              ext4`ext4_map_blocks$
                |              ext4`0x3004$
                |              0xffffffff80000000$
            "#]],
        );
        let style = Style {
            stackindent: Some(2),
            ..Style::default()
        };
        check(
            Kind::Stack,
            &data[..8],
            style,
            None,
            expect![[r#"
                |$
                |  vmlinux`vfs_read+0x10$
            "#]],
        );
        check(
            Kind::Stack,
            &[],
            Style::default(),
            None,
            expect![[r#"
                |$
            "#]],
        );
    }

    #[test]
    fn user_stacks_begin_with_the_process() {
        let data = bytes(&[42, 0x400008, 0x500000, 0x9000, 0]);
        check_user(
            &data,
            expect![[r#"
                |$
                |              libc.so.6`malloc+0x8$
                |              a.out`0x500000$
                |              0x9000$
            "#]],
        );
        // A record may end without a zero.
        check_user(
            &data[..16],
            expect![[r#"
                |$
                |              libc.so.6`malloc+0x8$
            "#]],
        );
        check_user(
            &[],
            expect![[r#"
                |$
            "#]],
        );
    }

    #[test]
    fn a_frame_that_no_table_led_to_is_named_all_the_same() {
        let data = bytes(&[42, 0x400120, 0x400128 | STACK_GUESSED, STACK_LOST, 0]);
        check_user(
            &data,
            expect![[r#"
                |$
                |              libc.so.6`free$
                |              libc.so.6`free+0x8 (guessed)$
                |              [lost]$
            "#]],
        );
    }

    /// Instruction pointers at which no program can execute are marked with both bits; a kernel
    /// address (`vsyscall`) has both bits itself.
    #[test]
    fn what_is_no_text_is_a_number() {
        let word = Word {
            native: 1,
            position: 3,
            name: 1,
        };
        let word = word.encode();
        let ips = [
            STACK_NOWHERE,
            STACK_NOWHERE | 0x0100_0000_0000_0001,
            STACK_NOWHERE | 5,
            u64::MAX << 12,
        ];
        let data = bytes(&[&[42], &ips[..], &[STACK_LOST, word]].concat());
        check_user(
            &data,
            expect![[r#"
                |$
                |              0x0$
                |              0xc100000000000001$
                |                [ frame 1 at 3 ]$
                |              0xc000000000000005$
                |              0xfffffffffffff000$
                |              [lost]$
            "#]],
        );
    }

    #[test]
    fn a_stack_whose_rest_was_not_found_says_so() {
        let frames = [0x400120, STACK_LOST, 0];
        let lost = || {
            expect![[r#"
                |$
                |              libc.so.6`free$
                |              [lost]$
            "#]]
        };
        check_user(&bytes(&[&[42], &frames[..]].concat()), lost());
        let head = StackHead {
            depth: 1,
            is_user: 1,
            pid: 42,
            strsz: 0,
        };
        let value = [head.as_bytes(), &bytes(&frames)].concat();
        check(Kind::StackValue, &value, Style::default(), None, lost());
    }

    #[test]
    fn a_call_that_never_returns_is_of_its_function() {
        // Return addresses behind a function's last instruction: before a gap, and before another
        // function. The address of the innermost frame is not a return address.
        let data = bytes(&[42, 0x400120, 0x400100, 0x400120, 0x400128, 0]);
        check_user(
            &data,
            expect![[r#"
                |$
                |              libc.so.6`free$
                |              libc.so.6`malloc+0x100$
                |              libc.so.6`abort+0x10$
                |              libc.so.6`free+0x8$
            "#]],
        );
    }

    #[test]
    fn values_say_whose_they_are_and_how_deep() {
        let value = |is_user, depth, pid, pcs: &[u64]| {
            let head = StackHead {
                depth,
                is_user,
                pid,
                strsz: 0,
            };
            [head.as_bytes(), &bytes(pcs)].concat()
        };
        let check = |data: &[u8], expected| {
            check(Kind::StackValue, data, Style::default(), None, expected);
        };
        let kernel = [0x1010, 0x2000, 0x3004];
        check(
            &value(0, 2, 0, &kernel),
            expect![[r#"
                |$
                |              vmlinux`vfs_read+0x10$
                |              ext4`ext4_map_blocks$
            "#]],
        );
        // A depth beyond the addresses, and beyond the zero that ends them.
        check(
            &value(0, u32::MAX, 0, &[0x1010, 0, 0x2000]),
            expect![[r#"
                |$
                |              vmlinux`vfs_read+0x10$
            "#]],
        );
        check(
            &value(1, 2, 42, &[0x400008, 0x9000]),
            expect![[r#"
                |$
                |              libc.so.6`malloc+0x8$
                |              0x9000$
            "#]],
        );
        check(
            &[0; 15],
            expect![[r#"
                |$
            "#]],
        );
    }

    #[test]
    fn interpreted_frames_stand_beneath_their_evaluators() {
        let word = |native, position| {
            Word {
                native,
                position,
                name: 1,
            }
            .encode()
        };
        let pcs = [42, 0x400008, 0x9000, 0x9004];
        let interpreted = [word(0, 3), word(1, 4), word(1, 5), 0, word(2, 6)];
        check_user(
            &bytes(&[&pcs[..], &interpreted].concat()),
            expect![[r#"
                |$
                |              libc.so.6`malloc+0x8$
                |                [ frame 1 at 3 ]$
                |              0x9000$
                |                [ frame 1 at 4 ]$
                |                [ frame 1 at 5 ]$
                |              0x9004$
            "#]],
        );
    }

    #[test]
    fn the_conversion_sets_indent_and_width() {
        let data = bytes(&[0x2000]);
        let spec = |left, width| {
            Some(Spec {
                flags: Flags {
                    left,
                    ..Flags::default()
                },
                width,
                precision: None,
            })
        };
        check(
            Kind::Stack,
            &data,
            Style::default(),
            spec(false, 24),
            expect![[r#"
                |$
                |    ext4`ext4_map_blocks$
            "#]],
        );
        check(
            Kind::Stack,
            &data,
            Style::default(),
            spec(true, 3),
            expect![[r#"
                |$
                |   ext4`ext4_map_blocks$
            "#]],
        );
    }

    /// The innermost frame is looked up at its address, the others at the call before their return
    /// address.
    #[test]
    fn inlined_functions_stand_above_their_frame() {
        let data = bytes(&[42, 0x400010, 0x400011, 0x400010, 0]);
        let kind = Kind::Ustack;
        let frames = expect![[r#"
            |$
            |  libc.so.6`malloc+0x10$
            |  libc.so.6`malloc+0x11$
            |  libc.so.6`malloc+0x10$
        "#]];
        let mut style = Style {
            stackindent: Some(2),
            ..Style::default()
        };
        check(kind, &data, style, None, frames);
        style.inlines = true;
        let all = expect![[r#"
            |$
            |  libc.so.6`n::inner(int) [inlined] at prog.cc:4$
            |  libc.so.6`outer [inlined]$
            |  libc.so.6`malloc+0x10$
            |  libc.so.6`n::inner(int) [inlined] at prog.cc:4$
            |  libc.so.6`outer [inlined]$
            |  libc.so.6`malloc+0x11$
            |  libc.so.6`malloc+0x10$
        "#]];
        check(kind, &data, style, None, all);
        let head = StackHead {
            depth: 1,
            is_user: 1,
            pid: 42,
            strsz: 0,
        };
        let value = [head.as_bytes(), &data[8..16]].concat();
        style.mangled = true;
        let mangled = expect![[r#"
            |$
            |  libc.so.6`_ZN1n5innerEi [inlined] at prog.cc:4$
            |  libc.so.6`outer [inlined]$
            |  libc.so.6`malloc+0x10$
        "#]];
        check(Kind::StackValue, &value, style, None, mangled);
    }
}
