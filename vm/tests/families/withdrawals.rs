//! Withdrawals come back as they were encoded, each has one encoding, and no outside bytes or
//! JSON make a codec panic.

use alloy::{hex, sol_types::SolValue};
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Value, json};
use vm::{
    FAMILIES, U256, WithdrawalCodec,
    bitcoin::{partial, psbt::Payload},
    protocol::{
        limits,
        request::{PayloadRequest, WithdrawCall, WithdrawRequest},
    },
};

use crate::odd;

fn codec(family: &str) -> &'static dyn WithdrawalCodec {
    vm::family(family).unwrap().withdrawals.unwrap()
}

fn codecs() -> impl Iterator<Item = &'static dyn WithdrawalCodec> {
    FAMILIES.iter().filter_map(|family| family.withdrawals)
}

/// The texts of an address of `family`, from enough random bytes.
fn address(family: &'static str, bytes: &[u8; 32]) -> String {
    let bytes = match family {
        "tron-vm" => [&[0x41], &bytes[..20]].concat(),
        "ethereum-vm" | "xrp-vm" => bytes[..20].to_vec(),
        _ => bytes.to_vec(),
    };
    let codec = vm::family(family).unwrap().codec;
    codec.decode_address(&bytes).unwrap()
}

fn number() -> impl Strategy<Value = U256> {
    any::<[u8; 32]>().prop_map(U256::from_be_bytes)
}

fn hex_text(length: impl Into<proptest::collection::SizeRange>) -> impl Strategy<Value = String> {
    vec(any::<u8>(), length).prop_map(hex::encode_prefixed)
}

fn calls(family: &'static str) -> impl Strategy<Value = Value> {
    let call = (any::<[u8; 32]>(), hex_text(0..80), number(), any::<bool>());
    let call = call.prop_map(move |(to, data, value, allow_failure)| {
        let to = match family {
            "tron-vm" => format!("41{}", hex::encode(&to[..20])),
            _ => address(family, &to),
        };
        json!({"to": to, "data": data, "value": value.to_string(), "allowFailure": allow_failure})
    });
    let expiration = prop_oneof![
        any::<u32>().prop_map(|seconds| json!(seconds)),
        number().prop_map(|n| json!(n.to_string())),
    ];
    (vec(call, 0..4), number(), expiration).prop_map(|(calls, nonce, expiration)| {
        json!({"calls": calls, "nonce": nonce.to_string(), "expiration": expiration})
    })
}

fn solana() -> impl Strategy<Value = Value> {
    let keys = any::<[[u8; 32]; 4]>();
    let numbers = (any::<u64>(), any::<u64>(), any::<i64>());
    (keys, any::<bool>(), numbers).prop_map(|(keys, native, (amount, nonce, expiration))| {
        let token = if native { [0; 32] } else { keys[2] };
        json!({
            "domain": hex::encode_prefixed(keys[0]),
            "recipient": address("solana-vm", &keys[1]),
            "token": address("solana-vm", &token),
            "amount": amount.to_string(),
            "nonce": nonce.to_string(),
            "expiration": expiration,
            "vaultAddress": address("solana-vm", &keys[3]),
        })
    })
}

fn hyperliquid() -> impl Strategy<Value = Value> {
    (any::<bool>(), vec(".{0,40}", 7), any::<u64>()).prop_map(|(usd, texts, last)| {
        let last = last.to_string();
        if usd {
            return json!({"txType": 0, "parameters": {
                "type": "UsdSend", "hyperliquidChain": texts[0], "destination": texts[1],
                "amount": texts[2], "time": last,
            }});
        }
        json!({"txType": 1, "parameters": {
            "type": "SendAsset", "hyperliquidChain": texts[0], "destination": texts[1],
            "sourceDex": texts[2], "destinationDex": texts[3], "token": texts[4],
            "amount": texts[5], "fromSubAccount": texts[6], "nonce": last,
        }})
    })
}

fn lighter() -> impl Strategy<Value = Value> {
    (any::<[u64; 10]>(), any::<[u8; 32]>()).prop_map(|(numbers, memo)| {
        let text = |at: usize| numbers[at].to_string();
        json!({"actionType": 0, "parameters": {
            "type": "Transfer", "nonce": text(0), "fromAccountIndex": text(1),
            "fromRouteType": text(2), "apiKeyIndex": text(3), "toAccountIndex": text(4),
            "toRouteType": text(5), "assetIndex": text(6), "amount": text(7),
            "usdcFee": text(8), "lighterChainId": text(9), "memo": hex::encode(memo),
        }})
    })
}

