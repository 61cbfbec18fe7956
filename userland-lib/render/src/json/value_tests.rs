// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! JSON of single values, each held to the schema as the output of a record.

use super::put::Put;
use super::testing::held;
use super::{structure, value};
use crate::testing::Fixture;
use crate::{Renderer, Style, Zone};
use dtrace_compiler::shape::{Field, Form, Shape};
use dtrace_consumer::value::{Datum, Kind};
use dtrace_uapi::interp::Word;
use dtrace_uapi::types::{STACK_GUESSED, STACK_LOST};
use expect_test::expect;

/// Returns the JSON of a value, as an element of a record.
fn element(style: Style, kind: Kind, data: &[u8]) -> String {
    let zone = Zone::utc();
    let renderer = Renderer {
        style: &style,
        symbols: &Fixture,
        zone: &zone,
    };
    let mut out = Vec::new();
    let put = &mut Put::to(&mut out, false);
    value::element(&renderer, put, &Datum::new(kind, data));
    let text = String::from_utf8(out).unwrap();
    held(probe_with(&text).as_bytes());
    text
}

/// Returns the line of a record with this output.
fn probe_with(output: &str) -> String {
    format!(
        "{{\"type\":\"probe\",\"timestamp\":1,\"cpu\":0,\"id\":1,\"epid\":1,\"clause\":0,\
         \"provider\":\"\",\"module\":\"\",\"function\":\"\",\"name\":\"\",\"output\":[{output}]}}\n"
    )
}

