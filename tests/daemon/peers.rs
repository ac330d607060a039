//! Peers of every mood: whatever they do, the answer is ours, with the signatures that hold.

use std::time::{Duration, Instant};

use crate::support::{
    daemon::{Daemon, daemon},
    fixture,
    http::Server,
    peer::{Peers, Received},
    world,
};
use serde_json::{Value, json};

const OURS: &str = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
const THEIRS: &str = "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc";
const DEPOSITS: &str = "/attestations/depository-deposits/v1";

/// Recorded cases whose peers' signatures the reference passed on unchecked: what stands now.
const CHECKED: &[(&str, &[&str])] = &[
    ("peer dup", &[OURS, THEIRS]),
    ("peer forged", &[OURS]),
    ("peer nosigner", &[OURS]),
    ("peer redirect", &[OURS]),
    ("signers set, forged non-member", &[OURS]),
];

#[tokio::test(flavor = "multi_thread")]
async fn recorded_moods_give_the_recorded_signatures_that_hold() {
    let world = world::world().await;
    for case in fixture("recorded/peers.json").as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let peers = Peers::start().await;
        let mut setup = daemon().recorded(&world);
        for (variable, value) in case["env"].as_object().unwrap() {
            let own = format!("http://{}", peers.server.address);
            let mut value = value
                .as_str()
                .unwrap()
                .replace("http://127.0.0.1:23100", &own);
            // Only the slow peer must not answer within the recorded second.
            if variable == "PEER_REQUEST_TIMEOUT_MS" && name != "peer slow" {
                value = "4000".to_owned();
            }
            setup = setup.with(variable, value);
        }
        let daemon = setup.start().await;
        let begun = Instant::now();
        let text = |field: &str| case[field].as_str().unwrap();
        let answer = daemon
            .post(text("path"), text("key"), &case["request"])
            .await;
        let limit = Duration::from_millis(case["expect"]["withinMs"].as_u64().unwrap());
        assert!(
            begun.elapsed() < limit,
            "{name}: took {:?}",
            begun.elapsed()
        );
        assert_eq!(answer.status, 200, "{name}: {}", answer.body);
        match CHECKED.iter().find(|row| row.0 == name) {
            Some((_, signers)) => assert_eq!(answer.signed_by(), *signers, "{name}"),
            None => {
                let signatures = &answer.json()["execution"]["signatures"];
                assert_eq!(*signatures, case["expect"]["signatures"], "{name}");
            }
        }
        let mut wanted = expected(&case["expect"]["received"]);
        // No redirect is followed.
        wanted.retain(|received| name != "peer redirect" || received.mood == "redirect");
        let found = peers.received();
        // Who is not reached yet when enough have signed is not asked any more.
        if name == "signers set, threshold 1, slow second peer" {
            wanted.retain(|received| received.mood != "slow" || found.contains(received));
        }
        assert_eq!(found, wanted, "{name}");
        daemon.stop().await;
    }
}

fn expected(received: &Value) -> Vec<Received> {
    let one = |of: &Value| Received {
        mood: of["mood"].as_str().unwrap().to_owned(),
        path: of["path"].as_str().unwrap().to_owned(),
        key: of["key"].as_str().map(str::to_owned),
        body: of["body"].clone(),
    };
    let mut all: Vec<Received> = received.as_array().unwrap().iter().map(one).collect();
    all.sort_by(|a, b| a.mood.cmp(&b.mood));
    all
}

fn deposit() -> Value {
    json!({
        "chainId": "ethereum", "requestPeerSignatures": true,
        "transactionId": "0x765543bbdc601046eb1441d038bdcf0ec80ac997cbf016793307461a731c2df8",
    })
}

struct Fixture {
    _world: Server,
    peers: Peers,
    daemon: Daemon,
}

