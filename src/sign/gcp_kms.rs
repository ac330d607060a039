//! A key in Google Cloud KMS, over gRPC. With a secp256k1 key the service signs the 32 bytes in the slot of a SHA-256
//! digest as they are, with an ed25519 key the data.

use arc_swap::ArcSwapOption;
use async_trait::async_trait;
use google_cloud_gax::{
    conn::{Channel, ConnectionManager, ConnectionOptions, Environment},
    create_request,
    grpc::{Code, Status},
};
use google_cloud_kms::{
    client::{
        ClientConfig,
        google_cloud_auth::{
            error::Error as CredentialsError,
            token_source::external_account_source::error::Error as ExternalError,
        },
    },
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
use vm::trade::Scheme;

use super::kms::{Fault, KeyService, Patience, in_time};

/// The only algorithm that keys of a scheme sign with.
fn algorithm(scheme: Scheme) -> CryptoKeyVersionAlgorithm {
    match scheme {
        Scheme::Secp256k1 => CryptoKeyVersionAlgorithm::EcSignSecp256k1Sha256,
        Scheme::Ed25519 => CryptoKeyVersionAlgorithm::EcSignEd25519,
    }
}

/// Characters of each text of a token service that are shown.
const LONGEST_REASON: usize = 100;

type Client = KeyManagementServiceClient<Channel>;

/// The service with one version of a key.
pub struct GcpKms {
    /// The version's full resource name.
    version: String,
    scheme: Scheme,
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
    /// The version with this full resource name, of a secp256k1 key. `endpoint` is there for tests and private gateways; plain HTTP is
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
            scheme: Scheme::Secp256k1,
            server: server.map_err(|error| no_credentials(&error))?,
            client: ArcSwapOption::empty(),
            patience,
        })
    }

    /// The same, of a key of `scheme`.
    pub fn of_scheme(self, scheme: Scheme) -> Self {
        Self { scheme, ..self }
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

/// Why there are no credentials. The crate's own text for a refusal is about the subject token only. Of the token
/// service's answer only the error and its description are shown.
fn no_credentials(error: &CredentialsError) -> String {
    use ExternalError::UnexpectedStatusOnGetSubjectToken as Refused;
    match error {
        CredentialsError::ExternalAccountSource(Refused(status, said)) => {
            let why = refusal(said).unwrap_or_default();
            format!(
                "no credentials: the token service refused the external account: status {status}{why}"
            )
        }
        other => format!("no credentials: {other}"),
    }
}

/// The error in a token service's answer, and its description (RFC 6749, section 5.2), each cut, in one line.
fn refusal(answer: &str) -> Option<String> {
    let answer: serde_json::Value = serde_json::from_str(answer).ok()?;
    let field = |name: &str| {
        let text = answer[name].as_str().unwrap_or_default();
        let shown = text.chars().take(LONGEST_REASON).collect::<String>();
        shown.escape_debug().to_string()
    };
    let (error, description) = (field("error"), field("error_description"));
    Some(format!(": {error}: {description}"))
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

/// What the service signs, with its checksum: a digest as it is, or a message.
fn request(version: &str, scheme: Scheme, message: &[u8]) -> AsymmetricSignRequest {
    let checksum = Some(crc(message));
    let named = AsymmetricSignRequest {
        name: version.to_owned(),
        ..Default::default()
    };
    match scheme {
        Scheme::Secp256k1 => AsymmetricSignRequest {
            digest: Some(Digest {
                digest: Some(digest::Digest::Sha256(message.to_vec())),
            }),
            digest_crc32c: checksum,
            ..named
        },
        Scheme::Ed25519 => AsymmetricSignRequest {
            data: message.to_vec(),
            data_crc32c: checksum,
            ..named
        },
    }
}

/// The signature of an answer that is whole and from the version that was asked.
fn signature(
    version: &str,
    scheme: Scheme,
    answer: AsymmetricSignResponse,
) -> Result<Vec<u8>, Fault> {
    let corrupted = |what: &str| Err(Fault::Passing(format!("corrupted on the way: {what}")));
    if answer.name != version {
        return Err(Fault::Foreign(answer.name));
    }
    let verified = match scheme {
        Scheme::Secp256k1 => answer.verified_digest_crc32c,
        Scheme::Ed25519 => answer.verified_data_crc32c,
    };
    if !verified {
        return corrupted("the checksum of what was to be signed was not verified");
    }
    if answer.signature_crc32c != Some(crc(&answer.signature)) {
        return corrupted("the signature's checksum is wrong");
    }
    Ok(answer.signature)
}

/// The DER key of an answer that is whole and about the version that was asked.
fn spki(version: &str, scheme: Scheme, answer: &PublicKey) -> Result<Vec<u8>, Fault> {
    if answer.name != version {
        return Err(Fault::Foreign(answer.name.clone()));
    }
    if answer.pem_crc32c != Some(crc(answer.pem.as_bytes())) {
        let what = "corrupted on the way: the public key's checksum is wrong";
        return Err(Fault::Passing(what.to_owned()));
    }
    let algorithm = algorithm(scheme);
    if answer.algorithm() != algorithm {
        let (is, must) = (answer.algorithm().as_str_name(), algorithm.as_str_name());
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
        spki(&self.version, self.scheme, asked.await?.get_ref())
    }

    async fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Fault> {
        let request = request(&self.version, self.scheme, message);
        let request = create_request(format!("name={}", self.version), request);
        let asked = self.asked(async |mut client| client.asymmetric_sign(request).await);
        signature(&self.version, self.scheme, asked.await?.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::{Arc, Mutex},
    };

    use bytes::Bytes;
    use google_cloud_kms::client::google_cloud_auth::credentials::CredentialsFile;
    use http_body_util::{BodyExt, Full};
    use hyper::{Request, Response, body::Incoming, service::service_fn};
    use hyper_util::{
        rt::{TokioExecutor, TokioIo},
        server::conn::auto,
    };
    use serde_json::json;
    use tokio::net::TcpListener;
    use vm::types::B256;

    use super::*;

    const SCHEME: Scheme = Scheme::Secp256k1;
    const ALGORITHM: CryptoKeyVersionAlgorithm = CryptoKeyVersionAlgorithm::EcSignSecp256k1Sha256;
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
        let request = request(VERSION, SCHEME, &B256::ZERO[..]);
        assert_eq!(request.digest_crc32c, Some(0x8a91_36aa));
        let slot = digest::Digest::Sha256(vec![0; 32]);
        assert_eq!(request.digest.unwrap().digest, Some(slot));
        assert_eq!((request.name.as_str(), request.data.len()), (VERSION, 0));
        assert_eq!(request.data_crc32c, None);
    }

    #[test]
    fn an_ed25519_key_signs_the_message_itself() {
        let scheme = Scheme::Ed25519;
        let request = request(VERSION, scheme, &[0xff; 32]);
        assert_eq!((request.digest, request.digest_crc32c), (None, None));
        assert_eq!(request.data, [0xff; 32]);
        assert_eq!(request.data_crc32c, Some(0x62a8_ab43));
        // The service says of the message alone that its checksum was verified.
        let refused = signature(VERSION, scheme, answer());
        assert!(matches!(refused, Err(Fault::Passing(_))), "{refused:?}");
        let verified = AsymmetricSignResponse {
            verified_data_crc32c: true,
            verified_digest_crc32c: false,
            ..answer()
        };
        assert_eq!(signature(VERSION, scheme, verified), Ok(vec![1, 2, 3]));
    }

    #[test]
    fn an_answer_counts_whole_and_from_the_key_that_was_asked() {
        assert_eq!(signature(VERSION, SCHEME, answer()), Ok(vec![1, 2, 3]));
        let foreign = AsymmetricSignResponse {
            name: VERSION.replace("/1", "/2"),
            ..answer()
        };
        let foreign = signature(VERSION, SCHEME, foreign);
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
            let refused = signature(VERSION, SCHEME, corrupted);
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
        let ed25519 = key(pem, CryptoKeyVersionAlgorithm::EcSignEd25519);
        for (scheme, key) in [(SCHEME, &key(pem, ALGORITHM)), (Scheme::Ed25519, &ed25519)] {
            assert_eq!(spki(VERSION, scheme, key), Ok(vec![1, 2, 3]));
        }
        let other = CryptoKeyVersionAlgorithm::EcSignP256Sha256;
        for lasting in [key(pem, other), ed25519, key("AQID", ALGORITHM)] {
            let refused = spki(VERSION, SCHEME, &lasting);
            assert!(matches!(refused, Err(Fault::Lasting(_))), "{refused:?}");
        }
        let mut corrupted = key(pem, ALGORITHM);
        corrupted.pem.push('\n');
        let refused = spki(VERSION, SCHEME, &corrupted);
        assert!(matches!(refused, Err(Fault::Passing(_))), "{refused:?}");
        let foreign = spki("other", SCHEME, &key(pem, ALGORITHM));
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

    #[test]
    fn a_token_service_s_answer_is_shown_in_part_and_in_one_line() {
        let shown =
            refusal(&json!({"error": "a\nb", "error_description": "x".repeat(500)}).to_string());
        let cut = "x".repeat(LONGEST_REASON);
        assert_eq!(shown, Some(format!(": a\\nb: {cut}")));
        assert_eq!(refusal("subject t0ken"), None);
    }

    type Shown = Arc<Mutex<Vec<String>>>;

    /// The token service at `/token`, and else a key service that refuses each call. Both keep what they are shown: the
    /// form, or the authorization.
    async fn answered(
        shown: Shown,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        let (head, body) = request.into_parts();
        if head.uri.path() == "/token" {
            let form = body.collect().await.unwrap().to_bytes();
            let form = String::from_utf8(form.to_vec()).unwrap();
            shown.lock().unwrap().push(form);
            let token =
                json!({"access_token": "t0ken", "token_type": "Bearer", "expires_in": 3600});
            return Ok(Response::new(Full::from(token.to_string())));
        }
        let authorization = head.headers["authorization"].to_str().unwrap().to_owned();
        shown.lock().unwrap().push(authorization);
        let refusal = Response::builder()
            .header("content-type", "application/grpc")
            .header("grpc-status", Code::PermissionDenied as i32);
        Ok(refusal.body(Full::default()).unwrap())
    }

    /// The address of both services, until the test ends.
    async fn services(shown: Shown) -> std::net::SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let shown = shown.clone();
                tokio::spawn(async move {
                    let service = service_fn(move |request| answered(shown.clone(), request));
                    let _ended = auto::Builder::new(TokioExecutor::new())
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        address
    }

    /// The crate trusts public certificates only, and the daemon sends no credentials over plain http: here they are.
    #[tokio::test]
    async fn the_service_is_shown_the_token_of_an_external_account() {
        let _installed_before = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let shown = Shown::default();
        let address = services(shown.clone()).await;
        let directory = tempfile::TempDir::new().unwrap();
        let subject = directory.path().join("subject");
        std::fs::write(&subject, "subject t0ken").unwrap();
        let credentials = json!({
            "type": "external_account", "audience": "//iam.googleapis.com/p",
            "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
            "token_url": format!("http://{address}/token"),
            "credential_source": {"file": subject},
        });
        let credentials = CredentialsFile::new_from_str(&credentials.to_string()).await;
        let config = ClientConfig::default().with_credentials(credentials.unwrap());
        let service = GcpKms {
            version: VERSION.to_owned(),
            scheme: SCHEME,
            server: Server {
                environment: Environment::GoogleCloud(config.await.unwrap().token_source_provider),
                domain: KMS.to_owned(),
                url: Box::leak(format!("http://{address}").into_boxed_str()),
            },
            client: ArcSwapOption::empty(),
            patience: Patience::default(),
        };
        let refused = service.public_key().await;
        assert!(matches!(refused, Err(Fault::Lasting(_))), "{refused:?}");
        let shown = shown.lock().unwrap();
        let [form, authorization] = &shown[..] else {
            panic!("{shown:?}");
        };
        let form = url::form_urlencoded::parse(form.as_bytes());
        let subjects = form.filter(|(name, _)| name == "subject_token");
        let subjects: Vec<_> = subjects.map(|(_, value)| value).collect();
        assert_eq!(subjects, ["subject t0ken"]);
        assert_eq!(authorization, "Bearer t0ken");
    }
}
