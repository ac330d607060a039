//! The networks of Bitcoin: what their addresses look like, and their first blocks. Pure.
//!
//! All networks are one family. The bytes of an address do not name its network; its text does, and the text of another
//! network is refused.

use bitcoin::{BlockHash, constants::genesis_block};
use serde_json::{Map, Value};

use super::{FAMILY, REGTEST, TESTNET};
use crate::{Family, SpecError};

/// What tells the addresses of a network from those of others.
#[derive(Debug)]
pub struct Network {
    pub kind: bitcoin::Network,
    /// The beginning of a witness address.
    pub hrp: &'static str,
    /// The version bytes of a key's and a script's hash.
    pub versions: [u8; 2],
    /// The first characters of a base58 address.
    pub initials: &'static [char],
}

pub static MAIN: Network = Network {
    kind: bitcoin::Network::Bitcoin,
    hrp: "bc",
    versions: [0, 5],
    initials: &['1', '3'],
};

/// The public test networks: their addresses are alike.
pub static TEST: Network = Network {
    kind: bitcoin::Network::Testnet,
    hrp: "tb",
    versions: [111, 196],
    initials: &['m', 'n', '2'],
};

/// A network of one's own; its base58 addresses are those of the test networks.
pub static LOCAL: Network = Network {
    kind: bitcoin::Network::Regtest,
    hrp: "bcrt",
    versions: [111, 196],
    initials: &['m', 'n', '2'],
};

/// `additionalData.network` as `bitcoind -chain` spells it: `main`, `test`, `testnet4`, `signet`, `regtest`; `None`
/// where the entry does not say.
fn named(additional: &Map<String, Value>) -> Result<Option<bitcoin::Network>, SpecError> {
    let wrong = || {
        let what = "additionalData.network: expected main, test, testnet4, signet or regtest";
        SpecError(what.into())
    };
    let Some(value) = additional.get("network").filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let text = value.as_str().ok_or_else(wrong)?;
    bitcoin::Network::from_core_arg(text)
        .map(Some)
        .map_err(|_| wrong())
}

impl Network {
    /// The network that a chain's entry names, else the main one.
    pub fn of(additional: &Map<String, Value>) -> Result<&'static Self, SpecError> {
        use bitcoin::Network::{Bitcoin, Regtest};
        Ok(match named(additional)? {
            None | Some(Bitcoin) => &MAIN,
            Some(Regtest) => &LOCAL,
            Some(_) => &TEST,
        })
    }
}

/// The family on the network that a chain's entry names.
pub fn family(additional: &Map<String, Value>) -> Result<&'static Family, SpecError> {
    let network = Network::of(additional)?;
    Ok(match network.kind {
        bitcoin::Network::Bitcoin => &FAMILY,
        bitcoin::Network::Regtest => &REGTEST,
        _ => &TESTNET,
    })
}

/// The first block of a chain: `additionalData.genesisHash`, else that of the network that the entry names; `None`
/// where it says neither.
pub fn genesis(additional: &Map<String, Value>) -> Result<Option<BlockHash>, SpecError> {
    let own = additional
        .get("genesisHash")
        .filter(|value| !value.is_null());
    let Some(own) = own else {
        let network = named(additional)?;
        return Ok(network.map(|network| genesis_block(network).block_hash()));
    };
    let hash = own.as_str().and_then(|text| text.parse().ok());
    let wrong = || SpecError("genesisHash: expected a hash".into());
    hash.map(Some).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Codec;

    fn entry(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn entry_names_the_network_and_the_network_its_first_block() {
        for (name, hrp, first) in [
            ("main", "bc", "000000000019d668"),
            ("test", "tb", "000000000933ea01"),
            ("testnet4", "tb", "00000000da84f2ba"),
            ("signet", "tb", "00000008819873e9"),
            ("regtest", "bcrt", "0f9188f13cb7b2c7"),
        ] {
            let named = entry(json!({ "network": name }));
            assert_eq!(Network::of(&named).unwrap().hrp, hrp);
            let family = family(&named).unwrap();
            assert_eq!(std::ptr::eq(family, &TESTNET), hrp == "tb", "{name}");
            let genesis = genesis(&named).unwrap().unwrap().to_string();
            assert!(genesis.starts_with(first), "{name}: {genesis}");
        }
        let silent = entry(json!({ "network": null }));
        assert_eq!(Network::of(&silent).unwrap().hrp, "bc");
        assert_eq!(genesis(&silent), Ok(None));
        for wrong in [json!("mainnet"), json!("testnet5"), json!(1), json!("")] {
            assert!(family(&entry(json!({ "network": wrong }))).is_err());
        }
        assert!(genesis(&entry(json!({ "genesisHash": "00" }))).is_err());
    }

    #[test]
    fn networks_refuse_each_others_addresses() {
        let fourth = Network::of(&entry(json!({ "network": "testnet4" }))).unwrap();
        let texts = [
            (&MAIN, "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"),
            (&TEST, "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx"),
            (&LOCAL, "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080"),
            (&MAIN, "1BoatSLRHtKNngkdXEeobR76b53LETtpyT"),
            (&TEST, "mipcBbFg9gMiCh81Kj8tqqdgoZub1ZJRfn"),
        ];
        for (own, text) in texts {
            for network in [&MAIN, &TEST, fourth, &LOCAL] {
                // Base58 addresses of test networks and local ones are alike.
                let alike = network.initials == own.initials && text.starts_with('m');
                let encoded = network.encode_address(text);
                let known = network.hrp == own.hrp || alike;
                assert_eq!(encoded.is_ok(), known, "{text} on {}", network.hrp);
                if let Ok(bytes) = encoded {
                    assert_eq!(network.decode_address(&bytes).unwrap(), text);
                }
            }
        }
    }

    #[test]
    fn native_currency_is_spelled_alike_on_all_networks() {
        for network in [&MAIN, &TEST, &LOCAL] {
            let bytes = network.encode_address(network.native()).unwrap();
            assert_eq!(bytes, [0; 20]);
            assert_eq!(network.decode_address(&bytes).unwrap(), network.native());
        }
    }
}
