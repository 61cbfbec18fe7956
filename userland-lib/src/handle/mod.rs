// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! One consumer of DTrace.

mod clock;
mod dev_dtrace;
mod device;
mod error;
mod libraries;
mod names;
mod preprocess;
mod world;

pub use dev_dtrace::{DevDtrace, PATH};
pub use device::{fill, text, Buffer, Device};
pub use error::{open_error, plain, Error};
pub use libraries::{libraries, Library, LibraryError, Need};
pub use names::Names;
pub use preprocess::{preprocess, PreprocessError};
pub use world::{probe_desc, probes, KernelWorld};
