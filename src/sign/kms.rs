//! Keys in key services: what is the same whichever service has the key. With a secp256k1 key a service signs a digest
//! as it is, answers in DER, and its signatures differ from call to call.

use std::{
    fmt,
    future::Future,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use backon::{ExponentialBuilder, Retryable};
use k256::{elliptic_curve::sec1::ToEncodedPoint, pkcs8::DecodePublicKey};
use vm::{
    protocol::signature::{Signature, SignatureError, account_of_spki},
    types::{B256, EvmAddress},
};

use super::{SignError, Signer};

/// How long a key service is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// One call.
    pub call: Duration,
    /// One signature with all repeated calls, and the pauses between them. Below the deadline of a request, so that the
    /// caller is told why there is no signature.
    pub whole: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            call: Duration::from_secs(4),
            whole: Duration::from_secs(15),
        }
    }
}

/// The shortest and the longest pause before a call is repeated. Each pause is twice the one before, with jitter.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(2)];

/// Why a call gave nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The same call may succeed soon.
    Passing(String),
    /// The same call fails again.
    Lasting(String),
    /// Another key answered than the one that was asked for.
    Foreign(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passing(what) | Self::Lasting(what) => f.write_str(what),
            Self::Foreign(key) => write!(f, "another key answered: {key}"),
        }
    }
}

/// A key service and the key in it. Each method is one call; it ends in time.
#[async_trait]
pub trait KeyService: Send + Sync {
    /// What the service is called in messages and metrics.
    fn name(&self) -> &'static str;
    /// The key's DER SubjectPublicKeyInfo.
    async fn public_key(&self) -> Result<Vec<u8>, Fault>;
    /// With a secp256k1 key: a DER signature over a digest of 32 bytes. With an ed25519 key: the 64 bytes of RFC 8032
    /// over any message.
    async fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Fault>;
}

/// A secp256k1 key in a key service. Its public key is asked for once.
pub struct KmsKey<S> {
    service: S,
    patience: Patience,
    address: EvmAddress,
    public_key: [u8; 33],
}

impl<S: KeyService> KmsKey<S> {
    /// Asks the service for the public key. An error where there is none in time, or none on secp256k1.
    pub async fn open(service: S, patience: Patience) -> Result<Self, SignError> {
        let spki = repeated(service.name(), patience, || service.public_key()).await?;
        let (address, public_key) = account(&spki).ok_or_else(|| {
            let what = "the key is not on secp256k1";
            SignError::Unavailable(format!("{}: {what}", service.name()))
        })?;
        Ok(Self {
            service,
            patience,
            address,
            public_key,
        })
    }
}

/// The account of a DER SubjectPublicKeyInfo, and its key in SEC 1, compressed.
fn account(spki: &[u8]) -> Option<(EvmAddress, [u8; 33])> {
    let address = account_of_spki(spki)?;
    let key = k256::PublicKey::from_public_key_der(spki).ok()?;
    let bytes = key.to_encoded_point(true).as_bytes().try_into().ok()?;
    Some((address, bytes))
}

#[async_trait]
impl<S: KeyService> Signer for KmsKey<S> {
    fn address(&self) -> EvmAddress {
        self.address
    }

    fn public_key(&self) -> [u8; 33] {
        self.public_key
    }

    fn deterministic(&self) -> bool {
        false
    }

    async fn sign(&self, digest: &B256) -> Result<Signature, SignError> {
        let name = self.service.name();
        let der = repeated(name, self.patience, || self.service.sign(&digest[..])).await?;
        Signature::from_der(&der, digest, self.address).map_err(|error| match error {
            SignatureError::Unrecoverable => foreign(name, &"a signature that is not the key's"),
            SignatureError::Length | SignatureError::Malformed => {
                SignError::Unavailable(format!("{name}: the answer is not a signature"))
            }
        })
    }
}

