//! Decides which addresses the sender may call. Any holder of a key can name a receiver, so receivers must be on the
//! public internet. Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};
use url::{Host, Url};

/// IPv4 networks without public receivers: the entries of IANA's special-purpose registry that are not globally
/// reachable, relays, multicast and reserved networks.
const NOT_PUBLIC_V4: [Ipv4Net; 15] = [
    v4([0, 0, 0, 0], 8),
    v4([10, 0, 0, 0], 8),
    v4([100, 64, 0, 0], 10),
    v4([127, 0, 0, 0], 8),
    v4([169, 254, 0, 0], 16),
    v4([172, 16, 0, 0], 12),
    v4([192, 0, 0, 0], 24),
    v4([192, 0, 2, 0], 24),
    v4([192, 88, 99, 0], 24),
    v4([192, 168, 0, 0], 16),
    v4([198, 18, 0, 0], 15),
    v4([198, 51, 100, 0], 24),
    v4([203, 0, 113, 0], 24),
    v4([224, 0, 0, 0], 4),
    v4([240, 0, 0, 0], 4),
];
/// The IPv6 space that IANA allocates as global unicast.
const GLOBAL_V6: Ipv6Net = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);
/// Parts of it that are not public: protocol assignments (with Teredo and ORCHID), documentation, 6to4 (which leads
/// to the IPv4 address that it embeds), and documentation again.
const NOT_PUBLIC_V6: [Ipv6Net; 4] = [
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23),
    v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32),
    v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16),
    v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
];
/// The well-known prefix of NAT64 translators (RFC 6052): the last 32 bits are an IPv4 address.
const NAT64: Ipv6Net = v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96);

const fn v4([a, b, c, d]: [u8; 4], length: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length)
}

const fn v6(s: [u16; 8], length: u8) -> Ipv6Net {
    let address = Ipv6Addr::new(s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]);
    Ipv6Net::new_assert(address, length)
}

/// Why the sender does not call a receiver. The reason holds until the endpoint changes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Barred {
    #[error("only https is called")]
    Scheme,
    #[error("the URL has no host")]
    Host,
    #[error("the URL holds credentials: use a header")]
    Credentials,
    #[error("{0} is not a public address")]
    Address(IpAddr),
}

/// Which receivers the sender may call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// HTTPS to public addresses.
    #[default]
    Public,
    /// Any receiver, for development.
    Anywhere,
}

impl Reach {
    /// Checks the text of an endpoint's `url`, without resolving its name.
    pub fn endpoint(self, url: &Url) -> Result<(), Barred> {
        let scheme = match self {
            Self::Public => url.scheme() == "https",
            Self::Anywhere => matches!(url.scheme(), "http" | "https"),
        };
        if !scheme {
            return Err(Barred::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Barred::Credentials);
        }
        match url.host() {
            None => Err(Barred::Host),
            Some(Host::Domain("")) => Err(Barred::Host),
            Some(Host::Domain(_)) => Ok(()),
            Some(Host::Ipv4(address)) => self.address(address.into()),
            Some(Host::Ipv6(address)) => self.address(address.into()),
        }
    }

    /// Checks an address that a name resolved to.
    pub fn address(self, address: IpAddr) -> Result<(), Barred> {
        if self == Self::Anywhere || public(address) {
            return Ok(());
        }
        Err(Barred::Address(address))
    }
}

/// Whether an address is on the public internet. An IPv6 address that embeds an IPv4 address counts as the IPv4
/// address.
pub fn public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => public_v4(address),
        IpAddr::V6(address) => public_v6(address),
    }
}

fn public_v4(address: Ipv4Addr) -> bool {
    !NOT_PUBLIC_V4.iter().any(|net| net.contains(&address))
}

fn public_v6(address: Ipv6Addr) -> bool {
    if let Some(inner) = address.to_ipv4_mapped() {
        return public_v4(inner);
    }
    if NAT64.contains(&address) {
        let [.., a, b, c, d] = address.octets();
        return public_v4(Ipv4Addr::new(a, b, c, d));
    }
    GLOBAL_V6.contains(&address) && !NOT_PUBLIC_V6.iter().any(|net| net.contains(&address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_addresses_are_called() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700:4700::1111",
            "2a00:1450:4001::1",
            "2001:4860:4860::8888",
            "2001:200::1",
            "::ffff:1.1.1.1",
            "64:ff9b::1.1.1.1",
        ] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(Reach::Public.address(address), Ok(()), "{address}");
        }
    }

    #[test]
    fn no_other_address_is_called_unless_it_is_for_development() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "10.255.255.255",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::8.8.8.8",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:0:127.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b::169.254.169.254",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:0:7f00:1::",
            "2001:10::1",
            "2001:20::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:a00:1::1",
            "2002:808:808::1",
            "3fff::1",
            "4000::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            let address: IpAddr = address.parse().unwrap();
            let barred = Reach::Public.address(address);
            assert_eq!(barred, Err(Barred::Address(address)));
            assert_eq!(Reach::Anywhere.address(address), Ok(()));
        }
    }

    #[test]
    fn endpoints_are_https_somewhere_public() {
        let judged = |url: &str, reach: Reach| reach.endpoint(&url.parse().unwrap());
        for url in [
            "https://hooks.example/a?b=c",
            "https://1.1.1.1:8443/",
            "https://[2606:4700::1]/",
        ] {
            assert_eq!(judged(url, Reach::Public), Ok(()), "{url}");
        }
        for (url, why) in [
            ("http://hooks.example/", "only https is called"),
            ("ftp://hooks.example/", "only https is called"),
            ("file:///etc/passwd", "only https is called"),
            (
                "https://u:p@hooks.example/",
                "the URL holds credentials: use a header",
            ),
            (
                "https://u@hooks.example/",
                "the URL holds credentials: use a header",
            ),
            ("https://127.0.0.1/", "127.0.0.1 is not a public address"),
            // All spellings of 127.0.0.1 and 169.254.169.254 that a URL allows.
            ("https://2130706433/", "127.0.0.1 is not a public address"),
            ("https://0x7f.1/", "127.0.0.1 is not a public address"),
            ("https://017700000001/", "127.0.0.1 is not a public address"),
            ("https://①②⑦.0.0.1/", "127.0.0.1 is not a public address"),
            (
                "https://169.254.169.254/latest",
                "169.254.169.254 is not a public address",
            ),
            ("https://[::1]/", "::1 is not a public address"),
            (
                "https://[::ffff:7f00:1]/",
                "::ffff:127.0.0.1 is not a public address",
            ),
        ] {
            let barred = judged(url, Reach::Public).unwrap_err();
            assert_eq!(barred.to_string(), why, "{url}");
        }
        for url in ["http://127.0.0.1:9/", "http://localhost/", "https://[::1]/"] {
            assert_eq!(judged(url, Reach::Anywhere), Ok(()), "{url}");
        }
        let file = judged("file:///etc/passwd", Reach::Anywhere);
        assert_eq!(file, Err(Barred::Scheme));
    }
}
