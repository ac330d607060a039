//! The sockets that a daemon answers on, how many connections they take, and who may ask how often. Every connection is
//! an open file, and the store, the providers and the webhooks need files, too.

use std::net::SocketAddr;

use anyhow::Context;
use rustix::process::{Resource, getrlimit};
use tokio::net::TcpListener;

use super::parts;
use crate::{
    api::intents::access,
    config::{Config, Rate},
    http::{
        Each, Gate, Limits,
        forwarded::{ForwardedHeader, Proxies},
        limit::Quota,
    },
};

/// Files of the store, the logs, the operator's socket and the runtime.
const OWN: usize = 192;
/// Files of the operator's listener.
const OPS: usize = 64;
/// Connections to one provider that are usually open.
const OF_A_PROVIDER: usize = 8;
/// Connections of webhooks at one time.
const WEBHOOKS: usize = 768;

/// The sockets that a daemon answers on.
pub struct Listeners {
    pub oracle: TcpListener,
    /// Metrics and readiness.
    pub ops: TcpListener,
    /// There when the integrator API is wanted.
    pub integrator: Option<TcpListener>,
}

impl Listeners {
    /// Binds the configured addresses; port 0 takes a free one.
    pub async fn bind(config: &Config) -> anyhow::Result<Self> {
        let bind = async |address: SocketAddr| {
            let bound = TcpListener::bind(address).await;
            bound.with_context(|| format!("cannot listen on {address}"))
        };
        let listen = &config.listen;
        let oracle = bind((listen.host, listen.port).into()).await?;
        let ops = bind(listen.ops).await?;
        let integrator = match &config.integrator {
            Some(wanted) => Some(bind((listen.host, wanted.http_port).into()).await?),
            None => None,
        };
        Ok(Self {
            oracle,
            ops,
            integrator,
        })
    }
}

/// The limits of each listener.
#[derive(Clone, Copy, Debug)]
pub struct Listening {
    pub oracle: Limits,
    pub integrator: Limits,
    pub ops: Limits,
}

impl Listening {
    /// Within the files that this process may open now, `providers` counted over all chains.
    pub fn of(config: &Config, providers: usize) -> Self {
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let files = usize::try_from(files).unwrap_or(usize::MAX);
        Self::within(files, providers, config)
    }

    fn within(files: usize, providers: usize, config: &Config) -> Self {
        let webhooks = config.integrator.as_ref().map_or(0, |_| WEBHOOKS);
        let reserve = OWN + OPS + webhooks + providers.saturating_mul(OF_A_PROVIDER);
        let free = files - reserve.min(files / 2);
        // The oracle's connections; the integrator API's connections and sockets.
        let kinds = if config.integrator.is_some() { 3 } else { 1 };
        let usual = Limits::default();
        let part = (free / kinds).max(1);
        let of = |limits: Limits| Limits {
            connections: limits.connections.min(part),
            sockets: limits.sockets.min(part),
            each: each(config),
            ..limits
        };
        Self {
            oracle: Limits {
                sockets: 0,
                ..of(usual)
            },
            integrator: of(usual),
            ops: Limits {
                connections: OPS,
                sockets: 0,
                ..usual
            },
        }
    }
}

fn each(config: &Config) -> Each {
    let usual = Each::default();
    let messages = access::limit(&rates(&config.listen.rates), "address", "messages");
    Each {
        connections: config.listen.connections_per_address,
        requests: config.listen.requests_per_address,
        sockets: config.listen.sockets_per_address,
        messages: messages.unwrap_or(usual.messages),
    }
}

/// The operator's limits by their names.
pub fn rates(own: &[Rate]) -> Vec<(String, Quota)> {
    let rate = |rate: &Rate| {
        let window_ms = u64::try_from(rate.window.as_millis()).unwrap_or(u64::MAX);
        let max = rate.max;
        (rate.name.clone(), Quota { max, window_ms })
    };
    own.iter().map(rate).collect()
}

/// The operator's proxies.
pub fn proxies(config: &Config) -> Proxies {
    let trusted = &config.listen.proxies;
    Proxies {
        networks: trusted.networks.clone(),
        hops: trusted.hops.unwrap_or(usize::MAX),
        header: match trusted.forwarded {
            true => ForwardedHeader::Forwarded,
            false => ForwardedHeader::XForwardedFor,
        },
    }
}

/// Who asks the oracle, and how often without a key.
pub fn gate(config: &Config) -> Gate {
    let keys = config.api_keys.as_deref().map(parts::keys);
    let quota = config.keyless_limit.map(|limit| Quota {
        max: limit.max,
        window_ms: u64::try_from(limit.window.as_millis()).unwrap_or(u64::MAX),
    });
    Gate::new(keys, quota)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(extra: &[(&str, &str)]) -> Config {
        let base = [("ENVIRONMENT", "test"), ("ECDSA_PRIVATE_KEY", "0x01")];
        let all = base.iter().chain(extra);
        Config::from_variables(all.map(|(k, v)| ((*k).into(), (*v).into()))).unwrap()
    }

    const TRADING: [(&str, &str); 3] = [
        ("INTEGRATOR_HTTP_PORT", "1"),
        ("MARKET_FILE", "m"),
        ("SOLVER_PRIVATE_KEY", "0x01"),
    ];

    #[test]
    fn connections_and_reserve_fit_the_file_limit() {
        for files in [256, 1024, 4096, 20_000, 1 << 20, usize::MAX] {
            for (set, webhooks) in [(&[][..], 0), (&TRADING, WEBHOOKS)] {
                let listening = Listening::within(files, 20, &config(set));
                let mut taken = listening.oracle.connections;
                if webhooks > 0 {
                    taken += listening.integrator.connections + listening.integrator.sockets;
                }
                let reserve = (OWN + OPS + 160 + webhooks).min(files / 2);
                assert!(taken + reserve <= files, "{files}: {taken} of {reserve}");
                assert!(
                    listening.oracle.connections > files.min(10_240) / 8,
                    "{files}"
                );
            }
        }
        let usual = Listening::within(1 << 20, 500, &config(&TRADING));
        assert_eq!(
            (usual.integrator.connections, usual.integrator.sockets),
            (10_240, 10_240)
        );
    }

    #[test]
    fn an_address_has_what_the_operator_says() {
        let set = [
            ("CONNECTIONS_PER_ADDRESS", "7"),
            ("RATE_LIMITS", "address.messages=9/s"),
        ];
        let each = Listening::within(20_000, 1, &config(&set)).oracle.each;
        assert_eq!((each.connections, each.sockets), (7, 128));
        assert_eq!((each.messages.max, each.messages.window_ms), (9, 1000));
    }
}
