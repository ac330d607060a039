//! A key in AWS KMS, over its JSON protocol. Requests are signed by SigV4 with credentials of the usual chain.

use std::{collections::HashMap, sync::OnceLock};

use async_trait::async_trait;
use base64::{Engine, engine::general_purpose::STANDARD};
use hyper::http;
use reqsign_aws_v4::{Credential, DefaultCredentialProvider, RequestSigner};
use reqsign_command_execute_tokio::TokioCommandExecute;
use reqsign_core::{Context, ErrorKind, Signer, StaticEnv};
use reqsign_file_read_tokio::TokioFileRead;
use reqsign_http_send_reqwest::ReqwestHttpSend;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use url::Url;
use vm::trade::Scheme;

use super::kms::{Fault, KeyService, Patience, in_time};

/// What the service calls the keys of a scheme.
struct Kind {
    /// The curve.
    spec: &'static str,
    algorithm: &'static str,
    /// A digest is signed as it is, and a raw message is hashed by the algorithm.
    message: &'static str,
}

const SECP256K1: Kind = Kind {
    spec: "ECC_SECG_P256K1",
    algorithm: "ECDSA_SHA_256",
    message: "DIGEST",
};
const ED25519: Kind = Kind {
    spec: "ECC_NIST_EDWARDS25519",
    algorithm: "ED25519_SHA_512",
    message: "RAW",
};
/// Faults that pass, beside those with a status of 500 and above.
const PASSING: [&str; 6] = [
    "DependencyTimeoutException",
    "KMSInternalException",
    "KeyUnavailableException",
    "RequestLimitExceeded",
    "ThrottlingException",
    "TooManyRequestsException",
];
/// Bytes of the longest answer that is read.
const LONGEST: usize = 65_536;

/// Where a key is, and who asks for it.
pub struct Located<'a> {
    /// Key id, ARN, or alias.
    pub key: &'a str,
    pub region: &'a str,
    /// For tests and private gateways; `None`: the service of the region.
    pub endpoint: Option<&'a Url>,
    /// The variables of the credentials chain.
    pub environment: HashMap<String, String>,
}

/// The service with one key.
pub struct AwsKms {
    key: String,
    /// The ARN of the key that had the public key.
    arn: OnceLock<String>,
    kind: &'static Kind,
    url: String,
    client: reqwest::Client,
    signer: Signer<Credential>,
    patience: Patience,
}

/// An answer about the public key.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct PublicKey {
    key_id: String,
    public_key: String,
    #[serde(default)]
    key_spec: String,
    #[serde(default)]
    signing_algorithms: Vec<String>,
}

/// An answer with a signature.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Signed {
    key_id: String,
    signature: String,
    signing_algorithm: String,
}

/// An answer of any other status than 200.
#[derive(Default, Deserialize)]
struct Problem {
    #[serde(default, rename = "__type")]
    kind: String,
    #[serde(default, alias = "Message")]
    message: String,
}

impl AwsKms {
    /// A secp256k1 key there.
    pub fn new(located: Located<'_>, patience: Patience) -> Result<Self, String> {
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(patience.call)
            .build()
            .map_err(|error| error.to_string())?;
        let home = located.environment.get("HOME").map(Into::into);
        let environment = StaticEnv {
            home_dir: home,
            envs: located.environment,
        };
        let context = Context::new()
            .with_file_read(TokioFileRead)
            .with_command_execute(TokioCommandExecute)
            .with_http_send(ReqwestHttpSend::new(client.clone()))
            .with_env(environment);
        let request_signer = RequestSigner::new("kms", located.region);
        let url = match located.endpoint {
            Some(url) => url.to_string(),
            None => service_url(located.region),
        };
        Ok(Self {
            key: located.key.to_owned(),
            arn: OnceLock::new(),
            kind: &SECP256K1,
            url,
            client,
            signer: Signer::new(context, DefaultCredentialProvider::new(), request_signer),
            patience,
        })
    }