fn ton() -> impl Strategy<Value = Value> {
    (any::<[u8; 32]>(), any::<u128>(), any::<[u32; 4]>()).prop_map(|(receiver, amount, numbers)| {
        json!({
            "receiver": format!("0:{}", hex::encode(receiver)), "amount": amount.to_string(),
            "createdAt": numbers[0], "queryId": numbers[1], "subwalletId": numbers[2],
            "timeout": numbers[3],
        })
    })
}

fn xrp() -> impl Strategy<Value = Value> {
    let keys = (any::<[[u8; 32]; 2]>(), hex_text(0..70));
    let numbers = (any::<[u64; 2]>(), any::<[u32; 3]>(), any::<Option<u32>>());
    (keys, numbers).prop_map(|((accounts, key), (amounts, numbers, tag))| {
        let mut withdrawal = json!({
            "account": address("xrp-vm", &accounts[0]),
            "destination": address("xrp-vm", &accounts[1]),
            "amount": amounts[0].to_string(), "fee": amounts[1].to_string(),
            "sequence": numbers[0], "lastLedgerSequence": numbers[1], "flags": numbers[2],
            "signingPubKey": key,
        });
        if let Some(tag) = tag {
            withdrawal["destinationTag"] = json!(tag);
        }
        withdrawal
    })
}

mod abi {
    alloy::sol! {
        struct Input { bytes txid; bytes index; bytes script; bytes value; }
        struct Output { bytes value; bytes script; }
        struct Payload { Input[] inputs; Output[] outputs; }
    }
}

const SATOSHIS: std::ops::Range<u64> = 0..2_100_000_000_000_000;

/// A payload of the allocator, with inputs that differ.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    let input = (
        any::<[u8; 32]>(),
        any::<u32>(),
        vec(any::<u8>(), 0..40),
        SATOSHIS,
    );
    let output = (SATOSHIS, vec(any::<u8>(), 0..40));
    (vec(input, 1..4), vec(output, 0..4)).prop_map(|(inputs, outputs)| {
        let input = |(mut txid, index, script, value): ([u8; 32], u32, Vec<u8>, u64), at: usize| {
            txid[0] = at as u8;
            abi::Input {
                txid: txid.into(),
                index: index.to_le_bytes().into(),
                script: script.into(),
                value: value.to_le_bytes().into(),
            }
        };
        let output = |(value, script): (u64, Vec<u8>)| abi::Output {
            value: value.to_le_bytes().into(),
            script: script.into(),
        };
        let payload = abi::Payload {
            inputs: inputs
                .into_iter()
                .zip(0..)
                .map(|(i, at)| input(i, at))
                .collect(),
            outputs: outputs.into_iter().map(output).collect(),
        };
        payload.abi_encode()
    })
}

fn bitcoin() -> impl Strategy<Value = Value> {
    payload().prop_map(|payload| {
        let psbt = Payload::decode(&payload).unwrap().psbt().unwrap();
        json!({"psbt": hex::encode(psbt.serialize())})
    })
}

fn withdrawal() -> impl Strategy<Value = (&'static str, Value)> {
    let of = |name: &'static str, each: BoxedStrategy<Value>| each.prop_map(move |v| (name, v));
    prop_oneof![
        of("ethereum-vm", calls("ethereum-vm").boxed()),
        of("tron-vm", calls("tron-vm").boxed()),
        of("solana-vm", solana().boxed()),
        of("hyperliquid-vm", hyperliquid().boxed()),
        of("lighter-vm", lighter().boxed()),
        of("ton-vm", ton().boxed()),
        of("xrp-vm", xrp().boxed()),
        of("bitcoin-vm", bitcoin().boxed()),
    ]
}

