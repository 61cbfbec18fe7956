// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Images for a running kernel: those that the targets `dof` and `dif` make, at probes that fire
//! there.
//!
//! An image may be invalid in any way, but must not request something that the kernel correctly
//! does and that spoils the run: to stop, or to hook all functions, which takes seconds.
//! [`harmless`] recognizes such images by means of the kernel's own parser. Images that the parser
//! refuses are harmless.

use crate::common::dof::Image;
use crate::common::images::sample_at;
use crate::{common::differ::program, dif, dof};
use arbitrary::Unstructured;
use dtrace_engine::Enabling;
use dtrace_uapi::action::Action;
use dtrace_uapi::option::Opt;

/// Probes that fire and that are cheap to enable.
const PROBES: [[&str; 4]; 6] = [
    ["dtrace", "", "", "BEGIN"],
    ["dtrace", "", "", "END"],
    ["dtrace", "", "", "ERROR"],
    ["syscall", "vmlinux", "getppid", "entry"],
    ["profile", "", "", "tick-97"],
    ["fbt", "vmlinux", "vfs_read", "return"],
];

/// Actions that need no destructive rights.
const ACTIONS: [Action; 16] = [
    Action::Difexpr,
    Action::Printf,
    Action::Tracemem,
    Action::Ustack,
    Action::Usym,
    Action::Stack,
    Action::Sym,
    Action::Speculate,
    Action::Commit,
    Action::Discard,
    Action::Count,
    Action::Avg,
    Action::Stddev,
    Action::Quantize,
    Action::Llquantize,
    Action::FloatStddev,
];

/// Makes an image from the choices in `data`: a valid image with changes, or a clause with
/// arbitrary DIF.
pub fn image(data: &[u8]) -> Vec<u8> {
    let [mode, first, second, data @ ..] = data else {
        return data.to_vec();
    };
    let probe = |choice: &u8| PROBES[usize::from(*choice) % PROBES.len()];
    let mut good = sample_at(probe(first), probe(second));
    small(&mut good);
    // Make only a few changes: among many changes, one would mostly get the image refused before
    // the others matter.
    let few = |data: &[u8]| data[..data.len().min(3 * (1 + usize::from(*second) % 3))].to_vec();
    match mode % 16 {
        0 => data.to_vec(),
        1..=3 => dof::changed(good.write(), &few(data)),
        4 | 5 => {
            let made = dof::sections(&good, &mut Unstructured::new(data));
            made.unwrap_or_else(|_| good.write())
        }
        6..=10 => computed(probe(first), data).write(),
        11 => dof::changed(computed(probe(first), data).write(), &few(data)),
        // Use the valid image itself, because the other ioctls are to be tested with it, too.
        _ => good.write(),
    }
}

/// Sets small buffer sizes, so that the buffers are allocated quickly.
fn small(image: &mut Image) {
    for (option, size) in [
        (Opt::Bufsize, 16 << 10),
        (Opt::Aggsize, 16 << 10),
        (Opt::Dynvarsize, 16 << 10),
        (Opt::Specsize, 4 << 10),
        (Opt::Nspec, 2),
    ] {
        image.option(option, size);
    }
}

/// Makes a clause of two actions with arbitrary DIF.
fn computed(probe: [&str; 4], data: &[u8]) -> Image {
    let [predicate, kind, keys, data @ ..] = data else {
        return Image::default();
    };
    let (left, right) = data.split_at(data.len() / 2);
    let (left, right) = (program(&dif::seeds(left)), program(&dif::seeds(right)));
    let kind = ACTIONS[usize::from(*kind) % ACTIONS.len()];
    let format = matches!(kind, Action::Printf).then_some("%d %s\n");
    let mut image = Image::default();
    small(&mut image);
    image.clause_at(
        probe,
        (predicate % 4 == 0).then_some(&left),
        &[
            (Action::Difexpr, Some(&left), 0, None),
            (kind, Some(&right), u32::from(keys % 2), format),
        ],
    );
    image
}

/// Whether a kernel can enable the image quickly and continues to run normally.
pub fn harmless(image: &[u8]) -> bool {
    let Ok(enabling) = Enabling::parse(image) else {
        return true;
    };
    let large = |value: &u64| *value > 8 << 20;
    let options = enabling
        .options()
        .iter()
        .all(|(option, value)| match option {
            Opt::Destructive => *value == 0,
            Opt::Bufsize | Opt::Aggsize | Opt::Dynvarsize | Opt::Specsize | Opt::Nspec => {
                !large(value)
            }
            _ => true,
        });
    options
        && enabling
            .clauses()
            .iter()
            .all(|clause| narrow(&clause.probe))
}

/// Whether a description matches only a few probes.
fn narrow(probe: &dtrace_uapi::ioctl::ProbeDesc) -> bool {
    let known = |part: &[u8]| part[0] != 0 && !part.iter().any(|c| b"*?[".contains(c));
    let provider = [b"dtrace\0".as_slice(), b"profile\0"];
    probe.id != 0
        || known(&probe.func)
        || provider.iter().any(|name| probe.provider.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::{config, Steps};
    use dtrace_engine::Consumer;

    #[test]
    fn what_a_kernel_must_not_be_asked() {
        let image = |provider, func, option, value| {
            let mut image = Image::default();
            image.option(option, value);
            image.clause_at([provider, "", func, ""], None, &[]);
            harmless(&image.write())
        };
        assert!(image("fbt", "vfs_read", Opt::Quiet, 1));
        assert!(image("profile", "", Opt::Bufsize, 1 << 20));
        assert!(!image("fbt", "", Opt::Quiet, 1));
        assert!(!image("", "vfs_*", Opt::Quiet, 1));
        assert!(!image("dtrace", "", Opt::Destructive, 1));
        assert!(!image("dtrace", "", Opt::Bufsize, 1 << 30));
        assert!(harmless(b"no image"));
    }

    #[test]
    fn many_images_are_accepted_and_many_refused() {
        let mut numbers = 1u64;
        let mut number = || {
            numbers = numbers
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (numbers >> 56) as u8
        };
        let mut accepted = 0;
        for _ in 0..1000 {
            let size = 8 + usize::from(number());
            let data: Vec<u8> = (0..size).map(|_| number()).collect();
            let made = image(&data);
            assert_eq!(made, image(&data));
            let taken = Enabling::parse(&made).and_then(|enabling| {
                let consumer = Consumer::new(config())?;
                consumer.add_enabling(&enabling).map(drop)
            });
            accepted += u32::from(taken.is_ok());
        }
        assert!((200..900).contains(&accepted), "{accepted} of 1000");
    }
}
