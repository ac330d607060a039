//! Codecs give back what they were given, and no outside bytes make a decoder panic.

use proptest::{collection::vec, prelude::*, sample::select};
use vm::{
    Address, B256, Bytes, EvmAddress, FAMILIES, Family, OrderCall, U256,
    protocol::{action::Action, id, order::Order, text},
};

fn family(name: &str) -> &'static Family {
    vm::family(name).unwrap()
}

fn bytes(length: impl Into<proptest::collection::SizeRange>) -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), length)
}

/// Address bytes that a family has a text for.
fn address_bytes() -> impl Strategy<Value = (&'static Family, Vec<u8>)> {
    let of = |name, bytes: BoxedStrategy<Vec<u8>>| bytes.prop_map(move |b| (family(name), b));
    let behind = |prefix: Vec<u8>, rest: BoxedStrategy<Vec<u8>>| {
        rest.prop_map(move |rest| [prefix.clone(), rest].concat())
            .boxed()
    };
    let index = (0..1_u64 << 53).prop_map(|n| u128::from(n).to_be_bytes().to_vec());
    let program = (0..=16_u8, bytes(2..=40)).prop_map(|(v, program)| [vec![v], program].concat());
    prop_oneof![
        of("ethereum-vm", bytes(0..40).boxed()),
        of("hyperliquid-vm", bytes(0..40).boxed()),
        of("solana-vm", bytes(0..64).boxed()),
        of("bitcoin-vm", behind(vec![0xff, 0], bytes(20).boxed())),
        of("bitcoin-vm", behind(vec![0xff, 5], bytes(20).boxed())),
        of("bitcoin-vm", program.boxed()),
        of("ton-vm", bytes(32).boxed()),
        of("tron-vm", behind(vec![0x41], bytes(20).boxed())),
        of("lighter-vm", index.boxed()),
        of("xrp-vm", bytes(20).boxed()),
    ]
}

#[test]
fn an_address_has_one_canonical_spelling() {
    let ethereum = family("ethereum-vm");
    assert_eq!(ethereum.canonical("0xAbCd"), "0xabcd");
    assert_eq!(ethereum.canonical("0xabcd"), "0xabcd");
    // The published form of these bytes knows lower case only.
    let upper = "BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4";
    assert_eq!(family("bitcoin-vm").canonical(upper), upper);
    let key = "Stake11111111111111111111111111111111111111";
    let other = key.to_lowercase();
    let solana = family("solana-vm");
    assert_eq!(
        [key, &other].map(|text| solana.canonical(text)),
        [key, &other]
    );
    // What is no address is told by its spelling.
    assert_eq!(solana.canonical("0xAB"), "0xab");
    assert_eq!(solana.canonical("O0lI"), "O0lI");
}

fn evm() -> impl Strategy<Value = EvmAddress> + Clone {
    any::<[u8; 20]>().prop_map(EvmAddress::from)
}

fn number() -> impl Strategy<Value = U256> + Clone {
    any::<[u8; 32]>().prop_map(U256::from_be_bytes)
}

fn action() -> impl Strategy<Value = Action> {
    let mint = (evm(), number(), number());
    let transfer = (evm(), evm(), number(), number());
    let fast = (mint.clone(), evm(), bytes(0..100), evm(), bytes(0..100));
    prop_oneof![
        mint.clone()
            .prop_map(|(to, token, amount)| Action::Mint { to, token, amount }),
        mint.prop_map(|(from, token, amount)| Action::Burn {
            from,
            token,
            amount
        }),
        transfer.prop_map(|(from, to, token, amount)| Action::Transfer {
            from,
            to,
            token,
            amount
        }),
        fast.prop_map(
            |((to, token, amount), fees, fee_bytes, rates, rate_bytes)| {
                Action::FastMint {
                    to,
                    token,
                    amount,
                    fee_calculator: fees,
                    fee_calculator_data: fee_bytes.into(),
                    rate_limiter: rates,
                    rate_limiter_data: rate_bytes.into(),
                }
            }
        ),
    ]
}