/// What a call gives, repeated while its faults are passing and there is time.
pub(super) async fn repeated<T, F>(
    service: &'static str,
    patience: Patience,
    call: impl FnMut() -> F,
) -> Result<T, SignError>
where
    F: Future<Output = Result<T, Fault>>,
{
    let last = Mutex::new(None);
    let pauses = ExponentialBuilder::default()
        .with_min_delay(PAUSES[0])
        .with_max_delay(PAUSES[1])
        .with_jitter()
        .without_max_times();
    let repeated = call
        .retry(pauses)
        .when(|fault| matches!(fault, Fault::Passing(_)))
        .notify(|fault, _| {
            metrics::counter!("intentd_key_service_retries_total").increment(1);
            tracing::debug!(service, %fault, "the key service is asked again");
            *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault.to_string());
        });
    let unavailable = |what: &dyn fmt::Display| {
        metrics::counter!("intentd_key_service_failures_total").increment(1);
        tracing::warn!(service, %what, "the key service gives no answer");
        SignError::Unavailable(format!("{service}: {what}"))
    };
    match tokio::time::timeout(patience.whole, repeated).await {
        Ok(Ok(given)) => Ok(given),
        Ok(Err(fault @ Fault::Foreign(_))) => Err(foreign(service, &fault)),
        Ok(Err(fault)) => Err(unavailable(&fault)),
        Err(_) => {
            let last = last.lock().unwrap_or_else(PoisonError::into_inner).take();
            let last = last.unwrap_or_else(|| "no answer in time".to_owned());
            Err(unavailable(&last))
        }
    }
}

/// Counts and logs an answer that is not by the key.
pub(super) fn foreign(service: &'static str, what: &dyn fmt::Display) -> SignError {
    metrics::counter!("intentd_foreign_signatures_total").increment(1);
    tracing::error!(service, %what, "the key service answered for another key");
    SignError::Foreign
}

/// What `call` gives within `time`.
pub(super) async fn in_time<T>(
    time: Duration,
    call: impl Future<Output = Result<T, Fault>>,
) -> Result<T, Fault> {
    let given = tokio::time::timeout(time, call).await;
    given.unwrap_or_else(|_| Err(Fault::Passing("no answer in time".to_owned())))
}

#[cfg(test)]
mod tests {
    use std::{collections::VecDeque, sync::atomic::AtomicUsize, sync::atomic::Ordering};

    use k256::{ecdsa::SigningKey, pkcs8::EncodePublicKey};

    use super::*;

    const PATIENCE: Patience = Patience {
        call: Duration::from_secs(4),
        whole: Duration::from_secs(15),
    };

    fn key(seed: u8) -> SigningKey {
        SigningKey::from_slice(&[seed; 32]).unwrap()
    }

    fn spki(key: &SigningKey) -> Vec<u8> {
        let public = k256::PublicKey::from(key.verifying_key());
        public.to_public_key_der().unwrap().into_vec()
    }

    fn passing() -> Result<Vec<u8>, Fault> {
        Err(Fault::Passing("throttled".to_owned()))
    }

    /// Answers with the next of its answers, then with the key's own.
    struct Scripted {
        key: SigningKey,
        answers: Mutex<VecDeque<Result<Vec<u8>, Fault>>>,
        calls: AtomicUsize,
    }

    impl Scripted {
        fn of(answers: impl IntoIterator<Item = Result<Vec<u8>, Fault>>) -> Self {
            Self {
                key: key(7),
                answers: Mutex::new(answers.into_iter().collect()),
                calls: AtomicUsize::new(0),
            }
        }

        fn next(&self) -> Option<Result<Vec<u8>, Fault>> {
            self.calls.fetch_add(1, Ordering::SeqCst);
            self.answers.lock().unwrap().pop_front()
        }

        async fn opened(self) -> KmsKey<Self> {
            let (address, public_key) = account(&spki(&self.key)).unwrap();
            KmsKey {
                service: self,
                patience: PATIENCE,
                address,
                public_key,
            }
        }
    }

    #[async_trait]
    impl KeyService for Scripted {
        fn name(&self) -> &'static str {
            "scripted"
        }

        async fn public_key(&self) -> Result<Vec<u8>, Fault> {
            self.next().unwrap_or_else(|| Ok(spki(&self.key)))
        }

