use super::*;
use crate::store::{
    check::check,
    fixtures,
    memory::MemoryStore,
    rows,
    walk::{Stored, same},
};

async fn exported() -> (MemoryStore, Vec<u8>) {
    let (store, mut bytes) = (MemoryStore::new(), Vec::new());
    fixtures::fill(&store, fixtures::rows()).await;
    let rows = write(&store, &mut bytes).await.unwrap();
    assert_eq!(rows, fixtures::count());
    (store, bytes)
}

async fn error(bytes: &[u8]) -> DumpError {
    let store = MemoryStore::new();
    read(&store, &mut &bytes[..])
        .await
        .expect_err("it was read")
}

#[tokio::test]
async fn what_was_written_is_read_again() {
    let (store, bytes) = exported().await;
    let again = MemoryStore::new();
    let read_again = read(&again, &mut &bytes[..]).await.unwrap();
    assert_eq!(
        read_again.to_string(),
        format!("{} rows", fixtures::count())
    );
    assert!(same(&store, &again).await.unwrap());
    let mut twice = Vec::new();
    write(&again, &mut twice).await.unwrap();
    assert_eq!(bytes, twice);
    let text = String::from_utf8(bytes).unwrap();
    let head = r#"{"dump":"intentd store","version":1,"format":4}"#;
    assert_eq!(text.lines().next(), Some(head));
    let halt = r#"{"kind":7,"name":"0x6f726967696e","value":"0x"#;
    assert!(text.lines().any(|line| line.starts_with(halt)), "{text}");
    assert!(
        text.lines()
            .last()
            .unwrap()
            .starts_with(&format!(r#"{{"rows":{},"sha256":"0x"#, fixtures::count()))
    );
}

#[tokio::test]
async fn a_store_without_rows_is_written_too() {
    let (store, mut bytes) = (MemoryStore::new(), Vec::new());
    assert_eq!(write(&store, &mut bytes).await.unwrap(), 0);
    assert_eq!(read(&store, &mut &bytes[..]).await.unwrap().rows, 0);
}

#[tokio::test]
async fn a_file_that_was_cut_anywhere_is_refused() {
    let (_, bytes) = exported().await;
    for cut in (0..bytes.len()).step_by(7).chain([bytes.len() - 1]) {
        error(&bytes[..cut]).await;
    }
    let last = bytes[..bytes.len() - 1]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .unwrap();
    assert!(matches!(error(&bytes[..=last]).await, DumpError::Cut));
}

#[tokio::test]
async fn a_file_that_was_changed_anywhere_is_refused() {
    let (_, bytes) = exported().await;
    for at in (0..bytes.len()).step_by(11) {
        let mut changed = bytes.clone();
        // Hex digits stay hex digits, so that only the checksum can tell.
        changed[at] = if changed[at] == b'1' { b'2' } else { b'1' };
        error(&changed).await;
    }
    let longer = [&bytes[..], b"\n"].concat();
    assert!(matches!(error(&longer).await, DumpError::Changed));
}

#[tokio::test]
async fn what_is_no_export_or_of_another_version_is_refused() {
    let head = |version, format| {
        format!("{{\"dump\":\"intentd store\",\"version\":{version},\"format\":{format}}}\n")
    };
    for (version, format, message) in [
        (2, FORMAT, "a newer version"),
        (1, FORMAT + 1, "a newer version"),
        (1, 2, "another signing key"),
        (1, 0, "another signing key"),
    ] {
        let error = error(head(version, format).as_bytes()).await;
        assert!(matches!(error, DumpError::Version { .. }), "{error}");
        assert!(error.to_string().contains(message), "{error}");
    }
    for foreign in [
        "",
        "{}",
        "x\n",
        "{\"dump\":\"x\",\"version\":1,\"format\":1}\n",
    ] {
        assert!(matches!(
            error(foreign.as_bytes()).await,
            DumpError::Foreign
        ));
    }
    let row = |name: &str| format!("{{\"kind\":7,\"name\":\"{name}\",\"value\":\"0x01\"}}\n");
    let back = head(1, FORMAT) + &row("0x62") + &row("0x61");
    assert!(matches!(error(back.as_bytes()).await, DumpError::Order(3)));
    let twice = head(1, FORMAT) + &row("0x62") + &row("0x62");
    assert!(matches!(error(twice.as_bytes()).await, DumpError::Order(3)));
    let own = head(1, FORMAT) + &row("0x61").replace('7', "0");
    assert!(matches!(error(own.as_bytes()).await, DumpError::Line(2)));
    let rubbish = head(1, FORMAT) + "{\"kind\":7}\n";
    assert!(matches!(
        error(rubbish.as_bytes()).await,
        DumpError::Line(2)
    ));
}

/// A row as format 3 had it; `None` where there was none.
fn of_nonces(row: Stored) -> Option<Stored> {
    use crate::store::rows::{ATTEMPT, CLAIM, LANE, RESOURCE, SETTLEMENT};
    let ((key, value), nonce) = (row, fixtures::NONCE);
    let json = |value: &[u8]| {
        let text = std::str::from_utf8(&value[1..]).unwrap();
        let named = |nonce: u64| {
            let id = fixtures::attempt_id(nonce);
            (
                format!(r#""attempt":"{id}""#),
                format!(r#""nonce":{nonce}"#),
            )
        };
        let renamed = [nonce, nonce - 1].map(named).into_iter();
        let text = renamed.fold(text.to_owned(), |text, (now, then)| {
            text.replace(&now, &then)
        });
        [&[1], text.as_bytes()].concat()
    };
    let word = |last: u8| [&[32][..], &[0; 31], &[last]].concat();
    let request = fixtures::id();
    match key.kind {
        CLAIM | SETTLEMENT => Some((key, json(&value))),
        LANE => Some((key, vec![1, 8, 0, 1, b'a'])),
        ATTEMPT => {
            let user = crate::request::fixtures::USER;
            let value = [
                &[1, 0, 32][..],
                request.as_slice(),
                &[42],
                user.as_bytes(),
                &[0],
                &word(5),
                &[0, 0x88, 0xa4, 0x01],
                &word(0),
                &[0, 1, 32],
                &[5; 32],
                &[1, 1, 0x88, 0xa4, 0x01, 1, 1, 0, 4, 0],
            ];
            Some((Key::new(LANE, key.name), value.concat()))
        }
        RESOURCE => None,
        _ => Some((key, value)),
    }
}

fn of_format(format: u8, mut rows: Vec<Stored>) -> Vec<u8> {
    rows.sort();
    let head = format!("{{\"dump\":\"intentd store\",\"version\":1,\"format\":{format}}}\n");
    let line = |(key, value): &Stored| {
        let line = Line {
            kind: key.kind.0,
            name: key.name.clone().into(),
            value: value.clone().into(),
        };
        serde_json::to_string(&line).unwrap() + "\n"
    };
    let text = head + &rows.iter().map(line).collect::<String>();
    let foot = Foot {
        rows: rows.len() as u64,
        sha256: B256::from_slice(&Sha256::digest(&text)),
    };
    (text + &serde_json::to_string(&foot).unwrap() + "\n").into_bytes()
}

#[tokio::test]
async fn an_export_of_nonces_is_carried_over_with_what_is_on_its_way() {
    let (store, _) = exported().await;
    let rows: Vec<_> = fixtures::rows().into_iter().filter_map(of_nonces).collect();
    let (lanes, again) = (rows::LANE, MemoryStore::new());
    assert_eq!(rows.iter().filter(|(key, _)| key.kind == lanes).count(), 2);
    let bytes = of_format(3, rows.clone());
    read(&again, &mut &bytes[..]).await.unwrap();
    assert!(same(&store, &again).await.unwrap());
    assert_eq!(check(&again).await.unwrap().defects, 0);
    // What it cannot read it does not guess.
    for (at, (key, _)) in rows.iter().enumerate() {
        if [rows::LANE, rows::CLAIM, rows::SETTLEMENT].contains(&key.kind) {
            let mut broken = rows.clone();
            broken[at].1[0] = 2;
            let error = error(&of_format(3, broken)).await;
            assert!(matches!(error, DumpError::Row(_)), "{error}");
        }
    }
}
