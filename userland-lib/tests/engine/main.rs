// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! End-to-end tests without a kernel: the library and the engine, from the text of a D program to
//! its output.
//!
//! The engine is compiled from the same source as the module's. Only the machine below it and the
//! table of probes are replaced for the tests.

mod anonymous;
mod arguments;
mod arithmetic;
mod bitfields;
mod build;
mod conditional;
mod declared;
mod device;
mod float;
mod inferred;
mod interpreted;
mod json;
mod language;
mod machine;
mod print;
mod programs;
mod session;
mod speculation;
mod text;

use device::EngineDevice;
use dtrace::device::{Buffer, Device};

/// The kernel stack of every firing, innermost frame first.
const STACK: [u64; 3] = [
    0xffff_ffff_8100_1010,
    0xffff_ffff_8100_2020,
    0xffff_ffff_8100_3000,
];

#[test]
fn nonsense_is_refused_with_a_reason() {
    let device = EngineDevice::new();
    let error = device.enable(b"no image").unwrap_err();
    assert_eq!(error.raw_os_error(), Some(22));
    assert!(!device.reason().is_empty());
    assert!(device.reason().is_empty());
}

#[test]
fn nothing_enabled_records_nothing() {
    let device = EngineDevice::new();
    device.go().unwrap();
    device.fire(1, "syscall::read:entry", &[3]);
    device.stop().unwrap();
    for cpu in 0..device::CPUS {
        let mut room = [0; 64];
        let desc = device.snapshot(Buffer::Principal, cpu, &mut room).unwrap();
        assert_eq!(desc.map(|desc| (desc.size, desc.drops)), Some((0, 0)));
    }
}
