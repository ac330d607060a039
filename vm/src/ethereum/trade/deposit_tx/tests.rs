use super::*;
use crate::{ChainEntry, ethereum::FAMILY, types::U256};

const DEPOSITORY: EvmAddress = EvmAddress::repeat_byte(0x5f);
const OTHER_DEPOSITORY: EvmAddress = EvmAddress::repeat_byte(0x60);
const TOKEN: EvmAddress = EvmAddress::repeat_byte(0x70);
const USER: EvmAddress = EvmAddress::repeat_byte(1);
const ORDER: B256 = B256::repeat_byte(0xb6);

fn rules() -> Rules {
    let entry = ChainEntry {
        id: "base".into(),
        depository: Some(DEPOSITORY.to_string()),
        additional_depositories: vec![OTHER_DEPOSITORY.to_string()],
        hub_chain_id: Some("8453".into()),
        ..ChainEntry::default()
    };
    Rules::new(&entry.spec(&FAMILY, false).unwrap()).unwrap()
}

/// A log at block, index and transaction.
fn log(
    (block, index, transaction): (u64, u64, u8),
    address: EvmAddress,
    topics: &[B256],
    words: &[B256],
) -> Found {
    let byte = u8::try_from(block).unwrap();
    Found {
        address,
        topics: topics.to_vec(),
        data: words.concat().into(),
        block_hash: B256::repeat_byte(byte),
        block_number: Quantity(U256::from(block)),
        transaction_hash: B256::repeat_byte(transaction),
        log_index: Quantity(U256::from(index)),
        removed: false,
    }
}

fn amount(amount: u64) -> B256 {
    U256::from(amount).into()
}

fn native(at: (u64, u64, u8)) -> Found {
    let words = [USER.into_word(), amount(5), ORDER];
    log(at, DEPOSITORY, &[NATIVE_DEPOSIT], &words)
}

fn transfer(at: (u64, u64, u8)) -> Found {
    let topics = [TRANSFER, USER.into_word(), DEPOSITORY.into_word()];
    log(at, TOKEN, &topics, &[amount(5)])
}

fn erc20(at: (u64, u64, u8), id: B256) -> Found {
    let words = [USER.into_word(), TOKEN.into_word(), amount(5), id];
    log(at, DEPOSITORY, &[ERC20_DEPOSIT], &words)
}

fn mentions(found: Vec<Found>) -> Result<Vec<Mention>, Doubt> {
    group(&rules(), found, &(10..=20))
}

fn deposit_txs(found: Vec<Found>, input: &[u8]) -> Vec<DepositTx> {
    let rules = rules();
    let mentions = mentions(found).unwrap();
    let seen = mentions
        .iter()
        .filter_map(|mention| mention.deposit_tx(&rules, input));
    seen.collect()
}

#[test]
fn deposits_come_in_block_order_one_sighting_per_transaction() {
    let found = vec![
        native((12, 3, 1)),
        transfer((12, 0, 2)),
        erc20((12, 1, 2), ORDER),
        native((11, 7, 3)),
        transfer((13, 0, 4)),
        native((13, 1, 4)),
    ];
    let seen = deposit_txs(found, &[]);
    let shown: Vec<_> = seen
        .iter()
        .map(|seen| {
            let ids = seen.deposits.iter().map(|d| (d.index, d.id.as_ref()));
            (seen.number, seen.transaction.bytes[0], ids.collect())
        })
        .collect();
    let order = ORDER.to_string();
    let one = |index| vec![(index, order.as_str())];
    let two = vec![(0, NOBODY), (1, order.as_str())];
    assert_eq!(
        shown,
        [
            (11, 3, one(7)),
            (12, 2, one(0)),
            (12, 1, one(3)),
            (13, 4, two)
        ]
    );
    assert_eq!(seen[0].hash, B256::repeat_byte(11));
    let same = FAMILY.tx(&seen[0].transaction.text, None).unwrap();
    assert_eq!(seen[0].transaction, same);
}

