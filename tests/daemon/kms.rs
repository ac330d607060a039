//! An oracle whose key is in a key service, against fakes of both services. Whatever a service does, no signature that
//! is not the key's own leaves the daemon.

mod aws;
mod ed25519;
mod gcp;
mod vault;

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use devnet::{claim, world::Devnet};
use futures::future::join;
use hyper::StatusCode;
use intentd::{config::Config, run};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpSocket;
use vm::protocol::{
    message::{Domain, Execution, TypedMessage},
    signature::Signature,
};

pub use self::vault::{Mood, Vault};
use crate::support::{
    chain::{DEPOSITS, Deal, native},
    daemon::{Answer, Daemon, KEY, Setup, daemon},
    fixture,
    http::{self, Server},
    world,
};

/// A fake and what serves it.
pub struct Fake {
    pub vault: Arc<Vault>,
    variables: Vec<(&'static str, String)>,
    served: Served,
}

/// They serve until they are dropped.
enum Served {
    Gcp(gcp::Server),
    Aws(Server),
}

impl Fake {
    pub async fn gcp(key: &str) -> Self {
        Self::in_gcp(Vault::of(key)).await
    }

    async fn in_gcp(vault: Vault) -> Self {
        let vault = Arc::new(vault);
        let server = gcp::serve(vault.clone(), ([127, 0, 0, 1], 0).into()).await;
        let variables = vec![
            ("SIGNING_MODULE", "gcp-kms".to_owned()),
            ("GCP_KMS_KEY_VERSION", gcp::VERSION.to_owned()),
            ("GCP_KMS_ENDPOINT", format!("http://{}", server.address)),
        ];
        Self {
            vault,
            variables,
            served: Served::Gcp(server),
        }
    }

    pub async fn aws(key: &str) -> Self {
        Self::in_aws(Vault::of(key)).await
    }