#[test]
fn every_kind_of_value_is_a_number_a_string_or_says_what_it_is() {
    let user = |pc: u64| bytes(&[42, pc]);
    for (kind, data, expected) in [
        (Kind::Int { signed: true }, vec![0xff], r#"{"value":-1}"#),
        (Kind::Int { signed: false }, vec![0xff], r#"{"value":255}"#),
        (
            Kind::Int { signed: false },
            vec![1; 3],
            r#"{"value":{"bytes":"AQEB"}}"#,
        ),
        (
            Kind::Float,
            (-0.1f32).to_ne_bytes().to_vec(),
            r#"{"value":-0.1}"#,
        ),
        (Kind::Float, vec![0; 3], r#"{"value":{"bytes":"AAAA"}}"#),
        (Kind::Str, b"a\0b".to_vec(), r#"{"value":"a"}"#),
        (Kind::Chars, b"load\0\0".to_vec(), r#"{"value":"load"}"#),
        (Kind::Chars, b"lo\x05d".to_vec(), r#"{"bytes":"bG8FZA=="}"#),
        (Kind::Bytes, b"load".to_vec(), r#"{"bytes":"bG9hZA=="}"#),
        (Kind::Memory, vec![], r#"{"bytes":""}"#),
        (
            Kind::Sym,
            bytes(&[0x1010]),
            r#"{"sym":"vmlinux`vfs_read","module":"vmlinux","name":"vfs_read","offset":16,"address":"0x1010"}"#,
        ),
        (
            Kind::Mod,
            bytes(&[0x9000]),
            r#"{"mod":"0x9000","address":"0x9000"}"#,
        ),
        (
            Kind::Uaddr,
            user(0x400008),
            r#"{"uaddr":"libc.so.6`malloc+0x8","module":"libc.so.6","name":"malloc","offset":8,"address":"0x400008","pid":42}"#,
        ),
        (
            Kind::Umod,
            user(0x500000),
            r#"{"umod":"a.out","module":"a.out","address":"0x500000","pid":42}"#,
        ),
        (Kind::Usym, vec![1; 8], r#"{"bytes":"AQEBAQEBAQE="}"#),
        (
            Kind::Stack,
            bytes(&[0x1010, 0x9000, 0]),
            r#"{"stack":[{"address":"0x1010","module":"vmlinux","name":"vfs_read","offset":16},{"address":"0x9000"}]}"#,
        ),
        (Kind::Stack, vec![], r#"{"stack":[]}"#),
        (Kind::Ustack, vec![], r#"{"ustack":[]}"#),
        (Kind::StackValue, vec![0; 3], r#"{"stack":[]}"#),
    ] {
        assert_eq!(element(Style::default(), kind, &data), expected, "{kind:?}");
    }
}

#[test]
fn frames_of_programs_say_all_that_is_known_of_them() {
    let word = Word {
        native: 0,
        position: 3,
        name: 1,
    };
    let pcs = [42, 0x400010, 0x400128 | STACK_GUESSED, STACK_LOST];
    let data = bytes(&[&pcs[..], &[word.encode()]].concat());
    let style = Style {
        inlines: true,
        ..Style::default()
    };
    expect![[r#"{"ustack":[{"address":"0x400010","module":"libc.so.6","name":"malloc","offset":16,"inlined":[{"name":"n::inner(int)","file":"prog.cc","line":4},{"name":"outer"}]},{"interpreted":"frame 1 at 3"},{"address":"0x400128","module":"libc.so.6","name":"free","offset":8,"guessed":true},{"lost":true}],"pid":42}"#]]
    .assert_eq(&element(style, Kind::Ustack, &data));
}

fn shape(name: &str, size: u64, form: Form) -> Shape {
    Shape {
        name: name.into(),
        size,
        form,
    }
}

fn member(name: &str, at: u64, shape: Shape) -> Field {
    Field {
        name: name.into(),
        shape,
        bit_offset: at * 8,
        bits: 0,
    }
}

#[test]
fn a_structure_is_an_object_of_its_members() {
    let int = |signed| shape("int", 4, Form::Int { signed });
    let text = Form::Array {
        element: Box::new(shape("char", 1, Form::Int { signed: true })),
        count: 4,
        text: true,
    };
    let list = Form::Array {
        element: Box::new(int(true)),
        count: 2,
        text: false,
    };
    let inner = vec![member("x", 0, int(false)), member("y", 0, int(true))];
    let color = Form::Enum(vec![("RED".into(), 0), ("BLUE".into(), -1)]);
    let bits = Field {
        bits: 3,
        bit_offset: 33 * 8 + 1,
        ..member("low", 0, int(true))
    };
    let all = shape(
        "struct all",
        64,
        Form::Record(vec![
            member("text", 0, shape("char [4]", 4, text)),
            member("", 4, shape("union", 4, Form::Record(inner))),
            member("list", 8, shape("int [2]", 8, list)),
            member("p", 16, shape("void *", 8, Form::Pointer)),
            member("c", 24, shape("enum color", 4, color)),
            bits,
            member("f", 40, shape("double", 8, Form::Float)),
            member(
                "wide",
                48,
                shape("__int128", 16, Form::Int { signed: true }),
            ),
        ]),
    );
    let mut data = vec![0; 64];
    data[..3].copy_from_slice(b"a\xff\0");
    data[4..8].copy_from_slice(&(-2i32).to_ne_bytes());
    data[12..16].copy_from_slice(&7i32.to_ne_bytes());
    data[16..24].copy_from_slice(&0xffff_8880_0000_0000u64.to_ne_bytes());
    data[24..28].copy_from_slice(&(-1i32).to_ne_bytes());
    data[33] = 0b1110;
    data[40..48].copy_from_slice(&1.5f64.to_ne_bytes());
    data[48] = 1;
    let print = |address, data: &[u8]| {
        let mut out = Vec::new();
        structure::element(&mut Put::to(&mut out, false), address, &all, data);
        let text = String::from_utf8(out).unwrap();
        held(probe_with(&text).as_bytes());
        text
    };
    expect![[r#"{"print":{"type":"struct all","value":{"text":{"base64":"Yf8="},"x":4294967294,"y":-2,"list":[0,7],"p":"0xffff888000000000","c":"BLUE","low":-1,"f":1.5,"wide":{"bytes":"AQAAAAAAAAAAAAAAAAAAAA=="}}}}"#]]
    .assert_eq(&print(None, &data));
    expect![[r#"{"print":{"type":"struct all","address":"0x10","value":{"text":{"base64":"Yf8="},"x":4294967294,"y":-2,"list":[0]},"truncated":true}}"#]]
    .assert_eq(&print(Some(16), &data[..12]));
    expect![[r#"{"print":{"type":"struct all","value":null,"truncated":true}}"#]]
        .assert_eq(&print(None, &[]));
}

/// Random bytes of each kind: whatever a record holds is a line as the schema says.
#[test]
fn nothing_in_a_record_breaks_its_line() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let kinds = [
        Kind::Int { signed: true },
        Kind::Int { signed: false },
        Kind::Float,
        Kind::Str,
        Kind::Chars,
        Kind::Bytes,
        Kind::Memory,
        Kind::Stack,
        Kind::StackValue,
        Kind::Ustack,
        Kind::Sym,
        Kind::Mod,
        Kind::Usym,
        Kind::Umod,
        Kind::Uaddr,
    ];
    let mut lines = String::new();
    for round in 0..2000 {
        let kind = kinds[round % kinds.len()];
        let size = [0, 1, 2, 3, 4, 8, 16, 24, 40][next() as usize % 9];
        let plain = next() % 2 == 0;
        let byte = |_| match plain {
            true => b'a' + (next() % 26) as u8,
            false => next() as u8,
        };
        let data: Vec<u8> = (0..size).map(byte).collect();
        let zone = Zone::utc();
        let style = Style::default();
        let renderer = Renderer {
            style: &style,
            symbols: &Fixture,
            zone: &zone,
        };
        let mut out = Vec::new();
        let datum = Datum::new(kind, &data);
        value::element(&renderer, &mut Put::to(&mut out, round % 2 == 0), &datum);
        lines += &probe_with(&String::from_utf8(out).unwrap());
    }
    assert_eq!(held(lines.as_bytes()).len(), 2000);
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_ne_bytes()).collect()
}
