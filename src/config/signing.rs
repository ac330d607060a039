//! Where a key is: the oracle's, and the solver's.

use std::{collections::BTreeMap, fmt};

use secrecy::{ExposeSecret, SecretString};
use url::Url;
use vm::trade::Scheme;

use super::{Raw, read::Reader};

/// The module of a key that stands in the environment.
const RAW: &str = "raw-private-key";

/// The variables that say where a key is. The services' endpoints are the same for all keys.
#[derive(Debug, PartialEq, Eq)]
pub struct Names {
    pub module: &'static str,
    pub raw: &'static str,
    pub gcp_version: &'static str,
    pub aws_key: &'static str,
    pub aws_region: &'static str,
}

impl Names {
    /// The key that statements are signed with.
    pub const ORACLE: &Self = &Self {
        module: "SIGNING_MODULE",
        raw: "ECDSA_PRIVATE_KEY",
        gcp_version: "GCP_KMS_KEY_VERSION",
        aws_key: "AWS_KMS_SIGNER_KEY_ID",
        aws_region: "AWS_KMS_SIGNER_KEY_REGION",
    };
    /// The secp256k1 key that the solver promises and pays with.
    pub const SOLVER: &Self = &Self {
        module: "SOLVER_SIGNING_MODULE",
        raw: "SOLVER_PRIVATE_KEY",
        gcp_version: "SOLVER_GCP_KMS_KEY_VERSION",
        aws_key: "SOLVER_AWS_KMS_KEY_ID",
        aws_region: "SOLVER_AWS_KMS_KEY_REGION",
    };
    /// The ed25519 key of the solver's accounts.
    pub const ED25519: &Self = &Self {
        module: "SOLVER_ED25519_SIGNING_MODULE",
        raw: "SOLVER_ED25519_KEY",
        gcp_version: "SOLVER_ED25519_GCP_KMS_KEY_VERSION",
        aws_key: "SOLVER_ED25519_AWS_KMS_KEY_ID",
        aws_region: "SOLVER_ED25519_AWS_KMS_KEY_REGION",
    };
    /// Keys that the solver had before: each entry of a list says where its key is.
    pub const PREVIOUS: &Self = &Self {
        module: "SOLVER_PREVIOUS_KEYS",
        raw: "SOLVER_PREVIOUS_KEYS",
        gcp_version: "SOLVER_PREVIOUS_KEYS",
        aws_key: "SOLVER_PREVIOUS_KEYS",
        aws_region: "SOLVER_PREVIOUS_KEYS",
    };
    pub const GCP_ENDPOINT: &'static str = "GCP_KMS_ENDPOINT";
    pub const AWS_ENDPOINT: &'static str = "AWS_KMS_ENDPOINT";

    /// Every variable of this key.
    pub fn all(&self) -> [&'static str; 7] {
        [
            self.module,
            self.raw,
            self.gcp_version,
            self.aws_key,
            self.aws_region,
            Self::GCP_ENDPOINT,
            Self::AWS_ENDPOINT,
        ]
    }
}

/// The signing module of a key, and what it needs.
#[derive(Clone, Debug)]
pub enum Signing {
    RawPrivateKey(SecretString),
    GcpKms(GcpKms),
    AwsKms(AwsKms),
    /// A key that everybody knows: nothing that it signs leaves the daemon.
    Nobody,
}

/// A key that the solver had before.
#[derive(Clone, Debug)]
pub struct PreviousKey {
    pub scheme: Scheme,
    pub signing: Signing,
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
    pub names: &'static Names,
    pub module: Option<String>,
    pub key: Option<SecretString>,
    /// The key's version and the endpoint.
    pub gcp: [Option<String>; 2],
    /// The key's id and its region.
    pub aws: [Option<String>; 2],
    pub aws_endpoint: Option<String>,
}

