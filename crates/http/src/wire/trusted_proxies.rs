//! Proxies whose `X-Forwarded-…` headers are believed.

use std::net::IpAddr;

use http::HeaderMap;

/// Networks of proxies that the operator trusts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies {
    networks: Vec<(IpAddr, u8)>,
}

impl TrustedProxies {
    /// Reads addresses and networks, such as `127.0.0.1, 10.0.0.0/8, fd00::/8`.
    ///
    /// # Errors
    ///
    /// The first text that is neither.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parts = text.split([',', ' ']).filter(|part| !part.is_empty());
        let networks = parts.map(|part| network(part).ok_or_else(|| part.to_owned()));
        Ok(Self { networks: networks.collect::<Result<_, _>>()? })
    }

    /// Whether no proxy is trusted.
    pub(crate) fn is_empty(&self) -> bool {
        self.networks.is_empty()
    }

    /// Whether this address is a trusted proxy.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|(network, bits)| is_in(address, *network, *bits))
    }

    /// The client's address behind the proxy at `peer`: the last one in `X-Forwarded-For` that is no trusted proxy.
    /// What the client itself sent stands before it. `peer` if it is not trusted, or said nothing.
    pub(crate) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if !self.contains(peer) {
            return peer;
        }
        let values = headers.get_all("x-forwarded-for").into_iter().filter_map(|value| value.to_str().ok());
        let hops: Vec<&str> = values.flat_map(|value| value.split(',')).map(str::trim).collect();
        let mut client = peer;
        for hop in hops.into_iter().rev() {
            // A hop that is no address ends the part that can be believed.
            let Some(address) = address(hop) else { break };
            client = address;
            if !self.contains(address) {
                break;
            }
        }
        client
    }
}

/// An address with or without a port.
fn address(hop: &str) -> Option<IpAddr> {
    let bare = hop.strip_prefix('[').and_then(|rest| rest.split(']').next()).unwrap_or(hop);
    let found = bare.parse().or_else(|_| bare.split(':').next().unwrap_or_default().parse());
    found.ok().map(|address: IpAddr| address.to_canonical())
}

fn network(text: &str) -> Option<(IpAddr, u8)> {
    let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Some(most), |bits| bits.parse().ok())?;
    (bits <= most).then_some((address, bits))
}

fn is_in(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            let differing = address.to_bits() ^ network.to_bits();
            differing.leading_zeros() >= u32::from(bits)
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            let differing = address.to_bits() ^ network.to_bits();
            differing.leading_zeros() >= u32::from(bits)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forwarded(values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append("x-forwarded-for", value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn networks_are_read_and_matched() {
        let proxies = TrustedProxies::parse("127.0.0.1, 10.0.0.0/8 fd00::/8").unwrap();
        for (address, expected) in [
            ("127.0.0.1", true),
            ("127.0.0.2", false),
            ("10.255.0.1", true),
            ("11.0.0.1", false),
            ("fd12::1", true),
            ("fe80::1", false),
        ] {
            assert_eq!(proxies.contains(address.parse().unwrap()), expected, "{address}");
        }
        assert!(TrustedProxies::parse("0.0.0.0/0").unwrap().contains("9.9.9.9".parse().unwrap()));
        for bad in ["a", "10.0.0.0/33", "10.0.0.0/", "::1/129", "10.0.0.0/8/8"] {
            assert_eq!(TrustedProxies::parse(bad), Err(bad.to_owned()));
        }
        assert!(TrustedProxies::parse("").unwrap().is_empty());
    }

    #[test]
    fn the_client_is_the_last_address_that_is_no_proxy() {
        let proxies = TrustedProxies::parse("10.0.0.0/8").unwrap();
        let client = |peer: &str, values: &[&str]| {
            proxies.client(peer.parse().unwrap(), &forwarded(values)).to_string()
        };
        assert_eq!(client("9.9.9.9", &["1.1.1.1"]), "9.9.9.9", "a stranger is not believed");
        assert_eq!(client("10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(client("10.0.0.1", &["1.1.1.1, 2.2.2.2, 10.0.0.2"]), "2.2.2.2");
        assert_eq!(client("10.0.0.1", &["1.1.1.1", "2.2.2.2:81"]), "2.2.2.2");
        assert_eq!(client("10.0.0.1", &["[2001:db8::1]:443"]), "2001:db8::1");
        assert_eq!(client("10.0.0.1", &["1.1.1.1, unknown, 10.0.0.2"]), "10.0.0.2");
    }
}