    /// The same, of a key of `scheme`.
    pub fn of_scheme(self, scheme: Scheme) -> Self {
        let kind = match scheme {
            Scheme::Secp256k1 => &SECP256K1,
            Scheme::Ed25519 => &ED25519,
        };
        Self { kind, ..self }
    }

    async fn asked<T: for<'de> Deserialize<'de>>(
        &self,
        operation: &str,
        body: &serde_json::Value,
    ) -> Result<T, Fault> {
        let body = body.to_string();
        let asked = async {
            let request = self.request(operation, body).await?;
            let passing = |error: reqwest::Error| Fault::Passing(error.without_url().to_string());
            let mut response = self.client.execute(request).await.map_err(passing)?;
            let status = response.status();
            let mut bytes = Vec::new();
            while let Some(chunk) = response.chunk().await.map_err(passing)? {
                bytes.extend_from_slice(&chunk);
                if bytes.len() > LONGEST {
                    return Err(Fault::Passing("the answer is too long".to_owned()));
                }
            }
            answered(status.as_u16(), &bytes)
        };
        in_time(self.patience.call, asked).await
    }

    /// A request of the operation, signed.
    async fn request(&self, operation: &str, body: String) -> Result<reqwest::Request, Fault> {
        let lasting = |error: &dyn std::fmt::Display| Fault::Lasting(error.to_string());
        let request = http::Request::post(&self.url)
            .header("content-type", "application/x-amz-json-1.1")
            .header("x-amz-target", format!("TrentService.{operation}"))
            .header(
                "x-amz-content-sha256",
                alloy::hex::encode(Sha256::digest(&body)),
            )
            .body(body)
            .map_err(|error| lasting(&error))?;
        let (mut head, body) = request.into_parts();
        let signed = self.signer.sign(&mut head, None).await;
        signed.map_err(|error| match error.kind() {
            ErrorKind::CredentialInvalid | ErrorKind::ConfigInvalid => {
                Fault::Lasting(format!("no credentials: {error}"))
            }
            _ => Fault::Passing(format!("no credentials: {error}")),
        })?;
        let request = http::Request::from_parts(head, body);
        reqwest::Request::try_from(request).map_err(|error| lasting(&error))
    }
}

/// The service of a region.
fn service_url(region: &str) -> String {
    let china = if region.starts_with("cn-") { ".cn" } else { "" };
    format!("https://kms.{region}.amazonaws.com{china}/")
}

/// What an answer says.
fn answered<T: for<'de> Deserialize<'de>>(status: u16, body: &[u8]) -> Result<T, Fault> {
    if status == 200 {
        let unreadable = |_| Fault::Passing("the answer cannot be read".to_owned());
        return serde_json::from_slice(body).map_err(unreadable);
    }
    let problem: Problem = serde_json::from_slice(body).unwrap_or_default();
    let kind = problem.kind.rsplit('#').next().unwrap_or_default();
    let what = match kind {
        "" => format!("status {status}"),
        kind => format!("{kind}: {}", problem.message),
    };
    Err(
        if status >= 500 || status == 429 || PASSING.contains(&kind) {
            Fault::Passing(what)
        } else {
            Fault::Lasting(what)
        },
    )
}

fn decoded(base64: &str) -> Result<Vec<u8>, Fault> {
    let unreadable = |_| Fault::Passing("the answer cannot be read".to_owned());
    STANDARD.decode(base64).map_err(unreadable)
}

/// Whether the key with this ARN is the one that was named: an ARN names itself, an id each key that has it, and an
/// alias any key.
fn is_named(name: &str, arn: &str) -> bool {
    let of_id = |before: &str| before.starts_with("arn:") && before.ends_with(":key/");
    if name.starts_with("alias/") || name.contains(":alias/") {
        arn.starts_with("arn:")
    } else if name.starts_with("arn:") {
        arn == name
    } else {
        arn.strip_suffix(name).is_some_and(of_id)
    }
}

