//! Which addresses a webhook may reach.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether the address belongs to the public internet.
///
/// Everything that is set aside for another purpose is not: private, shared, loopback, link-local, multicast,
/// documentation, benchmarking and reserved ranges (the IANA special-purpose registries), and IPv6 forms that
/// only wrap such an IPv4 address.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let reserved = match address.octets() {
        [0 | 10 | 127 | 224..=255, ..]
        | [169, 254, ..]
        | [192, 168, ..]
        | [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 18 | 19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _] => true,
        [100, second, ..] => second & 0xc0 == 64,
        [172, second, ..] => second & 0xf0 == 16,
        _ => false,
    };
    !reserved
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let embedded =
        |high: u16, low: u16| is_public_v4(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    match segments {
        // IPv4-mapped, NAT64 and 6to4: the packet ends at the IPv4 address inside.
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => embedded(high, low),
        // IETF protocol assignments (Teredo, ORCHID, benchmarking) and documentation.
        [0x2001, second, ..] => second >= 0x200 && second != 0xdb8,
        [0x3fff, second, ..] => second >= 0x1000,
        // Global unicast; nothing else is given out for it so far.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(addresses: &str, public: bool) {
        for text in addresses.split_whitespace() {
            let address = text.parse().expect(text);
            assert_eq!(is_public(address), public, "{text}");
        }
    }

    #[test]
    fn addresses_of_the_public_internet_may_be_called() {
        check("1.1.1.1 8.8.8.8 93.184.215.14 100.63.255.255 100.128.0.0 172.15.255.255 172.32.0.0", true);
        check("169.253.0.1 192.167.1.1 192.0.1.1 198.17.0.1 198.20.0.1 223.255.255.255 11.0.0.1", true);
        check("2606:4700:4700::1111 2a00:1450:4001:81b::200e 2001:200::1 2001:4860:4860::8888", true);
        check("::ffff:8.8.8.8 64:ff9b::808:808 2002:808:808::1 3fff:1000::1", true);
    }

    #[test]
    fn ipv4_addresses_set_aside_are_refused() {
        check(
            "0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 127.0.0.1 127.9.9.9",
            false,
        );
        check("169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.8 192.0.2.1 192.88.99.1 192.168.1.1", false);
        check("198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.9 224.0.0.1 239.255.255.250", false);
        check("240.0.0.1 255.255.255.255", false);
    }

    #[test]
    fn ipv6_addresses_set_aside_are_refused() {
        check(":: ::1 fe80::1 febf::1 fc00::1 fd12:3456::1 fec0::1 ff02::1 ff0e::1", false);
        check(
            "2001::1 2001:2::1 2001:10::1 2001:20::1 2001:db8::1 3fff:fff::1 100::1 5f00::1 4000::1",
            false,
        );
    }

    #[test]
    fn ipv6_forms_of_refused_ipv4_addresses_are_refused() {
        check("::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:0.0.0.0 ::127.0.0.1", false);
        check("64:ff9b::7f00:1 64:ff9b::a00:1 64:ff9b:1::1 2002:7f00:1::1 2002:c0a8:101::1", false);
        check("::ffff:0:127.0.0.1", false);
    }
}
