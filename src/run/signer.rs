//! Keys, where the configuration says they are.

use std::sync::Arc;

use secrecy::ExposeSecret;
use vm::trade::{self, Scheme};

use crate::{
    config::{self, Mistakes, Names, PreviousKey, Signing},
    sign::{
        FormerKey, Signer,
        aws_kms::{AwsKms, Located},
        ed25519::Ed25519Key,
        gcp_kms::GcpKms,
        kms::{KeyService, KmsKey, Patience},
        kms_ed25519::KmsEd25519,
        raw::{KeyError, RawKey},
    },
};

/// The signer of a secp256k1 key; a bad key is a mistake that does not repeat it. A key service is asked for the public
/// key.
pub async fn signer(
    signing: &Signing,
    names: &Names,
    mistakes: &mut Mistakes,
) -> Option<Arc<dyn Signer>> {
    if names.all().iter().any(|name| mistakes.concern(name)) {
        return None;
    }
    let opened = secp256k1(signing).await;
    let variable = variable(signing, names);
    opened.map_err(|error| mistakes.add(variable, error)).ok()
}

/// As [`signer`], of an ed25519 key.
pub async fn ed25519(
    signing: &Signing,
    names: &Names,
    mistakes: &mut Mistakes,
) -> Option<Arc<dyn trade::Signer>> {
    if names.all().iter().any(|name| mistakes.concern(name)) {
        return None;
    }
    let opened = of_ed25519(signing).await;
    let variable = variable(signing, names);
    opened.map_err(|error| mistakes.add(variable, error)).ok()
}

/// A key that the solver had before. The error does not repeat it, but names one in a key service: there may be several.
/// Without its public key nobody knows what it promised, or which payments were its account's.
pub async fn former(key: &PreviousKey) -> Result<FormerKey, String> {
    let opened = match key.scheme {
        Scheme::Secp256k1 => secp256k1(&key.signing).await.map(FormerKey::Secp256k1),
        Scheme::Ed25519 => of_ed25519(&key.signing).await.map(FormerKey::Ed25519),
    };
    opened.map_err(|error| match &key.signing {
        Signing::RawPrivateKey(_) | Signing::Nobody => error,
        Signing::GcpKms(named) => format!("{}: {error}", named.version),
        Signing::AwsKms(named) => format!("{}: {error}", named.key),
    })
}

/// The variable that says which key it is.
fn variable(signing: &Signing, names: &Names) -> &'static str {
    match signing {
        Signing::RawPrivateKey(_) | Signing::Nobody => names.raw,
        Signing::GcpKms(_) => names.gcp_version,
        Signing::AwsKms(_) => names.aws_key,
    }
}

async fn secp256k1(signing: &Signing) -> Result<Arc<dyn Signer>, String> {
    match signing {
        Signing::RawPrivateKey(key) => raw(RawKey::parse(key.expose_secret())),
        Signing::Nobody => raw(RawKey::nobody()),
        Signing::GcpKms(key) => in_service(in_gcp(key).await?).await,
        Signing::AwsKms(key) => in_service(in_aws(key)?).await,
    }
}

async fn of_ed25519(signing: &Signing) -> Result<Arc<dyn trade::Signer>, String> {
    match signing {
        Signing::RawPrivateKey(key) => {
            let key = Ed25519Key::parse(key.expose_secret());
            let key = key.map_err(|error| error.to_string())?;
            Ok(Arc::new(key))
        }
        Signing::Nobody => Err("there is no ed25519 key that everybody knows".to_owned()),
        Signing::GcpKms(key) => {
            let service = in_gcp(key).await?.of_scheme(Scheme::Ed25519);
            ed25519_in_service(service).await
        }
        Signing::AwsKms(key) => {
            let service = in_aws(key)?.of_scheme(Scheme::Ed25519);
            ed25519_in_service(service).await
        }
    }
}

fn raw(key: Result<RawKey, KeyError>) -> Result<Arc<dyn Signer>, String> {
    let key = key.map_err(|error| error.to_string())?;
    Ok(Arc::new(key))
}

async fn in_gcp(key: &config::GcpKms) -> Result<GcpKms, String> {
    GcpKms::new(&key.version, key.endpoint.as_ref(), Patience::default()).await
}

fn in_aws(key: &config::AwsKms) -> Result<AwsKms, String> {
    let located = Located {
        key: &key.key,
        region: &key.region,
        endpoint: key.endpoint.as_ref(),
        environment: key.credentials.expose(),
    };
    AwsKms::new(located, Patience::default())
}

async fn in_service(service: impl KeyService + 'static) -> Result<Arc<dyn Signer>, String> {
    let key = KmsKey::open(service, Patience::default()).await;
    let key = key.map_err(|error| error.to_string())?;
    Ok(Arc::new(key))
}

async fn ed25519_in_service(
    service: impl KeyService + 'static,
) -> Result<Arc<dyn trade::Signer>, String> {
    let key = KmsEd25519::open(service, Patience::default()).await;
    let key = key.map_err(|error| error.to_string())?;
    Ok(Arc::new(key))
}
