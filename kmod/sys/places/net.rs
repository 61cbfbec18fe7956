// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The internet protocols.
//!
//! Everything that IP sends passes one function per version at the end, which has chosen the
//! device. Everything that it has received and found valid comes out of one function per version.
//! What this machine sends itself, as opposed to what it forwards, passes another function earlier,
//! where its socket is still known. No function sees everything that TCP receives: the way of a
//! segment depends on the state of its connection.
//!
//! What a place passes is read like any address, by `helpers/net.c`: if an argument is not what it
//! should be, there is no event.

use super::{At, Call};
use crate::bindings;

/// A packet.
pub struct Packet(bindings::dtrace_packet);

impl Packet {
    /// Reads the packet at `skb`; `sk` is its socket, if the place knows it. `None`: there is no
    /// packet.
    #[inline]
    fn new(skb: u64, sk: u64) -> Option<Self> {
        let mut packet = bindings::dtrace_packet::default();
        // SAFETY: The helper takes any addresses: its loads may fault and are caught. `packet` is
        // valid for the write.
        let is =
            unsafe { bindings::dtrace_packet_of(skb as *const _, sk as *const _, &mut packet) };
        is.then_some(Self(packet))
    }

    /// Returns the address of its `sk_buff`.
    #[inline]
    pub fn skb(&self) -> u64 {
        self.0.skb as u64
    }

    /// Returns the address of the socket that it belongs to; 0 if it belongs to none.
    #[inline]
    pub fn sock(&self) -> u64 {
        self.0.sk as u64
    }

    /// Returns the address of its `struct dtrace_ip`, which is valid as long as the value is
    /// neither moved nor dropped.
    #[inline]
    pub fn ip(&self) -> u64 {
        core::ptr::from_ref(&self.0.ip) as u64
    }

    /// Returns the address of its header if that is of this version, otherwise 0.
    #[inline]
    pub fn header(&self, version: u8) -> u64 {
        match self.0.ip.version == version {
            true => self.0.ip.header as u64,
            false => 0,
        }
    }

    /// Returns the address of the device that it came from or goes to.
    #[inline]
    pub fn device(&self) -> u64 {
        self.0.device as u64
    }

    /// Returns the address of what follows its header.
    #[inline]
    pub fn transport(&self) -> u64 {
        self.0.transport as u64
    }

    fn is(&self, protocol: u32) -> bool {
        u32::from(self.0.protocol) == protocol
    }
}

/// A packet, or a fragment of one, is passed to its device.
pub const SENT: [At; 2] = [
    At::Entry(&[c"ip_finish_output2"]),
    At::Entry(&[c"ip6_finish_output2"]),
];

/// Returns the packet. Its socket is taken from the packet itself: the one that the function gets
/// is not the packet's.
#[inline]
pub fn sent(call: &Call<'_>) -> Option<Packet> {
    Packet::new(call.word(2), 0)
}

/// A packet that has come from a device was examined.
pub const RECEIVED: [At; 2] = [
    At::Return(&[c"ip_rcv_core", c"ip_rcv_core.isra.0"]),
    At::Return(&[c"ip6_rcv_core", c"ip6_rcv_core.isra.0"]),
];

/// Returns the packet, if it is valid.
#[inline]
pub fn received(call: &Call<'_>) -> Option<Packet> {
    Packet::new(call.word(0), 0)
}

/// A protocol of this machine passes a packet of version 4 to IP.
pub const OUT: At = At::Entry(&[c"__ip_local_out"]);

/// A protocol of this machine passes a packet of version 6 to IP, with its header written.
pub const OUT6: At = At::NestedEntry([c"ip6_local_out", c"__ip6_local_out"]);

/// TCP passes a segment to IP version 6, which has to write a header.
pub const XMIT6: At = At::Entry(&[c"ip6_xmit"]);

/// Returns the packet of [`OUT`] or [`OUT6`]. Its socket is taken from the packet itself: the one
/// that the function gets is for the packet filter.
#[inline]
fn out(call: &Call<'_>) -> Option<Packet> {
    Packet::new(call.word(2), 0)
}

/// A segment of TCP, and the end of the connection that it belongs to.
pub struct Segment {
    /// The packet that it lies in.
    pub packet: Packet,
    /// The end of the connection.
    pub end: End,
}

/// An end of a connection, or none.
pub struct End(bindings::dtrace_tcp);

impl End {
    #[inline]
    fn new(sk: *const bindings::sock) -> Self {
        let mut tcp = bindings::dtrace_tcp::default();
        // SAFETY: The helper takes any address: its loads may fault and are caught. `tcp` is valid
        // for the write.
        unsafe { bindings::dtrace_tcp_of(sk, &mut tcp) };
        Self(tcp)
    }

    /// Returns the address of its `struct dtrace_tcp`, which is valid as long as the value is
    /// neither moved nor dropped.
    #[inline]
    pub fn addr(&self) -> u64 {
        core::ptr::from_ref(&self.0) as u64
    }

