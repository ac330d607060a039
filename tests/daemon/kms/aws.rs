//! A fake of AWS KMS: the two calls over JSON, for requests that are signed by SigV4 with its credentials.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use hmac::{Hmac, Mac};
use http_body_util::Full;
use hyper::{HeaderMap, Response, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use vm::trade::Scheme;

use super::vault::{Mood, Vault};
use crate::support::http::{self, Asked, Server};

pub const ALIAS: &str = "alias/oracle";
pub const REGION: &str = "eu-west-1";
pub const ACCESS_KEY: &str = "AKIDEXAMPLE";
pub const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
pub const ID: &str = "1234abcd";
pub const ARN: &str = "arn:aws:kms:eu-west-1:111122223333:key/1234abcd";
const OTHER: &str = "arn:aws:kms:eu-west-1:111122223333:key/5678efab";

pub async fn serve(vault: Arc<Vault>) -> Server {
    http::serve(move |asked| {
        let vault = vault.clone();
        async move { Some(answer(&vault, &asked).await) }
    })
    .await
}

async fn answer(vault: &Vault, asked: &Asked) -> Response<Full<Bytes>> {
    let json = |status: StatusCode, body: Value| http::json(status, body.to_string().into());
    let header = |name: &str| text(&asked.headers, name);
    assert_eq!(header("content-type"), "application/x-amz-json-1.1");
    if header("authorization") != authorization(asked) {
        let problem = json!({"__type": "InvalidSignatureException", "message": "signed otherwise"});
        return json(StatusCode::BAD_REQUEST, problem);
    }
    let body: Value = serde_json::from_slice(&asked.body).unwrap();
    let (mood, answer) = match header("x-amz-target") {
        "TrentService.GetPublicKey" => public_key(vault, &body),
        "TrentService.Sign" => sign(vault, &body),
        other => panic!("{other} is not asked for"),
    };
    let (kind, message) = match mood {
        Mood::Throttled => ("ThrottlingException", "Rate exceeded"),
        Mood::Denied => ("AccessDeniedException", "kms:Sign denied"),
        Mood::Slow => std::future::pending().await,
        _ => return json(StatusCode::OK, answer),
    };
    json(
        StatusCode::BAD_REQUEST,
        json!({"__type": kind, "message": message}),
    )
}

fn name(mood: Mood) -> &'static str {
    match mood {
        Mood::OtherKey => OTHER,
        _ => ARN,
    }
}

/// Bytes in base64; damaged in that mood.
fn base64(bytes: &[u8], mood: Mood) -> String {
    let text = STANDARD.encode(bytes);
    match mood {
        Mood::Corrupted => text[1..].to_owned(),
        _ => text,
    }
}

/// What the key signs with, and what of: a digest, or a whole message.
fn algorithm(vault: &Vault) -> (&'static str, &'static str) {
    match vault.scheme() {
        Scheme::Secp256k1 => ("ECDSA_SHA_256", "DIGEST"),
        Scheme::Ed25519 => ("ED25519_SHA_512", "RAW"),
    }
}

fn public_key(vault: &Vault, body: &Value) -> (Mood, Value) {
    assert!([ALIAS, ID, ARN].contains(&body["KeyId"].as_str().unwrap()));
    let mood = vault.mood();
    let spec = match vault.scheme() {
        _ if mood == Mood::OtherKind => "ECC_NIST_P256",
        Scheme::Secp256k1 => "ECC_SECG_P256K1",
        Scheme::Ed25519 => "ECC_NIST_EDWARDS25519",
    };
    let answer = json!({
        "KeyId": name(mood), "PublicKey": base64(&vault.spki(), mood), "KeySpec": spec,
        "KeyUsage": "SIGN_VERIFY", "SigningAlgorithms": [algorithm(vault).0],
    });
    (mood, answer)
}

fn sign(vault: &Vault, body: &Value) -> (Mood, Value) {
    // The key that the alias named when the daemon started.
    assert_eq!(body["KeyId"], ARN);
    let (algorithm, kind) = algorithm(vault);
    assert_eq!(body["MessageType"], kind);
    assert_eq!(body["SigningAlgorithm"], algorithm);
    let message = STANDARD.decode(body["Message"].as_str().unwrap()).unwrap();
    assert!(message.len() == 32 || kind == "RAW");
    let (mood, signature) = vault.sign(&message);
    let answer = json!({
        "KeyId": name(mood), "Signature": base64(&signature, mood),
        "SigningAlgorithm": algorithm,
    });
    (mood, answer)
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    let value = headers.get(name).map(|value| value.to_str().unwrap());
    value.unwrap_or_default()
}

/// What Signature Version 4 demands of a request over its own headers, date and body.
fn authorization(asked: &Asked) -> String {
    let header = |name: &str| text(&asked.headers, name);
    let named = header("authorization").split("SignedHeaders=").nth(1);
    let named = named
        .and_then(|rest| rest.split(',').next())
        .unwrap_or_default();
    for needed in ["host", "x-amz-date", "x-amz-target"] {
        assert!(
            named.split(';').any(|name| name == needed),
            "{needed} is not signed"
        );
    }
    let headers = named
        .split(';')
        .map(|name| format!("{name}:{}\n", header(name)));
    let hash = alloy::hex::encode(Sha256::digest(&asked.body));
    let canonical = [
        "POST",
        &asked.target,
        "",
        &headers.collect::<String>(),
        named,
        &hash,
    ];
    let (date, service) = (header("x-amz-date"), "kms");
    let scope = format!("{}/{REGION}/{service}/aws4_request", &date[..8]);
    let canonical = alloy::hex::encode(Sha256::digest(canonical.join("\n")));
    let to_sign = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{canonical}");
    let key = scope
        .split('/')
        .fold(format!("AWS4{SECRET}").into_bytes(), |key, part| {
            mac(&key, part)
        });
    let signature = alloy::hex::encode(mac(&key, &to_sign));
    format!(
        "AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/{scope}, SignedHeaders={named}, Signature={signature}"
    )
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}