/// Some JSON, with the keys that codecs look for.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
        hex_text(0..40).prop_map(Value::from),
        Just(json!("11111111111111111111111111111111")),
        Just(json!("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4")),
        number().prop_map(|n| n.to_string().into()),
    ];
    const KEYS: &[&str] = &[
        "calls",
        "to",
        "data",
        "value",
        "nonce",
        "type",
        "parameters",
        "psbt",
        "amount",
        "memo",
        "allocatorUtxos",
        "feeUtxos",
        "feeRate",
        "txid",
        "vout",
        "currentTime",
        "sequence",
        "fee",
        "bitcoin-vm",
        "hyperliquid-vm",
        "lighter-vm",
        "xrp-vm",
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        let object = vec((select(KEYS), inner.clone()), 0..6)
            .prop_map(|pairs| pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect());
        prop_oneof![
            vec(inner, 0..4).prop_map(Value::Array),
            object.prop_map(Value::Object)
        ]
    })
}

fn odd_withdrawal() -> impl Strategy<Value = (&'static str, Value)> {
    withdrawal().prop_flat_map(|(family, sound)| (Just(family), odd::changed(sound)))
}

/// A request of each family that is told something besides, with the fields of both spellings.
fn requests() -> Vec<(&'static str, Value)> {
    let bitcoin = json!({
        "allocatorUtxos": held(0..2, WITNESS), "feeUtxos": held(2..3, WITNESS), "feeRate": "2",
        "feeChangeAddress": LEGACY,
    });
    let hyperliquid = json!({
        "currencyHyperliquidSymbol": "USDC", "currentTime": "1", "nonce": "1",
    });
    let lighter = json!({
        "nonce": "1", "fromRouteType": 0, "toRouteType": 0, "apiKeyIndex": "2", "usdcFee": "0",
        "assetIndex": 9, "memo": "0x",
    });
    let xrp = json!({
        "sequence": "1", "fee": "2", "lastLedgerSequence": "3", "flags": 4, "destinationTag": 5,
    });
    let request = |family: &'static str, [depository, currency, to]: [&str; 3], more: Value| {
        let request = json!({
            "chainId": "7", "depository": depository, "currency": currency, "amount": "1000000",
            "spenderChainId": "base", "spender": "0x01", "recipient": to, "receiver": to, "nonce": "1",
            "additionalData": {family: more},
        });
        (family, request)
    };
    let own = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4";
    let token = format!("0x{}", "11".repeat(16));
    let [first, second] = [[1; 32], [2; 32]].map(|bytes| address("xrp-vm", &bytes));
    vec![
        request("bitcoin-vm", [own, "0x", LEGACY], bitcoin),
        request(
            "hyperliquid-vm",
            ["0x01", token.as_str(), "0x02"],
            hyperliquid,
        ),
        request("lighter-vm", ["1", "9", "2"], lighter),
        request("xrp-vm", [first.as_str(), "0x", second.as_str()], xrp),
    ]
}

fn odd_request() -> impl Strategy<Value = (&'static str, Value)> {
    select(requests()).prop_flat_map(|(family, sound)| (Just(family), odd::changed(sound)))
}

/// Whether there is a payload and the data of a withdraw request of it, whatever stands in it.
fn attempted(family: &str, request: &Value) -> [bool; 2] {
    let family = vm::family(family).unwrap();
    let codec = family.withdrawals.unwrap();
    let payload = serde_json::from_value::<PayloadRequest>(request.clone());
    let payload = payload.is_ok_and(|request| {
        let _ = family.check_payload.map(|check| check(&request));
        codec.normalize_payload(&request).is_ok()
    });
    let call = serde_json::from_value::<WithdrawCall>(request.clone());
    let data = call.ok().and_then(|call| {
        let _ = WithdrawRequest::new(&call, family, family);
        codec.request_data(&call).ok()
    });
    if let (Some(data), Some(payloads)) = (&data, family.payloads) {
        let _ = payloads.check_request(data);
    }
    [payload, data.is_some()]
}

#[test]
fn the_requests_in_which_values_are_made_odd_are_sound() {
    for (family, request) in requests() {
        // There is no payload on the XRP Ledger.
        let wanted = [family != "xrp-vm", true];
        assert_eq!(attempted(family, &request), wanted, "{family}");
    }
}