proptest! {
    #[test]
    fn address_decodes_to_the_text_of_its_bytes((family, bytes) in address_bytes()) {
        let text = family.codec.decode_address(&bytes).unwrap();
        prop_assert_eq!(family.codec.encode_address(&text).unwrap(), bytes);
    }

    #[test]
    fn transaction_id_decodes_to_the_text_of_its_bytes(
        family in select(FAMILIES),
        bytes in any::<[u8; 64]>(),
    ) {
        let bytes = &bytes[..family.lengths.transaction.unwrap_or(32)];
        let text = family.codec.decode_transaction_id(bytes).unwrap();
        let spelled = format!("{}{text}", family.tx_prefix);
        let tx = family.tx(&spelled, None).unwrap();
        prop_assert_eq!(&tx.bytes[..], bytes);
        prop_assert_eq!(&*tx.text, spelled);
    }

    #[test]
    fn action_decodes_to_itself(action in action()) {
        prop_assert_eq!(Action::decode(&action.encode()).unwrap(), action);
    }

    #[test]
    fn order_call_decodes_to_itself(to in evm(), data in bytes(0..200), value in number()) {
        let orders = family("ethereum-vm").orders.unwrap();
        let to = Address::from_parts(&format!("{to:#x}"), to.to_vec());
        let call = OrderCall { to, data: data.into(), value };
        prop_assert_eq!(orders.decode_call(&orders.encode_call(&call).unwrap()).unwrap(), call);
    }

    #[test]
    fn fill_contract_decodes_to_itself(
        family in select(vec![family("ethereum-vm"), family("tron-vm")]),
        contract in evm(),
    ) {
        let orders = family.orders.unwrap();
        let data = [&[0; 12], contract.as_slice()].concat();
        let address = orders.decode_extra_data(&data).unwrap();
        prop_assert_eq!(orders.encode_extra_data(&address).unwrap(), data);
        prop_assert_eq!(family.address(address.text()).unwrap(), address);
    }

    #[test]
    fn number_is_read_back_from_either_radix(n in number()) {
        prop_assert_eq!(text::number(&n.to_string()).unwrap(), n);
        prop_assert_eq!(text::number(&format!("{n:#x}")).unwrap(), n);
    }

    #[test]
    fn outside_bytes_panic_no_decoder(bytes in bytes(0..400)) {
        for family in FAMILIES {
            let _ = family.codec.decode_address(&bytes);
            let _ = family.codec.decode_transaction_id(&bytes);
            if let Some(orders) = family.orders {
                let _ = orders.decode_call(&bytes);
                let _ = orders.decode_extra_data(&bytes);
            }
        }
        let _ = Action::decode(&bytes);
    }

    #[test]
    fn outside_text_panics_no_encoder(text in ".{0,120}") {
        for family in FAMILIES {
            let _ = family.address(&text);
            let _ = family.tx(&text, None);
        }
        let _ = (text::number(&text), text::bytes(&text), text::evm_address(&text));
    }

    #[test]
    fn one_mistyped_character_is_no_checked_address(
        (family, bytes) in address_bytes().prop_filter("has a checksum", |(family, _)| {
            ["bitcoin-vm", "tron-vm", "xrp-vm"].contains(&family.name)
        }),
        at in any::<prop::sample::Index>(),
    ) {
        let text = family.codec.decode_address(&bytes).unwrap();
        let mut mistyped = text.clone().into_bytes();
        let at = at.index(mistyped.len());
        mistyped[at] = if mistyped[at] == b'5' { b'7' } else { b'5' };
        let refused = family.address(&String::from_utf8(mistyped).unwrap()).is_err();
        prop_assert!(refused, "{text} at {at}");
    }

    #[test]
    fn outcome_is_the_same_in_any_order_of_its_deposits(
        ids in vec(any::<[u8; 32]>().prop_map(B256::from), 1..5),
        order in any::<[u8; 32]>().prop_map(B256::from),
    ) {
        let mut turned = ids.clone();
        turned.reverse();
        prop_assert_eq!(id::outcome(&ids, order), id::outcome(&turned, order));
    }
}

