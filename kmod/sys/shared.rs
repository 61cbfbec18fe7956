// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Counted values. The framework's tests on the host have others, which need no allocation to be told how.

use kernel::prelude::*;
use kernel::sync::Arc;

/// A value that is shared from now on.
pub fn share<T>(value: T) -> Result<Arc<T>> {
    Ok(Arc::new(value, GFP_KERNEL)?)
}