proptest! {
    #[test]
    fn decoding_undoes_encoding((family, withdrawal) in withdrawal()) {
        let codec = codec(family);
        let encoded = codec.encode(&withdrawal).unwrap();
        prop_assert_eq!(codec.decode(&encoded), Ok(withdrawal));
    }

    #[test]
    fn a_changed_byte_is_refused_or_another_withdrawal(
        (family, withdrawal) in withdrawal(), at in any::<prop::sample::Index>(), by in 1..=255_u8,
    ) {
        let codec = codec(family);
        let mut encoded = codec.encode(&withdrawal).unwrap();
        let at = at.index(encoded.len());
        encoded[at] ^= by;
        if let Ok(other) = codec.decode(&encoded) {
            let again = codec.encode(&other);
            prop_assert_eq!(again, Ok(encoded));
            prop_assert_ne!(other, withdrawal);
        }
    }

    #[test]
    fn a_cut_withdrawal_is_refused((family, withdrawal) in withdrawal(), keep in any::<prop::sample::Index>()) {
        let encoded = codec(family).encode(&withdrawal).unwrap();
        let keep = keep.index(encoded.len());
        prop_assert!(codec(family).decode(&encoded[..keep]).is_err());
    }

    #[test]
    fn random_bytes_never_panic(bytes in vec(any::<u8>(), 0..600)) {
        for codec in codecs() {
            if let Ok(withdrawal) = codec.decode(&bytes) {
                let _ = codec.describe(&withdrawal);
                let again = codec.encode(&withdrawal);
                prop_assert_eq!(again, Ok(bytes.clone()));
            }
        }
        let _ = Payload::decode(&bytes).map(|payload| payload.psbt());
        let _ = partial::normalise(&bytes);
        let _ = partial::extract(&bytes);
    }

    #[test]
    fn random_psbts_never_panic(bytes in vec(any::<u8>(), 0..300)) {
        let bytes = [b"psbt\xff\x01\x00", &bytes[..]].concat();
        let _ = codec("bitcoin-vm").decode(&bytes);
    }

    #[test]
    fn random_json_never_panics(value in anything(), extra in anything()) {
        for codec in codecs() {
            let _ = codec.encode(&value);
            let _ = codec.describe(&value);
        }
        let body = json!({
            "chainId": "1", "depository": "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
            "currency": "0x", "amount": "1", "spender": "0x", "spenderChainId": "a",
            "recipient": "1BoatSLRHtKNngkdXEeobR76b53LETtpyT", "receiver": "0x", "nonce": "0x",
            "additionalData": extra,
        });
        if let Ok(request) = serde_json::from_value::<PayloadRequest>(body.clone()) {
            codecs().for_each(|codec| { let _ = codec.normalize_payload(&request); });
        }
        if let Ok(call) = serde_json::from_value::<WithdrawCall>(body) {
            for family in FAMILIES {
                let _ = family.withdrawals.map(|codec| codec.request_data(&call));
                let _ = WithdrawRequest::new(&call, family, family);
            }
        }
    }

    /// Random JSON seldom has all the fields of a withdrawal or a request.
    #[test]
    fn an_odd_value_in_a_withdrawal_or_a_request_never_panics(
        (family, withdrawal) in odd_withdrawal(), (asked, request) in odd_request(),
    ) {
        let codec = codec(family);
        let _ = codec.describe(&withdrawal);
        let _ = codec.encode(&withdrawal).map(|encoded| codec.decode(&encoded));
        let _ = attempted(asked, &request);
    }

    #[test]
    fn signatures_survive_normalisation(r in 1..u128::MAX, s in 1..u128::MAX, recovery in select(&[0_u8, 1, 27, 28][..])) {
        let word = |n: u128| U256::from(n).to_be_bytes::<32>();
        let compact = [word(r), word(s)].concat();
        let plain = partial::normalise(&compact).unwrap();
        let der = plain.to_vec();
        prop_assert_eq!(partial::normalise(&der).unwrap(), plain);
        let behind = [compact, vec![recovery]].concat();
        prop_assert_eq!(partial::normalise(&behind).unwrap(), plain);
    }
}

/// One input of the allocator's key, spent into one output of 900 with a fee of 100.
fn spend() -> (Payload, bitcoin::PublicKey) {
    let key: bitcoin::PublicKey =
        "028c44f0392284dc61eba60b27d52585fe94d46f0524b3f0c6e9a817ae45ad6ed6"
            .parse()
            .unwrap();
    let script = bitcoin::ScriptBuf::new_p2wpkh(&key.wpubkey_hash().unwrap());
    let payload = abi::Payload {
        inputs: vec![abi::Input {
            txid: [7; 32].into(),
            index: [0; 4].into(),
            script: script.to_bytes().into(),
            value: 1000_u64.to_le_bytes().into(),
        }],
        outputs: vec![abi::Output {
            value: 900_u64.to_le_bytes().into(),
            script: script.to_bytes().into(),
        }],
    };
    (Payload::decode(&payload.abi_encode()).unwrap(), key)
}

