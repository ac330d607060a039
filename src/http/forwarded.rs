//! The client of a request that comes through proxies. A header counts as far as the operator's proxies wrote
//! it; what anybody else wrote counts for nothing.

use std::net::{IpAddr, SocketAddr};

use hyper::{HeaderMap, header::HeaderName};
use ipnet::IpNet;

const FORWARDED: HeaderName = HeaderName::from_static("forwarded");
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The one header that the proxies write. A proxy lets the other one through as the caller wrote it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardedHeader {
    /// RFC 7239.
    Forwarded,
    #[default]
    XForwardedFor,
}

/// The operator's proxies; by default none.
#[derive(Clone, Debug, Default)]
pub struct Proxies {
    pub networks: Vec<IpNet>,
    /// How many of them stand in a row, at most.
    pub hops: usize,
    pub told: ForwardedHeader,
}

impl Proxies {
    /// Whether `address` is one of them.
    pub fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.networks
            .iter()
            .any(|network| network.contains(&address))
    }

    /// The first address, from us towards the caller, that is not a proxy of the operator's. What that address
    /// wrote counts for nothing. A hop without an address ends the search: its proxy is the client.
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer.to_canonical();
        let mut hops = 0;
        let mut chain = self.chain(headers);
        while hops < self.hops && self.trusts(client) {
            let Some(Some(address)) = chain.pop() else {
                break;
            };
            client = address;
            hops += 1;
        }
        client
    }

    /// Whom each proxy says that it was asked by, the nearest last; `None` for what is no address.
    fn chain(&self, headers: &HeaderMap) -> Vec<Option<IpAddr>> {
        if self.networks.is_empty() {
            return Vec::new();
        }
        let name = match self.told {
            ForwardedHeader::Forwarded => FORWARDED,
            ForwardedHeader::XForwardedFor => X_FORWARDED_FOR,
        };
        let lines = headers.get_all(name);
        let lines = lines.iter().map(|line| line.to_str().unwrap_or("?"));
        match self.told {
            ForwardedHeader::XForwardedFor => lines
                .flat_map(|line| line.split(',').map(address))
                .collect(),
            ForwardedHeader::Forwarded => lines.flat_map(elements).collect(),
        }
    }
}

fn elements(line: &str) -> Vec<Option<IpAddr>> {
    let read = rfc7239::parse(line).map(|element| {
        let node = element.ok()?.forwarded_for?;
        Some(node.name.ip()?.to_canonical())
    });
    read.collect()
}

/// As proxies write them: bare, in brackets, or with a port.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    let bare = bare.parse().ok();
    let address = bare.or_else(|| Some(text.parse::<SocketAddr>().ok()?.ip()))?;
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(told: ForwardedHeader, hops: usize) -> Proxies {
        Proxies {
            networks: vec!["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()],
            hops,
            told,
        }
    }

    fn client(proxies: &Proxies, peer: &str, lines: &[(&'static str, &str)]) -> String {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(HeaderName::from_static(name), value.parse().unwrap());
        }
        proxies.client(peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn the_nearest_stranger_is_the_caller() {
        let one = proxies(ForwardedHeader::XForwardedFor, usize::MAX);
        for (peer, line, expected) in [
            // Nobody's word but the proxies' counts.
            ("9.9.9.9", "1.1.1.1", "9.9.9.9"),
            ("10.0.0.1", "1.1.1.1", "1.1.1.1"),
            // What the caller wrote itself stands left of what the proxy says of it.
            ("10.0.0.1", "6.6.6.6, 1.1.1.1", "1.1.1.1"),
            ("10.0.0.1", "6.6.6.6,10.0.0.3, 1.1.1.1", "1.1.1.1"),
            ("10.0.0.1", "6.6.6.6, 1.1.1.1, 10.0.0.2", "1.1.1.1"),
            ("10.0.0.1", "1.1.1.1:5000", "1.1.1.1"),
            ("10.0.0.1", "[2001:db8::1]:5000", "2001:db8::1"),
            ("::ffff:10.0.0.1", "::ffff:1.1.1.1", "1.1.1.1"),
            ("fd00::1", "2001:db8::1", "2001:db8::1"),
            // What is no address ends the walk at the proxy that wrote it.
            ("10.0.0.1", "1.1.1.1, unknown", "10.0.0.1"),
            ("10.0.0.1", "", "10.0.0.1"),
        ] {
            let found = client(&one, peer, &[("x-forwarded-for", line)]);
            assert_eq!(found, expected, "{peer} {line}");
        }
        let lines = [
            ("x-forwarded-for", "6.6.6.6"),
            ("x-forwarded-for", "1.1.1.1"),
        ];
        assert_eq!(client(&one, "10.0.0.1", &lines), "1.1.1.1");
        assert_eq!(client(&Proxies::default(), "10.0.0.1", &lines), "10.0.0.1");
    }

    #[test]
    fn hops_end_the_walk_and_the_other_header_counts_for_nothing() {
        let line = [("x-forwarded-for", "1.1.1.1, 10.0.0.3, 10.0.0.2")];
        for (hops, expected) in [(1, "10.0.0.2"), (2, "10.0.0.3"), (3, "1.1.1.1")] {
            let proxies = proxies(ForwardedHeader::XForwardedFor, hops);
            assert_eq!(client(&proxies, "10.0.0.1", &line), expected, "{hops}");
        }
        let forwarded = proxies(ForwardedHeader::Forwarded, usize::MAX);
        for (line, expected) in [
            (
                r#"for=6.6.6.6, for=1.1.1.1;proto=https;by=10.0.0.1"#,
                "1.1.1.1",
            ),
            (r#"for="[2001:db8::1]:5000""#, "2001:db8::1"),
            ("for=_hidden", "10.0.0.1"),
            ("proto=https", "10.0.0.1"),
        ] {
            let lines = [("forwarded", line), ("x-forwarded-for", "6.6.6.6")];
            assert_eq!(client(&forwarded, "10.0.0.1", &lines), expected, "{line}");
        }
        let lines = [("forwarded", "for=6.6.6.6")];
        let other = proxies(ForwardedHeader::XForwardedFor, usize::MAX);
        assert_eq!(client(&other, "10.0.0.1", &lines), "10.0.0.1");
    }
}
