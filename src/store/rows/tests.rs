//! The bytes on disk. Whoever changes one gives its kind a new format and reads both.

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
        "20{one}ac02010173010177016201046261736503307831{number}20{two}20{three}05020908",
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
    };
    assert_eq!(hex(&halt.encode().unwrap()), "010177ac02");
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
    ];
    for (key, kind, name) in names {
        assert_eq!((key.kind.0, hex(&key.name)), (kind, name));
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
