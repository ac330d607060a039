//! The bytes on disk. A change of one needs a new format of its kind, and a reader of both.

use alloy::primitives::{Address, B256};

use super::*;

fn b(byte: u8) -> B256 {
    B256::repeat_byte(byte)
}

fn entry() -> entry::Entry {
    entry::Entry {
        digest: b(1),
        at: 300,
        slot: Some("s".into()),
        consumes: vec![entry::Consumed {
            what: "w".into(),
            by: "b".into(),
        }],
        facts: vec![fact()],
        own: true,
        shown: vec![entry::Shown {
            payments: vec!["p".into()],
            own: true,
        }],
        payload: vec![9, 8].into(),
    }
}

fn fact() -> entry::Fact {
    let (chain, transaction) = ("base".into(), "0x1".into());
    entry::Fact {
        chain,
        transaction,
        number: 7,
        hash: b(2),
        parent: b(3),
        time: 5,
    }
}

fn hex(bytes: &[u8]) -> String {
    alloy::hex::encode(bytes)
}

#[test]
fn layouts_never_change() {
    let (one, two, three) = ("01".repeat(32), "02".repeat(32), "03".repeat(32));
    let fields = format!(
        "20{one}ac02010173010177016201046261736503307831{number}20{two}20{three}05010101017001020908",
        number = "07"
    );
    assert_eq!(hex(&entry().encode().unwrap()), format!("01{fields}"));
    let void = void::Void {
        entry: entry(),
        why: "w".into(),
        at: 1,
    };
    assert_eq!(hex(&void.encode().unwrap()), format!("01{fields}017701"));
    let halt = halt::Halt {
        why: "w".into(),
        at: 300,
        also: Vec::new(),
        more: 0,
    };
    assert_eq!(hex(&halt.encode().unwrap()), "010177ac020000");
    assert_eq!(
        hex(&watch::encode(&fact(), false)),
        format!("01{two}{three}0000000000000005")
    );
    assert_eq!(
        hex(&watch::encode(&fact(), true)),
        format!("02{two}{three}0000000000000005")
    );
    assert_eq!(hex(&slot::encode("a/b")), "01612f62");
    assert_eq!(hex(&consumption::encode("a/b")), "01612f62");
    assert_eq!(
        hex(&signature::encode(&[5; 65])),
        format!("01{}", "05".repeat(65))
    );

    let names = [
        (entry::key("a/b"), 1, "612f62".to_owned()),
        (
            signature::key(&b(1), &Address::repeat_byte(4)),
            2,
            format!("{one}{}", "04".repeat(20)),
        ),
        (consumption::key("a/b"), 3, "612f62".to_owned()),
        (slot::key("a/b"), 4, "612f62".to_owned()),
        (
            watch::key(&fact(), "a/b"),
            5,
            "62617365000000000000000007612f62".to_owned(),
        ),
        (void::key("a/b", 2), 6, "612f620000000002".to_owned()),
        (halt::key("base"), 7, "62617365".to_owned()),
        (
            evidence::key("a/b", 258),
            45,
            "612f62000000000000000102".to_owned(),
        ),
    ];
    for (key, kind, name) in names {
        assert_eq!((key.kind.0, hex(&key.name)), (kind, name));
    }
}

#[test]
fn layout_of_evidence_never_changes() {
    let claimed = claimed::Claimed {
        statement: "a/b".into(),
        at: 300,
    };
    assert_eq!(hex(&claimed.encode().unwrap()), "0103612f62ac02");
    let key = claimed::key(&b(1));
    assert_eq!((key.kind.0, hex(&key.name)), (46, "01".repeat(32)));
    let evidence = crate::store::fixtures::evidence();
    let row = evidence.encode().unwrap();
    assert_eq!(row[0], 2);
    let fields = zstd::bulk::decompress(&row[1..], 1 << 20).unwrap();
    let layout = [
        "242f6174746573746174696f6e732f6465706f7369746f72792d6465706f736974732f7631027b7d01056c6162656c05312e",
        "322e3320050505050505050505050505050505050505050505050505050505050505050501066f726967696e000000092009",
        "0909090909090909090909090909090909090909090909090909090909090920080808080808080808080808080808080808",
        "08080808080808080808080808085a0107010209612e6578616d706c65002071367821368086f025c0e2ec4d898d6406be12",
        "a55c711765bfcc16b17fb5539209612e6578616d706c6502",
        RULES,
    ];
    assert_eq!(hex(&fields), layout.concat());
    assert_eq!(evidence::Evidence::decode(&row), Ok(evidence));
    let owner = vm::Address::from_parts("0xab", vec![7]);
    let read = (
        vm::evidence::Question::owner_key(&owner),
        vm::evidence::Answer::OwnerKey(Some(vec![8, 9].into())),
    );
    let fields = postcard::to_allocvec(&read).unwrap();
    assert_eq!(hex(&fields), "0704307861620107080102080 9".replace(' ', ""));
    let read = (
        vm::evidence::Question::outputs(&vec![7].into()),
        vm::evidence::Answer::Outputs(true),
    );
    let fields = postcard::to_allocvec(&read).unwrap();
    assert_eq!(hex(&fields), "0801070901");
    let mut other = row.clone();
    other[0] = 3;
    for wrong in [&[][..], &other, &row[..row.len() - 1], b"\x02nothing"] {
        assert!(evidence::Evidence::decode(wrong).is_err());
    }
}

/// The rules of the evidence of the fixtures, the last field.
const RULES: &str = "01066f726967696e02ac02010101";

