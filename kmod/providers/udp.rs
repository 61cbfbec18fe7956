// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The provider `udp`: datagrams.
//!
//! `send` fires when a datagram is handed to IP, with its final addresses and length. `receive`
//! fires just before a datagram is put into the queue of a socket, once for each socket that gets
//! it, even if the queue turns out to be full. It cannot fire later, because the reader may free a
//! datagram that is in the queue. Datagrams that no socket waits for, that have a wrong checksum,
//! or that the kernel consumes itself (tunnels) are not received. Datagrams that a program lets the
//! device split (`UDP_SEGMENT`) are one datagram.

use super::event::{register as register_events, Arg, Definition, Event, Passage, Source};
use crate::framework::{Framework, Registration};
use crate::sys::places::net::{self, Datagram};
use kernel::prelude::*;
use kernel::sync::Arc;

const SEND: usize = 0;
const RECEIVE: usize = 1;

const DATAGRAM: [Arg; 5] = [
    Arg::translated("struct sk_buff *", "pktinfo_t *", 0),
    Arg::translated("struct sock *", "csinfo_t *", 1),
    Arg::translated("dtrace_ip_t *", "ipinfo_t *", 2),
    Arg::translated("struct udp_sock *", "udpsinfo_t *", 3),
    Arg::translated("struct udphdr *", "udpinfo_t *", 4),
];

/// In the order of the numbers above.
static PROBES: [Event; 2] = [
    Event::new("send", &DATAGRAM),
    Event::new("receive", &DATAGRAM),
];

static SOURCES: [Source; 3] = [
    Source::new(net::OUT, &[SEND], sent),
    Source::new(net::OUT6, &[SEND], sent),
    Source::new(net::DATAGRAM, &[RECEIVE], received),
];

static UDP: Definition = Definition {
    name: "udp",
    probes: &PROBES,
    sources: &SOURCES,
    begin: || {},
};

/// Registers the provider and creates its probes.
pub fn register(framework: &Arc<Framework>) -> Result<Registration> {
    register_events(framework, &UDP)
}

fn sent(passage: &Passage<'_>) {
    datagram(passage, SEND, net::datagram_out(passage.call));
}

fn received(passage: &Passage<'_>) {
    datagram(passage, RECEIVE, net::datagram(passage.call));
}

fn datagram(passage: &Passage<'_>, probe: usize, datagram: Option<Datagram>) {
    let Some(datagram) = datagram else {
        return;
    };
    let packet = &datagram.packet;
    let words = [
        packet.skb(),
        packet.sock(),
        packet.ip(),
        datagram.sock,
        packet.transport(),
    ];
    passage.fire(probe, &words);
}
