// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The provider `tcp`: segments and connections.
//!
//! `send` fires when a segment is handed to IP, and `receive` when its connection processes it.
//! While a program works on a connection, segments for it wait, and are received when the program
//! is done. Segments that the device splits or that the kernel has merged count as one. `receive`
//! also fires for a segment without a connection that is answered by a reset.
//!
//! `connect-request` and `accept-refused` fire after the `send` of the segment that requests or
//! refuses the connection. `connect-established`, `accept-established` and `connect-refused` fire
//! after the `receive` of the segment that decides. A connection that is being accepted is still in
//! state syn-received then.
//!
//! `state-change` reports the kernel's own states. A new connection of a listener begins in
//! syn-received. A connection that ends in time-wait goes on without its socket, and the socket
//! reports a change to closed at that time.

use super::event::{register as register_events, Arg, Definition, Event, Passage, Source};
use crate::framework::{Framework, Registration};
use crate::sys::places::net::{self, End, Segment};
use kernel::prelude::*;
use kernel::sync::Arc;

const SEND: usize = 0;
const RECEIVE: usize = 1;
const CONNECT_REQUEST: usize = 2;
const CONNECT_ESTABLISHED: usize = 3;
const CONNECT_REFUSED: usize = 4;
const ACCEPT_ESTABLISHED: usize = 5;
const ACCEPT_REFUSED: usize = 6;
const STATE_CHANGE: usize = 7;

const PACKET: Arg = Arg::translated("struct sk_buff *", "pktinfo_t *", 0);
const SOCKET: Arg = Arg::translated("struct sock *", "csinfo_t *", 1);
const IP: Arg = Arg::translated("dtrace_ip_t *", "ipinfo_t *", 2);
const END: Arg = Arg::translated("dtrace_tcp_t *", "tcpsinfo_t *", 3);
const HEADER: Arg = Arg::translated("struct tcphdr *", "tcpinfo_t *", 4);
const OLD: Arg = Arg::translated("int", "tcplsinfo_t *", 5);

const SEGMENT: [Arg; 5] = [PACKET, SOCKET, IP, END, HEADER];
const CHANGE: [Arg; 6] = [PACKET, SOCKET, IP, END, HEADER, OLD];

/// In the order of the numbers above.
static PROBES: [Event; 8] = [
    Event::new("send", &SEGMENT),
    Event::new("receive", &SEGMENT),
    Event::new("connect-request", &SEGMENT),
    Event::new("connect-established", &SEGMENT),
    Event::new("connect-refused", &SEGMENT),
    Event::new("accept-established", &SEGMENT),
    Event::new("accept-refused", &SEGMENT),
    Event::new("state-change", &CHANGE),
];

const OUT: &[usize] = &[SEND, CONNECT_REQUEST, ACCEPT_REFUSED];

static SOURCES: [Source; 12] = [
    Source::new(net::OUT, OUT, |p| sent(p, net::segment_out(p.call))),
    Source::new(net::XMIT6, OUT, |p| sent(p, net::segment_xmit6(p.call))),
    Source::new(net::SEGMENT[0], &[RECEIVE], |p| {
        received(p, net::segment4(p.call))
    }),
    Source::new(net::SEGMENT[1], &[RECEIVE], |p| {
        received(p, net::segment6(p.call))
    }),
    Source::new(net::HANDSHAKE, &[RECEIVE], |p| {
        received(p, net::handshake(p.call))
    }),
    Source::new(net::LATE, &[RECEIVE, STATE_CHANGE], |p| {
        received(p, net::late(p.call));
        changed(p, net::last(p.call));
    }),
    Source::new(net::LEAVES, &[STATE_CHANGE], |p| {
        changed(p, net::leaves(p.call))
    }),
    Source::new(net::ANSWERED[0], &[RECEIVE], |p| {
        received(p, net::answered(p.call))
    }),
    Source::new(net::ANSWERED[1], &[RECEIVE], |p| {
        received(p, net::answered(p.call))
    }),
    Source::new(
        net::ESTABLISHED,
        &[CONNECT_ESTABLISHED, ACCEPT_ESTABLISHED],
        established,
    ),
    Source::new(net::RESET, &[CONNECT_REFUSED], reset),
    Source::new(net::STATE, &[STATE_CHANGE], |p| {
        changed(p, net::state(p.call))
    }),
];

static TCP: Definition = Definition {
    name: "tcp",
    probes: &PROBES,
    sources: &SOURCES,
    begin: || {},
};

/// Registers the provider and creates its probes.
pub fn register(framework: &Arc<Framework>) -> Result<Registration> {
    register_events(framework, &TCP)
}

fn sent(passage: &Passage<'_>, sent: Option<Segment>) {
    let Some(sent) = sent else {
        return;
    };
    segment(passage, SEND, &sent);
    if sent.requests() {
        segment(passage, CONNECT_REQUEST, &sent);
    }
    if sent.refuses() {
        segment(passage, ACCEPT_REFUSED, &sent);
    }
}

fn received(passage: &Passage<'_>, received: Option<Segment>) {
    if let Some(received) = received {
        segment(passage, RECEIVE, &received);
    }
}

fn established(passage: &Passage<'_>) {
    if let Some((last, active)) = net::established(passage.call) {
        let probe = match active {
            true => CONNECT_ESTABLISHED,
            false => ACCEPT_ESTABLISHED,
        };
        segment(passage, probe, &last);
    }
}

fn reset(passage: &Passage<'_>) {
    if let Some(reset) = net::reset(passage.call) {
        segment(passage, CONNECT_REFUSED, &reset);
    }
}

fn changed(passage: &Passage<'_>, change: Option<(End, i32)>) {
    if let Some((end, old)) = change {
        let words = [0, end.sock(), 0, end.addr(), 0, old as u64];
        passage.fire(STATE_CHANGE, &words);
    }
}

fn segment(passage: &Passage<'_>, probe: usize, segment: &Segment) {
    let packet = &segment.packet;
    let words = [
        packet.skb(),
        segment.end.sock(),
        packet.ip(),
        segment.end.addr(),
        packet.transport(),
    ];
    passage.fire(probe, &words);
}
