// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The internet protocols.
//!
//! All that IP sends passes one function of each version at the end, which has chosen the device; all that it has received and
//! found sound comes out of one. What this machine sends itself, other than what it forwards, passes another before, where it
//! is still known whose it is. Of what TCP receives no function sees all: a segment goes its way by the
//! state of its connection.
//!
//! What a place passes is read as any address is, by `bindings/net.c`: where the argument is none, there is no event.

use super::{At, Call};
use crate::bindings;

/// A packet.
pub struct Packet(bindings::dtrace_packet);

impl Packet {
    /// Behind `skb`, and `sk` if the place knows whose it is. `None`: no packet is there.
    #[inline]
    fn new(skb: u64, sk: u64) -> Option<Self> {
        let mut packet = bindings::dtrace_packet::default();
        // SAFETY: It takes any addresses.
        let is =
            unsafe { bindings::dtrace_packet_of(skb as *const _, sk as *const _, &mut packet) };
        is.then_some(Self(packet))
    }

    /// The address of its `sk_buff`.
    #[inline]
    pub fn skb(&self) -> u64 {
        self.0.skb as u64
    }

    /// The address of the socket that it belongs to; 0 if it is nobody's.
    #[inline]
    pub fn sock(&self) -> u64 {
        self.0.sk as u64
    }

    /// The address of what `struct dtrace_ip` tells, as long as the packet stays.
    #[inline]
    pub fn ip(&self) -> u64 {
        core::ptr::from_ref(&self.0.ip) as u64
    }

    /// The address of its header if it is one of this version, or else 0.
    #[inline]
    pub fn header(&self, version: u8) -> u64 {
        match self.0.ip.version == version {
            true => self.0.ip.header as u64,
            false => 0,
        }
    }

    /// The address of the device that it came from or goes to.
    #[inline]
    pub fn device(&self) -> u64 {
        self.0.device as u64
    }

    /// The address of what is behind its header.
    #[inline]
    pub fn transport(&self) -> u64 {
        self.0.transport as u64
    }

    fn is(&self, protocol: u32) -> bool {
        u32::from(self.0.protocol) == protocol
    }
}

/// A packet, or a piece of one, is handed to its device.
pub const SENT: [At; 2] = [
    At::Entry(&[c"ip_finish_output2"]),
    At::Entry(&[c"ip6_finish_output2"]),
];

/// The packet. It names its socket itself: the function is called with one, but does nothing with it.
#[inline]
pub fn sent(call: &Call<'_>) -> Option<Packet> {
    Packet::new(call.word(2), 0)
}

/// A packet was looked at that has come from a device.
pub const RECEIVED: [At; 2] = [
    At::Return(&[c"ip_rcv_core", c"ip_rcv_core.isra.0"]),
    At::Return(&[c"ip6_rcv_core", c"ip6_rcv_core.isra.0"]),
];

/// The packet, if it is sound.
#[inline]
pub fn received(call: &Call<'_>) -> Option<Packet> {
    Packet::new(call.word(0), 0)
}

/// A protocol of this machine hands a packet of version 4 to IP.
pub const OUT: At = At::Entry(&[c"__ip_local_out"]);

/// A protocol of this machine hands a packet of version 6 to IP, its header written.
pub const OUT6: At = At::NestedEntry([c"ip6_local_out", c"__ip6_local_out"]);

/// TCP hands a segment to IP of version 6, which has to write a header.
pub const XMIT6: At = At::Entry(&[c"ip6_xmit"]);

/// The packet of [`OUT`] or [`OUT6`]. It names its socket itself: the one that the function is called with is for the packet filter.
#[inline]
fn out(call: &Call<'_>) -> Option<Packet> {
    Packet::new(call.word(2), 0)
}

/// A segment of TCP, and the end of a connection that it is of.
pub struct Segment {
    /// The packet that it lies in.
    pub packet: Packet,
    /// The connection.
    pub end: End,
}

/// An end of a connection, or none.
pub struct End(bindings::dtrace_tcp);

impl End {
    #[inline]
    fn new(sk: *const bindings::sock) -> Self {
        let mut tcp = bindings::dtrace_tcp::default();
        // SAFETY: It takes any address.
        unsafe { bindings::dtrace_tcp_of(sk, &mut tcp) };
        Self(tcp)
    }