impl Signing {
    /// Variables of other modules that hold secrets: a daemon that does not need a secret should not have it.
    pub(super) fn unused(&self, names: &Names) -> Option<&'static str> {
        match self {
            Self::RawPrivateKey(_) => None,
            Self::GcpKms(_) | Self::AwsKms(_) | Self::Nobody => Some(names.raw),
        }
    }
}

impl Raw {
    /// Takes what says where the oracle's key is.
    pub(super) fn signing(&mut self) -> Texts {
        Texts {
            names: Names::ORACLE,
            module: self.signing_module.take(),
            key: self.ecdsa_private_key.take(),
            gcp: [
                self.gcp_kms_key_version.take(),
                self.gcp_kms_endpoint.clone(),
            ],
            aws: [
                self.aws_kms_signer_key_id.take(),
                self.aws_kms_signer_key_region.take(),
            ],
            aws_endpoint: self.aws_kms_endpoint.clone(),
        }
    }

    /// Takes what says where the solver's key is.
    pub(super) fn solver_signing(&mut self) -> Texts {
        Texts {
            names: Names::SOLVER,
            module: self.solver_signing_module.take(),
            key: self.solver_private_key.take(),
            gcp: [
                self.solver_gcp_kms_key_version.take(),
                self.gcp_kms_endpoint.clone(),
            ],
            aws: [
                self.solver_aws_kms_key_id.take(),
                self.solver_aws_kms_key_region.take(),
            ],
            aws_endpoint: self.aws_kms_endpoint.clone(),
        }
    }

    /// Takes what says where the solver's ed25519 key is.
    pub(super) fn ed25519_signing(&mut self) -> Texts {
        Texts {
            names: Names::ED25519,
            module: self.solver_ed25519_signing_module.take(),
            key: self.solver_ed25519_key.take(),
            gcp: [
                self.solver_ed25519_gcp_kms_key_version.take(),
                self.gcp_kms_endpoint.clone(),
            ],
            aws: [
                self.solver_ed25519_aws_kms_key_id.take(),
                self.solver_ed25519_aws_kms_key_region.take(),
            ],
            aws_endpoint: self.aws_kms_endpoint.clone(),
        }
    }
}

