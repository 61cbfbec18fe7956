// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Walks every option: what is set is saved and taken over, the kernel takes what it is told, and
//! the manual's defaults are those that hold.

use super::value::{parse_rate, parse_size};
use super::*;
use crate::engine::consumer as kernel;
use crate::manual;
use std::time::Duration;

/// Sets an option on top of the defaults.
fn set(name: &str, value: Option<&str>) -> Result<Options, OptionError> {
    let mut options = Options::default();
    options.set(name, value, Setter::User).map(|()| options)
}

/// Returns the options after each setting of `name` that is accepted. Every option of tracing has
/// one that is not its default.
fn settings(name: &str) -> Vec<Options> {
    let usual = format!("{:?}", Options::default());
    let values = VALUES.iter().map(|value| value.strip_prefix('='));
    let set: Vec<Options> = values.filter_map(|value| set(name, value).ok()).collect();
    let changes = set.iter().any(|options| format!("{options:?}") != usual);
    assert!(changes, "no value for {name} is new");
    set
}

#[test]
fn what_is_set_is_saved_and_taken_over() {
    // Whoever claims an anonymous enabling says how to print it.
    let saved = tracing_options().filter(|name| *name != consumer::OFORMAT);
    for name in saved.chain([DROPTAGS]) {
        for begun in settings(name) {
            let saved = begun.saved();
            let mut later = Options::default();
            later.adopt(&saved);
            assert_eq!(later.values, begun.values, "{name}");
            assert_eq!(later.consumer, begun.consumer, "{name}");
            assert_eq!(later.compile.droptags, begun.compile.droptags, "{name}");
            assert_eq!(later.saved(), saved, "{name}");
        }
    }
}

#[test]
fn each_field_of_the_consumer_is_an_option() {
    let mut options = ConsumerOptions::default();
    for name in consumer::names() {
        let new = settings(name).into_iter().map(|options| options.consumer);
        let new = new.filter(|new| *new != ConsumerOptions::default());
        let saved = new.map(|new| new.saved().collect::<Vec<_>>()).last();
        let [(known, number)] = saved.expect(name)[..] else {
            panic!("{name} sets one option");
        };
        assert_eq!(known, name);
        options.adopt(&BTreeMap::from([(name.to_owned(), number)]));
    }
    // A field that no option sets has its default.
    let usual = ConsumerOptions::default();
    let ConsumerOptions {
        aggpercpu,
        noresolve,
        unnumbered,
        printsize,
        quietresize,
        mangled,
        inlines,
        frames,
        oformat,
        encoding,
    } = options;
    assert!(aggpercpu && noresolve && quietresize && mangled && inlines);
    assert!(printsize != usual.printsize && frames != usual.frames && encoding != usual.encoding);
    assert!(!unnumbered, "no option sets it");
    assert_eq!(oformat, usual.oformat, "it is not saved");
}

#[test]
fn the_kernel_takes_what_it_is_told() {
    for (opt, name) in option::NAMES.iter().filter(|(opt, _)| opt.is_read()) {
        for options in settings(name) {
            let told = options.for_kernel();
            let is_told = told.iter().any(|(known, _)| known == opt);
            // A switch that is off is not set.
            assert_eq!(is_told, opt.is_told() && options.is_on(*opt), "{name}");
            let taken = kernel().prepare(&told, &[]).map(drop);
            assert_eq!(taken.map_err(|why| why.to_string()), Ok(()), "{name}");
        }
    }
    let zone = kernel().prepare(&[(Opt::Zone, 1)], &[]).map(drop);
    assert!(zone.is_err() && !Opt::Zone.is_read());
}

/// Returns the default that a row of the manual tells.
fn told(text: &str) -> Option<&str> {
    let sentence = |begin: &str| {
        let (_, rest) = text.split_once(begin)?;
        let end = rest.find(['.', ',', ';', ':']);
        Some(rest[..end.unwrap_or(rest.len())].trim_matches('`'))
    };
    let word = text.split_once("`, the default").map(|(before, _)| before);
    let word = word.and_then(|before| before.rsplit('`').next());
    let said = sentence("The default is ").or_else(|| sentence("the default is "));
    word.or(said)
}

