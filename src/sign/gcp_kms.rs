//! A key in Google Cloud KMS, over gRPC. The service signs the 32 bytes in the slot of a SHA-256 digest as they are.

use arc_swap::ArcSwapOption;
use async_trait::async_trait;
use google_cloud_gax::{
    conn::{Channel, ConnectionManager, ConnectionOptions, Environment},
    create_request,
    grpc::{Code, Status},
};
use google_cloud_kms::{
    client::{ClientConfig, google_cloud_auth::error::Error as CredentialsError},
    grpc::{
        apiv1::conn_pool::{AUDIENCE, KMS},
        kms::v1::{
            AsymmetricSignRequest, AsymmetricSignResponse, Digest, GetPublicKeyRequest, PublicKey,
            crypto_key_version::CryptoKeyVersionAlgorithm, digest,
            key_management_service_client::KeyManagementServiceClient,
        },
    },
};
use rustls::pki_types::{SubjectPublicKeyInfoDer, pem::PemObject};
use url::Url;
use vm::types::B256;

use super::kms::{Fault, KeyService, Patience, in_time};

/// The only algorithm that is signed with.
const ALGORITHM: CryptoKeyVersionAlgorithm = CryptoKeyVersionAlgorithm::EcSignSecp256k1Sha256;

type Client = KeyManagementServiceClient<Channel>;

/// The service with one version of a key.
pub struct GcpKms {
    /// The version's full resource name.
    version: String,
    server: Server,
    /// The connection, until a call over it fails. A call after that opens another.
    client: ArcSwapOption<Client>,
    patience: Patience,
}

/// Where the service is.
struct Server {
    /// Where plain HTTP is wanted: host and port, and no credentials; else the credentials' source.
    environment: Environment,
    /// The name in its certificate.
    domain: String,
    url: &'static str,
}

impl Server {
    /// Google's own, or the one of a URL. Plain HTTP is asked without credentials.
    async fn of(endpoint: Option<&Url>) -> Result<Self, CredentialsError> {
        let host = endpoint.and_then(Url::host_str).unwrap_or(KMS).to_owned();
        let environment = match endpoint.filter(|url| url.scheme() == "http") {
            Some(url) => {
                let port = url.port_or_known_default().unwrap_or(80);
                Environment::Emulator(format!("{host}:{port}"))
            }
            None => {
                let config = ClientConfig::default().with_auth().await?;
                Environment::GoogleCloud(config.token_source_provider)
            }
        };
        let url: &'static str = match endpoint {
            // The crate wants it for ever. A process has one.
            Some(url) => Box::leak(url.as_str().to_owned().into_boxed_str()),
            None => AUDIENCE,
        };
        Ok(Self {
            environment,
            domain: host,
            url,
        })
    }
}

impl GcpKms {
    /// The version with this full resource name. `endpoint` is there for tests and private gateways; plain HTTP is
    /// asked without credentials. An error where there are no credentials.
    pub async fn new(
        version: &str,
        endpoint: Option<&Url>,
        patience: Patience,
    ) -> Result<Self, String> {
        let server = tokio::time::timeout(patience.whole, Server::of(endpoint)).await;
        let server = server.map_err(|_| "no credentials in time".to_owned())?;
        Ok(Self {
            version: version.to_owned(),
            server: server.map_err(|error| format!("no credentials: {error}"))?,
            client: ArcSwapOption::empty(),
            patience,
        })
    }

    async fn client(&self) -> Result<Client, Fault> {
        if let Some(client) = &*self.client.load() {
            return Ok(Client::clone(client));
        }
        let options = ConnectionOptions {
            timeout: None,
            connect_timeout: Some(self.patience.call),
        };
        let Server {
            environment,
            domain,
            url,
        } = &self.server;
        let connection = ConnectionManager::new(1, domain, url, environment, &options).await;
        let connection =
            connection.map_err(|error| Fault::Passing(format!("no connection: {error}")))?;
        let client = Client::new(connection.conn());
        self.client.store(Some(client.clone().into()));
        Ok(client)
    }