impl Reader<'_> {
    /// What is signed with; a raw key without text after a mistake. `production`: statements are signed for others, and
    /// the public key that a service names is who signs. `variables` are those of the environment.
    pub fn signing(
        &mut self,
        texts: Texts,
        production: bool,
        variables: &BTreeMap<String, String>,
    ) -> Signing {
        let signing = self.module(texts, production, variables);
        signing.unwrap_or_else(|| Signing::RawPrivateKey(SecretString::default()))
    }

    /// As [`Self::signing`], of a key that may be missing.
    pub fn optional_signing(
        &mut self,
        texts: Texts,
        production: bool,
        variables: &BTreeMap<String, String>,
    ) -> Option<Signing> {
        let module = texts.module.as_deref().map(str::trim);
        let is_set = module.is_some_and(|module| module != RAW)
            || texts.key.is_some()
            || texts.gcp[0].is_some()
            || texts.aws.iter().any(Option::is_some);
        is_set.then(|| self.signing(texts, production, variables))
    }

    /// A key that the solver had before: `ed25519:` before an ed25519 key, then `gcp-kms:` and the name of a key's
    /// version, `aws-kms:` and a key's ARN, or the key itself. `None` after a mistake.
    pub fn previous_key(
        &mut self,
        key: &SecretString,
        [gcp_endpoint, aws_endpoint]: &[Option<String>; 2],
        production: bool,
        variables: &BTreeMap<String, String>,
    ) -> Option<PreviousKey> {
        let (scheme, text) = match key.expose_secret().strip_prefix("ed25519:") {
            Some(text) => (Scheme::Ed25519, text.trim()),
            None => (Scheme::Secp256k1, key.expose_secret()),
        };
        let mut texts = Texts {
            names: Names::PREVIOUS,
            module: None,
            key: None,
            gcp: [None, gcp_endpoint.clone()],
            aws: [None, None],
            aws_endpoint: aws_endpoint.clone(),
        };
        if let Some(version) = text.strip_prefix("gcp-kms:") {
            texts.module = Some("gcp-kms".to_owned());
            texts.gcp[0] = Some(version.to_owned());
        } else if let Some(arn) = text.strip_prefix("aws-kms:") {
            texts.module = Some("aws-kms".to_owned());
            texts.aws = [Some(arn.to_owned()), Some(self.region_of(arn)?)];
        } else {
            texts.key = Some(text.into());
        }
        let signing = self.module(texts, production, variables)?;
        Some(PreviousKey { scheme, signing })
    }

    /// The region that a key's ARN names; `None` after a mistake.
    fn region_of(&mut self, arn: &str) -> Option<String> {
        let region = match arn.split(':').collect::<Vec<_>>()[..] {
            ["arn", _, "kms", region, _, _] if !region.is_empty() => Some(region.to_owned()),
            _ => None,
        };
        if region.is_none() {
            let what = "expected aws-kms: and a key's ARN, arn:aws:kms:…:…:key/…";
            self.mistake(Names::PREVIOUS.aws_region, what);
        }
        region
    }

    fn module(
        &mut self,
        texts: Texts,
        production: bool,
        variables: &BTreeMap<String, String>,
    ) -> Option<Signing> {
        let trimmed = |text: Option<String>| text.map(|text| text.trim().to_owned());
        let names = texts.names;
        match texts.module.as_deref().map_or(RAW, str::trim) {
            RAW => {
                let (version, aws) = (&texts.gcp[0], &texts.aws);
                let is_in_service = version.is_some() || aws.iter().any(Option::is_some);
                if names != Names::ORACLE && is_in_service {
                    self.mistake(names.module, "must say which key service has the key");
                }
                let key = self.required(names.raw, texts.key)?;
                Some(Signing::RawPrivateKey(key.expose_secret().trim().into()))
            }
            "gcp-kms" => {
                let [version, endpoint] = texts.gcp.map(trimmed);
                let version = self.required(names.gcp_version, version);
                let version = version.filter(|version| self.is_version(names, version));
                let endpoint = self.endpoint(Names::GCP_ENDPOINT, endpoint, production);
                Some(Signing::GcpKms(GcpKms {
                    version: version?,
                    endpoint: endpoint?,
                }))
            }
            "aws-kms" => {
                let [key, region] = texts.aws.map(trimmed);
                let key = self.required(names.aws_key, key);
                let key = key.filter(|key| self.is_fixed(names, key));
                let region = self.required(names.aws_region, region);
                let region = region.filter(|region| self.is_region(names, region));
                let endpoint = trimmed(texts.aws_endpoint);
                let endpoint = self.endpoint(Names::AWS_ENDPOINT, endpoint, production);
                Some(Signing::AwsKms(AwsKms {
                    key: key?,
                    region: region?,
                    endpoint: endpoint?,
                    credentials: Credentials::of(variables),
                }))
            }
            other => {
                let what = format!("{other}: expected raw-private-key, gcp-kms or aws-kms");
                self.mistake(names.module, &what);
                None
            }
        }
    }

    fn is_version(&mut self, names: &Names, name: &str) -> bool {
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
            self.mistake(names.gcp_version, what);
        }
        is
    }

    /// Whether a name always means one key. Orders name their solver by its address: with an alias that means another
    /// key one day nobody would fill them, or give their deposits back.
    fn is_fixed(&mut self, names: &Names, key: &str) -> bool {
        let is = names == Names::ORACLE || !key.contains("alias/");
        if !is {
            self.mistake(names.aws_key, "expected a key's id or ARN, not an alias");
        }
        is
    }

    fn is_region(&mut self, names: &Names, name: &str) -> bool {
        let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let is = name.chars().all(letter);
        if !is {
            let what = "expected a region such as eu-west-1";
            self.mistake(names.aws_region, what);
        }
        is
    }
}