fn described(psbt: &bitcoin::Psbt) -> vm::WithdrawalInfo {
    codec("bitcoin-vm").describe(&json!({"psbt": hex::encode(psbt.serialize())}))
}

#[test]
fn a_signed_psbt_says_what_leaves_with_its_fee() {
    let (payload, key) = spend();
    let signed = payload.signed(&key, &[vec![1; 64]]).unwrap();
    assert_eq!(described(&signed).amount, Ok("1000".to_owned()));
    let recipient = described(&signed).recipient;
    assert_eq!(recipient, described(&payload.psbt().unwrap()).recipient);
    assert!(recipient.is_ok());
}

#[test]
fn unsigned_and_foreign_signatures_have_no_amount() {
    let (payload, _) = spend();
    assert!(described(&payload.psbt().unwrap()).amount.is_err());
    let other = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
    let foreign = payload
        .signed(&other.parse().unwrap(), &[vec![1; 64]])
        .unwrap();
    assert!(described(&foreign).amount.is_err());
    let (payload, key) = spend();
    assert!(payload.signed(&key, &[]).is_err());
}

#[test]
fn inputs_twice_or_missing_are_refused() {
    let input = || abi::Input {
        txid: [7; 32].into(),
        index: [0; 4].into(),
        script: vec![].into(),
        value: [0; 8].into(),
    };
    let payload = |inputs| {
        abi::Payload {
            inputs,
            outputs: vec![],
        }
        .abi_encode()
    };
    assert!(Payload::decode(&payload(vec![input()])).is_ok());
    assert!(Payload::decode(&payload(vec![input(), input()])).is_err());
    assert!(Payload::decode(&payload(vec![])).is_err());
    let short = abi::Input {
        value: [0; 7].into(),
        ..input()
    };
    assert!(Payload::decode(&payload(vec![short])).is_err());
}

#[test]
fn wallet_ranges_and_all_the_xrp_bound_an_id() {
    let ton = |field: &str, value: Value| {
        let mut withdrawal = json!({
            "receiver": format!("0:{}", "11".repeat(32)), "amount": "1", "createdAt": 1,
            "queryId": 1, "subwalletId": 1, "timeout": 1,
        });
        withdrawal[field] = value;
        codec("ton-vm").describe(&withdrawal).id
    };
    assert!(ton("queryId", json!((1_u32 << 23) - 1)).is_ok());
    assert!(ton("queryId", json!(1_u32 << 23)).is_err());
    assert!(ton("timeout", json!(1_u32 << 22)).is_err());
    assert!(ton("amount", json!(((1_u128 << 120) - 1).to_string())).is_ok());
    assert!(ton("amount", json!((1_u128 << 120).to_string())).is_err());
    let xrp = |amount: u64| {
        let withdrawal = json!({
            "account": address("xrp-vm", &[1; 32]), "destination": address("xrp-vm", &[2; 32]),
            "amount": amount.to_string(), "fee": "1", "sequence": 1, "lastLedgerSequence": 1,
            "flags": 0, "signingPubKey": "0x02",
        });
        codec("xrp-vm").describe(&withdrawal).id
    };
    assert!(xrp(100_000_000_000_000_000).is_ok());
    assert!(xrp(100_000_000_000_000_001).is_err());
}