    /// A call over the connection; after a passing fault the next call opens another connection.
    async fn asked<T>(
        &self,
        call: impl AsyncFnOnce(Client) -> Result<T, Status>,
    ) -> Result<T, Fault> {
        let asked = async {
            call(self.client().await?)
                .await
                .map_err(|status| fault(&status))
        };
        let asked = in_time(self.patience.call, asked).await;
        if matches!(asked, Err(Fault::Passing(_))) {
            self.client.store(None);
        }
        asked
    }
}

/// What a status means. A token that could not be fetched may be fetched later.
fn fault(status: &Status) -> Fault {
    let what = format!("{:?}: {}", status.code(), status.message());
    match status.code() {
        Code::Unauthenticated if status.message().starts_with("token error") => {
            Fault::Passing("no access token".to_owned())
        }
        Code::Unavailable
        | Code::ResourceExhausted
        | Code::DeadlineExceeded
        | Code::Aborted
        | Code::Internal
        | Code::Unknown
        | Code::Cancelled => Fault::Passing(what),
        _ => Fault::Lasting(what),
    }
}

fn crc(bytes: &[u8]) -> i64 {
    crc32c::crc32c(bytes).into()
}

/// What the service signs: the digest as it is, with its checksum.
fn request(version: &str, digest: &B256) -> AsymmetricSignRequest {
    AsymmetricSignRequest {
        name: version.to_owned(),
        digest: Some(Digest {
            digest: Some(digest::Digest::Sha256(digest.to_vec())),
        }),
        digest_crc32c: Some(crc(&digest[..])),
        ..Default::default()
    }
}

/// The signature of an answer that is whole and from the version that was asked.
fn signature(version: &str, answer: AsymmetricSignResponse) -> Result<Vec<u8>, Fault> {
    let corrupted = |what: &str| Err(Fault::Passing(format!("corrupted on the way: {what}")));
    if answer.name != version {
        return Err(Fault::Foreign(answer.name));
    }
    if !answer.verified_digest_crc32c {
        return corrupted("the digest's checksum was not verified");
    }
    if answer.signature_crc32c != Some(crc(&answer.signature)) {
        return corrupted("the signature's checksum is wrong");
    }
    Ok(answer.signature)
}

/// The DER key of an answer that is whole and about the version that was asked.
fn spki(version: &str, answer: &PublicKey) -> Result<Vec<u8>, Fault> {
    if answer.name != version {
        return Err(Fault::Foreign(answer.name.clone()));
    }
    if answer.pem_crc32c != Some(crc(answer.pem.as_bytes())) {
        let what = "corrupted on the way: the public key's checksum is wrong";
        return Err(Fault::Passing(what.to_owned()));
    }
    if answer.algorithm() != ALGORITHM {
        let (is, must) = (answer.algorithm().as_str_name(), ALGORITHM.as_str_name());
        return Err(Fault::Lasting(format!(
            "the key's algorithm is {is}; it must be {must}"
        )));
    }
    let der = SubjectPublicKeyInfoDer::from_pem_slice(answer.pem.as_bytes());
    let der = der.map_err(|_| Fault::Lasting("the public key is not PEM".to_owned()))?;
    Ok(der.to_vec())
}