        async fn sign(&self, digest: &[u8]) -> Result<Vec<u8>, Fault> {
            let own = || {
                let (signature, _) = self.key.sign_prehash_recoverable(digest).unwrap();
                signature.to_der().as_bytes().to_vec()
            };
            self.next().unwrap_or_else(|| Ok(own()))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_is_known_by_its_public_key_and_signs() {
        let key = KmsKey::open(Scripted::of([passing(), passing()]), PATIENCE);
        let key = key.await.unwrap();
        assert_eq!(key.service.calls.load(Ordering::SeqCst), 3);
        let point = k256::PublicKey::from_sec1_bytes(&key.public_key()).unwrap();
        let of_point = EvmAddress::from_public_key(&point.into());
        assert_eq!(of_point, key.address());
        assert!(!key.deterministic());
        let digest = B256::repeat_byte(3);
        let signature = key.sign(&digest).await.unwrap();
        assert_eq!(signature.recover(&digest), Ok(key.address()));
        assert_eq!(key.sign_schnorr(&digest).await, Err(SignError::Unable));
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_on_another_curve_is_none() {
        for answer in [Vec::new(), vec![0x30, 0], spki(&key(7))[1..].to_vec()] {
            let opened = KmsKey::open(Scripted::of([Ok(answer)]), PATIENCE).await;
            let what = "scripted: the key is not on secp256k1".to_owned();
            assert_eq!(opened.err(), Some(SignError::Unavailable(what)));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn passing_faults_are_repeated_as_long_as_there_is_time() {
        let digest = B256::repeat_byte(3);
        let key = Scripted::of((0..5).map(|_| passing())).opened().await;
        assert!(key.sign(&digest).await.is_ok());
        assert_eq!(key.service.calls.load(Ordering::SeqCst), 6);

        let key = Scripted::of((0..1000).map(|_| passing())).opened().await;
        let begun = tokio::time::Instant::now();
        let what = "scripted: throttled".to_owned();
        let failed = key.sign(&digest).await;
        assert_eq!(failed, Err(SignError::Unavailable(what)));
        assert!(begun.elapsed() <= PATIENCE.whole + Duration::from_millis(5));
        let calls = key.service.calls.load(Ordering::SeqCst);
        assert!((6..30).contains(&calls), "{calls} calls");
    }

    #[tokio::test(start_paused = true)]
    async fn lasting_faults_are_not_repeated() {
        let digest = B256::repeat_byte(3);
        let denied = Fault::Lasting("denied".to_owned());
        let other = Fault::Foreign("other/1".to_owned());
        let said = SignError::Unavailable("scripted: denied".to_owned());
        for (fault, expected) in [(denied, said), (other, SignError::Foreign)] {
            let key = Scripted::of([Err(fault)]).opened().await;
            assert_eq!(key.sign(&digest).await, Err(expected));
            assert_eq!(key.service.calls.load(Ordering::SeqCst), 1);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn only_signatures_of_the_key_are_given_out() {
        let digest = B256::repeat_byte(3);
        let by = |key: &SigningKey, digest: &B256| {
            let signature = key.sign_prehash_recoverable(&digest[..]).unwrap().0;
            signature.to_der().as_bytes().to_vec()
        };
        let malformed = "scripted: the answer is not a signature".to_owned();
        let malformed = SignError::Unavailable(malformed);
        for (answer, expected) in [
            (by(&key(8), &digest), SignError::Foreign),
            (by(&key(7), &B256::ZERO), SignError::Foreign),
            (vec![1; 64], malformed.clone()),
            (Vec::new(), malformed),
        ] {
            let key = Scripted::of([Ok(answer)]).opened().await;
            assert_eq!(key.sign(&digest).await, Err(expected));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_call_is_given_up() {
        let never = std::future::pending::<Result<(), Fault>>();
        let slow = in_time(Duration::from_secs(1), never).await;
        assert_eq!(slow, Err(Fault::Passing("no answer in time".to_owned())));
    }
}