#[test]
fn a_number_of_a_withdraw_request_is_one_however_it_is_written() {
    let told = |extra: &Value| {
        let call = json!({
            "chainId": "xrp", "depository": "r", "currency": "XRP", "amount": "1",
            "spenderChainId": "base", "spender": "0x", "receiver": "r", "nonce": "0x",
            "additionalData": {"xrp-vm": extra},
        });
        let call: WithdrawCall = serde_json::from_value(call).unwrap();
        codec("xrp-vm").request_data(&call)
    };
    let bare = json!({"sequence": 1, "fee": "12", "lastLedgerSequence": 9});
    let with = |name: &str, value: Value| {
        let mut extra = bare.clone();
        extra[name] = value;
        told(&extra)
    };
    let tagged = with("destinationTag", json!(7)).unwrap();
    let most = with("destinationTag", json!(u32::MAX)).unwrap();
    let bare = told(&bare).unwrap();
    for (name, value, data) in [
        ("destinationTag", json!("7"), &tagged),
        ("destinationTag", json!("0x7"), &tagged),
        ("destinationTag", json!(7.0), &tagged),
        ("destinationTag", json!("4294967295"), &most),
        ("destinationTag", json!(null), &bare),
        ("flags", json!(null), &bare),
        ("flags", json!("0"), &bare),
        ("flags", json!(-0.0), &bare),
        ("fee", json!(12.0), &bare),
        ("sequence", json!(1.0), &bare),
    ] {
        let told = with(name, value.clone());
        assert_eq!(told.as_ref(), Ok(data), "{name} {value}");
    }
    // The largest number that readers of JSON keep exact; texts have no such end.
    for fee in [json!(9_007_199_254_740_991_u64), json!("9007199254740993")] {
        assert!(with("fee", fee.clone()).is_ok(), "{fee}");
    }
    // No tag is another payment than tag 0.
    assert_ne!(with("destinationTag", json!("0")), Ok(bare));
    for (name, value) in [
        ("destinationTag", json!(4_294_967_296_u64)),
        ("destinationTag", json!("4294967296")),
        ("destinationTag", json!(4_294_967_296.0)),
        ("destinationTag", json!(7.5)),
        ("destinationTag", json!("seven")),
        ("destinationTag", json!("")),
        ("flags", json!(-1)),
        ("flags", json!(-1.0)),
        ("fee", json!(12.5)),
        // Readers of JSON round it.
        ("fee", json!(9_007_199_254_740_992.0)),
        ("fee", json!(9_007_199_254_740_992_u64)),
        ("fee", json!(1e300)),
        ("sequence", json!(null)),
    ] {
        assert!(with(name, value.clone()).is_err(), "{name} {value}");
    }
}

pub const WITNESS: &str = "bc1q6mh85fqufg6ajscyu4qrwj9qscwnt5l2hv9ah5";
const LEGACY: &str = "1BoatSLRHtKNngkdXEeobR76b53LETtpyT";

/// Outputs of the transactions of these numbers.
pub fn held(numbers: std::ops::Range<u32>, address: &str) -> Vec<Value> {
    let output = |number: u32| {
        let txid = format!("{number:064x}");
        json!({"txid": txid, "vout": "0", "value": "1000", "address": address})
    };
    numbers.map(output).collect()
}

/// What is said of a withdraw request that spends these of the allocator's and of others'.
pub fn checked(own: &[Value], fee: &[Value]) -> Result<(), String> {
    let told = json!({
        "allocatorUtxos": own, "feeUtxos": fee, "feeRate": "2", "feeChangeAddress": LEGACY,
    });
    let call = json!({
        "chainId": "bitcoin", "depository": "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
        "currency": "0x", "amount": "1", "spenderChainId": "base", "spender": "0x",
        "receiver": LEGACY, "nonce": "0x", "additionalData": {"bitcoin-vm": told},
    });
    let call: WithdrawCall = serde_json::from_value(call).unwrap();
    // It has its hash all the same: the published encoding is of every request.
    let data = codec("bitcoin-vm").request_data(&call).unwrap();
    let payloads = vm::family("bitcoin-vm").unwrap().payloads.unwrap();
    payloads.check_request(&data).map_err(|why| why.0)
}

