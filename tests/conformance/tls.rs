//! TLS before a node, with certificates of an authority that only the client of these tests trusts.

use std::sync::{Arc, LazyLock};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
    date_time_ymd,
};
use rustls::{
    ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivatePkcs8KeyDer},
};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::{JoinHandle, JoinSet},
};
use tokio_rustls::TlsAcceptor;

/// What stands where a node is asked over TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tls {
    /// The node itself, which speaks none.
    Absent,
    Valid,
    /// With a certificate that was good until some years ago.
    Expired,
}

impl Tls {
    /// The years between whose first days the certificate is good.
    const fn years(self) -> (i32, i32) {
        match self {
            Self::Expired => (2019, 2020),
            Self::Absent | Self::Valid => (2020, 2999),
        }
    }
}

/// A certificate and its key, in DER.
struct Signed {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

struct Authority {
    certificate: Vec<u8>,
    valid: Signed,
    expired: Signed,
}

static AUTHORITY: LazyLock<Authority> = LazyLock::new(|| {
    let mut params = params("authority of the tests", Tls::Valid);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap().der().to_vec();
    let issuer = Issuer::new(params, key);
    Authority {
        certificate,
        valid: signed(&issuer, Tls::Valid),
        expired: signed(&issuer, Tls::Expired),
    }
});

fn signed(issuer: &Issuer<'_, KeyPair>, tls: Tls) -> Signed {
    let key = KeyPair::generate().unwrap();
    let certificate = params("node", tls).signed_by(&key, issuer).unwrap();
    Signed {
        certificate: certificate.der().to_vec(),
        key: key.serialize_der(),
    }
}

fn params(name: &str, tls: Tls) -> CertificateParams {
    let (from, to) = tls.years();
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = date_time_ymd(from, 1, 1);
    params.not_after = date_time_ymd(to, 1, 1);
    params
}

/// The authority's own certificate, in DER.
pub fn authority() -> &'static [u8] {
    &AUTHORITY.certificate
}

/// What speaks TLS for a node. Ends with all its connections when dropped.
pub struct Front {
    pub port: u16,
    task: JoinHandle<()>,
}

impl Drop for Front {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Front {
    /// Before the node at `port`; `None` where there is no TLS.
    pub async fn start(port: u16, tls: Tls) -> Option<Self> {
        let signed = match tls {
            Tls::Absent => return None,
            Tls::Valid => &AUTHORITY.valid,
            Tls::Expired => &AUTHORITY.expired,
        };
        let certificate = CertificateDer::from(signed.certificate.clone());
        let key = PrivatePkcs8KeyDer::from(signed.key.clone());
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key.into())
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = listener.local_addr().unwrap().port();
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let acceptor = acceptor.clone();
                connections.spawn(async move {
                    // An error here is a client that does not like the certificate.
                    let Ok(mut client) = acceptor.accept(stream).await else {
                        return;
                    };
                    let mut node = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                    let _ended = copy_bidirectional(&mut client, &mut node).await;
                });
            }
        });
        Some(Self { port: own, task })
    }
}
