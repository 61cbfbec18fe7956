// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Random input: no combination of bytes, kinds, formats and parameters makes rendering panic, and
//! output stays bounded.

use dtrace_uapi::action::Action;

use super::{
    line::{Enabled, Flow},
    testing::Fixture,
    Renderer, Style, Zone,
};
use dtrace_compiler::format::Format;
use dtrace_consumer::aggregate::{Aggregations, Sort};
use dtrace_consumer::value::{Datum, Kind};

/// A small generator of repeatable random input.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        // Marsaglia's xorshift.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// Bytes, in most cases of a length that some kind expects.
    fn bytes(&mut self) -> Vec<u8> {
        let size = match self.below(3) {
            0 => self.below(70),
            _ => self.pick(&[0, 1, 2, 4, 8, 16, 24, 32, 1016]),
        };
        let flavour = self.below(4);
        let byte = |noise: &mut Self| match flavour {
            0 => 0,
            1 => 0xff,
            2 => noise.pick(b"abc \n\0"),
            _ => noise.next() as u8,
        };
        (0..size).map(|_| byte(self)).collect()
    }

    fn kind(&mut self) -> Kind {
        self.pick(&[
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
        ])
    }

    fn data(&mut self) -> Vec<(Kind, Vec<u8>)> {
        let count = self.below(4);
        (0..count).map(|_| (self.kind(), self.bytes())).collect()
    }

    fn format(&mut self) -> Option<Format> {
        let mut text = String::new();
        for _ in 0..self.below(4) {
            text.push('%');
            for _ in 0..self.below(4) {
                text.push(self.pick(b"-+ #0'@?*.9").into());
            }
            text.push_str(self.pick(&["", "", "h", "hh", "l", "ll", "L", "w"]));
            text.push(self.pick(dtrace_compiler::format::KINDS.as_bytes()).into());
        }
        Format::parse(&text).ok()
    }

    fn style(&mut self) -> Style {
        let mut flag = || self.below(2) == 0;
        Style {
            quiet: flag(),
            rawbytes: flag(),
            aggzoom: flag(),
            agghist: flag(),
            aggpack: flag(),
            utf8: flag(),
            eighths: flag(),
            stackindent: flag().then_some(usize::MAX),
            mangled: flag(),
            build_ids: flag(),
            inlines: flag(),
            sort: Sort {
                by_key: flag(),
                reverse: flag(),
                position: usize::from(flag()) * usize::MAX,
                key_position: usize::from(flag()) * usize::MAX,
            },
        }
    }
}

fn borrow(data: &[(Kind, Vec<u8>)]) -> Vec<Datum<'_>> {
    data.iter()
        .map(|(kind, data)| Datum::new(*kind, data))
        .collect()
}

#[test]
fn values_and_formats() {
    let mut noise = Noise(0x9e37_79b9_7f4a_7c15);
    let zone = Zone::utc();
    for _ in 0..5_000 {
        let style = noise.style();
        let renderer = Renderer {
            style: &style,
            symbols: &Fixture,
            zone: &zone,
        };
        let data = noise.data();
        let data = borrow(&data);
        let mut out = Vec::new();
        for datum in &data {
            renderer.trace(&mut out, datum);
        }
        // At most 3 values with 127 frames (1016 bytes) each, a line per frame with the greatest
        // indentation.
        assert!(out.len() < 4 * 128 * 70_000);
        out.clear();
        if let Some(format) = noise.format() {
            if renderer.printf(&mut out, &format, &data).is_err() {
                assert!(out.is_empty());
            }
        }
    }
}

#[test]
fn aggregations() {
    let mut noise = Noise(0x2545_f491_4f6c_dd1d);
    let zone = Zone::utc();
    let functions = [
        Action::Count,
        Action::Sum,
        Action::Min,
        Action::Max,
        Action::Avg,
        Action::Stddev,
        Action::FloatMin,
        Action::FloatAvg,
        Action::FloatStddev,
        Action::Quantize,
        Action::Lquantize,
        Action::Llquantize,
        Action::Exit,
    ];
    for _ in 0..2_000 {
        let mut aggregations = Aggregations::default();
        for _ in 0..noise.below(6) {
            let (id, func) = (noise.below(3) as u32, noise.pick(&functions));
            if noise.below(4) == 0 {
                aggregations.declare(id, func, noise.next());
            }
            let (keys, value) = (noise.data(), noise.bytes());
            let _ = aggregations.merge(id, func, &borrow(&keys), &value, &Fixture);
            match noise.below(5) {
                0 => aggregations.clear(id),
                1 => aggregations.trunc(id, noise.next() as i64),
                2 => aggregations.normalize(id, noise.pick(&[0, 1, u64::MAX])),
                _ => {}
            }
        }
        let style = noise.style();
        let renderer = Renderer {
            style: &style,
            symbols: &Fixture,
            zone: &zone,
        };
        let format = noise.format();
        let mut out = Vec::new();
        let _ = renderer.printa(&mut out, &aggregations, &[0, 1, 1, 7], format.as_ref());
        renderer.aggregations(&mut out, &aggregations);
    }
}

#[test]
fn flows_end_at_the_margin_and_do_not_grow_for_ever() {
    let mut noise = Noise(1);
    let mut flow = Flow::default();
    let mut out = Vec::new();
    for _ in 0..20_000 {
        let enabled = Enabled {
            epid: noise.next() as u32,
            probe: noise.next() as u32,
        };
        let name = noise.pick(&["entry", "entry", "return", ""]);
        out.clear();
        flow.step(&mut out, Some(u32::MAX), enabled, ("", "", name), None);
        assert!(out.len() < 5_000);
    }
}