#[test]
fn what_cannot_be_attributed_is_seen_with_why() {
    let at = |index| (12, index, 1);
    let unreadable = log(at(1), DEPOSITORY, &[NATIVE_DEPOSIT], &[ORDER]);
    let foreign_shape = Found {
        topics: vec![NATIVE_DEPOSIT, ORDER],
        ..native(at(1))
    };
    let seen = deposit_txs(vec![native(at(0)), unreadable, transfer(at(2))], &[]);
    for seen in [&seen, &deposit_txs(vec![foreign_shape, native(at(2))], &[])] {
        let doubt = seen[0].doubt.as_ref().map(ToString::to_string);
        assert_eq!(doubt.as_deref(), Some("Unreadable event of the depository"));
    }
    let shown = seen[0].deposits.iter();
    let shown: Vec<_> = shown
        .map(|d| (d.index, d.amount, d.depositor.bytes()))
        .collect();
    let five = U256::from(5);
    assert_eq!(shown, [(0, five, &USER[..]), (2, five, &USER[..])]);
    assert_eq!(deposit_txs(vec![native(at(0))], &[])[0].doubt, None);
}

#[test]
fn only_a_bare_transfer_needs_calldata() {
    let needs = |found| mentions(found).unwrap()[0].needs_input(&rules());
    assert!(needs(vec![transfer((12, 0, 1))]));
    assert!(needs(vec![transfer((12, 0, 1)), native((12, 1, 1))]));
    // An event that names nobody leaves it to the calldata.
    assert!(needs(vec![
        transfer((12, 0, 1)),
        erc20((12, 1, 1), B256::ZERO)
    ]));
    assert!(!needs(vec![native((12, 0, 1))]));
    assert!(!needs(vec![transfer((12, 0, 1)), erc20((12, 1, 1), ORDER)]));
    assert!(!needs(vec![transfer((12, 0, 1)), transfer((12, 1, 1))]));

    let input = [
        alloy::hex!("a9059cbb").as_slice(),
        DEPOSITORY.into_word().as_slice(),
        amount(5).as_slice(),
        ORDER.as_slice(),
    ]
    .concat();
    let seen = deposit_txs(vec![transfer((12, 0, 1))], &input);
    assert_eq!(*seen[0].deposits[0].id, ORDER.to_string());
}

#[test]
fn what_is_no_deposit_is_not_seen() {
    let removed = Found {
        removed: true,
        ..native((12, 0, 1))
    };
    let elsewhere = Found {
        address: OTHER_DEPOSITORY,
        ..native((12, 1, 2))
    };
    let to_user = Found {
        topics: vec![TRANSFER, DEPOSITORY.into_word(), USER.into_word()],
        ..transfer((12, 2, 3))
    };
    let from_itself = Found {
        topics: vec![TRANSFER, DEPOSITORY.into_word(), DEPOSITORY.into_word()],
        ..transfer((12, 3, 4))
    };
    let no_token = erc20((12, 4, 5), ORDER);
    let found = vec![removed, elsewhere, to_user, from_itself, no_token];
    assert_eq!(deposit_txs(found, &[]), []);
}

#[test]
fn what_is_claimed_twice_is_its_payers() {
    let claimed_twice = vec![
        transfer((12, 0, 1)),
        erc20((12, 1, 1), ORDER),
        erc20((12, 2, 1), B256::repeat_byte(0xc7)),
        native((12, 3, 2)),
    ];
    let seen = deposit_txs(claimed_twice, &[]);
    let ids = seen.iter().map(|seen| &*seen.deposits[0].id);
    assert_eq!(ids.collect::<Vec<_>>(), [NOBODY, &*ORDER.to_string()]);
    assert_eq!(seen[1].transaction.bytes[0], 2);
}

#[test]
fn contradictions_are_doubted() {
    assert!(mentions(vec![native((9, 0, 1))]).is_err());
    assert!(mentions(vec![native((21, 0, 1))]).is_err());
    let other_fork = Found {
        block_hash: B256::repeat_byte(0xff),
        ..native((12, 1, 2))
    };
    assert!(mentions(vec![native((12, 0, 1)), other_fork.clone()]).is_err());
    assert!(mentions(vec![other_fork]).is_ok());
    let endless = Found {
        log_index: Quantity(U256::MAX),
        ..native((12, 0, 1))
    };
    assert!(mentions(vec![endless]).is_err());
}
