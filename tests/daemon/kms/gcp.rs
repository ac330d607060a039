//! A fake of Google Cloud KMS: the two calls over gRPC.

use std::{convert::Infallible, net::SocketAddr, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use google_cloud_gax::grpc::{self, Code, Status, codec::ProstCodec, server::Grpc};
use google_cloud_kms::grpc::kms::v1::{
    AsymmetricSignRequest, AsymmetricSignResponse, GetPublicKeyRequest, PublicKey,
    crypto_key_version::CryptoKeyVersionAlgorithm, digest::Digest,
};
use hyper::{Request, Response, body::Incoming, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{net::TcpListener, task::JoinSet};
use tokio_util::task::AbortOnDropHandle;
use vm::trade::Scheme;

use super::vault::{Mood, Vault};

pub const VERSION: &str =
    "projects/devnet/locations/global/keyRings/oracle/cryptoKeys/signer/cryptoKeyVersions/1";
const OTHER: &str =
    "projects/devnet/locations/global/keyRings/oracle/cryptoKeys/signer/cryptoKeyVersions/2";

/// Ends, with its connections, when dropped.
pub struct Server {
    pub address: SocketAddr,
    _task: AbortOnDropHandle<()>,
}

/// Serves the key at `address`; port 0 takes a free one.
pub async fn serve(vault: Arc<Vault>, address: SocketAddr) -> Server {
    let listener = TcpListener::bind(address).await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let vault = vault.clone();
            connections.spawn(async move {
                let service = service_fn(move |request| answer(vault.clone(), request));
                let _ended = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
    Server {
        address,
        _task: AbortOnDropHandle::new(task),
    }
}

async fn answer(
    vault: Arc<Vault>,
    request: Request<Incoming>,
) -> Result<Response<grpc::body::BoxBody>, Infallible> {
    let routed = request.headers().get("x-goog-request-params").cloned();
    let expected = format!("name={VERSION}");
    assert_eq!(routed.unwrap(), expected.as_str());
    let path = request.uri().path().to_owned();
    let method = path.rsplit('/').next().unwrap_or_default();
    assert!(path.starts_with("/google.cloud.kms.v1.KeyManagementService/"));
    Ok(match method {
        "GetPublicKey" => {
            let codec = ProstCodec::<PublicKey, GetPublicKeyRequest>::default();
            let service = tower::service_fn(move |asked: grpc::Request<GetPublicKeyRequest>| {
                let vault = vault.clone();
                async move {
                    public_key(&vault, asked.get_ref())
                        .await
                        .map(grpc::Response::new)
                }
            });
            Grpc::new(codec).unary(service, request).await
        }
        "AsymmetricSign" => {
            let codec = ProstCodec::<AsymmetricSignResponse, AsymmetricSignRequest>::default();
            let service = tower::service_fn(move |asked: grpc::Request<AsymmetricSignRequest>| {
                let vault = vault.clone();
                async move { sign(&vault, asked.get_ref()).await.map(grpc::Response::new) }
            });
            Grpc::new(codec).unary(service, request).await
        }
        other => panic!("{other} is not asked for"),
    })
}

/// The moods that are no answer.
async fn refused(mood: Mood) -> Result<(), Status> {
    match mood {
        Mood::Throttled => Err(Status::new(Code::ResourceExhausted, "Quota exceeded")),
        Mood::Denied => Err(Status::new(Code::PermissionDenied, "useToSign denied")),
        Mood::Slow => std::future::pending().await,
        _ => Ok(()),
    }
}

async fn public_key(vault: &Vault, asked: &GetPublicKeyRequest) -> Result<PublicKey, Status> {
    assert_eq!(asked.name, VERSION);
    let mood = vault.mood();
    refused(mood).await?;
    let base64 = STANDARD.encode(vault.spki());
    let pem = format!("-----BEGIN PUBLIC KEY-----\n{base64}\n-----END PUBLIC KEY-----\n");
    let algorithm = match vault.scheme() {
        _ if mood == Mood::OtherKind => CryptoKeyVersionAlgorithm::EcSignP256Sha256,
        Scheme::Secp256k1 => CryptoKeyVersionAlgorithm::EcSignSecp256k1Sha256,
        Scheme::Ed25519 => CryptoKeyVersionAlgorithm::EcSignEd25519,
    };
    let crc = i64::from(crc32c::crc32c(pem.as_bytes()));
    let wrong = i64::from(mood == Mood::Corrupted);
    Ok(PublicKey {
        algorithm: algorithm.into(),
        pem_crc32c: checksum(crc ^ wrong, mood),
        pem,
        name: name(mood).to_owned(),
        ..Default::default()
    })
}

/// The checksum of an answer; none in that mood.
fn checksum(crc: i64, mood: Mood) -> Option<i64> {
    (mood != Mood::Unchecked).then_some(crc)
}

fn name(mood: Mood) -> &'static str {
    match mood {
        Mood::OtherKey => OTHER,
        _ => VERSION,
    }
}

/// What is to be signed, where the key's algorithm takes it and nowhere else, with its checksum.
fn message(scheme: Scheme, asked: &AsymmetricSignRequest) -> &[u8] {
    let digest = asked.digest.as_ref().and_then(|d| d.digest.as_ref());
    match (scheme, digest) {
        (Scheme::Secp256k1, Some(Digest::Sha256(digest))) => {
            let crc = i64::from(crc32c::crc32c(digest));
            assert_eq!((asked.digest_crc32c, digest.len()), (Some(crc), 32));
            assert!(asked.data.is_empty() && asked.data_crc32c.is_none());
            digest
        }
        (Scheme::Ed25519, None) => {
            let crc = i64::from(crc32c::crc32c(&asked.data));
            assert_eq!((asked.data_crc32c, asked.digest_crc32c), (Some(crc), None));
            &asked.data
        }
        _ => panic!("not in the slot of the key's algorithm: {asked:?}"),
    }
}

async fn sign(
    vault: &Vault,
    asked: &AsymmetricSignRequest,
) -> Result<AsymmetricSignResponse, Status> {
    assert_eq!(asked.name, VERSION);
    let (mood, mut signature) = vault.sign(message(vault.scheme(), asked));
    refused(mood).await?;
    let crc = i64::from(crc32c::crc32c(&signature));
    if mood == Mood::Corrupted {
        let last = signature.last_mut().unwrap();
        *last ^= 1;
    }
    let verified = mood != Mood::Unverified;
    Ok(AsymmetricSignResponse {
        signature,
        signature_crc32c: checksum(crc, mood),
        verified_digest_crc32c: vault.scheme() == Scheme::Secp256k1 && verified,
        verified_data_crc32c: vault.scheme() == Scheme::Ed25519 && verified,
        name: name(mood).to_owned(),
        ..Default::default()
    })
}
