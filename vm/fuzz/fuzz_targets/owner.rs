//! Owner signatures of every family (BIP-137 and BIP-322 witnesses, ed25519, TonConnect, wallets'
//! 65 bytes): nothing random is anybody's signature. And the canonical text of any JSON.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use vm::{
    Bytes, OwnerClaim,
    protocol::owner::{Kind, Operation},
};

const OWNERS: &[&str] = &[
    "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
    "TTVwtTv1yovGDLtT4xhkT61XXM4LPFGFGY",
    "GFsPqFqpiwqGD9ksofd2PoLKu8KNqcGBKk8fNAHCJ5KZ",
    "1BoatSLRHtKNngkdXEeobR76b53LETtpyT",
    "38JqoWp8A3HKGNLB896Sgt7eCnAuumfxf8",
    "bc1qlstuehatfyetet55403jwqgks2nfw9ucja52sf",
    "bc1p97as3fpdptp2mhdejgrft5eagxa95d8l42glmgnhuu0j7gcnxp8qaygj47",
    "0:3aff984ca0e23d970cb0b2e27f20e715aeaa6ac764ab0f3d15edc0c43e7c1011",
];

const WALLET: &str = "0x964dbc35df5d23bbd5bd01c968c672a3b67827342213f581913537e114d2bf70";

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let hex = Bytes::copy_from_slice(bytes).to_string();
    let context = json!({
        "timestamp": 1, "domain": "relay.link", "signDataDomain": "relay.link",
    });
    // A wallet's key on TON, and an account's address on Ethereum.
    let wallet: Bytes = WALLET.parse().expect("32 bytes");
    let account: Bytes = OWNERS[0].parse().expect("20 bytes");
    for verifier in vm::FAMILIES.iter().filter_map(|family| family.owners) {
        for owner in OWNERS.iter().copied().chain([&*text]) {
            for (signature, key) in [(&*hex, &wallet), (&*text, &wallet), (&*hex, &account), (&*text, &account)] {
                let claim = OwnerClaim {
                    digest: [7; 32],
                    owner,
                    signature,
                    key: Some(key),
                    metadata: Some(&context),
                    settings: context.as_object(),
                };
                let _refused = verifier.check(&claim);
                assert!(verifier.verify(&claim).is_err(), "{owner}");
            }
        }
    }
    canonical(bytes);
});

/// Reading the canonical text and writing it again changes nothing.
fn canonical(bytes: &[u8]) {
    let Ok(additional) = serde_json::from_slice::<Value>(bytes) else {
        return;
    };
    let operation = |additional| Operation {
        kind: Kind::Transfer,
        chain_id: "a",
        currency: "b",
        amount: "1",
        owner_chain_id: "c",
        owner: "d",
        recipient: "e",
        nonce: "f",
        additional,
    };
    let text = operation(Some(&additional)).canonical();
    assert!(serde_json::from_str::<Value>(&text).is_ok());
}
