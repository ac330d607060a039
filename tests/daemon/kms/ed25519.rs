//! The solver's ed25519 key in a key service, against fakes of both services: as the daemon opens it, and signs with it.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use devnet::world::Devnet;
use ed25519_dalek::{Signature, SigningKey};
use intentd::sign::{
    SignError,
    aws_kms::{AwsKms, Located},
    gcp_kms::GcpKms,
    kms::Patience,
    kms_ed25519::KmsEd25519,
};
use url::Url;
use vm::{
    trade::{Message, Scheme, Signer},
    types::B256,
};

use super::{Fake, Mood, Served, Vault, aws, gcp};
use crate::support::daemon::{KEY, daemon};

const SEED: [u8; 32] = [7; 32];
/// Bytes of the longest transaction of Solana.
const LONGEST: usize = 1_232;

async fn both() -> [Fake; 2] {
    [
        Fake::in_gcp(Vault::of_seed(SEED)).await,
        Fake::in_aws(Vault::of_seed(SEED)).await,
    ]
}

/// The key in the service.
async fn opened(fake: &Fake) -> Result<Arc<dyn Signer>, SignError> {
    let _installed_before = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let patience = Patience::default();
    match &fake.served {
        Served::Gcp(server) => {
            let endpoint = endpoint(server.address);
            let service = GcpKms::new(gcp::VERSION, Some(&endpoint), patience).await;
            let service = service.unwrap().of_scheme(Scheme::Ed25519);
            Ok(Arc::new(KmsEd25519::open(service, patience).await?))
        }
        Served::Aws(server) => {
            let endpoint = endpoint(server.address);
            let credentials = [
                ("AWS_ACCESS_KEY_ID", aws::ACCESS_KEY),
                ("AWS_SECRET_ACCESS_KEY", aws::SECRET),
            ];
            let credentials = credentials.map(|(name, value)| (name.into(), value.into()));
            let located = Located {
                key: aws::ARN,
                region: aws::REGION,
                endpoint: Some(&endpoint),
                environment: HashMap::from(credentials),
            };
            let service = AwsKms::new(located, patience).unwrap();
            let service = service.of_scheme(Scheme::Ed25519);
            Ok(Arc::new(KmsEd25519::open(service, patience).await?))
        }
    }
}

fn endpoint(address: SocketAddr) -> Url {
    format!("http://{address}").parse().unwrap()
}

/// Why it does not open.
async fn refused(fake: &Fake) -> String {
    match opened(fake).await {
        Ok(_) => panic!("it opens"),
        Err(error) => error.to_string(),
    }
}

