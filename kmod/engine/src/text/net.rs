// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! `inet_ntop()` and its relatives, `link_ntop()` and `uuidstr()`: addresses as text.

use super::Out;

fn decimal(value: u8, out: &mut Out<'_>) {
    super::number::lltostr(value.into(), 10, out);
}

fn hex_byte(value: u8, out: &mut Out<'_>) {
    for digit in [value >> 4, value & 15] {
        out.push(super::number::digit(digit));
    }
}

/// Writes an IPv4 address, `192.0.2.1`.
pub fn inet4(addr: [u8; 4], out: &mut Out<'_>) {
    for (i, byte) in addr.into_iter().enumerate() {
        if i > 0 {
            out.push(b'.');
        }
        decimal(byte, out);
    }
}

/// Returns the groups of an IPv6 address.
fn groups(addr: [u8; 16]) -> [u16; 8] {
    let mut groups = [0u16; 8];
    for (group, pair) in groups.iter_mut().zip(addr.chunks_exact(2)) {
        *group = pair.iter().fold(0, |acc, &byte| acc << 8 | u16::from(byte));
    }
    groups
}

/// Returns the IPv4 address that an IPv6 address represents: mapped (`::ffff:192.0.2.1`) or
/// compatible (`::192.0.2.1`).
pub fn embedded(addr: [u8; 16]) -> Option<[u8; 4]> {
    let [.., a, b, c, d] = addr;
    match groups(addr) {
        [0, 0, 0, 0, 0, 0xffff, ..] => Some([a, b, c, d]),
        [0, 0, 0, 0, 0, 0, high, _] if high != 0 => Some([a, b, c, d]),
        _ => None,
    }
}

/// Writes an IPv6 address as RFC 5952 recommends: the first of the longest runs of at least two
/// zero groups becomes `::`, and an embedded IPv4 address is written in dotted form.
pub fn inet6(addr: [u8; 16], out: &mut Out<'_>) {
    let groups = groups(addr);
    let within = embedded(addr);
    let shown = if within.is_some() { 6 } else { 8 };
    let gap = longest_zero_run(groups.get(..shown).unwrap_or(&[]));
    let mut i = 0;
    while i < shown {
        if gap.is_some_and(|(start, _)| start == i) {
            out.extend(b"::");
            i = gap.map_or(shown, |(_, end)| end);
            continue;
        }
        if i > 0 && gap.is_none_or(|(_, end)| end != i) {
            out.push(b':');
        }
        hex_group(groups.get(i).copied().unwrap_or(0), out);
        i = i.saturating_add(1);
    }
    if let Some(within) = within {
        if gap.is_none_or(|(_, end)| end != shown) {
            out.push(b':');
        }
        inet4(within, out);
    }
}

/// Returns start and end of the first of the longest runs of zeroes, if it has at least two.
fn longest_zero_run(groups: &[u16]) -> Option<(usize, usize)> {
    let mut best: Option<(usize, usize)> = None;
    let mut start = 0;
    for (i, &group) in groups.iter().enumerate() {
        let end = i.saturating_add(1);
        let longest = best.map_or(1, |(start, end)| end.saturating_sub(start));
        if group != 0 {
            start = end;
        } else if end.saturating_sub(start) > longest {
            best = Some((start, end));
        }
    }
    best
}

fn hex_group(group: u16, out: &mut Out<'_>) {
    let [high, low] = group.to_be_bytes();
    let mut buf = [0; 4];
    let mut digits = Out::new(&mut buf);
    hex_byte(high, &mut digits);
    hex_byte(low, &mut digits);
    let text = digits.as_slice();
    let zeroes = text.iter().take(3).take_while(|&&b| b == b'0').count();
    out.extend(text.get(zeroes..).unwrap_or(text));
}

/// Writes a link-layer address, `52:54:00:12:34:56`.
pub fn link(addr: &[u8], out: &mut Out<'_>) {
    for (i, &byte) in addr.iter().enumerate() {
        if i > 0 {
            out.push(b':');
        }
        hex_byte(byte, out);
    }
}

/// Writes a UUID, `00112233-4455-6677-8899-aabbccddeeff`.
pub fn uuid(bytes: [u8; 16], out: &mut Out<'_>) {
    for (i, byte) in bytes.into_iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        hex_byte(byte, out);
    }
}

#[cfg(test)]
mod tests {
    use super::super::written;
    use super::*;
    use std::net::Ipv6Addr;
    use std::string::ToString;

    #[test]
    fn ipv4_is_dotted() {
        assert_eq!(written(|out| inet4([192, 0, 2, 1], out)), "192.0.2.1");
    }

    #[test]
    fn ipv6_is_shortened() {
        for text in [
            "::",
            "::1",
            "1::",
            "2001:db8::1",
            "2001:db8:0:1:1:1:1:1",
            "2001:0:0:1::1",
            "fe80::1:0:0:1",
            "1:2:3:4:5:6:7:8",
            "::ffff:192.0.2.1",
        ] {
            let addr: Ipv6Addr = text.parse().expect("a test's address");
            assert_eq!(written(|out| inet6(addr.octets(), out)), addr.to_string());
        }
        let compatible: Ipv6Addr = "::192.0.2.1".parse().expect("a test's address");
        assert_eq!(
            written(|out| inet6(compatible.octets(), out)),
            "::192.0.2.1"
        );
    }

    #[test]
    fn an_ipv4_address_within_is_found() {
        for (text, within) in [
            ("::ffff:192.0.2.1", Some([192, 0, 2, 1])),
            ("::127.0.0.1", Some([127, 0, 0, 1])),
            ("::1", None),
            ("::fffe:7f00:1", None),
        ] {
            let addr: Ipv6Addr = text.parse().expect("a test's address");
            assert_eq!(embedded(addr.octets()), within, "{text}");
        }
    }

    #[test]
    fn links_and_uuids_are_hexadecimal() {
        assert_eq!(
            written(|out| link(&[0x52, 0x54, 0, 0x12, 0x34, 0x56], out)),
            "52:54:00:12:34:56"
        );
        let bytes = core::array::from_fn(|i| (i * 0x11) as u8);
        assert_eq!(
            written(|out| uuid(bytes, out)),
            "00112233-4455-6677-8899-aabbccddeeff"
        );
    }
}
