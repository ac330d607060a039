use alloy::primitives::Bytes;
use serde_json::json;

use super::*;
use crate::{ChainEntry, ethereum::FAMILY, types::B256};

const DEPOSITORY: EvmAddress = EvmAddress::repeat_byte(0x5f);
const TOKEN: EvmAddress = EvmAddress::repeat_byte(0x70);
const USER: EvmAddress = EvmAddress::repeat_byte(1);

fn rules() -> Rules {
    let entry = ChainEntry {
        id: "base".into(),
        depository: Some(DEPOSITORY.to_string()),
        hub_chain_id: Some("8453".into()),
        ..ChainEntry::default()
    };
    Rules::new(&entry.spec(&FAMILY, false).unwrap()).unwrap()
}

fn log(address: EvmAddress, topics: &[B256]) -> Found {
    let hash = B256::ZERO;
    serde_json::from_value(json!({
        "address": address, "topics": topics, "data": Bytes::new(), "blockHash": hash,
        "blockNumber": "0x1", "transactionHash": hash, "logIndex": "0x0",
    }))
    .unwrap()
}

/// Block `number` on `parent`, with these logs.
fn header(number: u64, parent: B256, logs: &[Found]) -> Header {
    let mut inner = alloy::consensus::Header {
        number,
        parent_hash: parent,
        timestamp: 7,
        ..Default::default()
    };
    for log in logs {
        inner.logs_bloom.accrue_raw_log(log.address, &log.topics);
    }
    Header::new(inner)
}

fn summary(logs: &[Found]) -> Summary {
    Summary::of(&header(1, B256::ZERO, logs)).unwrap()
}

fn deposit() -> Found {
    log(DEPOSITORY, &[NATIVE_DEPOSIT])
}

fn transfer(to: EvmAddress) -> Found {
    log(TOKEN, &[TRANSFER, USER.into_word(), to.into_word()])
}

#[test]
fn blooms_tell_where_deposits_may_be() {
    let may = |logs: &[Found]| summary(logs).may_hold(&rules(), DEPOSITORY);
    assert!(may(&[deposit()]));
    assert!(may(&[log(DEPOSITORY, &[ERC20_DEPOSIT])]));
    assert!(may(&[transfer(USER), transfer(DEPOSITORY)]));
    for none in [
        &[][..],
        &[transfer(USER)],
        &[log(TOKEN, &[NATIVE_DEPOSIT])],
        &[log(DEPOSITORY, &[B256::repeat_byte(9)])],
    ] {
        assert!(!may(none));
    }
}

#[test]
fn a_block_is_made_of_all_of_its_logs() {
    let block = summary(&[deposit(), transfer(USER)]);
    assert!(block.is_made_of(&[deposit(), transfer(USER)]));
    for other in [
        &[][..],
        &[deposit()],
        &[transfer(USER)],
        &[deposit(), transfer(USER), transfer(DEPOSITORY)],
    ] {
        assert!(!block.is_made_of(other));
    }
}

#[test]
fn a_header_is_what_its_hash_says() {
    let honest = header(1, B256::ZERO, &[deposit()]);
    assert!(Summary::of(&honest).is_ok());
    let mut emptied = honest;
    emptied.inner.logs_bloom = Bloom::ZERO;
    assert!(Summary::of(&emptied).is_err());
}

#[test]
fn headers_are_one_chain() {
    let first = header(5, B256::ZERO, &[]);
    let second = header(6, first.hash, &[]);
    let third = header(7, second.hash, &[]);
    let read = |headers: &[&Header]| -> Vec<Summary> {
        let read = headers.iter().map(|header| Summary::of(header).unwrap());
        read.collect()
    };
    let end = Summary::of(&third).unwrap().block;
    assert_eq!(linked(&read(&[&first, &second, &third]), 5, &end), Ok(()));
    assert_eq!(linked(&read(&[&third]), 7, &end), Ok(()));
    let stranger = header(6, B256::repeat_byte(1), &[]);
    for (headers, from) in [
        (vec![&first, &third], 5),
        (vec![&first, &stranger, &third], 5),
        (vec![&first, &second], 5),
        (vec![&second, &third], 5),
        (vec![], 5),
    ] {
        assert!(linked(&read(&headers), from, &end).is_err());
    }
}
