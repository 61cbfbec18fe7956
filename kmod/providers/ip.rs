// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The provider `ip`: packets of IPv4 and IPv6 that this machine sends, forwards and receives.
//!
//! `send` fires for each packet that is handed to a device, and for each fragment. `receive` fires
//! for each packet that a device has delivered, before the firewall sees it and before fragments
//! are reassembled. Segments that the device splits, or that were merged on receipt, count as one
//! packet for both probes. Packets that the machine sends to itself are sent and received by its
//! loopback device.

use super::event::{register as register_events, Arg, Definition, Event, Passage, Source};
use crate::framework::{Framework, Registration};
use crate::sys::places::net::{self, Packet};
use kernel::prelude::*;
use kernel::sync::Arc;

const SEND: usize = 0;
const RECEIVE: usize = 1;

const PACKET: [Arg; 6] = [
    Arg::translated("struct sk_buff *", "pktinfo_t *", 0),
    Arg::translated("struct sock *", "csinfo_t *", 1),
    Arg::translated("dtrace_ip_t *", "ipinfo_t *", 2),
    Arg::translated("struct net_device *", "ifinfo_t *", 3),
    Arg::translated("struct iphdr *", "ipv4info_t *", 4),
    Arg::translated("struct ipv6hdr *", "ipv6info_t *", 5),
];

/// In the order of the numbers above.
static PROBES: [Event; 2] = [Event::new("send", &PACKET), Event::new("receive", &PACKET)];

static SOURCES: [Source; 4] = [
    Source::new(net::SENT[0], &[SEND], sent),
    Source::new(net::SENT[1], &[SEND], sent),
    Source::new(net::RECEIVED[0], &[RECEIVE], received),
    Source::new(net::RECEIVED[1], &[RECEIVE], received),
];

static IP: Definition = Definition {
    name: "ip",
    probes: &PROBES,
    sources: &SOURCES,
    begin: || {},
};

/// Registers the provider and creates its probes.
pub fn register(framework: &Arc<Framework>) -> Result<Registration> {
    register_events(framework, &IP)
}

fn sent(passage: &Passage<'_>) {
    packet(passage, SEND, net::sent(passage.call));
}

fn received(passage: &Passage<'_>) {
    packet(passage, RECEIVE, net::received(passage.call));
}

fn packet(passage: &Passage<'_>, probe: usize, packet: Option<Packet>) {
    let Some(packet) = packet else {
        return;
    };
    let words = [
        packet.skb(),
        packet.sock(),
        packet.ip(),
        packet.device(),
        packet.header(4),
        packet.header(6),
    ];
    passage.fire(probe, &words);
}