#[test]
fn transaction_id_has_one_spelling_but_for_its_case() {
    let digits = "ab".repeat(32);
    let prefixed = format!("0x{digits}");
    let upper = prefixed.to_uppercase().replace("0X", "0x");
    let refused = [
        ("ethereum-vm", digits.as_str()),
        ("ethereum-vm", "0xabc"),
        ("hyperliquid-vm", &digits),
        ("bitcoin-vm", &prefixed),
        ("bitcoin-vm", "zz"),
        ("bitcoin-vm", "abc"),
        ("solana-vm", "0OIl"),
        ("ton-vm", &prefixed),
        ("tron-vm", &digits),
        ("lighter-vm", &prefixed),
        ("xrp-vm", &prefixed),
    ];
    for (name, text) in refused {
        assert!(family(name).tx(text, None).is_err(), "{name} {text}");
    }
    let accepted = [
        ("ethereum-vm", prefixed.as_str()),
        ("ethereum-vm", &upper),
        ("bitcoin-vm", &digits),
        ("ton-vm", &digits),
        ("tron-vm", &prefixed),
        ("xrp-vm", &digits),
    ];
    for (name, text) in accepted {
        assert_eq!(family(name).tx(text, None).unwrap().bytes.len(), 32);
    }
}

/// A question for the deposits of an unknown transaction is answered with none there: only what may be an id is one.
#[test]
fn a_signature_of_another_length_is_no_transaction_id() {
    let solana = family("solana-vm");
    let id = |bytes: usize| bs58::encode(vec![7; bytes]).into_string();
    assert_eq!(solana.tx(&id(64), None).unwrap().bytes.len(), 64);
    for bytes in [0, 1, 32, 63, 65] {
        assert!(solana.tx(&id(bytes), None).is_err(), "{bytes}");
    }
}

#[test]
fn hex_address_is_whole_bytes_behind_a_prefix() {
    for name in ["ethereum-vm", "hyperliquid-vm"] {
        for text in ["0x12", "0xaBcD", "0x"] {
            assert!(family(name).any_address(text).is_ok(), "{name} {text}");
        }
        for text in ["", "12", "1234", "0x123", "0xzz", "0x0x12"] {
            assert!(family(name).any_address(text).is_err(), "{name} {text}");
        }
    }
}

#[test]
fn account_and_currency_are_as_long_as_their_family_has_them() {
    let hex = |bytes: usize| format!("0x{}", "1a".repeat(bytes));
    let lengths = |parse: &dyn Fn(&str) -> bool| {
        let accepted = (0..70).filter(|bytes| parse(&hex(*bytes)));
        accepted.collect::<Vec<_>>()
    };
    let evm = family("ethereum-vm");
    assert_eq!(lengths(&|text| evm.account(text).is_ok()), [20]);
    assert_eq!(lengths(&|text| evm.currency(text).is_ok()), [20]);
    assert_eq!(lengths(&|text| evm.address(text).is_ok()), [20]);
    let hyper = family("hyperliquid-vm");
    assert_eq!(lengths(&|text| hyper.account(text).is_ok()), [20]);
    let currencies: Vec<_> = (16..=48).collect();
    assert_eq!(lengths(&|text| hyper.currency(text).is_ok()), currencies);
    let solana = family("solana-vm");
    let base58 = |bytes: usize| bs58::encode(vec![7; bytes]).into_string();
    for (bytes, accepted) in [(31, false), (32, true), (33, false), (64, false)] {
        assert_eq!(solana.address(&base58(bytes)).is_ok(), accepted, "{bytes}");
    }
}

/// The id of an order with a short address is published; a request may not bring one.
#[test]
fn order_with_an_address_of_another_length_has_an_id_and_is_refused() {
    let file = include_str!("../../fixtures/vectors/order_id.json");
    let file: serde_json::Value = serde_json::from_str(file).unwrap();
    let cases = file["cases"].as_array().unwrap();
    let order = |note: &str| {
        let case = cases.iter().find(|case| case["note"] == note).unwrap();
        let order: Order = serde_json::from_value(case["input"]["order"].clone()).unwrap();
        (order, case["input"]["chainsConfig"].clone())
    };
    let (short, chains) = order("short evm address accepted");
    let known = |chain: &str| vm::family(chains.get(chain)?.as_str()?);
    assert!(short.id(known).is_ok());
    let why = short.check(known).unwrap_err().to_string();
    assert!(why.contains("Not as long as those of ethereum-vm"), "{why}");
}