    /// The address of what `struct dtrace_tcp` tells, as long as this stays.
    #[inline]
    pub fn addr(&self) -> u64 {
        core::ptr::from_ref(&self.0) as u64
    }

    /// The address of its socket; 0 if there is no connection.
    #[inline]
    pub fn sock(&self) -> u64 {
        self.0.sk as u64
    }

    /// The end in the state that is called time-wait, and the one that it has been in.
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

    /// The packet that is sent, if it is one of TCP.
    #[inline]
    fn sent(packet: Packet) -> Option<Self> {
        if !packet.is(bindings::DTRACE_NET_TCP) {
            return None;
        }
        let mut segment = Self::new(packet);
        // SAFETY: The socket and the header are any addresses.
        let again = unsafe { bindings::dtrace_tcp_resends(&segment.end.0, &segment.packet.0) };
        segment.end.0.resends = again.into();
        Some(segment)
    }

    /// Whether these flags are set and those not.
    #[inline]
    fn has(&self, set: u32, unset: u32) -> bool {
        // SAFETY: It takes any address.
        let flags = u32::from(unsafe { bindings::dtrace_tcp_flags(self.packet.0.transport) });
        flags & (set | unset) == set
    }

    /// Whether it, which is sent, asks for a connection, and for the first time.
    #[inline]
    pub fn requests(&self) -> bool {
        self.end.0.resends == 0 && self.has(bindings::DTRACE_NET_SYN, bindings::DTRACE_NET_ACK)
    }

    /// Whether it refuses a connection that was asked for: no end sends it, and it answers what acknowledged nothing.
    #[inline]
    pub fn refuses(&self) -> bool {
        let refusal = bindings::DTRACE_NET_RST | bindings::DTRACE_NET_ACK;
        // SAFETY: It takes any address.
        let sequence = || unsafe { bindings::dtrace_tcp_seq(self.packet.0.transport) };
        self.end.0.whole.is_null() && self.has(refusal, 0) && sequence() == 0
    }
}

/// The segment that TCP sends by [`OUT`], if it is one.
#[inline]
pub fn segment_out(call: &Call<'_>) -> Option<Segment> {
    out(call).and_then(Segment::sent)
}