/// The signature of an answer from the key that was asked.
fn signature(arn: &str, algorithm: &str, answer: &Signed) -> Result<Vec<u8>, Fault> {
    if answer.key_id != arn {
        return Err(Fault::Foreign(answer.key_id.clone()));
    }
    if answer.signing_algorithm != algorithm {
        let is = &answer.signing_algorithm;
        return Err(Fault::Lasting(format!(
            "signed with {is} instead of {algorithm}"
        )));
    }
    decoded(&answer.signature)
}

/// The DER key of an answer about a key that can sign here.
fn spki(kind: &Kind, answer: &PublicKey) -> Result<Vec<u8>, Fault> {
    let (spec, algorithm) = (kind.spec, kind.algorithm);
    if answer.key_spec != spec {
        let is = &answer.key_spec;
        return Err(Fault::Lasting(format!(
            "the key's spec is {is}; it must be {spec}"
        )));
    }
    if !answer.signing_algorithms.iter().any(|one| one == algorithm) {
        return Err(Fault::Lasting(format!(
            "the key does not sign with {algorithm}"
        )));
    }
    decoded(&answer.public_key)
}

#[async_trait]
impl KeyService for AwsKms {
    fn name(&self) -> &'static str {
        "aws-kms"
    }

    /// An alias may name another key later: what signs is the key that has this public key.
    async fn public_key(&self) -> Result<Vec<u8>, Fault> {
        let answer: PublicKey = self
            .asked("GetPublicKey", &json!({"KeyId": self.key}))
            .await?;
        if !is_named(&self.key, &answer.key_id) {
            return Err(Fault::Foreign(answer.key_id));
        }
        let der = spki(self.kind, &answer)?;
        let arn = self.arn.get_or_init(|| answer.key_id.clone());
        match *arn == answer.key_id {
            true => Ok(der),
            false => Err(Fault::Foreign(answer.key_id)),
        }
    }

    async fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Fault> {
        let arn = self.arn.get().unwrap_or(&self.key);
        let algorithm = self.kind.algorithm;
        let body = json!({
            "KeyId": arn, "Message": STANDARD.encode(message), "MessageType": self.kind.message,
            "SigningAlgorithm": algorithm,
        });
        signature(arn, algorithm, &self.asked("Sign", &body).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARN: &str = "arn:aws:kms:eu-west-1:111122223333:key/1";
    const ALGORITHM: &str = SECP256K1.algorithm;

    #[test]
    fn a_region_has_its_service() {
        let url = service_url("eu-west-1");
        assert_eq!(url, "https://kms.eu-west-1.amazonaws.com/");
        let url = service_url("cn-north-1");
        assert_eq!(url, "https://kms.cn-north-1.amazonaws.com.cn/");
    }

    #[test]
    fn what_may_pass_is_asked_again() {
        let fault = |status: u16, body: &str| {
            let answer = answered::<Signed>(status, body.as_bytes());
            answer.err().unwrap()
        };
        let throttled = r#"{"__type":"ThrottlingException","message":"Rate exceeded"}"#;
        let said = "ThrottlingException: Rate exceeded".to_owned();
        assert_eq!(fault(400, throttled), Fault::Passing(said));
        let denied = r#"{"__type":"com.amazonaws.kms#AccessDeniedException","Message":"no"}"#;
        let said = "AccessDeniedException: no".to_owned();
        assert_eq!(fault(400, denied), Fault::Lasting(said));
        let status = |number: u16| format!("status {number}");
        assert_eq!(fault(503, "<html>"), Fault::Passing(status(503)));
        assert_eq!(fault(429, ""), Fault::Passing(status(429)));
        assert_eq!(fault(404, "{}"), Fault::Lasting(status(404)));
        assert!(matches!(fault(200, "{}"), Fault::Passing(_)));
    }

    #[test]
    fn an_answer_counts_from_the_key_that_was_asked() {
        let signed = |key_id: &str, algorithm: &str, signature: &str| Signed {
            key_id: key_id.to_owned(),
            signature: signature.to_owned(),
            signing_algorithm: algorithm.to_owned(),
        };
        let good = signature(ARN, ALGORITHM, &signed(ARN, ALGORITHM, "AQID"));
        assert_eq!(good, Ok(vec![1, 2, 3]));
        let foreign = signature(ARN, ALGORITHM, &signed("other", ALGORITHM, "AQID"));
        assert_eq!(foreign, Err(Fault::Foreign("other".to_owned())));
        let hashed = signature(ARN, ALGORITHM, &signed(ARN, "ECDSA_SHA_384", "AQID"));
        assert!(matches!(hashed, Err(Fault::Lasting(_))), "{hashed:?}");
        let torn = signature(ARN, ALGORITHM, &signed(ARN, ALGORITHM, "AQI"));
        assert!(matches!(torn, Err(Fault::Passing(_))), "{torn:?}");
    }

    #[test]
    fn a_key_of_another_kind_is_named() {
        let key = |spec: &str, algorithms: &[&str]| PublicKey {
            key_id: ARN.to_owned(),
            public_key: "AQID".to_owned(),
            key_spec: spec.to_owned(),
            signing_algorithms: algorithms.iter().map(|one| (*one).to_owned()).collect(),
        };
        for (kind, other) in [(&SECP256K1, &ED25519), (&ED25519, &SECP256K1)] {
            let good = key(kind.spec, &[kind.algorithm]);
            assert_eq!(spki(kind, &good), Ok(vec![1, 2, 3]));
            for (key, named) in [
                (key("ECC_NIST_P256", &[kind.algorithm]), "ECC_NIST_P256"),
                (key(other.spec, &[other.algorithm]), other.spec),
                (key(kind.spec, &[]), kind.algorithm),
                // An Ed25519 key signs digests, too, by another algorithm.
                (key(kind.spec, &["ED25519_PH_SHA_512"]), kind.algorithm),
            ] {
                let refused = spki(kind, &key).unwrap_err();
                assert!(matches!(refused, Fault::Lasting(_)), "{refused:?}");
                assert!(refused.to_string().contains(named), "{refused}");
            }
        }
    }

    #[test]
    fn a_full_arn_means_its_own_key_and_an_alias_any() {
        let other = ARN.replace("eu-west-1", "us-east-1");
        let alias = "arn:aws:kms:eu-west-1:111122223333:alias/solver";
        for name in [ARN, "1", "alias/solver", alias] {
            assert!(is_named(name, ARN), "{name}");
            assert_eq!(is_named(name, &other), name != ARN, "{name}");
            for no_arn in ["", "1", "key/1", "solver"] {
                assert!(!is_named(name, no_arn), "{name} {no_arn}");
            }
        }
        for name in [ARN, "1"] {
            for changed in ["key/2", "key/11", "key/2/1", "alias/1"] {
                let arn = ARN.replace("key/1", changed);
                assert!(!is_named(name, &arn), "{name} {arn}");
            }
        }
    }

    #[tokio::test]
    async fn a_request_is_signed_with_the_environments_credentials() {
        let _installed_before = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let variables = [
            ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
            ("AWS_SECRET_ACCESS_KEY", "s3cret"),
            ("AWS_SESSION_TOKEN", "token"),
        ];
        let located = Located {
            key: ARN,
            region: "eu-west-1",
            endpoint: None,
            environment: variables
                .map(|(name, value)| (name.into(), value.into()))
                .into(),
        };
        let service = AwsKms::new(located, Patience::default()).unwrap();
        let request = service.request("Sign", "{}".to_owned()).await.unwrap();
        let header = |name: &str| request.headers()[name].to_str().unwrap().to_owned();
        let authorization = header("authorization");
        assert!(authorization.starts_with("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/"));
        assert!(authorization.contains("/eu-west-1/kms/aws4_request"));
        assert_eq!(header("x-amz-target"), "TrentService.Sign");
        assert_eq!(header("x-amz-security-token"), "token");
        let hash = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
        assert_eq!(header("x-amz-content-sha256"), hash);
        let signed = authorization.split("SignedHeaders=").nth(1).unwrap();
        for name in ["host", "x-amz-content-sha256", "x-amz-date", "x-amz-target"] {
            assert!(signed.contains(name), "{name} is not in {signed}");
        }
    }
}