#[test]
fn account_index_is_exact() {
    let largest = (1_u64 << 53).to_string();
    for text in ["0", "7", &largest] {
        let address = family("lighter-vm").address(text).unwrap();
        let again = family("lighter-vm").codec.decode_address(address.bytes());
        assert_eq!(again.as_deref(), Ok(text));
    }
    for text in ["", " 1", "-1", "1.5", "1e21", "0x10", "9007199254740993"] {
        assert!(family("lighter-vm").address(text).is_err(), "{text}");
    }
}

#[test]
fn order_is_echoed_byte_for_byte() {
    let wire = r#"{"version":"v1","solverChainId":"base","solver":"0x90f79bf6eb2c4f870365e785982e1f101e93b906","salt":"0x01","inputs":[{"payment":{"chainId":"base","currency":"0x00","amount":"010","weight":"1"},"refunds":[{"chainId":"base","recipient":"0x01","currency":"0x02","minimumAmount":"0","deadline":4294967295,"extraData":"0x"}]}],"output":{"chainId":"ton","payments":[{"recipient":"r","currency":"c","minimumAmount":"1","expectedAmount":"2"}],"calls":["0xAb"],"deadline":0,"extraData":"0x"},"fees":[{"recipientChainId":"a","recipient":"b","currencyChainId":"c","currency":"d","amount":"5"}]}"#;
    let order: Order = serde_json::from_str(wire).unwrap();
    assert_eq!(serde_json::to_string(&order).unwrap(), wire);
}

#[test]
fn order_says_which_field_has_no_meaning() {
    let file = include_str!("../../fixtures/vectors/order_id.json");
    let file: serde_json::Value = serde_json::from_str(file).unwrap();
    let case = &file["cases"][0]["input"];
    let order: Order = serde_json::from_value(case["order"].clone()).unwrap();
    let known = |chain: &str| vm::family(case["chainsConfig"].get(chain)?.as_str()?);
    let why = |order: &Order| order.id(known).unwrap_err().to_string();

    let mut unknown = order.clone();
    unknown.output.chain_id = "nowhere".into();
    assert_eq!(why(&unknown), r#"unknown chain "nowhere""#);
    let mut half = order.clone();
    half.output.extra_data = "0xabc".into();
    assert!(why(&half).starts_with("/output/extraData: Not hex"));
    let mut negative = order;
    negative.salt = "-1".into();
    assert!(why(&negative).starts_with("/salt: Not an unsigned"));
}

#[test]
fn every_family_encodes_its_native_currency() {
    for family in FAMILIES {
        let native = family.native().unwrap();
        let text = family.codec.decode_address(native.bytes()).unwrap();
        assert_eq!(family.address(&text).unwrap(), native, "{family:?}");
    }
    assert!(vm::family("gateway-vm").is_none());
}

#[test]
fn tagged_address_is_a_destination_and_no_account() {
    let tagged = "XVsR8edWfnY65MCg6UaS5XEBbX9iUWZatezvQ3jDuWnPowN";
    let destination = vm::xrp::address::destination(tagged).unwrap();
    assert_eq!(destination.address(), "rBQpBdZdoNCSWVUzizkBTaTxy7oqw1aFKJ");
    assert_eq!(destination.tag, Some(4_028_300_497));
    assert!(family("xrp-vm").address(tagged).is_err());
}

#[test]
fn calldata_that_is_no_call_is_refused() {
    let orders = family("ethereum-vm").orders.unwrap();
    assert!(orders.decode_call(&[0; 31]).is_err());
    assert!(orders.decode_extra_data(&[]).is_err());
    let account = Address::from_parts("short", Bytes::from_static(&[1]));
    assert!(orders.encode_extra_data(&account).is_err());
    assert!(family("solana-vm").orders.is_none());
}