#[test]
fn evidence_of_format_1_has_no_rules() {
    let evidence = crate::store::fixtures::evidence();
    let row = evidence.encode().unwrap();
    let fields = zstd::bulk::decompress(&row[1..], 1 << 20).unwrap();
    let older = |fields: &[u8]| {
        let frame = zstd::bulk::compress(fields, 1).unwrap();
        evidence::Evidence::decode(&[&[1], &*frame].concat())
    };
    let known = evidence::Evidence {
        rules: Vec::new(),
        ..evidence
    };
    let without = &fields[..fields.len() - RULES.len() / 2];
    assert_eq!(older(without), Ok(known));
    for wrong in [&fields[..], &without[..without.len() - 1], &[]] {
        assert!(older(wrong).is_err());
    }
    assert!(evidence::Evidence::decode(b"\x01nothing").is_err());
}

#[test]
fn what_a_transaction_leads_to_is_in_the_name() {
    use crate::store::Key;

    let of = about::About {
        chain: "base".into(),
        transaction: "0x1".into(),
        statement: "a/b".into(),
    };
    let (key, value) = (about::key("base", "0x1", "a/b"), about::encode());
    let name = "626173650030783100612f62";
    assert_eq!(
        (key.kind.0, hex(&key.name), &*value),
        (47, name.into(), &[1][..])
    );
    assert_eq!(about::decode(&key, &value), Ok(of));
    for wrong in [&[][..], &[2], &[1, 0]] {
        assert!(about::decode(&key, wrong).is_err(), "{wrong:?}");
    }
    let named = [
        about::key("", "0x1", "a/b"),
        about::key("base", "", "a/b"),
        about::key("base", "0x1", ""),
        Key::new(ABOUT, "base"),
        Key::new(ABOUT, [0xff]),
    ];
    for key in named {
        assert!(about::decode(&key, &value).is_err(), "{key:?}");
    }
}

#[test]
fn layouts_of_versions_and_histories_never_change() {
    assert_eq!(hex(&version::encode(258)), "010000000000000102");
    let led = history::key(&b(1), 258);
    assert_eq!(led.kind, HISTORY);
    assert_eq!(
        hex(&led.name),
        format!("{}0000000000000102", "01".repeat(32))
    );
    let (lead, value) = history::lead(&b(1));
    assert_eq!((lead.name, value.as_slice()), (b(1).to_vec(), &[1][..]));
    assert_eq!(history::row(&led, &value), Ok((b(1), 258)));
    assert!(history::row(&led, &[]).is_err());
}

#[test]
fn layouts_of_events_and_deliveries_never_change() {
    let one = "01".repeat(32);
    assert_eq!(hex(&mark::encode(258)), "010000000000000102");
    let event = crate::request::event::Event {
        referrer: Some("r".into()),
        request: b(1),
        key: Some("k".into()),
        version: 9,
        at: 300,
        data: "{}".into(),
    };
    assert_eq!(
        hex(&event::encode(&event).unwrap()),
        format!("0120{one}01016b09ac02027b7d010172")
    );
    let delivery = delivery::Delivery {
        since: 300,
        due: 301,
        tries: vec![delivery::Try {
            at: 1,
            took: 2,
            said: "s".into(),
        }],
    };
    let fields = "ac02ad020101020173";
    assert_eq!(hex(&delivery.encode().unwrap()), format!("01{fields}"));
    assert_eq!(
        delivery::Delivery::decode(&delivery.encode().unwrap()),
        Ok(delivery.clone())
    );
    let dead = dead::Dead {
        why: "w".into(),
        at: 300,
        delivery,
    };
    assert_eq!(hex(&dead.encode().unwrap()), format!("010177ac02{fields}"));
    assert_eq!(dead::Dead::decode(&dead.encode().unwrap()), Ok(dead));
    for (key, kind) in [(delivery::key("a b", 258), 22), (dead::key("a b", 258), 23)] {
        assert_eq!(key.kind.0, kind);
        assert_eq!(hex(&key.name), "612062000000000000000102");
        assert_eq!(delivery::parts(&key.name), Some(("a b", 258)));
    }
    for name in [
        &b"a b"[..],
        b"\x00\x00\x00\x00\x00\x00\x00\x00\x01",
        b"a\x01\x02\x03\x04\x05\x06\x07\x08\x09",
    ] {
        assert_eq!(delivery::parts(name), None);
    }
    let names = [
        (event::key(258), 20, "0000000000000102"),
        (integrator::key("a b"), 21, "612062"),
        (mark::key("a b"), 27, "612062"),
        (version::key("a b"), 41, "612062"),
    ];
    for (key, kind, name) in names {
        assert_eq!((key.kind.0, hex(&key.name)), (kind, name.to_owned()));
    }
}

#[test]
fn rows_are_read_as_written() {
    assert_eq!(
        entry::Entry::decode(&entry().encode().unwrap()),
        Ok(entry())
    );
    let void = void::Void {
        entry: entry(),
        why: "w".into(),
        at: 1,
    };
    assert_eq!(void::Void::decode(&void.encode().unwrap()), Ok(void));
    let halt = halt::Halt {
        why: "w".into(),
        at: 300,
        also: Vec::new(),
        more: 0,
    };
    assert_eq!(halt::Halt::decode(&halt.encode().unwrap()), Ok(halt));
    let key = watch::key(&fact(), "a/b");
    let early = watch::encode(&fact(), true);
    assert!(watch::decode("base", &key, &early).unwrap().early);
    let settled = watch::settled(&early).unwrap();
    assert_eq!(settled, watch::encode(&fact(), false));
    assert_eq!(watch::settled(&settled), None);
    let row = watch::decode("base", &key, &settled).unwrap();
    assert!(!row.early);
    let fact = fact();
    assert_eq!(
        (row.statement.as_str(), row.number, row.time),
        ("a/b", fact.number, fact.time)
    );
    assert_eq!((row.hash, row.parent), (fact.hash, fact.parent));
    assert_eq!(slot::decode(&slot::encode("a/b")).as_deref(), Ok("a/b"));
    assert_eq!(
        consumption::decode(&consumption::encode("a")).as_deref(),
        Ok("a")
    );
    assert_eq!(signature::decode(&signature::encode(&[5; 65])), Ok([5; 65]));
}