    /// Returns the address of its socket; 0 if there is no connection.
    #[inline]
    pub fn sock(&self) -> u64 {
        self.0.sk as u64
    }

    /// Returns the end in the state time-wait, and the state in which it was before.
    fn waiting(sk: *const bindings::sock) -> (Self, i32) {
        let mut end = Self::new(sk);
        let old = match end.0.whole.is_null() {
            true => bindings::DTRACE_NET_FIN_WAIT2 as i32,
            false => end.0.state,
        };
        end.0.state = bindings::DTRACE_NET_TIME_WAIT as i32;
        (end, old)
    }
}

impl Segment {
    #[inline]
    fn new(packet: Packet) -> Self {
        let end = End::new(packet.0.sk);
        Self { packet, end }
    }

    /// Returns the segment of a packet that is sent, if it is one of TCP.
    #[inline]
    fn sent(packet: Packet) -> Option<Self> {
        if !packet.is(bindings::DTRACE_NET_TCP) {
            return None;
        }
        let mut segment = Self::new(packet);
        // SAFETY: Both structures are valid for reads. The addresses in them may be anything: loads
        // from them may fault and are caught.
        let again = unsafe { bindings::dtrace_tcp_resends(&segment.end.0, &segment.packet.0) };
        segment.end.0.resends = again.into();
        Some(segment)
    }

    /// Whether the flags `set` are set and the flags `unset` are not.
    #[inline]
    fn has(&self, set: u32, unset: u32) -> bool {
        // SAFETY: The helper takes any address: its load may fault and is caught.
        let flags = u32::from(unsafe { bindings::dtrace_tcp_flags(self.packet.0.transport) });
        flags & (set | unset) == set
    }

    /// Whether the segment, which is sent, requests a connection, for the first time.
    #[inline]
    pub fn requests(&self) -> bool {
        self.end.0.resends == 0 && self.has(bindings::DTRACE_NET_SYN, bindings::DTRACE_NET_ACK)
    }

    /// Whether the segment refuses a connection that was requested: no end of a connection sends
    /// it, and it answers a segment that acknowledged nothing.
    #[inline]
    pub fn refuses(&self) -> bool {
        let refusal = bindings::DTRACE_NET_RST | bindings::DTRACE_NET_ACK;
        // SAFETY: The helper takes any address: its load may fault and is caught.
        let sequence = || unsafe { bindings::dtrace_tcp_seq(self.packet.0.transport) };
        self.end.0.whole.is_null() && self.has(refusal, 0) && sequence() == 0
    }
}

/// Returns the segment that TCP sends by [`OUT`], if it is one.
#[inline]
pub fn segment_out(call: &Call<'_>) -> Option<Segment> {
    out(call).and_then(Segment::sent)
}

/// Returns the segment that TCP sends by [`XMIT6`], if it is one.
#[inline]
pub fn segment_xmit6(call: &Call<'_>) -> Option<Segment> {
    let mut packet = bindings::dtrace_packet::default();
    // SAFETY: The helper takes any addresses: its loads may fault and are caught. `packet` is valid
    // for the write.
    let is = unsafe {
        bindings::dtrace_packet_of_flow6(
            call.word(1) as *const _,
            call.word(0) as *const _,
            call.word(2) as *const _,
            &mut packet,
        )
    };
    is.then_some(Packet(packet)).and_then(Segment::sent)
}

/// A connection, or a listener, gets a segment, by each version.
pub const SEGMENT: [At; 2] = [
    At::Entry(&[c"tcp_v4_do_rcv"]),
    At::Entry(&[c"tcp_v6_do_rcv"]),
];

/// Returns the packet of a function whose arguments are a socket and, after it, a packet.
#[inline]
fn of_socket(call: &Call<'_>) -> Option<Packet> {
    Packet::new(call.word(1), call.word(0))
}

/// Returns the segment of version 4.
#[inline]
pub fn segment4(call: &Call<'_>) -> Option<Segment> {
    of_socket(call).map(Segment::new)
}

/// Returns the segment of version 6. Sockets of that version get segments of version 4 too; those
/// go on to that version's place.
#[inline]
pub fn segment6(call: &Call<'_>) -> Option<Segment> {
    let packet = of_socket(call).filter(|packet| packet.0.ip.version != 4);
    packet.map(Segment::new)
}

/// A connection that was requested but is not accepted yet gets a segment.
pub const HANDSHAKE: At = At::Entry(&[c"tcp_check_req"]);

/// Returns the segment. With TCP Fast Open the connection has had it already.
#[inline]
pub fn handshake(call: &Call<'_>) -> Option<Segment> {
    match call.flag(3) {
        true => None,
        false => Packet::new(call.word(1), call.word(2)).map(Segment::new),
    }
}

/// A connection that has ended, but is still remembered, gets a segment.
pub const LATE: At = At::Entry(&[c"tcp_timewait_state_process"]);

