//! Output scripts of addresses. Pure.

use std::str::FromStr;

use bitcoin::{Address, Script, ScriptBuf, XOnlyPublicKey};

use super::network::Network;
use crate::{Codec, CodecError, protocol::text, types};

impl Network {
    /// The script that pays `address`. Refuses a taproot key that is no point on the curve, because nobody could spend
    /// from it.
    pub fn script(&self, address: &str) -> Result<ScriptBuf, CodecError> {
        let refused = || CodecError(format!("{:?} has no matching script", text::short(address)));
        self.encode_address(address)?;
        let script = Address::from_str(address)
            .and_then(|parsed| parsed.require_network(self.kind))
            .map_err(|_| refused())?
            .script_pubkey();
        spendable(&script).then_some(script).ok_or_else(refused)
    }

    /// The text of the address that `script` pays.
    pub fn address_text(&self, script: &Script) -> Result<String, CodecError> {
        Address::from_script(script, self.kind)
            .ok()
            .filter(|_| spendable(script))
            .map(|address| address.to_string())
            .ok_or_else(|| CodecError("a script without an address".into()))
    }

    /// The address that `script` pays.
    pub fn address(&self, script: &Script) -> Option<types::Address> {
        let text = self.address_text(script).ok()?;
        let bytes = self.encode_address(&text).ok()?;
        Some(types::Address::from_parts(&text, bytes))
    }
}

/// A version 1 witness program is spendable only as taproot.
fn spendable(script: &Script) -> bool {
    let taproot = script.as_bytes().strip_prefix(&[0x51, 0x20]);
    let version_one = script.is_witness_program() && script.as_bytes().first() == Some(&0x51);
    !version_one || taproot.is_some_and(|key| XOnlyPublicKey::from_slice(key).is_ok())
}

#[cfg(test)]
mod tests {
    use crate::bitcoin::network::{LOCAL, MAIN, TEST};

    #[test]
    fn every_kind_of_address_has_a_script_and_comes_back() {
        for address in [
            "1BoatSLRHtKNngkdXEeobR76b53LETtpyT",
            "3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy",
            "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
            "bc1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qccfmv3",
            "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0",
        ] {
            let script = MAIN.script(address).unwrap();
            assert_eq!(MAIN.address_text(&script).unwrap(), address);
        }
    }

    #[test]
    fn keys_off_the_curve_and_other_networks_are_refused() {
        for address in [
            "bc1p2quzak7f6v8slygs6z6jucm7kqaafuz95wpdgwvwh7xvsq3p2z9scc2q45",
            "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx",
            "mipcBbFg9gMiCh81Kj8tqqdgoZub1ZJRfn",
            "1BoatSLRHtKNngkdXEeobR76b53LETtpyU",
            "",
        ] {
            assert!(MAIN.script(address).is_err(), "{address}");
        }
    }

    #[test]
    fn one_script_has_an_address_on_each_network() {
        let script = MAIN.script("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4");
        let script = script.unwrap();
        for (network, text) in [
            (&TEST, "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx"),
            (&LOCAL, "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080"),
        ] {
            assert_eq!(network.address_text(&script).unwrap(), text);
            assert_eq!(network.script(text).unwrap(), script);
        }
    }
}