    async fn in_aws(vault: Vault) -> Self {
        let vault = Arc::new(vault);
        let server = aws::serve(vault.clone()).await;
        let variables = vec![
            ("SIGNING_MODULE", "aws-kms".to_owned()),
            ("AWS_KMS_SIGNER_KEY_ID", aws::ALIAS.to_owned()),
            ("AWS_KMS_SIGNER_KEY_REGION", aws::REGION.to_owned()),
            ("AWS_KMS_ENDPOINT", format!("http://{}", server.address)),
            ("AWS_ACCESS_KEY_ID", aws::ACCESS_KEY.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", aws::SECRET.to_owned()),
        ];
        Self {
            vault,
            variables,
            served: Served::Aws(server),
        }
    }

    async fn both() -> [Self; 2] {
        [Self::gcp(KEY).await, Self::aws(KEY).await]
    }

    /// With the key in this service.
    fn signing(&self, setup: Setup) -> Setup {
        let variables = self.variables.iter();
        variables.fold(setup, |setup, (name, value)| setup.with(name, value))
    }

    /// With the solver's key in this service.
    pub fn solving(&self, setup: Setup) -> Setup {
        let variables = self.variables.iter();
        let setup = variables.fold(setup, |setup, (name, value)| {
            let (own, value) = match *name {
                "SIGNING_MODULE" => ("SOLVER_SIGNING_MODULE", value.as_str()),
                "GCP_KMS_KEY_VERSION" => ("SOLVER_GCP_KMS_KEY_VERSION", value.as_str()),
                // An alias may mean another key one day.
                "AWS_KMS_SIGNER_KEY_ID" => ("SOLVER_AWS_KMS_KEY_ID", aws::ARN),
                "AWS_KMS_SIGNER_KEY_REGION" => ("SOLVER_AWS_KMS_KEY_REGION", value.as_str()),
                shared => (shared, value.as_str()),
            };
            setup.with(own, value)
        });
        setup.with("SOLVER_PRIVATE_KEY", "")
    }

    fn signer(&self) -> String {
        format!("{:#x}", self.vault.address())
    }

    /// How the error begins of a start that this service stops.
    fn stops(&self) -> String {
        let [(_, module), (key, _), ..] = &self.variables[..] else {
            panic!("no key");
        };
        format!("{key}: signer unavailable: {module}: ")
    }
}

/// Recorded deposits, each of which is attested.
fn deposits() -> Vec<Value> {
    let cases = fixture("recorded/evm.json");
    let good = |case: &&Value| {
        case["path"] == DEPOSITS
            && case["response"]["status"] == 200
            && case["response"]["body"]
                .as_str()
                .unwrap()
                .contains("idempotencyKey")
    };
    let cases = cases.as_array().unwrap().iter().filter(good);
    let mut bodies: Vec<Value> = Vec::new();
    for case in cases {
        if bodies
            .iter()
            .all(|body| body["transactionId"] != case["body"]["transactionId"])
        {
            bodies.push(case["body"].clone());
        }
    }
    bodies
}

/// The answer is signed by the service's key over what it says.
fn assert_signed(fake: &Fake, answer: &Answer) -> Signature {
    assert_eq!(answer.status, 200, "{}", answer.body);
    let json = answer.json();
    let execution = &json["execution"];
    let given = &execution["signatures"][0];
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    assert_eq!(text(&given["oracleSigner"]), fake.signer());
    // It parses with a low s only.
    let signature: Signature = text(&given["signature"]).parse().unwrap();
    let chain = text(&given["oracleChainId"]).parse().unwrap();
    let contract = text(&given["oracleContract"]).parse().unwrap();
    let actions = execution["actions"].as_array().unwrap().iter();
    let execution = Execution {
        idempotency_key: text(&execution["idempotencyKey"]).parse().unwrap(),
        actions: actions
            .map(|action| text(action).parse().unwrap())
            .collect(),
    };
    let digest = execution.digest(&Domain::oracle("2", chain, contract));
    assert_eq!(signature.recover(&digest), Ok(fake.vault.address()));
    signature
}

/// There is no signature, and the answer says why.
fn assert_unavailable(mood: Mood, answer: &Answer) {
    assert_eq!(answer.status, 503, "{mood:?}: {}", answer.body);
    assert_eq!(answer.code(), "SIGNER_UNAVAILABLE", "{mood:?}");
    assert_eq!(answer.json()["retryable"], true, "{mood:?}");
    assert!(!answer.body.contains("oracleSigner"), "{}", answer.body);
}

async fn asked(daemon: &Daemon, body: &Value) -> Answer {
    daemon.attest(DEPOSITS, body).await
}

/// Why a daemon does not start.
async fn refused(setup: &Setup) -> String {
    let directory = TempDir::new().unwrap();
    let config = Config::from_variables(setup.environment(directory.path())).unwrap();
    match run::Daemon::open(&config).await {
        Ok(_) => panic!("it starts"),
        Err(error) => format!("{error:#}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_signature_is_given_for_ever() {
    let world = world::world().await;
    for fake in Fake::both().await {
        let daemon = fake.signing(daemon().recorded(&world)).start().await;
        let body = &deposits()[0];
        let first = asked(&daemon, body).await;
        let signature = assert_signed(&fake, &first);
        assert_eq!(asked(&daemon, body).await.body, first.body);
        let daemon = daemon.restart().await;
        assert_eq!(asked(&daemon, body).await.body, first.body);
        assert_eq!(fake.vault.signed(), 1);
        daemon.stop().await;
        // Another journal has another signature over the same: the service's differ.
        let daemon = fake.signing(crate::support::daemon::daemon().recorded(&world));
        let daemon = daemon.start().await;
        let other = assert_signed(&fake, &asked(&daemon, body).await);
        assert_ne!(other, signature);
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_form_of_a_signature_becomes_the_networks() {
    let world = world::world().await;
    let deposits = deposits();
    assert!(deposits.len() >= 6);
    for fake in Fake::both().await {
        let daemon = fake.signing(daemon().recorded(&world)).start().await;
        let moods = [Mood::HighS, Mood::LeadingZeros].repeat(3);
        for (mood, body) in moods.into_iter().zip(&deposits) {
            fake.vault.next(mood, 1);
            assert_signed(&fake, &asked(&daemon, body).await);
        }
        assert_eq!(fake.vault.signed(), 6);
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_passes_is_asked_again_within_the_request() {
    let world = world::world().await;
    let deposits = deposits();
    for fake in Fake::both().await {
        let daemon = fake.signing(daemon().recorded(&world)).start().await;
        for (mood, body) in [Mood::Throttled, Mood::Corrupted]
            .into_iter()
            .zip(&deposits)
        {
            let before = fake.vault.signed();
            fake.vault.next(mood, 3);
            assert_signed(&fake, &asked(&daemon, body).await);
            assert_eq!(fake.vault.signed(), before + 4, "{mood:?}");
        }
        daemon.stop().await;
    }
}

/// Google says of each answer which bytes it sent, and of a signature that it received the digest as it was sent.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_its_checksum_or_of_an_unverified_digest_is_asked_for_again() {
    let world = world::world().await;
    let deposits = deposits();
    let fake = Fake::gcp(KEY).await;
    // The public key is asked for again, too: else the next signature has the mood that is left.
    fake.vault.next(Mood::Unchecked, 2);
    let daemon = fake.signing(daemon().recorded(&world)).start().await;
    for (mood, body) in [Mood::Unverified, Mood::Unchecked]
        .into_iter()
        .zip(&deposits)
    {
        let before = fake.vault.signed();
        fake.vault.next(mood, 2);
        assert_signed(&fake, &asked(&daemon, body).await);
        assert_eq!(fake.vault.signed(), before + 3, "{mood:?}");
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_or_a_wrong_signature_is_an_error_at_once_and_nothing_else() {
    let world = world::world().await;
    let body = &deposits()[0];
    for fake in Fake::both().await {
        let daemon = fake.signing(daemon().recorded(&world)).start().await;
        let moods = [
            Mood::Denied,
            Mood::OtherSignature,
            Mood::OtherKey,
            Mood::Malformed,
        ];
        for (mood, number) in moods.into_iter().zip(1..) {
            fake.vault.next(mood, 1);
            assert_unavailable(mood, &asked(&daemon, body).await);
            assert_eq!(fake.vault.signed(), number, "{mood:?}");
        }
        // What is signed once the service is well again is the same statement.
        let signed = asked(&daemon, body).await;
        assert_signed(&fake, &signed);
        assert_eq!(asked(&daemon, body).await.body, signed.body);
        daemon.stop().await;
    }
}

/// The service keeps throttling, or corrupting, or says nothing: the caller is told before his deadline.
#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_pass_is_given_up_before_the_deadline() {
    let world = world::world().await;
    let world = &world;
    let patient = async |fake: Fake, mood: Mood| {
        let body = &deposits()[0];
        let daemon = fake.signing(daemon().recorded(world)).start().await;
        fake.vault.usually(mood);
        let begun = Instant::now();
        assert_unavailable(mood, &asked(&daemon, body).await);
        let seconds = begun.elapsed().as_secs();
        assert!((14..60).contains(&seconds), "{mood:?} took {seconds} s");
        assert!(fake.vault.signed() > 2, "{mood:?}");
        fake.vault.usually(Mood::Good);
        assert_signed(&fake, &asked(&daemon, body).await);
        daemon.stop().await;
    };
    let each = async |mood: Mood| {
        let [gcp, aws] = Fake::both().await;
        join(patient(gcp, mood), patient(aws, mood)).await;
    };
    let slow = join(each(Mood::Throttled), each(Mood::Slow));
    join(slow, each(Mood::Corrupted)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_lost_is_opened_again() {
    let world = world::world().await;
    let deposits = deposits();
    let vault = Arc::new(Vault::of(KEY));
    // Bound to the end without listening, so that nobody else gets the port while nobody serves.
    let held = TcpSocket::new_v4().unwrap();
    held.set_reuseaddr(true).unwrap();
    held.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let address = held.local_addr().unwrap();
    let server = gcp::serve(vault.clone(), address).await;
    let daemon = daemon()
        .recorded(&world)
        .with("SIGNING_MODULE", "gcp-kms")
        .with("GCP_KMS_KEY_VERSION", gcp::VERSION)
        .with("GCP_KMS_ENDPOINT", format!("http://{address}"))
        .start()
        .await;
    assert_eq!(asked(&daemon, &deposits[0]).await.status, 200);
    drop(server);
    let again = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        gcp::serve(vault.clone(), address).await
    };
    let (answer, _server) = join(asked(&daemon, &deposits[1]), again).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_cannot_sign_here_stops_the_start() {
    let world = world::world().await;
    for fake in Fake::both().await {
        let setup = fake.signing(daemon().recorded(&world));
        for (mood, what) in [(Mood::Denied, "denied"), (Mood::OtherKind, "it must be")] {
            fake.vault.next(mood, 1);
            let why = refused(&setup).await;
            assert!(why.contains(&fake.stops()) && why.contains(what), "{why}");
        }
        // What passes does not stop it.
        fake.vault.next(Mood::Throttled, 2);
        setup.start().await.stop().await;
        assert_eq!(fake.vault.signed(), 0);
    }
    let fake = Fake::gcp(KEY).await;
    let setup = fake.signing(daemon().recorded(&world));
    fake.vault.next(Mood::OtherKey, 1);
    let why = refused(&setup).await;
    assert!(why.contains("not its own"), "{why}");
}

/// The service keeps throttling, or damages each answer, or says nothing, from before the start on.
#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_pass_stops_the_start_and_is_named() {
    let world = world::world().await;
    let world = &world;
    let stopped = async |fake: Fake, mood: Mood, what: &'static str| {
        let setup = fake.signing(daemon().recorded(world));
        fake.vault.usually(mood);
        let begun = Instant::now();
        let why = refused(&setup).await;
        let seconds = begun.elapsed().as_secs();
        assert!((14..60).contains(&seconds), "{mood:?} took {seconds} s");
        assert!(why.contains(&(fake.stops() + what)), "{mood:?}: {why}");
        assert_eq!(fake.vault.signed(), 0, "{mood:?}");
    };
    let each = async |mood: Mood, [of_gcp, of_aws]: [&'static str; 2]| {
        let [gcp, aws] = Fake::both().await;
        join(stopped(gcp, mood, of_gcp), stopped(aws, mood, of_aws)).await;
    };
    // Two clocks end a call to AWS that has no answer; either may be the one that names it.
    let slow = each(Mood::Slow, ["no answer in time", ""]);
    let throttled = ["ResourceExhausted: Quota", "ThrottlingException: Rate"];
    let damaged = "corrupted on the way: the public key";
    let damaged = [damaged, "the answer cannot be read"];
    let unchecked = async {
        let fake = Fake::gcp(KEY).await;
        stopped(fake, Mood::Unchecked, "corrupted on the way").await;
    };
    let some = join(slow, each(Mood::Throttled, throttled));
    let others = join(each(Mood::Corrupted, damaged), unchecked);
    join(some, others).await;
}

/// A service that is away, or that finds our credentials wrong.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_is_away_or_a_wrong_credential_stops_the_start() {
    let world = world::world().await;
    let [gcp, aws] = Fake::both().await;
    let setup = |fake: &Fake| fake.signing(daemon().recorded(&world));
    let secret = "s3cret/s3cret";
    let wrong = setup(&aws).with("AWS_SECRET_ACCESS_KEY", secret);
    let why = refused(&wrong).await;
    assert!(why.contains("InvalidSignatureException"), "{why}");
    assert!(!why.contains(secret), "{why}");
    let away = "http://127.0.0.1:1";
    let [gcp, aws] = [
        setup(&gcp).with("GCP_KMS_ENDPOINT", away),
        setup(&aws).with("AWS_KMS_ENDPOINT", away),
    ];
    let (gcp, aws) = join(refused(&gcp), refused(&aws)).await;
    assert!(gcp.contains("gcp-kms: no connection"), "{gcp}");
    assert!(aws.contains("aws-kms: "), "{aws}");
}

/// An alias means any key at the start; an ARN and an id mean one.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_aws_that_is_named_by_its_arn_or_id_is_no_other() {
    let world = world::world().await;
    let fake = Fake::aws(KEY).await;
    for (name, is_fixed) in [(aws::ARN, true), (aws::ID, true), (aws::ALIAS, false)] {
        let setup = fake.signing(daemon().recorded(&world));
        let setup = setup.with("AWS_KMS_SIGNER_KEY_ID", name);
        fake.vault.next(Mood::OtherKey, 1);
        if is_fixed {
            let why = refused(&setup).await;
            let expected = "AWS_KMS_SIGNER_KEY_ID: the signer answered";
            assert!(
                why.contains(expected) && why.contains("not its own"),
                "{why}"
            );
        }
        setup.start().await.stop().await;
    }
}

/// Why `intentd keys` fails with a credentials file of type `external_account`, and which subject tokens its token
/// service was shown, which answers so. Nobody listens where the key service should be.
async fn external_account(status: StatusCode, answer: Value) -> (String, Vec<String>) {
    let shown = Arc::new(Mutex::new(Vec::new()));
    let kept = shown.clone();
    let service = http::serve(move |asked| {
        let form = url::form_urlencoded::parse(&asked.body);
        let subject = form.filter(|(name, _)| name == "subject_token");
        let subject = subject.map(|(_, value)| value.into_owned());
        kept.lock().unwrap().extend(subject);
        let answer = http::json(status, answer.to_string().into());
        async move { Some(answer) }
    })
    .await;
    let directory = TempDir::new().unwrap();
    let [file, subject] = ["credentials.json", "subject"].map(|name| directory.path().join(name));
    let credentials = json!({
        "type": "external_account",
        "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "token_url": format!("http://{}/v1/token", service.address),
        "credential_source": {"file": subject},
    });
    std::fs::write(&subject, "subject t0ken").unwrap();
    std::fs::write(&file, credentials.to_string()).unwrap();
    let setup = daemon()
        .with("SIGNING_MODULE", "gcp-kms")
        .with("GCP_KMS_KEY_VERSION", gcp::VERSION)
        .with("GCP_KMS_ENDPOINT", "https://127.0.0.1:1");
    let output = tokio::process::Command::new(env!("CARGO_BIN_EXE_intentd"))
        .arg("keys")
        .env_clear()
        .envs(setup.environment(directory.path()))
        .env("GOOGLE_APPLICATION_CREDENTIALS", &file)
        .output()
        .await
        .unwrap();
    assert!(!output.status.success());
    let shown = shown.lock().unwrap().clone();
    (String::from_utf8(output.stderr).unwrap(), shown)
}

/// That the key service is shown the token is tested in `src/sign/gcp_kms.rs`: the crate trusts no certificate of a fake.
#[tokio::test(flavor = "multi_thread")]
async fn an_external_account_of_google_has_the_token_that_its_token_service_gives() {
    let token = json!({"access_token": "t0ken", "token_type": "Bearer", "expires_in": 3600});
    let (said, shown) = external_account(StatusCode::OK, token).await;
    assert_eq!(shown, ["subject t0ken"]);
    let why = "GCP_KMS_KEY_VERSION: signer unavailable: gcp-kms: no connection";
    assert!(said.contains(why) && !said.contains("t0ken"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_external_account_that_the_token_service_refuses_stops_the_start() {
    let refusal = json!({"error": "invalid_grant", "error_description": "of another pool"});
    let (said, shown) = external_account(StatusCode::BAD_REQUEST, refusal).await;
    assert_eq!(shown, ["subject t0ken"]);
    let why = "GCP_KMS_KEY_VERSION: no credentials: the token service refused the external account: status 400";
    assert!(
        said.contains(why) && said.contains("of another pool"),
        "{said}"
    );
    assert!(!said.contains("t0ken"), "{said}");
}

/// The contract takes a signature of each service.
#[tokio::test(flavor = "multi_thread")]
async fn signatures_of_both_services_are_settled() {
    let world = Devnet::start().await.unwrap();
    let gcp = Fake::gcp(&world.oracles[0].key()).await;
    let aws = Fake::aws(&world.oracles[1].key()).await;
    let files = world.files();
    let peer = aws.signing(daemon().chains(&files)).start().await;
    let asked = gcp.signing(daemon().chains(&files)).peer(&peer, "");
    let asked = asked.start().await;
    let deal = Deal::new(&world, native(1_000), native(900), 1).await;
    let deposit = deal.deposit().await;
    let body = claim::deposit(&world.origin, deposit.transaction);
    gcp.vault.next(Mood::HighS, 1);
    aws.vault.next(Mood::LeadingZeros, 1);
    let answer = asked.attest(DEPOSITS, &claim::with_peers(body)).await;
    assert_eq!(answer.signed_by(), [gcp.signer(), aws.signer()]);
    let execution = claim::execution(&answer.json()).unwrap();
    assert_eq!(execution.signatures.len(), 2);
    world.hub.submit(execution).await.unwrap();
    asked.stop().await;
    peer.stop().await;
}