/// Returns a default of the manual as a value of the option.
fn value(told: &str) -> String {
    let amount = |unit: &str| told.strip_suffix(unit);
    match told {
        "once a second" => "1sec".to_owned(),
        _ => match (
            amount(" MB"),
            amount(" KB"),
            amount(" Hz"),
            amount(" times a second"),
        ) {
            (Some(size), ..) => format!("{size}m"),
            (_, Some(size), ..) => format!("{size}k"),
            (_, _, Some(rate), _) | (.., Some(rate)) => format!("{rate}hz"),
            _ => told.to_owned(),
        },
    }
}

/// Every row of the manual that tells a default is right, and every shared option that has one has
/// it in the manual.
#[test]
fn the_manual_tells_the_defaults() {
    let usual = Options::default();
    let mut checked = Vec::new();
    for (names, text) in manual::rows(manual::COMMAND, "TRACING OPTIONS") {
        let (Some(name), told) = (names.first(), told(text)) else {
            continue;
        };
        if let Some(opt) = Opt::named(name) {
            let told = told.map(value);
            let told = told.map(|told| set(name, Some(&told)).unwrap().get(opt));
            let usual = Some(opt.usual()).filter(|usual| *usual != option::UNSET);
            assert_eq!(told.flatten(), usual, "{name}");
            checked.extend(usual.map(|_| name.clone()));
        } else if let Some(told) = told {
            let told = set(name, Some(&value(told))).unwrap();
            let time = told.compile.holdtime;
            match time {
                Some(_) => assert_eq!(time, Some(HOLDTIME_DEFAULT), "{name}"),
                None => assert_eq!(format!("{told:?}"), format!("{usual:?}"), "{name}"),
            }
            checked.push(name.clone());
        }
    }
    for name in ["bufsize", "printsize", "holdtime", "evaltime", "frames"] {
        assert!(checked.iter().any(|known| known == name), "{name}");
    }
}

/// Returns the number after `words` in the row of an option.
fn bound(name: &str, words: &str) -> String {
    let rows = manual::rows(manual::COMMAND, "TRACING OPTIONS");
    let mut rows = rows.iter();
    let row = rows.find(|(names, _)| names.iter().any(|known| known == name));
    let (_, text) = row.expect(name);
    let (_, rest) = text.split_once(words).expect(words);
    let end = rest.find(['.', ' ', ',']).unwrap_or(rest.len());
    rest[..end].to_owned()
}

#[test]
fn the_manual_tells_the_greatest_values() {
    let most = bound("nspec", "the maximum ").parse().unwrap();
    let takes = |number: u64| kernel().prepare(&[(Opt::Nspec, number)], &[]).is_ok();
    assert_eq!((takes(most), takes(most + 1)), (true, false));
    let most = parse_rate(&bound("holdtime", "the greatest value ")).unwrap();
    let takes = |time: u64| set("holdtime", Some(&time.to_string())).is_ok();
    assert_eq!((takes(most), takes(most + 1)), (true, false));
    let only = bound("iregs", "Only ");
    let taken: Vec<String> = (0..100).map(|n| n.to_string()).collect();
    let mut taken = taken.iter().filter(|n| set("iregs", Some(n)).is_ok());
    assert_eq!((taken.next(), taken.next()), (Some(&only), None));
}

#[test]
fn a_default_is_read_from_its_words() {
    for (text, expected) in [
        ("Sizes. The default is 4 MB. More.", Some("4 MB")),
        ("`a`, `b`; the default is `main`. A", Some("main")),
        ("`x`: no. `names`, the default: by function.", Some("names")),
        (
            "The default is 200ms, the greatest value 1sec.",
            Some("200ms"),
        ),
        ("By default there is none.", None),
    ] {
        assert_eq!(told(text), expected, "{text}");
    }
    let parsed = ["4 MB", "32 KB"].map(|text| parse_size(&value(text)));
    assert_eq!(parsed, [Some(4 << 20), Some(32 << 10)]);
    let parsed = ["101 Hz", "25 times a second", "once a second", "200ms"];
    let parsed = parsed.map(|text| parse_rate(&value(text)).map(Duration::from_nanos));
    let expected = [9_900_990, 40_000_000, 1_000_000_000, 200_000_000];
    assert_eq!(parsed, expected.map(|ns| Some(Duration::from_nanos(ns))));
}
