// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! One consumer of DTrace.

mod dev_dtrace;
mod device;

pub use dev_dtrace::{DevDtrace, PATH};
pub use device::{fill, text, Buffer, Device};
