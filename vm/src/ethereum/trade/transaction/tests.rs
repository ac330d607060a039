use alloy::{
    consensus::{EthereumTxEnvelope, TxEip4844, transaction::SignerRecoverable},
    eips::eip2718::{Decodable2718, Encodable2718},
    network::{
        EthereumWallet, NetworkTransactionBuilder, TransactionBuilder, TransactionBuilder7702,
    },
    primitives::Address as EvmAddress,
    rpc::types::TransactionRequest,
    signers::{SignerSync, local::PrivateKeySigner},
};
use proptest::prelude::*;

use super::*;
use crate::{trade::Call, types::Address};

fn address(evm: EvmAddress) -> Address {
    Address::from_parts(&format!("{evm:#x}"), evm.0)
}

fn signer(seed: u8) -> PrivateKeySigner {
    PrivateKeySigner::from_bytes(&B256::with_last_byte(seed.max(1))).unwrap()
}

fn sign(chain: u64, draft: &Unsealed, signer: &PrivateKeySigner) -> [u8; 65] {
    let digest = Transactions.digest(chain, draft).unwrap();
    signer.sign_hash_sync(&digest).unwrap().as_bytes()
}

fn authorized(chain: u64, seed: u8) -> (Authorization, SignedAuthorization) {
    let delegation = Delegation {
        chain_id: U256::from(chain),
        address: EvmAddress::repeat_byte(seed),
        nonce: seed.into(),
    };
    let signature = signer(seed)
        .sign_hash_sync(&delegation.signature_hash())
        .unwrap();
    let ours = Authorization {
        chain_id: chain,
        address: address(delegation.address),
        nonce: delegation.nonce,
        y_parity: signature.v().into(),
        r: signature.r().into(),
        s: signature.s().into(),
    };
    (ours, delegation.into_signed(signature))
}

prop_compose! {
    fn draft()(
        to in any::<[u8; 20]>(),
        data in prop::collection::vec(any::<u8>(), 0..80),
        value in any::<u128>(),
        nonce in any::<u32>(),
        gas in any::<u32>(),
        (tip, fee) in (any::<u64>(), any::<u64>()),
        seed in 1u8..,
        delegations in prop::collection::vec(1u8.., 0..3),
    ) -> (Unsealed, u8, Vec<u8>) {
        let draft = Unsealed {
            call: Call {
                from: address(signer(seed).address()),
                to: address(to.into()),
                data: data.into(),
                value: U256::from(value),
            },
            authorizations: Vec::new(),
            nonce: nonce.into(),
            gas: gas.into(),
            max_fee: u128::from(tip) + u128::from(fee),
            max_priority_fee: tip.into(),
        };
        (draft, seed, delegations)
    }
}

