//! The Esplora index: it shows what a node shows, knows its customers, and is believed no more.

use serde_json::{Value, json};
use vm::{ChainSpec, ReadError, SpecError, Transaction};

use super::{
    ledger::Ledger,
    node::{Node, WORLD, node, serve, spec},
};

/// An entry that names the node's index, with more fields.
fn indexed(node: &Node, more: Value) -> std::sync::Arc<ChainSpec> {
    let mut additional = json!({"esploraCompatibleApiUrl": node.index_url()});
    let fields = additional.as_object_mut().unwrap();
    fields.extend(more.as_object().cloned().unwrap());
    spec(additional)
}

async fn look(node: &Node, id: &str) -> Result<Transaction, ReadError> {
    let spec = indexed(node, json!({}));
    let reader = node.open_index(&spec).reader;
    let head = reader.head().await?;
    let tx = spec.family.tx(id, None).unwrap();
    reader.transaction(&tx, &head).await
}

fn recorded() -> impl Iterator<Item = (&'static String, &'static Value)> {
    WORLD["transactions"].as_object().unwrap().iter()
}

/// A deposit of the recorded world.
fn deposit() -> String {
    let pays = |value: &Value| value["vout"][0]["value"] == json!(0.0005);
    let (id, _) = recorded().find(|(_, it)| pays(it)).unwrap();
    id.clone()
}

#[tokio::test]
async fn index_shows_what_the_node_shows() {
    let node = node().await;
    let spec = indexed(&node, json!({}));
    let (index, direct) = (node.open_index(&spec).reader, node.open(&spec).reader);
    let head = direct.head().await.unwrap();
    assert_eq!(index.head().await.unwrap(), head);
    let mut seen = 0;
    for (id, _) in recorded() {
        let tx = spec.family.tx(id, None).unwrap();
        let shown = index.transaction(&tx, &head).await;
        match direct.transaction(&tx, &head).await {
            Ok(found) => {
                assert_eq!(shown, Ok(found), "{id}");
                seen += 1;
            }
            Err(_) => assert!(shown.is_err(), "{id}"),
        }
    }
    assert!(seen > 10, "{seen}");
    let unknown = spec.family.tx(&"00".repeat(32), None).unwrap();
    let missing = index.transaction(&unknown, &head).await;
    assert_eq!(missing, Ok(Transaction::Missing));
}

#[tokio::test]
async fn index_is_pinned_to_the_head() {
    let node = node().await;
    let spec = indexed(&node, json!({}));
    let reader = node.open_index(&spec).reader;
    let mut head = reader.head().await.unwrap();
    assert!(reader.contains(&head.block).await.unwrap());
    let mut dated = head.block.clone();
    dated.time += 1;
    assert!(!reader.contains(&dated).await.unwrap());
    let tx = spec.family.tx(&deposit(), None).unwrap();
    head.block.hash.0[0] ^= 1;
    assert!(!reader.contains(&head.block).await.unwrap());
    let forked = reader.transaction(&tx, &head).await;
    assert!(matches!(forked, Err(ReadError::Doubtful(_))), "{forked:?}");
    head.block.number = 1_000;
    let behind = reader.transaction(&tx, &head).await;
    assert!(
        matches!(behind, Err(ReadError::Unavailable(_))),
        "{behind:?}"
    );
}

#[tokio::test]
async fn doubtful_answers_of_an_index_are_refused() {
    type Garble = fn(&str, &mut String);
    let lies: [(&str, Garble); 6] = [
        ("another transaction", |path, text| {
            if path.starts_with("tx/") {
                *text = text.replacen("\"txid\":\"3e1b", "\"txid\":\"4e1b", 1);
            }
        }),
        ("another header", |path, text| {
            if path.starts_with("block/") {
                *text = text.replace("375c", "475c");
            }
        }),
        ("cut text", |path, text| {
            if path.starts_with("tx/") {
                text.truncate(text.len() - 1);
            }
        }),
        ("half a satoshi", |path, text| {
            if path.starts_with("tx/") {
                *text = text.replace("\"value\":50000", "\"value\":50000.5");
            }
        }),
        ("no hash", |path, text| {
            if path.starts_with("block-height/") {
                *text = "<html>".into();
            }
        }),
        ("a field twice", |path, text| {
            if path.starts_with("tx/") {
                *text = text.replacen("\"vin\":", "\"vin\":[],\"vin\":", 1);
            }
        }),
    ];
    for (what, lie) in lies {
        let node = node().await;
        let honest = look(&node, &deposit()).await;
        assert!(matches!(honest, Ok(Transaction::Succeeded(_))), "{what}");
        node.garble(lie);
        let read = look(&node, &deposit()).await;
        assert!(
            matches!(read, Err(ReadError::Doubtful(_))),
            "{what}: {read:?}"
        );
    }
}

