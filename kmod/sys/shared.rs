// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Reference-counted values. The framework's tests on the host use another type, which takes no
//! allocation flags.

use kernel::prelude::*;
use kernel::sync::Arc;

/// Moves a value into an [`Arc`].
pub fn share<T>(value: T) -> Result<Arc<T>> {
    Ok(Arc::new(value, GFP_KERNEL)?)
}