async fn with_peers(moods: &[&str]) -> Fixture {
    let (world, peers) = (world::world().await, Peers::start().await);
    let list: Vec<String> = moods.iter().map(|mood| peers.url(mood) + "|pk").collect();
    let daemon = daemon()
        .recorded(&world)
        .with("PEERS", list.join(";"))
        .with("PEER_REQUEST_TIMEOUT_MS", "5000")
        .start()
        .await;
    Fixture {
        _world: world,
        peers,
        daemon,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_peers_are_left_out_and_the_honest_one_is_kept() {
    for mood in [
        "huge",
        "hang",
        "drop",
        "truncated",
        "array",
        "noexecution",
        "wrongchain",
        "renamed",
        "otherdigest",
    ] {
        let fixture = with_peers(&[mood, "ok"]).await;
        let answer = fixture.daemon.post(DEPOSITS, "", &deposit()).await;
        assert_eq!(answer.status, 200, "{mood}: {}", answer.body);
        assert_eq!(answer.signed_by(), [OURS, THEIRS], "{mood}");
        assert_eq!(answer.signers.as_deref(), Some("2/0"), "{mood}");
        fixture.daemon.stop().await;
    }
}

/// What drips would take half a minute.
#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_drips_is_skipped_and_the_answer_is_in_time() {
    for (moods, signers) in [
        (&["drip"][..], &[OURS][..]),
        (&["drip", "ok"][..], &[OURS, THEIRS][..]),
    ] {
        let fixture = with_peers(moods).await;
        let begun = Instant::now();
        let answer = fixture.daemon.post(DEPOSITS, "", &deposit()).await;
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(10), "{moods:?}: took {took:?}");
        assert_eq!(answer.status, 200, "{moods:?}: {}", answer.body);
        assert_eq!(answer.signed_by(), signers, "{moods:?}");
        fixture.daemon.stop().await;
    }
}

