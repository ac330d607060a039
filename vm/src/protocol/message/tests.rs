use alloy::{primitives::address as account, sol_types::SolStruct};

use super::*;

fn type_hash<T: SolStruct>() -> String {
    keccak256(T::eip712_encode_type().as_bytes()).to_string()
}

#[test]
fn type_hashes_are_the_contracts() {
    let table = [
        (type_hash::<hub::wire::Execution>(), "0x821c9f21", "eaf8"),
        (type_hash::<hub::wire::SetEntry>(), "0x1a4153ec", "92eb"),
        (type_hash::<hub::wire::Trigger>(), "0x5b475a02", "3f77"),
        (
            type_hash::<withdrawal::wire::SubmitWithdrawRequest>(),
            "0x111e0715",
            "f466",
        ),
        (
            type_hash::<withdrawal::wire::ExecuteAndWithdrawRequest>(),
            "0x782ae981",
            "a032",
        ),
        (
            type_hash::<withdrawal::wire::inclusion::WithdrawRequest>(),
            "0x611988fa",
            "4935",
        ),
        (
            type_hash::<withdrawal::wire::allocator::WithdrawRequest>(),
            "0x607f5669",
            "b21d",
        ),
    ];
    for (hash, start, end) in table {
        assert!(
            hash.starts_with(start) && hash.ends_with(end),
            "{hash} {start} {end}"
        );
    }
}

#[test]
fn domains_differ_in_every_part() {
    let contract = account!("d180dc3b8cb71b185c563b6e4857592ca93dacaf");
    let chain = U256::from(537_713);
    let all = [
        Domain::oracle("2", chain, contract),
        Domain::oracle("1", chain, contract),
        Domain::oracle("2", U256::from(1), contract),
        Domain::oracle("2", chain, EvmAddress::ZERO),
        Domain::generic_mapping(chain, contract),
        Domain::allocator_spender(chain, contract),
        Domain::executor(chain, contract),
        Domain::allocator(chain, contract),
        Domain::trigger(chain),
        Domain::withdraw_request(chain),
        Domain::nonce_mapping(chain),
        Domain::first_nonce_mapping(chain),
        Domain::no_fill_or_refund(chain),
    ];
    let separators: std::collections::HashSet<B256> = all.iter().map(Domain::separator).collect();
    assert_eq!(separators.len(), all.len());
}

#[test]
fn a_message_under_another_domain_has_another_digest() {
    let execution = Execution {
        idempotency_key: B256::repeat_byte(1),
        actions: vec![],
    };
    let here = Domain::oracle("2", U256::from(1), EvmAddress::ZERO);
    let there = Domain::oracle("2", U256::from(2), EvmAddress::ZERO);
    assert_ne!(execution.digest(&here), execution.digest(&there));
    assert_eq!(execution.digest(&here), execution.digest(&here.clone()));
}

#[test]
fn addresses_of_one_case_or_with_a_checksum_are_read() {
    let sums = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
    let digits = sums.strip_prefix("0x").unwrap();
    for text in [
        sums,
        &sums.to_lowercase(),
        &format!("0x{}", digits.to_uppercase()),
    ] {
        assert_eq!(address(text).unwrap().to_checksum(None), sums);
    }
    let wrong = [
        "",
        "0x",
        "0x1",
        digits,
        &sums.replace("aAeb", "AAeb"),
        &format!("{sums}00"),
        "0xzzAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
        &format!("0X{digits}"),
        &format!(" {sums}"),
    ];
    for text in wrong {
        assert_eq!(address(text), Err(TextError::Address(text.to_owned())));
    }
}

#[test]
fn words_are_exactly_32_bytes() {
    let text = format!("0x{}", "ab".repeat(32));
    assert_eq!(word(&text), Ok(B256::repeat_byte(0xab)));
    for text in [
        "",
        "0x",
        "0x12",
        &format!("0x{text}"),
        &text[2..],
        &format!("{text}00"),
        &text[..65],
    ] {
        assert_eq!(word(text), Err(TextError::Word(text.to_owned())));
    }
}

#[test]
fn bytes_are_whole_and_prefixed() {
    assert_eq!(bytes("0x"), Ok(Bytes::new()));
    assert_eq!(bytes("0xABcd"), Ok(Bytes::from_static(&[0xab, 0xcd])));
    for text in ["", "abcd", "0x0xab", "0xabc", "0xzz", "0x 12"] {
        assert_eq!(bytes(text), Err(TextError::Bytes(text.to_owned())));
    }
}