#[test]
fn a_bitcoin_request_that_could_not_be_judged_is_told_from_others() {
    let own = held(0..2, WITNESS);
    assert_eq!(checked(&own, &[]), Ok(()));
    let taproot = "bc1pxmqtkqrap994r25wv3ylf5eg3d35afgfjtrf3f5fsgdpm5urg4hq3hzv7k";
    let script = "bc1qc3ma9sgpm957zjruh0y0nvzs2ykymgtxx7yasxg5ck7thusa8wtq9cdq6t";
    for address in [WITNESS, taproot, script] {
        assert_eq!(checked(&own, &held(2..3, address)), Ok(()), "{address}");
    }
    // The id of a transaction that spends these depends on their signatures.
    for address in [LEGACY, "35625kj6FsfxbBXWTBESrLyNhd2wBopv5T"] {
        let refused = checked(&own, &held(2..3, address)).unwrap_err();
        assert!(refused.contains("witness"), "{address}: {refused}");
    }
    let twice = checked(&own, &held(1..2, WITNESS)).unwrap_err();
    assert!(twice.contains("twice"), "{twice}");
    let nothing = checked(&[], &held(0..2, WITNESS)).unwrap_err();
    assert!(nothing.contains("allocator"), "{nothing}");
    let mut dear = held(2..3, WITNESS);
    dear[0]["value"] = json!("2100000000000001");
    assert!(checked(&own, &dear).unwrap_err().contains("bitcoin"));
    // Both lists together are what the transaction spends.
    let fee = |most: u32| held(20..most, WITNESS);
    assert_eq!(checked(&held(0..20, WITNESS), &fee(32)), Ok(()));
    for (own, fee) in [
        (held(0..20, WITNESS), fee(33)),
        (held(0..33, WITNESS), vec![]),
    ] {
        let many = checked(&own, &fee).unwrap_err();
        assert!(many.contains("more than 32"), "{many}");
    }
    let payloads = vm::family("bitcoin-vm").unwrap().payloads.unwrap();
    assert!(payloads.check_request(b"data").is_err());
    // An output of the depository has its change go back to the depository.
    let depository = held(2..3, "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4");
    let robbed = checked(&own, &depository).unwrap_err();
    assert!(robbed.contains("depository"), "{robbed}");
}

/// What the family says of what the allocator is told for a withdrawal of this currency.
fn told(family: &str, currency: &str, more: Value) -> Result<(), String> {
    let request = json!({
        "chainId": "7", "depository": "1", "currency": currency, "amount": "1000000", "spender": "0x01",
        "recipient": "2", "nonce": "1", "additionalData": {family: more},
    });
    let request: PayloadRequest = serde_json::from_value(request).unwrap();
    let check = vm::family(family).unwrap().check_payload.unwrap();
    check(&request).map_err(|why| why.0)
}

#[test]
fn a_lighter_payload_pays_the_currency_that_its_owner_gives_up() {
    let paid = |currency, asset: u64, route: u64| {
        let more = json!({
            "nonce": "1", "fromRouteType": route, "toRouteType": 0, "apiKeyIndex": "2", "usdcFee": "0",
            "assetIndex": asset, "memo": "0x",
        });
        told("lighter-vm", currency, more).is_ok()
    };
    for (currency, asset, route) in [("9", 9, 0), ("9", 9, 1), ("0", 3, 0), ("3", 3, 1)] {
        assert!(paid(currency, asset, route), "{currency} {asset} {route}");
    }
    for (currency, asset, route) in [("9", 1, 0), ("3", 3, 0), ("0", 3, 1), ("0", 0, 0)] {
        assert!(!paid(currency, asset, route), "{currency} {asset} {route}");
    }
    assert!(told("lighter-vm", "9", json!({})).is_err());
}

#[test]
fn a_hyperliquid_payload_names_one_token() {
    let named = |symbol: &str| {
        let more = json!({"currencyHyperliquidSymbol": symbol, "currentTime": "1"});
        told("hyperliquid-vm", "0x01", more).is_ok()
    };
    for symbol in ["USDC", "", "uBTC-2", &"A".repeat(32)] {
        assert!(named(symbol), "{symbol}");
    }
    for symbol in ["USDC:0x6d", ":", "U SDC", "\u{ff1a}", &"A".repeat(33)] {
        assert!(!named(symbol), "{symbol}");
    }
    let native = told("hyperliquid-vm", "0x", json!({"currentTime": "1"}));
    assert_eq!(native, Ok(()));
}

#[test]
fn a_bitcoin_payload_that_could_not_be_judged_is_told_from_others() {
    let told = |own: &[Value]| {
        let more = json!({"allocatorUtxos": own, "feeRate": "2"});
        told("bitcoin-vm", "0x", more)
    };
    // As many as signatures are read of its transaction.
    let most = u32::try_from(limits::ITEMS).unwrap();
    assert_eq!(told(&held(0..most, WITNESS)), Ok(()));
    let many = told(&held(0..most + 1, WITNESS)).unwrap_err();
    assert!(many.contains(&format!("more than {most}")), "{many}");
    assert!(told(&[]).unwrap_err().contains("allocator"));
    let twice = [held(0..2, WITNESS), held(1..2, WITNESS)].concat();
    assert!(told(&twice).unwrap_err().contains("twice"));
    let mut dear = held(0..1, WITNESS);
    dear[0]["value"] = json!("2100000000000001");
    assert!(told(&dear).unwrap_err().contains("bitcoin"));
}