fn theirs(draft: &Unsealed, chain: u64, signed: Vec<SignedAuthorization>) -> TransactionRequest {
    let request = TransactionRequest::default()
        .with_from(EvmAddress::from_slice(draft.call.from.bytes()))
        .with_to(EvmAddress::from_slice(draft.call.to.bytes()))
        .with_input(draft.call.data.clone())
        .with_value(draft.call.value)
        .with_chain_id(chain)
        .with_nonce(draft.nonce)
        .with_gas_limit(draft.gas)
        .with_max_fee_per_gas(draft.max_fee)
        .with_max_priority_fee_per_gas(draft.max_priority_fee);
    match signed.is_empty() {
        true => request,
        false => request.with_authorization_list(signed),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn bytes_and_hash_are_those_of_another_signer(
        (mut draft, seed, delegations) in draft(),
        chain in 1u64..u64::from(u32::MAX),
    ) {
        let (ours, signed): (Vec<_>, Vec<_>) =
            delegations.into_iter().map(|seed| authorized(chain, seed)).unzip();
        draft.authorizations = ours;
        let signature = sign(chain, &draft, &signer(seed));
        let (raw, hash) = Transactions.seal(chain, &draft, &signature).unwrap();

        let wallet = EthereumWallet::from(signer(seed));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let built = runtime.block_on(theirs(&draft, chain, signed).build(&wallet)).unwrap();
        prop_assert_eq!(&raw, &Bytes::from(built.encoded_2718()));
        prop_assert_eq!(hash, *built.tx_hash());
        prop_assert_eq!(raw[0], if draft.authorizations.is_empty() { 2 } else { 4 });

        let read = EthereumTxEnvelope::<TxEip4844>::decode_2718_exact(&raw).unwrap();
        prop_assert_eq!(read.recover_signer().unwrap(), signer(seed).address());
    }
}

fn plain_draft(seed: u8) -> Unsealed {
    Unsealed {
        call: Call {
            from: address(signer(seed).address()),
            to: address(EvmAddress::repeat_byte(9)),
            data: Bytes::new(),
            value: U256::from(1),
        },
        authorizations: Vec::new(),
        nonce: 0,
        gas: 21_000,
        max_fee: 10,
        max_priority_fee: 1,
    }
}

#[test]
fn both_spellings_of_v_are_one_signature() {
    let draft = plain_draft(7);
    let mut signature = sign(1, &draft, &signer(7));
    let sealed = Transactions.seal(1, &draft, &signature).unwrap();
    signature[64] -= 27;
    assert_eq!(Transactions.seal(1, &draft, &signature).unwrap(), sealed);
}

#[test]
fn signatures_that_no_node_would_take_are_refused() {
    let draft = plain_draft(7);
    let good = sign(1, &draft, &signer(7));
    let refused = |signature: [u8; 65]| Transactions.seal(1, &draft, &signature).is_err();
    assert!(!refused(good));
    assert!(refused([0; 65]));
    assert!(refused(sign(1, &draft, &signer(8))));
    assert!(refused(sign(2, &draft, &signer(7))));
    let mut other_v = good;
    other_v[64] = 55 - good[64];
    assert!(refused(other_v));
    let mut odd_v = good;
    odd_v[64] = 99;
    assert!(refused(odd_v));
    // The same signature mirrored: n - s, and the other parity.
    let order = U256::from_str_radix(
        "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141",
        16,
    )
    .unwrap();
    let mut high = good;
    let s = order - U256::from_be_slice(&good[32..64]);
    high[32..64].copy_from_slice(&s.to_be_bytes::<32>());
    high[64] = 55 - good[64];
    assert!(refused(high));
}

#[test]
fn drafts_that_no_node_would_take_are_refused() {
    let mut greedy = plain_draft(7);
    greedy.max_priority_fee = greedy.max_fee + 1;
    assert!(Transactions.digest(1, &greedy).is_err());
    let mut odd = plain_draft(7);
    odd.call.to = Address::from_parts("0x12", vec![0x12]);
    assert!(Transactions.digest(1, &odd).is_err());
    let (mut authorization, _) = authorized(1, 3);
    authorization.y_parity = 27;
    let mut delegating = plain_draft(7);
    delegating.authorizations = vec![authorization];
    assert!(Transactions.digest(1, &delegating).is_err());
}

#[test]
fn what_no_node_takes_is_known_before_it_is_signed() {
    let limits = Limits {
        authorizations: true,
        ..Limits::default()
    };
    let admit = |draft: &Unsealed, limits: &Limits| Transactions.admit(7, draft, limits);
    assert_eq!(admit(&plain_draft(1), &limits), Ok(Vec::new()));
    let mut large = plain_draft(1);
    large.call.data = vec![1; 128 << 10].into();
    assert!(matches!(admit(&large, &limits), Err(Unfit::Large { .. })));
    large.call.data = vec![1; (128 << 10) - 200].into();
    assert_eq!(admit(&large, &limits), Ok(Vec::new()));
    let mut greedy = plain_draft(1);
    greedy.gas = limits.gas + 1;
    assert!(matches!(admit(&greedy, &limits), Err(Unfit::Work { .. })));

    let carried = |change: fn(&mut Authorization)| {
        let mut draft = plain_draft(1);
        let (mut given, _) = authorized(7, 3);
        change(&mut given);
        draft.authorizations = vec![given];
        draft
    };
    let whose = admit(&carried(|_| ()), &limits).unwrap();
    assert_eq!(whose, [address(signer(3).address())]);
    assert_eq!(
        admit(&carried(|_| ()), &Limits::default()),
        Err(Unfit::Type)
    );
    let wrong: [fn(&mut Authorization); 4] = [
        |given| given.chain_id = 8,
        |given| given.r = B256::ZERO,
        |given| given.y_parity = 2,
        |given| {
            // The other half of the curve's order recovers the same account and is not taken.
            let order = U256::from_str_radix(
                "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141",
                16,
            );
            let s = order.unwrap() - U256::from_be_bytes(given.s.0);
            given.s = s.into();
            given.y_parity = 1 - given.y_parity;
        },
    ];
    for change in wrong {
        let said = admit(&carried(change), &limits);
        assert!(matches!(said, Err(Unfit::Authorization(0, _))), "{said:?}");
    }
    let mut own = plain_draft(1);
    own.authorizations = vec![authorized(7, 1).0];
    let said = admit(&own, &limits);
    assert!(matches!(said, Err(Unfit::Authorization(0, _))), "{said:?}");
}

#[test]
fn bytes_are_priced_as_they_are_sent() {
    let contract = address(EvmAddress::repeat_byte(5));
    let draft = plain_draft(1);
    let usual = Transactions.data_fee(7, &draft, None).unwrap();
    assert_eq!(
        usual.to.text(),
        "0x420000000000000000000000000000000000000f"
    );
    let question = Transactions.data_fee(7, &draft, Some(&contract)).unwrap();
    assert_eq!(question.data, usual.data);
    assert_eq!(question.to, contract);
    let asked = DataFees::getL1FeeCall::abi_decode(&question.data).unwrap();
    let signature = sign(7, &draft, &signer(1));
    let (raw, _) = Transactions.seal(7, &draft, &signature).unwrap();
    assert_eq!(asked.transaction[0], raw[0]);
    assert!(asked.transaction.len() + SIGNATURE >= raw.len());
    assert!(asked.transaction.len() < raw.len());
}
