//! A key, where the configuration says it is.

use std::sync::Arc;

use secrecy::ExposeSecret;

use crate::{
    config::{self, Mistakes, Names, Signing},
    sign::{
        Signer,
        aws_kms::{AwsKms, Located},
        gcp_kms::GcpKms,
        kms::{KeyService, KmsKey, Patience},
        raw::RawKey,
    },
};

/// The signer of a key; a bad key is a mistake that does not repeat it. A key service is asked for the public key.
pub async fn signer(
    signing: &Signing,
    names: &Names,
    mistakes: &mut Mistakes,
) -> Option<Arc<dyn Signer>> {
    if names.all().iter().any(|name| mistakes.concern(name)) {
        return None;
    }
    let patience = Patience::default();
    let (variable, opened) = match signing {
        Signing::RawPrivateKey(key) => {
            let key = RawKey::parse(key.expose_secret());
            let key = key.map(|key| Arc::new(key) as Arc<dyn Signer>);
            (names.raw, key.map_err(|error| error.to_string()))
        }
        Signing::Nobody => {
            let key = RawKey::nobody().map(|key| Arc::new(key) as Arc<dyn Signer>);
            (names.raw, key.map_err(|error| error.to_string()))
        }
        Signing::GcpKms(key) => (names.gcp_version, in_gcp(key, patience).await),
        Signing::AwsKms(key) => (names.aws_key, in_aws(key, patience).await),
    };
    opened.map_err(|error| mistakes.add(variable, error)).ok()
}

async fn in_gcp(key: &config::GcpKms, patience: Patience) -> Result<Arc<dyn Signer>, String> {
    let service = GcpKms::new(&key.version, key.endpoint.as_ref(), patience);
    opened(service.await?, patience).await
}

async fn in_aws(key: &config::AwsKms, patience: Patience) -> Result<Arc<dyn Signer>, String> {
    let located = Located {
        key: &key.key,
        region: &key.region,
        endpoint: key.endpoint.as_ref(),
        environment: key.credentials.expose(),
    };
    opened(AwsKms::new(located, patience)?, patience).await
}

async fn opened(
    service: impl KeyService + 'static,
    patience: Patience,
) -> Result<Arc<dyn Signer>, String> {
    let key = KmsKey::open(service, patience).await;
    let key = key.map_err(|error| error.to_string())?;
    Ok(Arc::new(key))
}
