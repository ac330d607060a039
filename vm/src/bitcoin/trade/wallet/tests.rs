use serde_json::json;

use super::*;

/// The public key of BIP 143 and 173: that of the secret key 1.
const KEY: &str = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";

#[test]
fn an_account_is_the_p2wpkh_address_of_its_key_on_each_network() {
    let key = alloy::hex::decode(KEY).unwrap();
    for (network, text) in [
        (&MAIN, "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"),
        (&TEST, "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx"),
        (&LOCAL, "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080"),
    ] {
        let keys = keys(network);
        assert_eq!(keys.scheme, Scheme::Secp256k1);
        assert_eq!((keys.account)(&key).unwrap().text(), text);
    }
    assert!((keys(&MAIN).account)(&key[1..]).is_err());
    assert!((keys(&MAIN).account)(&[2; 32]).is_err());
}

#[test]
fn limits_are_those_of_the_file() {
    let read = |listed: Value| limits(listed.as_object().unwrap());
    let some = read(json!({"maxRate": 80, "vbytes": 2_000})).unwrap();
    assert_eq!((some.rate, some.work, some.besides), (80, 2_000, false));
    let none = read(json!({})).unwrap();
    assert_eq!((none.rate, none.work), (MOST_RATE, MOST_WORK));
    for (wrong, named) in [
        (json!({"maxrate": 1}), "maxrate"),
        (json!({"maxRate": "1"}), "maxRate"),
        (json!({"vbytes": -1}), "vbytes"),
        (json!({"vbytes": 10_001}), "vbytes"),
    ] {
        let error = read(wrong).unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
    }
}

#[test]
fn the_least_work_is_one_input_and_change() {
    let mut script = vec![0, 20];
    script.extend([7; 20]);
    let paid = TxOut {
        value: bitcoin::Amount::from_sat(9_000),
        script_pubkey: script.into(),
    };
    assert_eq!(least(&[paid]), 141);
}
