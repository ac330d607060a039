//! Where the daemon listens, and what callers without a key may take: the variables of its listeners.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    num::NonZeroU32,
    time::Duration,
};

use ipnet::IpNet;
use serde::Deserialize;

use super::read::{Reader, list};

/// The oracle's default port.
const PORT: u16 = 3000;
/// The default port of metrics and readiness.
const OPS_PORT: u16 = 3002;
/// The default of the calls a second that quotes may make of each provider.
const QUOTE_CALLS: NonZeroU32 = match NonZeroU32::new(200) {
    Some(calls) => calls,
    None => NonZeroU32::MIN,
};

/// The variables, as text.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Texts {
    http_host: Option<String>,
    http_port: Option<String>,
    port: Option<String>,
    ops_http_host: Option<String>,
    ops_http_port: Option<String>,
    trusted_proxies: Option<String>,
    rate_limits: Option<String>,
    connections_per_address: Option<String>,
    requests_per_address: Option<String>,
    sockets_per_address: Option<String>,
    quote_calls_per_second: Option<String>,
}

/// Addresses of the listeners.
#[derive(Clone, Debug)]
pub struct Listen {
    /// The address of the oracle and of the integrator API.
    pub host: IpAddr,
    /// The oracle's port.
    pub port: u16,
    /// The address of metrics and readiness; by default only this machine can reach it.
    pub ops: SocketAddr,
    pub proxies: TrustedProxies,
    /// The operator's limits by `who.what`, as they were written.
    pub rates: Vec<Rate>,
    pub connections_per_address: usize,
    /// Requests of one address that may run at the same time.
    pub requests_per_address: usize,
    pub sockets_per_address: usize,
    /// Calls a second of each provider for quotes; half of them are for callers without a key.
    pub quote_calls: NonZeroU32,
}

/// `TRUSTED_PROXIES`: the proxies that are believed about whom a request comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies {
    pub networks: Vec<IpNet>,
    /// How many of them stand in a row; `None`: any number.
    pub hops: Option<usize>,
    /// The proxies write `Forwarded` instead of `X-Forwarded-For`.
    pub forwarded: bool,
}

/// One entry of `RATE_LIMITS`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rate {
    pub name: String,
    pub max: u32,
    pub window: Duration,
}

impl Reader<'_> {
    pub fn listen(&mut self, texts: Texts) -> Listen {
        let port = match texts.http_port {
            Some(text) => self.parse("HTTP_PORT", Some(text), PORT),
            None => self.parse("PORT", texts.port, PORT),
        };
        let anywhere = IpAddr::from(Ipv4Addr::UNSPECIFIED);
        let here = IpAddr::from(Ipv4Addr::LOCALHOST);
        let ops_host = self.parse("OPS_HTTP_HOST", texts.ops_http_host, here);
        let ops_port = self.parse("OPS_HTTP_PORT", texts.ops_http_port, OPS_PORT);
        Listen {
            host: self.parse("HTTP_HOST", texts.http_host, anywhere),
            port,
            ops: SocketAddr::new(ops_host, ops_port),
            proxies: self.proxies(texts.trusted_proxies.as_deref()),
            rates: self.rates(texts.rate_limits.as_deref()),
            connections_per_address: self.per_address(
                "CONNECTIONS_PER_ADDRESS",
                texts.connections_per_address,
                256,
            ),
            requests_per_address: self.per_address(
                "REQUESTS_PER_ADDRESS",
                texts.requests_per_address,
                256,
            ),
            sockets_per_address: self.per_address(
                "SOCKETS_PER_ADDRESS",
                texts.sockets_per_address,
                128,
            ),
            quote_calls: self.parse(
                "QUOTE_CALLS_PER_SECOND",
                texts.quote_calls_per_second,
                QUOTE_CALLS,
            ),
        }
    }

    fn per_address(&mut self, variable: &str, text: Option<String>, default: usize) -> usize {
        let most = self.parse(variable, text, default);
        if most == 0 {
            self.mistake(variable, "must be above 0");
        }
        most
    }

    fn proxies(&mut self, text: Option<&str>) -> TrustedProxies {
        let mut proxies = TrustedProxies::default();
        for entry in list(text.unwrap_or_default()) {
            let network = entry.parse().ok();
            let network = network.or_else(|| Some(IpNet::from(entry.parse::<IpAddr>().ok()?)));
            match (network, entry.parse::<usize>().ok()) {
                (Some(network), _) => proxies.networks.push(network),
                (None, Some(hops)) if hops > 0 => proxies.hops = Some(hops),
                _ if entry == "forwarded" => proxies.forwarded = true,
                _ if entry == "x-forwarded-for" => proxies.forwarded = false,
                _ => {
                    let what = "is no address, network, number of hops or forwarded";
                    self.mistake("TRUSTED_PROXIES", &format!("{entry} {what}"));
                }
            }
        }
        let nobody = proxies.networks.is_empty();
        if nobody && (proxies.hops.is_some() || proxies.forwarded) {
            let what = "names no address: anybody's word would count";
            self.mistake("TRUSTED_PROXIES", what);
        }
        proxies
    }

    fn rates(&mut self, text: Option<&str>) -> Vec<Rate> {
        let mut rates = Vec::new();
        for entry in list(text.unwrap_or_default()) {
            match rate(&entry) {
                Some(rate) => rates.push(rate),
                None => {
                    let what = format!("{entry}: expected who.what=number/unit, unit s, m or h");
                    self.mistake("RATE_LIMITS", &what);
                }
            }
        }
        rates
    }
}

fn rate(entry: &str) -> Option<Rate> {
    let (name, limit) = entry.split_once('=')?;
    let (max, unit) = limit.split_once('/')?;
    let seconds = match unit.trim() {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return None,
    };
    Some(Rate {
        name: name.trim().to_owned(),
        max: max.trim().parse().ok().filter(|max| *max > 0)?,
        window: Duration::from_secs(seconds),
    })
}