/// The message is signed by the key.
async fn assert_signed(key: &dyn Signer, message: &[u8]) {
    let bytes = key.sign(Message::Ed25519(message)).await.unwrap();
    let signature = Signature::from_slice(&bytes).unwrap();
    let own = SigningKey::from_bytes(&SEED).verifying_key();
    assert_eq!(key.public_key()[..], own.as_bytes()[..]);
    own.verify_strict(message, &signature).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_of_any_length_is_signed_as_it_is() {
    for fake in both().await {
        let key = opened(&fake).await.unwrap();
        assert_eq!(key.scheme(), Scheme::Ed25519);
        for length in [1, 32, LONGEST] {
            assert_signed(&*key, &vec![5; length]).await;
        }
        assert_eq!(fake.vault.signed(), 3);
        // A digest is for other keys: the service is not asked.
        let digest = B256::repeat_byte(5);
        for message in [Message::Ecdsa(&digest), Message::Schnorr(&digest)] {
            let error = key.sign(message).await.unwrap_err();
            assert!(error.0.contains("secp256k1"), "{error}");
        }
        assert_eq!(fake.vault.signed(), 3);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_passes_is_asked_again_for_an_ed25519_signature() {
    let [gcp, aws] = both().await;
    let of_both = [Mood::Throttled, Mood::Corrupted];
    let of_gcp = [Mood::Unverified, Mood::Unchecked];
    for (fake, moods) in [(&gcp, &of_both), (&gcp, &of_gcp), (&aws, &of_both)] {
        // The public key, too.
        fake.vault.next(Mood::Throttled, 2);
        let key = opened(fake).await.unwrap();
        for mood in *moods {
            let before = fake.vault.signed();
            fake.vault.next(mood, 2);
            assert_signed(&*key, b"message").await;
            assert_eq!(fake.vault.signed(), before + 3, "{mood:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ed25519_signature_that_is_not_the_keys_is_not_given_out() {
    let foreign = SignError::Foreign.to_string();
    for fake in both().await {
        let key = opened(&fake).await.unwrap();
        for (mood, expected) in [
            (Mood::OtherSignature, foreign.as_str()),
            (Mood::OtherKey, foreign.as_str()),
            (Mood::HighS, foreign.as_str()),
            (Mood::Malformed, "the answer is not a signature"),
            (Mood::Denied, "denied"),
        ] {
            let before = fake.vault.signed();
            fake.vault.next(mood, 1);
            let error = key.sign(Message::Ed25519(b"message")).await.unwrap_err();
            assert!(error.0.contains(expected), "{mood:?}: {error}");
            assert_eq!(fake.vault.signed(), before + 1, "{mood:?}");
        }
        assert_signed(&*key, b"message").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_makes_no_ed25519_signatures_or_another_key_is_refused() {
    for fake in [Fake::gcp(KEY).await, Fake::aws(KEY).await] {
        let why = refused(&fake).await;
        let named = ["EC_SIGN_ED25519", "ECC_NIST_EDWARDS25519"];
        assert!(named.iter().any(|name| why.ends_with(name)), "{why}");
    }
    for fake in both().await {
        for (mood, expected) in [
            (Mood::OtherKind, "it must be"),
            (Mood::Denied, "denied"),
            (Mood::OtherKey, "not its own"),
        ] {
            fake.vault.next(mood, 1);
            let why = refused(&fake).await;
            assert!(why.contains(expected), "{mood:?}: {why}");
        }
        assert_eq!(fake.vault.signed(), 0);
    }
}

/// The present ed25519 key and a former one in one service, a former secp256k1 key in the other.
#[tokio::test(flavor = "multi_thread")]
async fn a_solver_starts_with_its_ed25519_key_and_former_keys_in_key_services() {
    let world = Devnet::start().await.unwrap();
    let gcp = Fake::in_gcp(Vault::of_seed(SEED)).await;
    let aws = Fake::aws(KEY).await;
    let setup = daemon()
        .chains(&world.files())
        .solver(&world.solver, "destination");
    let services = gcp.variables.iter().chain(&aws.variables);
    let services = services.filter(|(name, _)| *name != "SIGNING_MODULE");
    let setup = services.fold(setup, |setup, (name, value)| setup.with(name, value));
    let former = format!("ed25519:gcp-kms:{},aws-kms:{}", gcp::VERSION, aws::ARN);
    let [denied, foreign] = ["signer unavailable: aws-kms", "the signer answered"]
        .map(|what| format!("SOLVER_PREVIOUS_KEYS: {}: {what}", aws::ARN));
    let setup = setup
        .with("SOLVER_ED25519_SIGNING_MODULE", "gcp-kms")
        .with("SOLVER_ED25519_GCP_KMS_KEY_VERSION", gcp::VERSION)
        .with("SOLVER_PREVIOUS_KEYS", former);
    for (fake, mood, expected) in [
        (
            &gcp,
            Mood::Denied,
            "SOLVER_ED25519_GCP_KMS_KEY_VERSION: signer unavailable: gcp-kms",
        ),
        (&gcp, Mood::OtherKind, "it must be EC_SIGN_ED25519"),
        (&aws, Mood::Denied, denied.as_str()),
        (&aws, Mood::OtherKey, foreign.as_str()),
    ] {
        fake.vault.next(mood, 1);
        let why = super::refused(&setup).await;
        assert!(why.contains(expected), "{why}");
    }
    setup.start().await.stop().await;
    assert_eq!(gcp.vault.signed() + aws.vault.signed(), 0);
}

/// Lines in memory.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// On one thread, whose log it is.
#[tokio::test]
async fn the_start_logs_the_address_of_an_ed25519_key() {
    let log = Log::default();
    // With a single subscriber, other tests on other threads decide whether an event is recorded.
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let _logging = tracing::subscriber::set_default(subscriber);
    let public = SigningKey::from_bytes(&SEED).verifying_key();
    let address = bs58::encode(public.as_bytes()).into_string();
    for (fake, name) in both().await.iter().zip(["gcp-kms", "aws-kms"]) {
        opened(fake).await.unwrap();
        let lines = std::mem::take(&mut *log.0.lock().unwrap());
        let lines = String::from_utf8(lines).unwrap();
        assert!(lines.contains(&address) && lines.contains(name), "{lines}");
    }
}
