//! Decides whether an address belongs to the public internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::Uri;

/// Returns whether the URL's host can never be a public address: a literal address that is not public, in any spelling
/// that the system's lookups accept, or a name below `localhost`.
pub(super) fn is_never_public(target: &Uri) -> bool {
    let host = target.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let host = host.trim_end_matches('.');
    if let Some(address) = literal(host) {
        return !is_public(address);
    }
    let last = host.rsplit('.').next().unwrap_or_default();
    last.eq_ignore_ascii_case("localhost")
}

/// Returns the address of a host that is a literal address; `None` for a name.
fn literal(host: &str) -> Option<IpAddr> {
    // A zone may follow an IPv6 address.
    let v6 = host.split('%').next().unwrap_or_default();
    v6.parse().ok().or_else(|| literal_v4(host).map(IpAddr::V4))
}

/// Parses an IPv4 address as the system's lookups do (`inet_aton`): one to four numbers, each decimal, octal or
/// hexadecimal. The last number fills the remaining bytes.
fn literal_v4(host: &str) -> Option<Ipv4Addr> {
    let numbers: Vec<u32> = host.split('.').map(number).collect::<Option<_>>()?;
    let (last, others) = numbers.split_last().filter(|(_, others)| others.len() <= 3)?;
    let mut address = *last;
    if u64::from(*last) >> (32 - 8 * others.len()) != 0 {
        return None;
    }
    for (place, byte) in others.iter().enumerate() {
        address |= u32::from(u8::try_from(*byte).ok()?) << (24 - 8 * place);
    }
    Some(Ipv4Addr::from(address))
}

/// Parses a number as in C: `0x` begins a hexadecimal one, `0` an octal one.
fn number(text: &str) -> Option<u32> {
    let (digits, radix) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&text[2..], 16),
        [b'0', _, ..] => (&text[1..], 8),
        _ => (text, 10),
    };
    // The parser accepts a sign, `inet_aton` does not.
    let has_digit_first = digits.starts_with(|first: char| first.is_ascii_hexdigit());
    u32::from_str_radix(digits, radix).ok().filter(|_| has_digit_first)
}

/// Returns whether the address belongs to the public internet.
///
/// Ranges for another purpose do not: private, shared, loopback, link-local, multicast, documentation, benchmarking and
/// reserved ones (the IANA special-purpose registries), and IPv6 forms that contain such an IPv4 address. The metadata
/// addresses of cloud platforms are in these ranges, except 168.63.129.16, which counts as not public too.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let reserved = match address.octets() {
        [0 | 10 | 127 | 224..=255, ..]
        // Azure's platform address: it serves each virtual machine its configuration and credentials.
        | [168, 63, 129, 16]
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
        // IPv4-mapped, NAT64 and 6to4: packets reach the IPv4 address inside.
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => embedded(high, low),
        // IETF protocol assignments (Teredo, ORCHID, benchmarking) and documentation.
        [0x2001, second, ..] => second >= 0x200 && second != 0xdb8,
        [0x3fff, second, ..] => second >= 0x1000,
        // Global unicast: the one range that IANA has allocated for it.
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
    fn addresses_of_the_public_internet_are_public() {
        check("1.1.1.1 8.8.8.8 93.184.215.14 100.63.255.255 100.128.0.0 172.15.255.255 172.32.0.0", true);
        check("169.253.0.1 192.167.1.1 192.0.1.1 198.17.0.1 198.20.0.1 223.255.255.255 11.0.0.1", true);
        check("2606:4700:4700::1111 2a00:1450:4001:81b::200e 2001:200::1 2001:4860:4860::8888", true);
        check("::ffff:8.8.8.8 64:ff9b::808:808 2002:808:808::1 3fff:1000::1", true);
    }

    #[test]
    fn special_purpose_ipv4_ranges_are_not_public() {
        check(
            "0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 127.0.0.1 127.9.9.9",
            false,
        );
        check("169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.8 192.0.2.1 192.88.99.1 192.168.1.1", false);
        check("198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.9 224.0.0.1 239.255.255.250", false);
        check("240.0.0.1 255.255.255.255", false);
    }

    #[test]
    fn metadata_addresses_of_cloud_platforms_are_not_public() {
        check(
            "169.254.169.254 169.254.170.2 169.254.170.23 169.254.0.23 169.254.42.42 100.100.100.200",
            false,
        );
        check("192.0.0.192 168.63.129.16 ::ffff:168.63.129.16 64:ff9b::a83f:8110 2002:a83f:8110::1", false);
        check(
            "fd00:ec2::254 fd00:ec2::23 fd20:ce::254 fd00:42::42 fd00:c1::a9fe:a9fe fe80::a9fe:a9fe",
            false,
        );
        check("168.63.129.15 168.63.129.17 168.63.128.16", true);
        let spelled = ["168.63.129.16", "2822734096", "0xa83f8110", "0250.077.0201.020", "168.63.33040"];
        for host in spelled {
            assert!(is_never_public(&format!("http://{host}/").parse().expect(host)), "{host}");
        }
    }

    #[test]
    fn special_purpose_ipv6_ranges_are_not_public() {
        check(":: ::1 fe80::1 febf::1 fc00::1 fd12:3456::1 fec0::1 ff02::1 ff0e::1", false);
        check(
            "2001::1 2001:2::1 2001:10::1 2001:20::1 2001:db8::1 3fff:fff::1 100::1 5f00::1 4000::1",
            false,
        );
    }

    #[test]
    fn a_host_that_is_never_public_is_found_in_every_spelling() {
        let never = |host: &str| is_never_public(&format!("http://{host}/a?b").parse().expect(host));
        for host in "127.0.0.1 127.1 127.0.1 2130706433 0x7f000001 0X7F.1 0177.0.0.1 017700000001 0x7f.0.0x0.01 0 \
            127.0.0.1. 10.1 0xa000001 169.254.169.254 2852039166 0xa9fea9fe 0251.0376.0251.0376 192.168.257 \
            [::1] [::] [::ffff:127.0.0.1] [::ffff:7f00:1] [0:0:0:0:0:ffff:a9fe:a9fe] [64:ff9b::10.0.0.1] [fe80::1] \
            [fd00::1] localhost LOCALHOST localhost. a.localhost user:pass@127.0.0.1 8.8.8.8@10.0.0.1 127.0.0.1:8080"
            .split_whitespace()
        {
            assert!(never(host), "{host}");
        }
        for host in "8.8.8.8 134744072 0x08080808 010.8.8.8 8.526344 [2606:4700::1111] [::ffff:8.8.8.8] example.com \
            localhost.example.com notlocalhost 127.0.0.1.example.com 10.example 127.0.0.1@example.com 0x.example \
            a.b.c 1.2.3.4.5 256.1.1.1 1.16777216 4294967296 08.1 0x 1.2.3.0x 10.0.0.g -1.2"
            .split_whitespace()
        {
            assert!(!never(host), "{host}");
        }
    }

    #[test]
    fn ipv6_forms_of_special_purpose_ipv4_addresses_are_not_public() {
        check("::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:0.0.0.0 ::127.0.0.1", false);
        check("64:ff9b::7f00:1 64:ff9b::a00:1 64:ff9b:1::1 2002:7f00:1::1 2002:c0a8:101::1", false);
        check("::ffff:0:127.0.0.1", false);
    }
}