#[test]
fn foreign_bytes_are_refused() {
    let good = entry().encode().unwrap();
    let mut newer = good.clone();
    newer[0] = 2;
    let longer = [&good[..], &[0]].concat();
    for bytes in [
        &[][..],
        &newer,
        &longer,
        &good[..good.len() - 1],
        &good[..1],
        &[1, 0xff],
    ] {
        assert!(entry::Entry::decode(bytes).is_err(), "{}", hex(bytes));
        assert!(halt::Halt::decode(bytes).is_err(), "{}", hex(bytes));
        assert!(void::Void::decode(bytes).is_err(), "{}", hex(bytes));
    }
    for bytes in [&[][..], &[2, 0x61], &[1, 0xff]] {
        assert!(slot::decode(bytes).is_err());
        assert!(consumption::decode(bytes).is_err());
        assert!(signature::decode(bytes).is_err());
    }
    let key = watch::key(&fact(), "a/b");
    let row = watch::encode(&fact(), false);
    assert!(watch::decode("base", &key, &row[1..]).is_err());
    assert!(watch::decode("base", &key, &[&[3], &row[1..]].concat()).is_err());
    assert!(watch::decode("a much longer name", &key, &row).is_err());
}

fn cursor() -> cursor::Cursor {
    let mark = |number, byte| cursor::Mark {
        number,
        hash: b(byte),
    };
    cursor::Cursor {
        next: 301,
        marks: vec![mark(7, 1), mark(300, 2)],
        again: cursor::Again {
            block: Some(290),
            next: 7_000,
            pause: 60_000,
        },
    }
}

fn seen() -> deposit_tx::Seen {
    deposit_tx::Seen {
        hash: b(1),
        request: Some(b(2)),
    }
}

fn tracked() -> transaction::Tracked {
    transaction::Tracked {
        text: "0x1".into(),
        requests: vec![b(1)],
        claimed: Some(b(7)),
        outcome: transaction::Outcome::Failed,
        tries: 2,
        first: 3,
        next: 300,
    }
}

