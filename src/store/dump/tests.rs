use super::*;
use crate::store::{memory::MemoryStore, scene, walk::same};

async fn exported() -> (MemoryStore, Vec<u8>) {
    let (store, mut bytes) = (MemoryStore::new(), Vec::new());
    scene::fill(&store, scene::rows()).await;
    let rows = write(&store, &mut bytes).await.unwrap();
    assert_eq!(rows, scene::count());
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
    assert_eq!(read_again.to_string(), format!("{} rows", scene::count()));
    assert!(same(&store, &again).await.unwrap());
    let mut twice = Vec::new();
    write(&again, &mut twice).await.unwrap();
    assert_eq!(bytes, twice);
    let text = String::from_utf8(bytes).unwrap();
    let head = r#"{"dump":"intentd store","version":1,"format":3}"#;
    assert_eq!(text.lines().next(), Some(head));
    let halt = r#"{"kind":7,"name":"0x6f726967696e","value":"0x"#;
    assert!(text.lines().any(|line| line.starts_with(halt)), "{text}");
    assert!(
        text.lines()
            .last()
            .unwrap()
            .starts_with(&format!(r#"{{"rows":{},"sha256":"0x"#, scene::count()))
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
    for (version, format, told) in [
        (2, FORMAT, "a newer version"),
        (1, FORMAT + 1, "a newer version"),
        (1, FORMAT - 1, "another signing key"),
        (1, 0, "another signing key"),
    ] {
        let error = error(head(version, format).as_bytes()).await;
        assert!(matches!(error, DumpError::Version { .. }), "{error}");
        assert!(error.to_string().contains(told), "{error}");
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