/// The segment that TCP sends by [`XMIT6`], if it is one.
#[inline]
pub fn segment_xmit6(call: &Call<'_>) -> Option<Segment> {
    let mut packet = bindings::dtrace_packet::default();
    // SAFETY: It takes any addresses.
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

/// A connection, or who waits for one, gets a segment, by each version.
pub const SEGMENT: [At; 2] = [
    At::Entry(&[c"tcp_v4_do_rcv"]),
    At::Entry(&[c"tcp_v6_do_rcv"]),
];

/// What a function is called with that does something with a socket and, after it, a packet.
#[inline]
fn of_socket(call: &Call<'_>) -> Option<Packet> {
    Packet::new(call.word(1), call.word(0))
}

/// The segment of version 4.
#[inline]
pub fn segment4(call: &Call<'_>) -> Option<Segment> {
    of_socket(call).map(Segment::new)
}

/// The segment of version 6. Sockets of that version get segments of version 4 too, which go on to that version's place.
#[inline]
pub fn segment6(call: &Call<'_>) -> Option<Segment> {
    let packet = of_socket(call).filter(|packet| packet.0.ip.version != 4);
    packet.map(Segment::new)
}

/// A connection that is asked for, but not accepted yet, gets a segment.
pub const HANDSHAKE: At = At::Entry(&[c"tcp_check_req"]);

/// The segment. With TCP Fast Open the connection has got it already.
#[inline]
pub fn handshake(call: &Call<'_>) -> Option<Segment> {
    match call.flag(3) {
        true => None,
        false => Packet::new(call.word(1), call.word(2)).map(Segment::new),
    }
}

/// A connection that has ended, but may not be forgotten yet, gets a segment.
pub const LATE: At = At::Entry(&[c"tcp_timewait_state_process"]);

/// The segment. One that asks for a new connection goes on to who listens, unless it is an old one or nobody does.
#[inline]
pub fn late(call: &Call<'_>) -> Option<Segment> {
    let segment = of_socket(call).map(Segment::new)?;
    let others = bindings::DTRACE_NET_ACK | bindings::DTRACE_NET_RST;
    let asks = segment.has(bindings::DTRACE_NET_SYN, others);
    // SAFETY: It takes any address.
    let anew = asks && unsafe { bindings::dtrace_tcp_waits(call.word(0) as *const _) };
    (!anew).then_some(segment)
}

/// The end that has nothing to wait for any more but segments that are late, by this one.
#[inline]
pub fn last(call: &Call<'_>) -> Option<(End, i32)> {
    let (sk, skb) = (call.word(0) as *const _, call.word(1) as *const _);
    // SAFETY: It takes any addresses.
    let ends = unsafe { bindings::dtrace_tcp_ends(sk, skb) };
    ends.then(|| End::waiting(sk))
}

/// A connection leaves its socket, to end without it.
pub const LEAVES: At = At::Entry(&[c"tcp_time_wait"]);

/// The end, if it has nothing to wait for any more but segments that are late; and its old state.
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

/// The segment, if it was for no connection; of one that has it was told of before.
#[inline]
pub fn answered(call: &Call<'_>) -> Option<Segment> {
    match call.word(0) {
        0 => Packet::new(call.word(1), 0).map(Segment::new),
        _ => None,
    }
}

/// A connection stands.
pub const ESTABLISHED: At = At::Entry(&[c"tcp_init_transfer"]);

/// The segment that made it so, of which there is none if a program has made the connection by its own word (`TCP_REPAIR`); and
/// whether this machine asked for it.
#[inline]
pub fn established(call: &Call<'_>) -> Option<(Segment, bool)> {
    // SAFETY: It takes any address.
    let active = unsafe { bindings::dtrace_tcp_was_active(call.word(0) as *const _, call.int(1)) };
    let packet = Packet::new(call.word(2), call.word(0))?;
    Some((Segment::new(packet), active))
}

/// A connection is reset.
pub const RESET: At = At::Entry(&[c"tcp_reset"]);

/// The segment that resets, if this machine has asked for the connection and had no answer yet.
#[inline]
pub fn reset(call: &Call<'_>) -> Option<Segment> {
    let segment = Segment::new(of_socket(call)?);
    let asked = segment.end.0.state == bindings::DTRACE_NET_SYN_SENT as i32;
    asked.then_some(segment)
}

/// A socket changes its state.
pub const STATE: At = At::Tracepoint("inet_sock_set_state");

/// The end in its new state, and the old one; of TCP alone.
#[inline]
pub fn state(call: &Call<'_>) -> Option<(End, i32)> {
    let mut end = End::new(call.word(0) as *const _);
    if end.0.sk.is_null() {
        return None;
    }
    end.0.state = call.int(2);
    Some((end, call.int(1)))
}

/// A datagram of UDP, and the socket that it is of.
pub struct Datagram {
    /// The packet that it lies in.
    pub packet: Packet,
    /// The address of the socket; 0 if it is another protocol's, or nobody's.
    pub sock: u64,
}

impl Datagram {
    #[inline]
    fn new(packet: Packet) -> Self {
        // SAFETY: It takes any address.
        let sock = unsafe { bindings::dtrace_udp_of(packet.0.sk) } as u64;
        Self { packet, sock }
    }
}

/// The datagram that is sent by [`OUT`] or [`OUT6`], if it is one. What a tunnel has made of one passes too, still as its socket's.
#[inline]
pub fn datagram_out(call: &Call<'_>) -> Option<Datagram> {
    let packet = out(call)?;
    // SAFETY: The header is any address.
    let brings = u32::from(unsafe { bindings::dtrace_packet_brings(&packet.0) });
    (brings == bindings::DTRACE_NET_UDP).then(|| Datagram::new(packet))
}

/// A datagram is to be put into its socket's queue. Once it is there its reader may free it, so the function's return tells of none.
pub const DATAGRAM: At = At::Entry(&[c"__udp_enqueue_schedule_skb"]);

/// The datagram.
#[inline]
pub fn datagram(call: &Call<'_>) -> Option<Datagram> {
    of_socket(call).map(Datagram::new)
}