/// An answer has times of the chain and none of a clock. A peer for which they are others signs another execution.
#[tokio::test(flavor = "multi_thread")]
async fn a_peer_whose_times_are_an_hour_off_is_left_out() {
    for (mood, signers, counted) in [
        ("ontime", &[OURS, THEIRS][..], "2/0"),
        ("hourahead", &[OURS][..], "1/0"),
        ("hourbehind", &[OURS][..], "1/0"),
    ] {
        let fixture = with_peers(&[mood]).await;
        let answer = fixture.daemon.post(DEPOSITS, "", &deposit()).await;
        assert_eq!(answer.status, 200, "{mood}: {}", answer.body);
        assert_eq!(answer.signed_by(), signers, "{mood}");
        assert_eq!(answer.signers.as_deref(), Some(counted), "{mood}");
        assert_eq!(fixture.peers.received().len(), 1, "{mood}");
        fixture.daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_signer_behind_two_urls_counts_once() {
    let fixture = with_peers(&["ok", "uppercase"]).await;
    let answer = fixture.daemon.post(DEPOSITS, "", &deposit()).await;
    assert_eq!(answer.signed_by(), [OURS, THEIRS]);
    fixture.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_fields_reach_the_peers_and_nobody_is_asked_unasked() {
    let fixture = with_peers(&["extra"]).await;
    assert!(fixture.peers.received().is_empty());
    let mut body = deposit();
    body["unknown"] = json!({"deep": [1, {"big": 12345678901234567890u64}]});
    let answer = fixture
        .daemon
        .post(&format!("{DEPOSITS}?x=1"), "", &body)
        .await;
    assert_eq!(answer.status, 200);
    let received = fixture.peers.received();
    body["requestPeerSignatures"] = false.into();
    assert_eq!((received.len(), &received[0].body), (1, &body));
    assert_eq!(received[0].path, format!("{DEPOSITS}?x=1"));
    fixture.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_request_asks_no_peer_and_refused_claim_is_refused_whatever_peers_say() {
    let fixture = with_peers(&["ok"]).await;
    let mut body = deposit();
    body["chainId"] = "nochain".into();
    assert_eq!(fixture.daemon.post(DEPOSITS, "", &body).await.status, 400);
    assert!(fixture.peers.received().is_empty());
    fixture.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forced_claim_reaches_only_peers_that_see_the_callers_own_key() {
    let (world, peers) = (world::world().await, Peers::start().await);
    let list = [
        peers.url("extra") + "|pk",
        peers.url("empty"),
        peers.url("ok") + "|pass-through",
    ];
    let daemon = daemon()
        .recorded(&world)
        .key("callers")
        .with("FORCE_API_KEYS", "caller")
        .with("PEERS", list.join(";"))
        .start()
        .await;
    let recorded = fixture("recorded/peer-answers.json");
    for claim in recorded.as_array().unwrap() {
        let (path, mut body) = (claim["path"].as_str().unwrap(), claim["body"].clone());
        if !path.contains("/solver") {
            continue;
        }
        for (force, moods) in [
            (json!(true), &["ok"][..]),
            (json!(1), &["ok"]),
            (json!(false), &["empty", "extra", "ok"]),
        ] {
            let before = peers.received();
            body["force"] = force.clone();
            body["requestPeerSignatures"] = true.into();
            let answer = daemon.post(path, "callers", &body).await;
            assert_eq!(answer.status, 200, "{path}: {}", answer.body);
            let mut asked = peers.received();
            asked.retain(|received| !before.contains(received));
            let found: Vec<&str> = asked.iter().map(|r| r.mood.as_str()).collect();
            assert_eq!(found, moods, "{path} {force}");
            let key = |mood: &str| match mood {
                "extra" => Some("pk".to_owned()),
                "empty" => None,
                _ => Some("callers".to_owned()),
            };
            assert!(asked.iter().all(|r| r.key == key(&r.mood)), "{asked:?}");
        }
    }
    daemon.stop().await;
}

/// Each hash is a call of the allocator.
#[tokio::test(flavor = "multi_thread")]
async fn a_withdraw_request_is_one_request_and_many_of_its_hashes_are_several() {
    let world = world::world().await;
    let daemon = daemon()
        .recorded(&world)
        .key("k")
        .with("UNAUTHENTICATED_RATE_LIMIT_MAX", "5")
        .with("UNAUTHENTICATED_RATE_LIMIT_WINDOW_MS", "600000")
        .start()
        .await;
    let recorded = fixture("recorded/messages.json");
    let path = "/attestations/withdraw-requests/v1";
    let mut cases = recorded.as_array().unwrap().iter();
    let case = cases.find(|case| case["path"] == path && case["response"]["status"] == 200);
    let few = case.unwrap()["body"].clone();
    let mut many = few.clone();
    many["hashIndexes"] = json!((0..17).collect::<Vec<_>>());
    let mut too_many = few.clone();
    too_many["hashIndexes"] = json!((0..65).collect::<Vec<_>>());
    for (key, body, status) in [
        ("", &few, 200),
        ("", &many, 400),
        ("", &too_many, 400),
        ("", &few, 429),
        ("k", &many, 400),
        ("k", &few, 200),
    ] {
        let answer = daemon.post(path, key, body).await;
        assert_eq!(answer.status, status, "{key} {}", answer.body);
    }
    daemon.stop().await;
}

/// Two transactions (a deposit, a fill) are one request, as they are for other oracles; what is refused for
/// its length takes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_of_one_input_is_one_request_and_too_many_inputs_are_no_more() {
    let world = world::world().await;
    let daemon = daemon()
        .recorded(&world)
        .key("k")
        .with("UNAUTHENTICATED_RATE_LIMIT_MAX", "4")
        .with("UNAUTHENTICATED_RATE_LIMIT_WINDOW_MS", "600000")
        .start()
        .await;
    let recorded = fixture("recorded/peer-answers.json");
    let claim = |route: &str| {
        let mut claims = recorded.as_array().unwrap().iter();
        let claim = claims.find(|claim| claim["path"].as_str().unwrap().ends_with(route));
        let claim = claim.unwrap();
        (claim["path"].as_str().unwrap(), claim["body"].clone())
    };
    let (fills, fill) = claim("solver-fills/v1");
    let (refunds, refund) = claim("solver-refunds/v1");
    let list = |name: &str, body: &Value| {
        let mut long = body.clone();
        long[name] = vec![body[name][0].clone(); 65].into();
        long
    };
    let (inputs, given) = (list("inputs", &fill), list("refunds", &refund));
    for (path, body, status) in [
        (fills, &inputs, 400),
        (refunds, &given, 400),
        (fills, &fill, 200),
        (refunds, &refund, 200),
        (fills, &fill, 429),
    ] {
        let answer = daemon.post(path, "", body).await;
        assert_eq!(answer.status, status, "{path} {}", answer.body);
        if status == 400 {
            assert_eq!(answer.code(), "TOO_MANY_ITEMS");
        }
    }
    daemon.stop().await;
}
