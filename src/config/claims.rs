//! What this oracle accepts in claims without proof.

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use vm::protocol::BASIS_POINTS;

use super::{ApiKey, Config, PeerKey, PeerSetting, read::Reader};

/// What this oracle accepts in claims without proof.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// Labels of the keys that may use `force`.
    pub force: Vec<String>,
    /// How far a deposit may fall short of its order without its solver's signature, in basis points.
    pub short_tolerance_bps: u16,
    /// Whether a withdrawal's nonce must commit to the withdrawal; `None`: only where real money moves.
    pub bound_nonces: Option<bool>,
}

impl Config {
    /// What claims are judged by besides the chains. Who may force one says nothing of whether it is true.
    pub fn claim_rules(&self) -> Value {
        json!({
            "shortToleranceBps": self.claims.short_tolerance_bps,
            "boundNonces": self.bound_nonces(),
        })
    }
}

impl Reader<'_> {
    /// Who may ask this oracle, which peers it asks, and what callers may claim: `force` and the tolerance.
    pub fn callers(
        &mut self,
        keys: Option<SecretString>,
        peers: Option<SecretString>,
        [force, tolerance, nonces]: [Option<String>; 3],
    ) -> (Option<Vec<ApiKey>>, Vec<PeerSetting>, Claims) {
        let keys = self.api_keys("API_KEYS", keys);
        let peers = self.peers(peers);
        let claims = self.claims(force, tolerance, (keys.as_deref(), &peers));
        let bound_nonces = self.nonces(nonces.as_deref().map(str::trim));
        let claims = Claims {
            bound_nonces,
            ..claims
        };
        (keys, peers, claims)
    }

    /// `force` names labels of `keys`, none of whose keys may be shown to a peer.
    fn claims(
        &mut self,
        force: Option<String>,
        tolerance: Option<String>,
        (keys, peers): (Option<&[ApiKey]>, &[PeerSetting]),
    ) -> Claims {
        let variable = "SHORT_CLAIM_TOLERANCE_BPS";
        let short_tolerance_bps: u16 = self.parse(variable, tolerance, 100);
        if u64::from(short_tolerance_bps) > BASIS_POINTS {
            self.mistake(variable, &format!("expected 0 to {BASIS_POINTS}"));
        }
        let force = force.unwrap_or_default();
        let labels = force.split(';').map(str::trim).filter(|l| !l.is_empty());
        let labels: Vec<String> = labels.map(str::to_owned).collect();
        for label in &labels {
            let named = keys.unwrap_or_default().iter();
            let mut named = named.filter(|key| key.label == *label).peekable();
            if named.peek().is_none() {
                let what = format!("no key of API_KEYS has the label {label}");
                self.mistake("FORCE_API_KEYS", &what);
            }
            if named.any(|key| peers.iter().any(|peer| is(&peer.key, &key.key))) {
                let what = format!("a key of {label} stands in PEERS");
                self.mistake("FORCE_API_KEYS", &what);
            }
        }
        Claims {
            force: labels,
            short_tolerance_bps,
            bound_nonces: None,
        }
    }

    fn nonces(&mut self, text: Option<&str>) -> Option<bool> {
        match text? {
            "bound" => Some(true),
            "any" => Some(false),
            _ => {
                self.mistake("WITHDRAWAL_NONCES", "expected bound or any");
                None
            }
        }
    }
}

fn is(shown: &PeerKey, key: &SecretString) -> bool {
    matches!(shown, PeerKey::Own(own) if own.expose_secret() == key.expose_secret())
}