#[async_trait]
impl KeyService for GcpKms {
    fn name(&self) -> &'static str {
        "gcp-kms"
    }

    async fn public_key(&self) -> Result<Vec<u8>, Fault> {
        let name = self.version.clone();
        let request = create_request(format!("name={name}"), GetPublicKeyRequest { name });
        let asked = self.asked(async |mut client| client.get_public_key(request).await);
        spki(&self.version, asked.await?.get_ref())
    }

    async fn sign(&self, digest: &B256) -> Result<Vec<u8>, Fault> {
        let request = request(&self.version, digest);
        let request = create_request(format!("name={}", self.version), request);
        let asked = self.asked(async |mut client| client.asymmetric_sign(request).await);
        signature(&self.version, asked.await?.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERSION: &str = "projects/p/locations/l/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1";

    fn answer() -> AsymmetricSignResponse {
        AsymmetricSignResponse {
            signature: vec![1, 2, 3],
            signature_crc32c: Some(crc(&[1, 2, 3])),
            verified_digest_crc32c: true,
            name: VERSION.to_owned(),
            ..Default::default()
        }
    }

    #[test]
    fn the_checksum_is_that_of_the_standard() {
        // RFC 3720, B.4: 32 bytes of zeros, and of ones.
        assert_eq!(crc(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc(&[0xff; 32]), 0x62a8_ab43);
        let request = request(VERSION, &B256::ZERO);
        assert_eq!(request.digest_crc32c, Some(0x8a91_36aa));
        let slot = digest::Digest::Sha256(vec![0; 32]);
        assert_eq!(request.digest.unwrap().digest, Some(slot));
        assert_eq!((request.name.as_str(), request.data.len()), (VERSION, 0));
    }

    #[test]
    fn an_answer_counts_whole_and_from_the_key_that_was_asked() {
        assert_eq!(signature(VERSION, answer()), Ok(vec![1, 2, 3]));
        let foreign = AsymmetricSignResponse {
            name: VERSION.replace("/1", "/2"),
            ..answer()
        };
        let foreign = signature(VERSION, foreign);
        assert!(matches!(foreign, Err(Fault::Foreign(_))), "{foreign:?}");
        for corrupted in [
            AsymmetricSignResponse {
                verified_digest_crc32c: false,
                ..answer()
            },
            AsymmetricSignResponse {
                signature_crc32c: None,
                ..answer()
            },
            AsymmetricSignResponse {
                signature: vec![1, 2, 4],
                ..answer()
            },
        ] {
            let refused = signature(VERSION, corrupted);
            assert!(matches!(refused, Err(Fault::Passing(_))), "{refused:?}");
        }
    }

    #[test]
    fn a_public_key_counts_whole_and_for_its_algorithm_only() {
        let pem = "-----BEGIN PUBLIC KEY-----\nAQID\n-----END PUBLIC KEY-----\n";
        let key = |pem: &str, algorithm: CryptoKeyVersionAlgorithm| PublicKey {
            pem: pem.to_owned(),
            algorithm: algorithm.into(),
            pem_crc32c: Some(crc(pem.as_bytes())),
            name: VERSION.to_owned(),
            ..Default::default()
        };
        assert_eq!(spki(VERSION, &key(pem, ALGORITHM)), Ok(vec![1, 2, 3]));
        let other = CryptoKeyVersionAlgorithm::EcSignP256Sha256;
        for lasting in [key(pem, other), key("AQID", ALGORITHM)] {
            let refused = spki(VERSION, &lasting);
            assert!(matches!(refused, Err(Fault::Lasting(_))), "{refused:?}");
        }
        let mut corrupted = key(pem, ALGORITHM);
        corrupted.pem.push('\n');
        let refused = spki(VERSION, &corrupted);
        assert!(matches!(refused, Err(Fault::Passing(_))), "{refused:?}");
        let foreign = spki("other", &key(pem, ALGORITHM));
        assert_eq!(foreign, Err(Fault::Foreign(VERSION.to_owned())));
    }

    #[test]
    fn what_may_pass_is_asked_again() {
        let passes = |code: Code, message: &str| {
            let fault = fault(&Status::new(code, message));
            matches!(fault, Fault::Passing(_))
        };
        for code in [Code::Unavailable, Code::ResourceExhausted, Code::Internal] {
            assert!(passes(code, ""), "{code:?}");
        }
        for code in [
            Code::PermissionDenied,
            Code::NotFound,
            Code::Unauthenticated,
        ] {
            assert!(!passes(code, ""), "{code:?}");
        }
        for code in [Code::FailedPrecondition, Code::InvalidArgument] {
            assert!(!passes(code, ""), "{code:?}");
        }
        assert!(passes(Code::Unauthenticated, "token error: s3cret"));
        let shown = fault(&Status::unauthenticated("token error: s3cret"));
        assert!(!shown.to_string().contains("s3cret"));
    }
}
