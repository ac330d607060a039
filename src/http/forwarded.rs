//! The client address of a request that comes through proxies. Only what the operator's own proxies wrote into a
//! header counts.

use std::net::{IpAddr, SocketAddr};

use hyper::{HeaderMap, header::HeaderName};
use ipnet::IpNet;

const FORWARDED: HeaderName = HeaderName::from_static("forwarded");
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The header that the proxies write. A proxy passes the other header on as the caller wrote it, so it is ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardedHeader {
    /// RFC 7239.
    Forwarded,
    #[default]
    XForwardedFor,
}

/// The operator's proxies; none by default.
#[derive(Clone, Debug, Default)]
pub struct Proxies {
    pub networks: Vec<IpNet>,
    /// The most proxies in a row.
    pub hops: usize,
    pub header: ForwardedHeader,
}

impl Proxies {
    /// Whether `address` belongs to one of the proxies.
    pub fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.networks
            .iter()
            .any(|network| network.contains(&address))
    }

    /// The first address, counted from this server towards the caller, that is not one of the proxies; what that
    /// address wrote is ignored. At a hop without an address the search ends: the client is the proxy that wrote it.
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

    /// The address that each proxy names as its client, the nearest last; `None` for an entry that is no address.
    fn chain(&self, headers: &HeaderMap) -> Vec<Option<IpAddr>> {
        if self.networks.is_empty() {
            return Vec::new();
        }
        let name = match self.header {
            ForwardedHeader::Forwarded => FORWARDED,
            ForwardedHeader::XForwardedFor => X_FORWARDED_FOR,
        };
        let lines = headers.get_all(name);
        let lines = lines.iter().map(|line| line.to_str().unwrap_or("?"));
        match self.header {
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

/// Parses an address as proxies write it: bare, in brackets, or with a port.
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

    fn proxies(header: ForwardedHeader, hops: usize) -> Proxies {
        Proxies {
            networks: vec!["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()],
            hops,
            header,
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
            // Only the proxies' headers count.
            ("9.9.9.9", "1.1.1.1", "9.9.9.9"),
            ("10.0.0.1", "1.1.1.1", "1.1.1.1"),
            // The caller's own entry is to the left of the proxy's.
            ("10.0.0.1", "6.6.6.6, 1.1.1.1", "1.1.1.1"),
            ("10.0.0.1", "6.6.6.6,10.0.0.3, 1.1.1.1", "1.1.1.1"),
            ("10.0.0.1", "6.6.6.6, 1.1.1.1, 10.0.0.2", "1.1.1.1"),
            ("10.0.0.1", "1.1.1.1:5000", "1.1.1.1"),
            ("10.0.0.1", "[2001:db8::1]:5000", "2001:db8::1"),
            ("::ffff:10.0.0.1", "::ffff:1.1.1.1", "1.1.1.1"),
            ("fd00::1", "2001:db8::1", "2001:db8::1"),
            // At an entry that is no address, the client is the proxy that wrote it.
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