#[tokio::test]
async fn an_index_of_another_chain_has_no_vote() {
    let node = serve(Ledger::new()).await;
    let first = node.ledger(|ledger| ledger.hash_at(&json!(0)).unwrap());
    let right = indexed(&node, json!({"genesisHash": first}));
    assert!(node.open_index(&right).reader.head().await.is_ok());
    for other in [
        json!({"genesisHash": "00".repeat(32)}),
        json!({"network": "main"}),
    ] {
        let read = node.open_index(&indexed(&node, other)).reader.head().await;
        assert!(matches!(read, Err(ReadError::Doubtful(_))), "{read:?}");
    }
}

#[tokio::test]
async fn a_key_is_shown_in_its_header() {
    let node = node().await;
    let spec = indexed(&node, json!({"maestroApiKey": "s3cret"}));
    node.open_index(&spec).reader.head().await.unwrap();
    let headers = node.state.headers.lock().unwrap();
    assert!(!headers.is_empty());
    assert!(headers.iter().all(|sent| sent["api-key"] == "s3cret"));
}

#[tokio::test]
async fn client_credentials_become_a_token_that_is_used_until_it_is_refused() {
    let node = node().await;
    *node.state.token.lock().unwrap() = Some("one".into());
    let client = json!({"blockstreamClientId": "us", "blockstreamClientSecret": "s3cret&",
        "blockstreamTokenUrl": node.token_url()});
    let spec = indexed(&node, client);
    let reader = node.open_index(&spec).reader;
    for _ in 0..3 {
        reader.fresh_head().await.unwrap();
    }
    assert_eq!(node.count("token"), 1);
    let form =
        "token client_id=us&client_secret=s3cret%26&grant_type=client_credentials&scope=openid";
    assert_eq!(node.count(form), 1);
    // A token that was just given is not given up at once.
    *node.state.token.lock().unwrap() = Some("two".into());
    let refused = reader.fresh_head().await.unwrap_err();
    assert_eq!(node.count("token"), 1);
    assert!(!refused.to_string().contains("s3cret"), "{refused}");
}

#[tokio::test]
async fn without_a_token_nothing_is_asked_and_nothing_is_told() {
    let node = node().await;
    *node.state.token.lock().unwrap() = Some("one".into());
    node.garble(|what, text| {
        if what == "token" {
            *text = r#"{"error":"s3cret"}"#.into();
        }
    });
    let client = json!({"blockstreamClientId": "us", "blockstreamClientSecret": "s3cret",
        "blockstreamTokenUrl": node.token_url()});
    let spec = indexed(&node, client);
    let reader = node.open_index(&spec).reader;
    for _ in 0..3 {
        let error = reader.fresh_head().await.unwrap_err();
        assert!(matches!(&error, ReadError::Unavailable(why) if !why.contains("s3cret")));
    }
    // The server that gives none is not asked at every read.
    assert_eq!((node.count("token"), node.count("GET")), (1, 0));
}

#[tokio::test]
async fn credentials_that_do_not_fit_stop_the_start() {
    let node = node().await;
    let opened = |more: Value| -> Result<(), SpecError> {
        let spec = indexed(&node, more);
        let endpoint = vm::Endpoint {
            position: 1,
            url: node.index_url().parse().unwrap(),
            timeout: std::time::Duration::from_secs(1),
            longest: 1_000,
            allows: None,
            client: vm::Endpoint::client().unwrap(),
        };
        (spec.family.open.unwrap())(&spec, &endpoint).map(|_| ())
    };
    assert_eq!(opened(json!({})), Ok(()));
    assert_eq!(
        opened(json!({"maestroApiKey": "", "blockstreamClientId": null})),
        Ok(())
    );
    for wrong in [
        json!({"blockstreamClientId": "s3cret"}),
        json!({"blockstreamClientSecret": "s3cret"}),
        json!({"maestroApiKey": "s3cret\n"}),
        json!({"maestroApiKey": 7}),
        json!({"maestroApiKey": "s3cret", "blockstreamClientId": "s3cret", "blockstreamClientSecret": "s3cret"}),
        json!({"blockstreamClientId": "us", "blockstreamClientSecret": "s3cret", "blockstreamTokenUrl": "s3cret"}),
    ] {
        let error = opened(wrong.clone()).unwrap_err().0;
        assert!(!error.contains("s3cret"), "{wrong}: {error}");
    }
}
