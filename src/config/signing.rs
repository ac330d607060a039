//! Where the oracle's key is.

use std::{collections::BTreeMap, fmt};

use secrecy::{ExposeSecret, SecretString};
use url::{Host, Url};

use super::read::Reader;

/// `SIGNING_MODULE` and what it needs.
#[derive(Clone, Debug)]
pub enum Signing {
    RawPrivateKey(SecretString),
    GcpKms(GcpKms),
    AwsKms(AwsKms),
}

/// A key in Google Cloud KMS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GcpKms {
    /// The full resource name of the key's version.
    pub version: String,
    /// `None`: Google's own.
    pub endpoint: Option<Url>,
}

/// A key in AWS KMS.
#[derive(Clone, Debug)]
pub struct AwsKms {
    /// Key id, ARN, or alias.
    pub key: String,
    pub region: String,
    /// `None`: the service of the region.
    pub endpoint: Option<Url>,
    pub credentials: Credentials,
}

/// The variables of the AWS credentials chain. They are never printed.
#[derive(Clone, Default)]
pub struct Credentials(BTreeMap<String, SecretString>);

impl Credentials {
    fn of(variables: &BTreeMap<String, String>) -> Self {
        let chain = variables.iter();
        let chain = chain.filter(|(name, _)| name.starts_with("AWS_") || *name == "HOME");
        Self(
            chain
                .map(|(name, text)| (name.clone(), text.clone().into()))
                .collect(),
        )
    }

    /// Names and texts.
    pub fn expose<T: FromIterator<(String, String)>>(&self) -> T {
        let pairs = self.0.iter();
        let pairs = pairs.map(|(name, text)| (name.clone(), text.expose_secret().to_owned()));
        pairs.collect()
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} variables", self.0.len())
    }
}

/// The variables, as text.
pub(super) struct Texts {
    pub module: Option<String>,
    pub key: Option<SecretString>,
    /// `GCP_KMS_KEY_VERSION` and `GCP_KMS_ENDPOINT`.
    pub gcp: [Option<String>; 2],
    /// `AWS_KMS_SIGNER_KEY_ID` and `AWS_KMS_SIGNER_KEY_REGION`.
    pub aws: [Option<String>; 2],
    pub aws_endpoint: Option<String>,
}

impl Signing {
    /// Variables of other modules that hold secrets: a daemon that does not need a secret should not have it.
    pub(super) fn unused(&self) -> Option<&'static str> {
        match self {
            Self::RawPrivateKey(_) => None,
            Self::GcpKms(_) | Self::AwsKms(_) => Some("ECDSA_PRIVATE_KEY"),
        }
    }
}

impl Reader<'_> {
    /// What is signed with; a raw key without text after a mistake. `production`: statements are signed for others.
    /// `variables` are those of the environment.
    pub fn signing(
        &mut self,
        texts: Texts,
        production: bool,
        variables: &BTreeMap<String, String>,
    ) -> Signing {
        let signing = self.module(texts, production, variables);
        signing.unwrap_or_else(|| Signing::RawPrivateKey(SecretString::default()))
    }

    fn module(
        &mut self,
        texts: Texts,
        production: bool,
        variables: &BTreeMap<String, String>,
    ) -> Option<Signing> {
        let trimmed = |text: Option<String>| text.map(|text| text.trim().to_owned());
        match texts.module.as_deref().map_or("raw-private-key", str::trim) {
            "raw-private-key" => {
                let key = self.required("ECDSA_PRIVATE_KEY", texts.key)?;
                Some(Signing::RawPrivateKey(key.expose_secret().trim().into()))
            }
            "gcp-kms" => {
                let [version, endpoint] = texts.gcp.map(trimmed);
                let version = self.required("GCP_KMS_KEY_VERSION", version);
                let version = version.filter(|version| self.is_version(version));
                let endpoint = self.endpoint("GCP_KMS_ENDPOINT", endpoint, production);
                Some(Signing::GcpKms(GcpKms {
                    version: version?,
                    endpoint: endpoint?,
                }))
            }
            "aws-kms" => {
                let [key, region] = texts.aws.map(trimmed);
                let key = self.required("AWS_KMS_SIGNER_KEY_ID", key);
                let region = self.required("AWS_KMS_SIGNER_KEY_REGION", region);
                let region = region.filter(|region| self.is_region(region));
                let endpoint = trimmed(texts.aws_endpoint);
                let endpoint = self.endpoint("AWS_KMS_ENDPOINT", endpoint, production);
                Some(Signing::AwsKms(AwsKms {
                    key: key?,
                    region: region?,
                    endpoint: endpoint?,
                    credentials: Credentials::of(variables),
                }))
            }
            other => {
                let what = format!("{other}: expected raw-private-key, gcp-kms or aws-kms");
                self.mistake("SIGNING_MODULE", &what);
                None
            }
        }
    }

    fn is_version(&mut self, name: &str) -> bool {
        let kinds = "projects locations keyRings cryptoKeys cryptoKeyVersions";
        let parts: Vec<_> = name.split('/').collect();
        let named = |part: &str| {
            let letter = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
            !part.is_empty() && part.chars().all(letter)
        };
        let is = parts.len() == 10
            && kinds.split(' ').eq(parts.iter().step_by(2).copied())
            && parts.iter().all(|part| named(part));
        if !is {
            let what =
                "expected projects/…/locations/…/keyRings/…/cryptoKeys/…/cryptoKeyVersions/…";
            self.mistake("GCP_KMS_KEY_VERSION", what);
        }
        is
    }

    fn is_region(&mut self, name: &str) -> bool {
        let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let is = name.chars().all(letter);
        if !is {
            let what = "expected a region such as eu-west-1";
            self.mistake("AWS_KMS_SIGNER_KEY_REGION", what);
        }
        is
    }

    /// The URL of a key service; `None` after a mistake. Where statements are signed for others, plain HTTP stays on
    /// this machine: the service's public key says who signs.
    fn endpoint(
        &mut self,
        variable: &str,
        text: Option<String>,
        production: bool,
    ) -> Option<Option<Url>> {
        let Some(text) = text else { return Some(None) };
        let url = Url::parse(&text).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        match url {
            None => self.mistake(variable, "expected an http(s) URL"),
            Some(url) if production && url.scheme() == "http" && !is_local(&url) => {
                self.mistake(variable, "must be https, or http on this machine");
            }
            Some(url) => return Some(Some(url)),
        }
        None
    }
}

/// Whether the host is this machine.
fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