/// Returns the segment. One that requests a new connection goes on to the listener, unless it is an
/// old one or nobody listens.
#[inline]
pub fn late(call: &Call<'_>) -> Option<Segment> {
    let segment = of_socket(call).map(Segment::new)?;
    let others = bindings::DTRACE_NET_ACK | bindings::DTRACE_NET_RST;
    let asks = segment.has(bindings::DTRACE_NET_SYN, others);
    // SAFETY: The helper takes any address: its loads may fault and are caught.
    let anew = asks && unsafe { bindings::dtrace_tcp_waits(call.word(0) as *const _) };
    (!anew).then_some(segment)
}

/// Returns the end that from this segment on waits for nothing but late segments, and its old
/// state.
#[inline]
pub fn last(call: &Call<'_>) -> Option<(End, i32)> {
    let (sk, skb) = (call.word(0) as *const _, call.word(1) as *const _);
    // SAFETY: The helper takes any addresses: its loads may fault and are caught.
    let ends = unsafe { bindings::dtrace_tcp_ends(sk, skb) };
    ends.then(|| End::waiting(sk))
}

/// A connection leaves its socket, to end without it.
pub const LEAVES: At = At::Entry(&[c"tcp_time_wait"]);

/// Returns the end, if it waits for nothing but late segments any more; and its old state.
#[inline]
pub fn leaves(call: &Call<'_>) -> Option<(End, i32)> {
    let waits = call.int(1) == bindings::DTRACE_NET_TIME_WAIT as i32;
    waits.then(|| End::waiting(call.word(0) as *const _))
}

/// A segment is answered by a reset, by each version.
pub const ANSWERED: [At; 2] = [
    At::Entry(&[c"tcp_v4_send_reset"]),
    At::Entry(&[c"tcp_v6_send_reset"]),
];

/// Returns the segment, if it was for no connection; a connection's segment was reported before.
#[inline]
pub fn answered(call: &Call<'_>) -> Option<Segment> {
    match call.word(0) {
        0 => Packet::new(call.word(1), 0).map(Segment::new),
        _ => None,
    }
}

/// A connection is established.
pub const ESTABLISHED: At = At::Entry(&[c"tcp_init_transfer"]);

/// Returns the segment that established it, and whether this machine requested the connection.
/// There is no segment if a program has declared the connection established (`TCP_REPAIR`).
#[inline]
pub fn established(call: &Call<'_>) -> Option<(Segment, bool)> {
    // SAFETY: The helper takes any address: its loads may fault and are caught.
    let active = unsafe { bindings::dtrace_tcp_was_active(call.word(0) as *const _, call.int(1)) };
    let packet = Packet::new(call.word(2), call.word(0))?;
    Some((Segment::new(packet), active))
}

/// A connection is reset.
pub const RESET: At = At::Entry(&[c"tcp_reset"]);

/// Returns the segment that resets it, if this machine has requested the connection and had no
/// answer yet.
#[inline]
pub fn reset(call: &Call<'_>) -> Option<Segment> {
    let segment = Segment::new(of_socket(call)?);
    let asked = segment.end.0.state == bindings::DTRACE_NET_SYN_SENT as i32;
    asked.then_some(segment)
}

/// A socket changes its state.
pub const STATE: At = At::Tracepoint("inet_sock_set_state");

/// Returns the end in its new state, and the old state; of TCP only.
#[inline]
pub fn state(call: &Call<'_>) -> Option<(End, i32)> {
    let mut end = End::new(call.word(0) as *const _);
    if end.0.sk.is_null() {
        return None;
    }
    end.0.state = call.int(2);
    Some((end, call.int(1)))
}

/// A datagram of UDP and its socket.
pub struct Datagram {
    /// The packet that it lies in.
    pub packet: Packet,
    /// The address of the socket; 0 if that is another protocol's, or there is none.
    pub sock: u64,
}

impl Datagram {
    #[inline]
    fn new(packet: Packet) -> Self {
        // SAFETY: The helper takes any address: its loads may fault and are caught.
        let sock = unsafe { bindings::dtrace_udp_of(packet.0.sk) } as u64;
        Self { packet, sock }
    }
}

/// Returns the datagram that is sent by [`OUT`] or [`OUT6`], if it is one. What a tunnel has made
/// of a datagram passes too, still with the datagram's socket.
#[inline]
pub fn datagram_out(call: &Call<'_>) -> Option<Datagram> {
    let packet = out(call)?;
    // SAFETY: `packet` is valid for reads. The header's address may be anything: loads from it may
    // fault and are caught.
    let brings = u32::from(unsafe { bindings::dtrace_packet_brings(&packet.0) });
    (brings == bindings::DTRACE_NET_UDP).then(|| Datagram::new(packet))
}

/// A datagram is about to be put into its socket's queue. Once it is there its reader may free it,
/// so at the function's return there is none to report.
pub const DATAGRAM: At = At::Entry(&[c"__udp_enqueue_schedule_skb"]);

/// Returns the datagram.
#[inline]
pub fn datagram(call: &Call<'_>) -> Option<Datagram> {
    of_socket(call).map(Datagram::new)
}