#[test]
fn layouts_of_requests_and_their_index_never_change() {
    let (one, two) = ("01".repeat(32), "02".repeat(32));
    let seven = "07".repeat(32);
    assert_eq!(
        hex(&cursor().encode().unwrap()),
        format!("01ad02020720{one}ac0220{two}01a202d836e0d403")
    );
    assert_eq!(
        hex(&deposit_tx::encode(&seen()).unwrap()),
        format!("0120{one}0120{two}")
    );
    assert_eq!(
        hex(&tracked().encode().unwrap()),
        format!("01033078310120{one}0120{seven}020203ac02")
    );
    assert_eq!(
        hex(&open::encode(5, &b(1))),
        format!("010000000000000005{one}")
    );
    assert_eq!(hex(&order::encode(&b(1))), format!("01{one}"));
    let facts = facts::encode(&Default::default()).unwrap();
    let empty = r#"{"version":0,"updated_at":0,"deposits":[],"own":[],"attempts":[],"#;
    let empty =
        format!(r#"{empty}"failure":null,"refund_failure":null,"endings":[],"settlement":null}}"#);
    assert_eq!((facts[0], &facts[1..]), (1, empty.as_bytes()));

    let names = [
        (request::key(&b(1)), 8, one.clone()),
        (order::key(&b(1)), 9, one.clone()),
        (facts::key(&b(1)), 10, one.clone()),
        (cursor::key("base"), 11, "62617365".to_owned()),
        (
            deposit_tx::key("base", 7, &b(1)),
            12,
            format!("62617365000000000000000007{one}"),
        ),
        (
            transaction::looked_for("base", &[9]),
            13,
            "00626173650009".into(),
        ),
        (
            transaction::settled("base", &[9]),
            13,
            "01626173650009".into(),
        ),
        (open::key(&b(1)), 14, one.clone()),
    ];
    for (key, kind, name) in names {
        assert_eq!((key.kind.0, hex(&key.name)), (kind, name));
    }
}

#[test]
fn rows_of_requests_and_their_index_are_read_as_written() {
    let written = crate::request::fixtures::request(1);
    let bytes = request::encode(&written).unwrap();
    assert_eq!((bytes[0], request::decode(&bytes)), (3, Ok(written)));
    let read = cursor::Cursor::decode(&cursor().encode().unwrap());
    assert_eq!(read, Ok(cursor()));
    let key = deposit_tx::key("base", 7, &b(3));
    let row = deposit_tx::decode("base", &key, &deposit_tx::encode(&seen()).unwrap());
    let (number, onchain_id) = (7, b(3));
    let wanted = deposit_tx::Row {
        number,
        onchain_id,
        seen: seen(),
    };
    assert_eq!(row, Ok(wanted));
    for key in [
        transaction::looked_for("base", &[0, 9]),
        transaction::settled("base", &[0, 9]),
    ] {
        let row = transaction::row(&key, &tracked().encode().unwrap()).unwrap();
        assert_eq!((row.network.as_str(), row.id), ("base", vec![0, 9]));
        assert_eq!(row.tracked, tracked());
    }
    let row = open::decode(&open::key(&b(1)), &open::encode(5, &b(2)));
    assert_eq!(row, Ok(b(1)));
}

#[test]
fn requests_are_packed_and_older_ones_are_read() {
    let written = crate::request::fixtures::request(1);
    let packed = request::encode(&written).unwrap();
    let json = serde_json::to_vec(&written).unwrap();
    assert!(packed.len() < json.len());
    let plain = [&[1][..], &json].concat();
    assert_eq!(request::decode(&plain), Ok(written.clone()));
    let bare = zstd::bulk::compress(&json, 3).unwrap();
    // Typical requests take little space.
    assert!(
        2 * packed.len() < bare.len(),
        "{} {}",
        packed.len(),
        bare.len()
    );
    let bare = [&[2][..], &bare].concat();
    assert_eq!(request::decode(&bare), Ok(written));
    let foreign = zstd::bulk::compress(b"{}", 1).unwrap();
    // Declares a content of 2^62 bytes.
    let bomb = b"\x28\xb5\x2f\xfd\xe0\0\0\0\0\0\0\0\x40\x01\0\0";
    for frame in [&json, &foreign, &packed[1..packed.len() - 1], &bomb[..]] {
        for format in [2, 3] {
            assert!(request::decode(&[&[format][..], frame].concat()).is_err());
        }
    }
    assert!(request::decode(&[&[4][..], &packed[1..]].concat()).is_err());
}

#[test]
fn foreign_bytes_are_no_rows_of_the_index() {
    for bytes in [&[][..], &[2, 0], &[1], &[1, 0xff]] {
        assert!(cursor::Cursor::decode(bytes).is_err());
        assert!(transaction::Tracked::decode(bytes).is_err());
        assert!(open::decode(&open::key(&b(1)), bytes).is_err());
        let key = deposit_tx::key("base", 7, &b(1));
        assert!(deposit_tx::decode("base", &key, bytes).is_err());
        assert!(facts::decode(bytes).is_err() && request::decode(bytes).is_err());
    }
    let (seen, tracked) = (
        deposit_tx::encode(&seen()).unwrap(),
        tracked().encode().unwrap(),
    );
    let key = deposit_tx::key("base", 7, &b(1));
    assert!(deposit_tx::decode("another name", &key, &seen).is_err());
    let key = crate::store::Key::new(TRANSACTION, [0, 98, 97]);
    assert!(transaction::row(&key, &tracked).is_err());
    let (key, value) = (crate::store::Key::new(OPEN, [1, 2]), open::encode(5, &b(1)));
    assert!(open::decode(&key, &value).is_err());
}

#[tokio::test]
async fn sightings_of_a_network_are_a_range_from_any_block() {
    use crate::store::{Batch, Store, memory::MemoryStore};
    let (store, value) = (MemoryStore::new(), deposit_tx::encode(&seen()).unwrap());
    let mut batch = Batch::new();
    for (network, number, id) in [
        ("base", 0, 0),
        ("base", 6, 0xff),
        ("base", 7, 0),
        ("base", 7, 0xff),
        ("base", 300, 1),
        ("base2", 7, 1),
    ] {
        batch = batch.put(deposit_tx::key(network, number, &b(id)), value.clone());
    }
    store.commit(batch).await.unwrap();
    for (from, wanted) in [
        (0, vec![0, 6, 7, 7, 300]),
        (7, vec![7, 7, 300]),
        (8, vec![300]),
        (301, vec![]),
    ] {
        let rows = store
            .scan(deposit_tx::range("base", from, 9))
            .await
            .unwrap();
        let numbers: Vec<_> = rows
            .iter()
            .map(|(key, value)| deposit_tx::decode("base", key, value).unwrap().number)
            .collect();
        assert_eq!(numbers, wanted, "from {from}");
    }
}

fn claim() -> claim::Claim {
    claim::Claim {
        failure: Some(crate::request::reason::FailReason::TtlExpired),
        legs: vec![claim::Leg {
            purpose: crate::request::fact::Purpose::Refund,
            deposit: b(1),
            reason: None,
            network: "base".into(),
            lane: "base".into(),
            attempt: vec![7].into(),
            currency: "0x0".into(),
            amount: alloy::primitives::U256::from(255),
            payments: vec![alloy::primitives::U256::from(6)],
            transaction: None,
            stage: claim::Stage::Open,
            wasted: alloy::primitives::U256::from(7),
            begun: 9,
        }],
        parked: vec![b(2)],
        unpaid: vec![b(2)],
        pauses: vec![claim::Pause {
            deposit: b(3),
            tries: 4,
            until: 5,
            why: crate::request::reason::RefundFailReason::AmountTooLowToRefund,
        }],
        waits: Some(8),
        waiting: vec![claim::Waiting {
            deposit: b(3),
            since: 8,
        }],
        refused: vec![claim::Refused {
            deposit: b(2),
            why: crate::request::reason::FailReason::Slippage,
        }],
        released: vec![b(2)],
    }
}

fn attempt() -> attempt::Attempt {
    attempt::Attempt {
        owner: attempt::Owner::Request(b(1)),
        resources: vec![vec![7, 8].into()],
        spends: vec![("c".into(), alloy::primitives::U256::from(6))],
        signed: vec![attempt::Signed {
            id: "0xa".into(),
            cancels: true,
        }],
        own: vec![9].into(),
        sent_at: 4,
        refused: 1,
    }
}

fn settlement() -> settlement::Settlement {
    settlement::Settlement {
        purpose: crate::request::fact::Purpose::Fill,
        deposit: b(1),
        transaction: "0x1".into(),
        option: 0,
        recorded: true,
        deposited: settlement::Part::Applied,
        outcome: settlement::Part::Pending,
        since: 3,
        tries: 1,
        not_before: 2,
        why: Some("busy".into()),
        refused: false,
    }
}

fn parked() -> parked::Parked {
    parked::Parked {
        network: "base".into(),
        transaction: "0x1".into(),
        depositor: "d".into(),
        currency: "c".into(),
        amount: alloy::primitives::U256::from(255),
        reason: crate::request::reason::FailReason::DoubleSpend,
        why: crate::request::reason::RefundFailReason::ManualRefundRequired,
        note: "n".into(),
        minor: true,
        since: 3,
    }
}

#[test]
fn layouts_of_the_solver_never_change() {
    let (one, two, three) = ("01".repeat(32), "02".repeat(32), "03".repeat(32));
    let claimed = String::from_utf8(claim().encode().unwrap()).unwrap();
    let expected = format!(
        r#"{{"failure":"TTL_EXPIRED","legs":[{{"purpose":"Refund","deposit":"0x{one}","reason":null,"network":"base","lane":"base","attempt":"0x07","currency":"0x0","amount":"0xff","payments":["0x6"],"transaction":null,"stage":"Open","wasted":"0x7","begun":9}}],"parked":["0x{two}"],"unpaid":["0x{two}"],"pauses":[{{"deposit":"0x{three}","tries":4,"until":5,"why":"AMOUNT_TOO_LOW_TO_REFUND"}}],"waits":8,"waiting":[{{"deposit":"0x{three}","since":8}}],"refused":[{{"deposit":"0x{two}","why":"SLIPPAGE"}}],"released":["0x{two}"]}}"#
    );
    assert_eq!(claimed, format!("\u{2}{expected}"));
    // Earlier versions did not write when a payment was begun.
    let earlier = claimed.replace(r#","begun":9"#, "");
    let earlier = claim::Claim::decode(earlier.as_bytes()).unwrap();
    assert_eq!(earlier.legs[0].begun, 0);
    let settled = String::from_utf8(settlement().encode().unwrap()).unwrap();
    let expected = format!(
        r#"{{"purpose":"Fill","deposit":"0x{one}","transaction":"0x1","option":0,"told":true,"deposited":"Applied","outcome":"Pending","since":3,"tries":1,"not_before":2,"why":"busy","refused":false}}"#
    );
    assert_eq!(settled, format!("\u{2}{expected}"));
    let left = String::from_utf8(parked().encode().unwrap()).unwrap();
    let expected = r#"{"network":"base","transaction":"0x1","depositor":"d","currency":"c","amount":"0xff","reason":"DOUBLE_SPEND","why":"MANUAL_REFUND_REQUIRED","note":"n","minor":true,"since":3}"#;
    assert_eq!(left, format!("\u{1}{expected}"));
    let paused = pause::Paused {
        why: "w".into(),
        since: 3,
    };
    let bytes = paused.encode().unwrap();
    assert_eq!(bytes, b"\x01{\"why\":\"w\",\"since\":3}");
    assert_eq!(pause::Paused::decode(&bytes), Ok(paused));
}

#[test]
fn layouts_of_lanes_never_change() {
    let (one, two) = ("01".repeat(32), "02".repeat(32));
    let word = |last: &str| format!("{}{last}", "00".repeat(31));
    let (five, six) = (word("05"), word("06"));
    assert_eq!(
        hex(&attempt().encode().unwrap()),
        format!("010020{one}0102070801016320{six}0103307861010109 0401").replace(' ', "")
    );
    let lane = account::Account {
        account: "a".into(),
        family: "f".into(),
        own: vec![7, 8].into(),
    };
    assert_eq!(hex(&lane.encode().unwrap()), "0201610166020708");
    assert_eq!(account::Account::decode(&lane.encode().unwrap()), Ok(lane));
    assert_eq!(hex(&attempt::holder(&[7])), "0107");
    let lease = lease::Lease { fence: 3, since: 1 };
    assert_eq!(hex(&lease.encode().unwrap()), "010301");
    let amount = alloy::primitives::U256::from(5);
    assert_eq!(hex(&reservation::encode(amount)), format!("01{five}"));
    let names = [
        (claim::key(&b(1)), 15, one.clone()),
        (account::key("base"), 16, "62617365".to_owned()),
        (
            attempt::key("base", &7_u64.to_be_bytes()),
            50,
            "62617365000000000000000007".to_owned(),
        ),
        (
            attempt::resource("base", &[7, 0]),
            51,
            "62617365000700".to_owned(),
        ),
        (
            reservation::key("base", &[0xab], &7_u64.to_be_bytes()),
            17,
            "62617365006162000000000000000007".to_owned(),
        ),
        (lease::key("lane/base"), 18, hex(b"lane/base")),
        (settlement::key(&b(1), &b(2)), 19, format!("{one}{two}")),
        (parked::key(&b(1), &b(2)), 28, format!("{one}{two}")),
        (pause::key(), 29, hex(b"solver")),
        (outlay::key(&b(1)), 30, one.clone()),
    ];
    for (key, kind, name) in names {
        assert_eq!((key.kind.0, hex(&key.name)), (kind, name));
    }
}

#[test]
fn layout_of_what_was_paid_never_changes() {
    let paid = outlay::sample();
    let bytes = paid.encode().unwrap();
    assert_eq!(bytes, b"\x01\x01\x01b\x01c\x01\x01u\x80\x01");
    assert_eq!(outlay::Outlay::decode(&bytes), Ok(paid));
    assert_eq!(outlay::request(&outlay::key(&b(1))), Ok(b(1)));
}

#[test]
fn rows_of_the_solver_are_read_as_written_and_no_others() {
    let (claim, attempt, settlement) = (claim(), attempt(), settlement());
    assert_eq!(claim::Claim::decode(&claim.encode().unwrap()), Ok(claim));
    let bytes = attempt.encode().unwrap();
    assert_eq!(attempt::Attempt::decode(&bytes), Ok(attempt));
    let bytes = settlement.encode().unwrap();
    assert_eq!(settlement::Settlement::decode(&bytes), Ok(settlement));
    let ids = settlement::ids(&settlement::key(&b(1), &b(2)));
    assert_eq!(ids, Ok((b(1), b(2))));
    assert!(settlement::ids(&claim::key(&b(1))).is_err());
    let bytes = parked().encode().unwrap();
    assert_eq!(parked::Parked::decode(&bytes), Ok(parked()));
    let ids = parked::ids(&parked::key(&b(1), &b(2)));
    assert_eq!(ids, Ok((b(1), b(2))));
    let key = attempt::key("base", &[7]);
    assert_eq!(attempt::id("base", &key), Ok(vec![7].into()));
    assert!(attempt::id("b", &key).is_err());
    assert!(attempt::id("base", &account::key("base")).is_err());
    assert!(attempt::id("base", &attempt::resource("base", &[7])).is_err());
    assert_eq!(attempt::held_by(&attempt::holder(&[7])), Ok(vec![7].into()));
    for bytes in [&[][..], &[1], &[2, 1]] {
        assert!(attempt::held_by(bytes).is_err());
    }
    let amount = alloy::primitives::U256::MAX;
    let bytes = reservation::encode(amount);
    assert_eq!(reservation::decode(&bytes), Ok(amount));
    for bytes in [&[][..], &[2, 1], &[1, 0xff], &[1; 8]] {
        assert!(reservation::decode(bytes).is_err());
        assert!(claim::Claim::decode(bytes).is_err());
        assert!(attempt::Attempt::decode(bytes).is_err());
        assert!(settlement::Settlement::decode(bytes).is_err());
        assert!(parked::Parked::decode(bytes).is_err());
        assert!(pause::Paused::decode(bytes).is_err());
    }
    assert!(account::Account::decode(&[]).is_err());
    assert!(lease::Lease::decode(&[2, 3, 1]).is_err());
}

#[test]
fn integrators_are_kept_in_these_words() {
    let text = format!(
        r#"{{"label":"app","scopes":["quote","requests:read","fast-fill"],"tier":"elevated","keys":[{{"digest":"0x{}","created_at":5,"expires_at":null}}],"webhook":{{"url":"https://example.org/hook","headers":{{"x-a":"b"}}}},"wallet":{{"address":"0x1","linked_at":7}},"proved_at":0,"created_at":5,"revoked_at":null}}"#,
        "01".repeat(32)
    );
    let bytes = [&[1], text.as_bytes()].concat();
    let integrator = integrator::decode(&bytes).unwrap();
    assert_eq!(integrator::encode(&integrator).unwrap(), bytes);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn layouts_of_the_listing_never_change() {
    use crate::{
        request::{
            fact::{Facts, Standing},
            fixtures,
            name::Name,
            summary::{Role, Summary},
        },
        store::Key,
    };
    let request = fixtures::request(1);
    let found = Summary::of(&request, &Facts::default());
    let user = &fixtures::USER[2..];
    let usdc = &fixtures::USDC[2..];
    let side = |chain: &str| format!("{chain}0014{usdc}00");
    // 1,700,000,000,000 ms.
    let time = "80d095ffbc31";
    let fields = [
        format!("20{}20{}", "01".repeat(32), "81".repeat(32)),
        "00".into(),
        "0000".into(),
        format!("0014{user}0014{user}"),
        "00000000".into(),
        "01".into(),
        side("99f201"),
        side("9af201"),
        format!("{time}{time}"),
        "000000000000".into(),
        "00".into(),
    ];
    let bytes = summary::encode(&found).unwrap();
    assert_eq!(hex(&bytes), format!("01{}", fields.concat()));
    assert_eq!(summary::decode(&bytes).as_ref(), Ok(&found));
    for bytes in [&[][..], &[2, 0], &[1], &bytes[..bytes.len() - 1]] {
        assert!(summary::decode(bytes).is_err());
    }
    let rows = listed::rows(&found).unwrap();
    let of = |key: &Key| {
        let leads = listed::leads(key);
        assert_eq!(rows[key], if leads { vec![1] } else { bytes.clone() });
        hex(&key.name)
    };
    let names: Vec<_> = rows.keys().map(of).collect();
    let at = format!("0000018bcfe56800{}", "01".repeat(32));
    let nothing = format!("{}{}", "00".repeat(8), "01".repeat(32));
    let expected = [
        format!("61{nothing}"),
        format!("63{at}"),
        format!("6e61780014{user}{nothing}"),
        format!("6e63780014{user}{at}"),
        format!("6e75780014{user}{at}"),
        format!("75{at}"),
    ];
    assert_eq!(names, expected);
    let paid = Facts {
        deposits: vec![fixtures::deposit(1, Standing::Final)],
        ..Facts::default()
    };
    let (key, value) = listed::sendings(&found, &paid).pop_first().unwrap();
    let hash = format!("{:064x}", 1);
    assert_eq!(hex(&key.name), format!("74780020{hash}{at}"));
    assert_eq!(hex(&value), "0101");
    let deposit = listed::Listed::Transaction(vec![Role::Deposit]);
    assert_eq!(listed::decode(&key, &value), Ok(deposit));
    assert_eq!(hex(&Name::of("ab").key()), "7400026162");
    assert_eq!((summary::key(&b(1)).kind.0, key.kind.0), (25, 26));
}

#[test]
fn layout_of_what_large_quotes_take_never_changes() {
    let large = large::Large {
        bytes: 300,
        by: 7,
        keyed: true,
        network: "ab".into(),
        valid_until: 5,
    };
    let bytes = large.encode().unwrap();
    assert_eq!(bytes, b"\x01\xac\x02\x07\x01\x02ab\x05");
    assert_eq!(large::Large::decode(&bytes), Ok(large));
    let key = large::key(&b(1));
    assert_eq!((key.kind.0, large::request(&key)), (43, Ok(b(1))));
}

#[test]
fn every_quote_is_forgotten_a_day_after_its_orders_last_deadline() {
    use crate::request::fixtures;
    let until = |bytes: usize| {
        let request = fixtures::large(1, bytes);
        let row = quote::encode(&request).unwrap();
        (quote::is_large(&row), quote::split(&row).unwrap().0)
    };
    let last = crate::request::last_deadline(&fixtures::request(1).order);
    assert_eq!(until(1_000), (false, last + 86_400));
    assert_eq!(until(8_000), (true, last + 86_400));
}

#[test]
fn a_quote_is_a_requests_row_behind_its_end() {
    use crate::request::fixtures;
    let request = fixtures::request(1);
    let (key, bytes) = (quote::key(&request.id), quote::encode(&request).unwrap());
    assert_eq!((key.kind.0, key.name), (42, request.id.to_vec()));
    let (until, row) = quote::split(&bytes).unwrap();
    let last = crate::request::last_deadline(&request.order);
    assert_eq!(until, last + 86_400);
    assert_eq!(row, request::encode(&request).unwrap());
    assert_eq!(quote::decode(&bytes), Ok(request));
    for bytes in [&[][..], &[1], &[2, 0, 0, 0, 0, 0, 0, 0, 0], &bytes[..9]] {
        assert!(quote::decode(bytes).is_err());
    }
}

#[test]
fn layouts_of_witnesses_never_change() {
    use crate::{
        request::tx_details::{TxDetails, Worth},
        store::fixtures,
    };
    let (one, two) = ("01".repeat(32), "02".repeat(32));
    let wanted = fixtures::wanted();
    assert_eq!(hex(&wanted.value().unwrap()), format!("0120{one}20{two}03"));
    let seen =
        String::from_utf8(tx_details::encode_seen(&fixtures::tx_details()).unwrap()).unwrap();
    let expected = format!(
        r#"{{"from":"{user}","to":null,"data":"0x09","value":"0x5","fee":"0xff","place":{{"number":7,"hash":"{seven}","time":1700000007}},"success":true,"changes":[{{"address":"{user}","currency":"{usdc}","negative":true,"amount":"0x6"}}]}}"#,
        user = crate::request::fixtures::USER,
        usdc = crate::request::fixtures::USDC,
        seven = B256::with_last_byte(7),
    );
    assert_eq!(seen, format!("\u{1}{expected}"));
    let priced = TxDetails {
        prices: vec![Worth {
            currency: "0xa".into(),
            native: true,
            decimals: 18,
            usd: alloy::primitives::U256::from(7),
        }],
        ..fixtures::tx_details()
    };
    let bytes = tx_details::encode_seen(&priced).unwrap();
    let prices = r#","prices":[{"currency":"0xa","native":true,"decimals":18,"usd":"0x7"}]}"#;
    let before = expected.strip_suffix('}').unwrap();
    let seen = String::from_utf8(bytes.clone()).unwrap();
    assert_eq!(seen, format!("\u{1}{before}{prices}"));
    assert_eq!(tx_details::decode_seen(&bytes), Ok(priced));
    let names = [
        (wanted.key(), "006f726967696e00000000000000012c307861"),
        (tx_details::seen("origin", "0xA"), "016f726967696e00307861"),
    ];
    for (key, name) in names {
        assert_eq!((key.kind.0, hex(&key.name).as_str()), (24, name));
    }
    let same = |one, other| tx_details::seen("origin", one) == tx_details::seen("origin", other);
    assert!(same("AB12", "ab12") && same("0xAB", "0xab"));
    assert!(!same("5VfYe2", "5vfye2"), "base58 has case");
}

#[test]
fn witnesses_are_read_as_written_and_nothing_else_is() {
    use crate::store::{Key, fixtures};
    let (wanted, value) = (fixtures::wanted(), fixtures::wanted().value().unwrap());
    assert_eq!(tx_details::row(&wanted.key(), &value), Ok(wanted.clone()));
    let key = tx_details::seen("origin", "0xA");
    let bytes = tx_details::encode_seen(&fixtures::tx_details()).unwrap();
    assert_eq!(tx_details::decode_seen(&bytes), Ok(fixtures::tx_details()));
    let seen = tx_details::Either::Seen {
        network: "origin".into(),
        transaction: "0xa".into(),
        tx_details: fixtures::tx_details(),
    };
    assert_eq!(tx_details::either(&key, &bytes), Ok(seen));
    assert!(tx_details::row(&key, &bytes).is_err());
    for name in [
        &[][..],
        &[0],
        b"\x00origin",
        b"\x00origin\x00",
        b"\x00origin\x001234567",
        b"\x00origin\x0012345678",
        b"\x00origin\x0012345678\xff",
        b"\x02origin\x00123456789",
        b"\x00\x00123456789",
    ] {
        let key = Key::new(WITNESS, name);
        assert!(tx_details::either(&key, &value).is_err(), "{}", hex(name));
    }
    for name in [&b"\x01origin\x00"[..], b"\x01origin\x00\xff"] {
        assert!(tx_details::either(&Key::new(WITNESS, name), &bytes).is_err());
    }
    for bytes in [&[][..], &[2, 0], &[1], &[1, 0xff]] {
        assert!(tx_details::row(&wanted.key(), bytes).is_err());
        assert!(tx_details::decode_seen(bytes).is_err());
    }
}

fn candles() -> Vec<candle::Candle> {
    let first = candle::Candle {
        at: 300,
        open: 5,
        high: 300,
        low: 4,
        close: 6,
    };
    // 10^36, the largest possible price.
    let most = 1_000_000_000_000_000_000_000_000_000_000_000_000;
    let last = candle::Candle {
        at: 601,
        open: most,
        high: most,
        low: most,
        close: most,
    };
    vec![first, last]
}

const SERIES: candle::Series<'static> = candle::Series {
    network: "base",
    currency: "0xAb",
};

#[test]
fn layouts_of_candles_never_change() {
    use candle::Step;
    let bytes = candle::encode(&candles()).unwrap();
    assert!(
        hex(&bytes).starts_with("0102ac0205ac020406d904"),
        "{}",
        hex(&bytes)
    );
    assert_eq!(candle::decode(&bytes), Ok(candles()));
    let month = 32 * 86_400;
    for (step, at, name) in [
        (
            Step::Minutes,
            7_199,
            "0062617365007800 01ab0000000000000e10",
        ),
        (Step::Hour, 86_399, "0162617365007800 01ab0000000000000000"),
        (Step::Day, month, "0262617365007800 01ab00000000002a3000"),
    ] {
        let key = candle::key(step, SERIES, at);
        assert_eq!(hex(&key.name), name.replace(' ', ""), "{step:?}");
        let network = "base".to_owned();
        let start = at - at % step.page();
        let page = candle::Page {
            step,
            network,
            start,
        };
        assert_eq!((key.kind.0, candle::page(&key)), (44, Ok(page)));
    }
}

#[test]
fn what_is_no_page_of_candles_is_refused() {
    use crate::store::Key;
    let name_bytes = candle::key(candle::Step::Minutes, SERIES, 3_600).name;
    let changed = |at: usize, byte: u8| {
        let mut name = name_bytes.clone();
        name[at] = byte;
        name
    };
    for name in [
        Vec::new(),
        vec![0],
        name_bytes[..name_bytes.len() - 1].to_vec(),
        [&name_bytes[..], &[0]].concat(),
        // No step, no network, another kind, another length of the name, no start of a page.
        changed(0, 3),
        changed(1, 0),
        changed(6, b'y'),
        changed(8, 2),
        changed(name_bytes.len() - 1, 0x11),
    ] {
        assert!(candle::page(&Key::new(CANDLE, &*name)).is_err(), "{name:?}");
    }
    let good = candle::encode(&candles()).unwrap();
    for bytes in [&[][..], &[2, 0], &[1], &[1, 1], &good[..good.len() - 1]] {
        assert!(candle::decode(bytes).is_err());
    }
}

#[tokio::test]
async fn pages_of_a_currency_are_found_from_any_time_on_and_back_from_any() {
    use crate::store::{Batch, Range, Store, memory::MemoryStore};
    use candle::{Series, Step};
    let (store, row) = (MemoryStore::new(), candle::encode(&candles()).unwrap());
    let others = [
        Series {
            network: "base2",
            ..SERIES
        },
        Series {
            currency: "0xabcd",
            ..SERIES
        },
    ];
    let mut batch = Batch::new();
    for start in [0, 3_600, 10_800] {
        batch = batch.put(candle::key(Step::Minutes, SERIES, start), row.clone());
        for other in others {
            batch = batch.put(
                candle::key(Step::Minutes, other, start + 7_200),
                row.clone(),
            );
        }
        batch = batch.put(candle::key(Step::Hour, SERIES, start), row.clone());
    }
    store.commit(batch).await.unwrap();
    let starts = async |range: Range| -> Vec<u64> {
        let rows = store.scan(range).await.unwrap();
        let start = |(key, _): &(crate::store::Key, Vec<u8>)| candle::page(key).unwrap().start;
        rows.iter().map(start).collect()
    };
    for (from, wanted) in [
        (0, vec![0, 3_600, 10_800]),
        (3_599, vec![0, 3_600, 10_800]),
        (3_600, vec![3_600, 10_800]),
        (7_199, vec![3_600, 10_800]),
        (7_200, vec![10_800]),
        (14_400, vec![]),
    ] {
        let range = candle::since(Step::Minutes, SERIES, from);
        assert_eq!(starts(range).await, wanted, "from {from}");
    }
    for (until, wanted) in [
        (0, vec![0]),
        (3_599, vec![0]),
        (3_600, vec![3_600]),
        (10_799, vec![3_600]),
        (u64::MAX, vec![10_800]),
    ] {
        let range = candle::newest(Step::Minutes, SERIES, until);
        assert_eq!(starts(range).await, wanted, "until {until}");
    }
    // The case of hex does not matter.
    let spelled = Series {
        currency: "0XAB",
        ..SERIES
    };
    let range = candle::since(Step::Hour, spelled, 0);
    assert_eq!(starts(range).await, [0]);
}

/// The kinds that are constants, by their names.
fn constants() -> Vec<(Kind, String)> {
    let lines = include_str!("mod.rs").lines();
    let constants = lines.filter_map(|line| {
        line.strip_prefix("pub const ")?
            .split_once(": Kind = Kind(")
    });
    let kinds = constants.map(|(name, number)| {
        let number = number.trim_end_matches(");").parse().unwrap();
        (Kind(number), name.to_lowercase())
    });
    kinds.collect()
}

/// The guide's table of retention: kind, content, duration.
fn retention() -> Vec<[&'static str; 3]> {
    let guide = include_str!("../../guide/operate.md");
    let (_, section) = guide
        .split_once("### What is kept, and for how long")
        .unwrap();
    let section = section.split("\n#").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.map(|row| {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        <[&str; 3]>::try_from(cells).unwrap()
    });
    cells.collect()
}

/// Every kind of the table has a file in this folder, and every other file is shared.
#[test]
fn every_file_of_rows_stands_in_the_table() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store/rows");
    let kinds = KINDS.map(|one| one.name.to_uppercase());
    let mut left = kinds.to_vec();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if !name.ends_with(".rs") || ["any.rs", "mod.rs", "tests.rs"].contains(&name) {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let own: Vec<_> = words
            .filter(|word| kinds.iter().any(|kind| kind == word))
            .collect();
        assert!(!own.is_empty(), "{name} is of no kind of the table");
        left.retain(|kind| !own.contains(&kind.as_str()));
    }
    assert_eq!(left, [""; 0]);
    assert!(KINDS.is_sorted_by_key(|one| one.kind));
}

#[test]
fn every_kind_of_row_has_its_retention_in_the_guide() {
    let constants = constants();
    let known: Vec<_> = constants
        .iter()
        .map(|(kind, name)| (*kind, name.as_str()))
        .collect();
    assert_eq!(known, KINDS.map(|one| (one.kind, one.name)));
    let mut listed = Vec::new();
    for [kind, what, kept] in retention() {
        let kind = kind.trim_matches('`');
        listed.push(kind);
        assert!(!what.is_empty() && !kept.is_empty(), "{kind}");
        let one = KINDS.iter().find(|one| one.name == kind).unwrap();
        let fits = match one.kept {
            Kept::Good => kept.starts_with("for good"),
            Kept::With(of) => {
                let of = super::kind(of).unwrap().name;
                kept.contains("as long as") && kept.contains(of)
            }
            Kept::Done | Kept::Swept => !kept.contains("as long as"),
        };
        assert!(fits, "{kind}: {kept}");
    }
    let mut names: Vec<_> = known.iter().map(|(_, name)| *name).collect();
    listed.sort_unstable();
    names.sort_unstable();
    assert_eq!(listed, names);
}
