// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! What places make of arguments that are not what they should be.

use kernel::prelude::*;

#[kunit_tests(dtrace_places)]
mod tests {
    use crate::sys::places::{net, Call};
    use core::ptr::from_ref;

    /// Null, a user's address, an address between the halves of the address space, and the last
    /// word.
    const BAD: [u64; 4] = [0, 0x1000, 0x82a0_0dc0_0000_ffff, u64::MAX - 7];

    /// Returns a call with these arguments.
    fn call(args: &[u64; 4]) -> Call<'_> {
        Call { args, caller: 0 }
    }

    #[test]
    fn what_is_no_packet_is_no_event() {
        for args in BAD.map(|bad| [bad; 4]) {
            let call = &call(&args);
            assert!(net::sent(call).is_none() && net::received(call).is_none());
            assert!(net::segment_out(call).is_none() && net::segment_xmit6(call).is_none());
            assert!(net::segment4(call).is_none() && net::segment6(call).is_none());
            assert!(net::late(call).is_none() && net::last(call).is_none());
            assert!(net::established(call).is_none() && net::reset(call).is_none());
            assert!(net::datagram_out(call).is_none() && net::datagram(call).is_none());
            assert!(net::state(call).is_none());
        }
    }

    /// The memory can be read, but has a state that no socket has.
    #[test]
    fn what_is_no_socket_is_no_event() {
        let ones = [u64::MAX; 128];
        assert!(net::state(&call(&[from_ref(&ones) as u64, 0, 0, 0])).is_none());
    }

    /// The packet's buffer is nowhere.
    #[test]
    fn a_packet_without_a_header_is_no_event() {
        let zeros = [0u64; 64];
        assert!(net::sent(&call(&[0, 0, from_ref(&zeros) as u64, 0])).is_none());
    }
}
