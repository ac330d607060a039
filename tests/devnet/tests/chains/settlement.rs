//! The settlement contracts accept what enough oracles signed, and nothing else.

use alloy::{
    primitives::{Address, Bytes, U256, keccak256},
    sol_types::SolValue,
};
use devnet::{
    account::Account,
    artifact::Artifacts,
    contracts::{Hub, Oracle},
    node::Payload,
    world::{Execution, Refusal, Settlement},
};

const OWNER: Address = Address::repeat_byte(0x11);
const OTHER: Address = Address::repeat_byte(0x22);

struct Fixture {
    settlement: Settlement,
    oracles: Vec<Account>,
}

async fn fixture() -> Fixture {
    let oracles: Vec<_> = (1..=3)
        .map(|n| Account::named(&format!("oracle {n}")).unwrap())
        .collect();
    let signers: Vec<_> = oracles.iter().map(Account::address).collect();
    let settlement = Settlement::start(31_000, &signers, 2, &Artifacts::load().unwrap())
        .await
        .unwrap();
    Fixture {
        settlement,
        oracles,
    }
}

impl Fixture {
    fn signed(&self, key: &str, actions: Vec<Bytes>, oracles: &[usize]) -> Execution {
        let oracles: Vec<_> = oracles.iter().map(|at| &self.oracles[*at]).collect();
        Execution::signed(&self.settlement, keccak256(key), actions, &oracles).unwrap()
    }

    /// The oracle contract's reason for refusing.
    async fn refusal(&self, execution: Execution) -> Oracle::OracleErrors {
        let error = self.settlement.submit(execution).await.unwrap_err();
        match Refusal::of(&error) {
            Some(Refusal::Oracle(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    async fn balance(&self, owner: Address) -> u64 {
        let balance = self.settlement.balance(owner, token()).await.unwrap();
        balance.try_into().unwrap()
    }
}

fn token() -> U256 {
    keccak256("a token").into()
}

fn mint(to: Address, amount: u64) -> Bytes {
    (U256::ZERO, to, token(), U256::from(amount))
        .abi_encode()
        .into()
}

fn burn(from: Address, amount: u64) -> Bytes {
    (U256::from(1), from, token(), U256::from(amount))
        .abi_encode()
        .into()
}

fn transfer(from: Address, to: Address, amount: u64) -> Bytes {
    (U256::from(2), from, to, token(), U256::from(amount))
        .abi_encode()
        .into()
}

#[tokio::test]
async fn two_of_three_oracles_mint_transfer_and_burn() {
    let fixture = fixture().await;
    let minted = fixture.signed("deposit", vec![mint(OWNER, 100)], &[0, 2]);
    fixture.settlement.submit(minted).await.unwrap();
    let moved = fixture.signed(
        "fill",
        vec![transfer(OWNER, OTHER, 70), burn(OTHER, 30)],
        &[2, 1],
    );
    fixture.settlement.submit(moved).await.unwrap();
    assert_eq!(fixture.balance(OWNER).await, 30);
    assert_eq!(fixture.balance(OTHER).await, 40);
}

#[tokio::test]
async fn all_three_signatures_are_accepted_too() {
    let fixture = fixture().await;
    let execution = fixture.signed("deposit", vec![mint(OWNER, 1)], &[0, 1, 2]);
    fixture.settlement.submit(execution).await.unwrap();
    assert_eq!(fixture.balance(OWNER).await, 1);
}

#[tokio::test]
async fn one_signature_is_below_the_threshold() {
    let fixture = fixture().await;
    let refusal = fixture
        .refusal(fixture.signed("deposit", vec![mint(OWNER, 1)], &[1]))
        .await;
    let expected = Oracle::BelowThreshold {
        given: U256::from(1),
        threshold: U256::from(2),
    };
    assert_eq!(refusal, Oracle::OracleErrors::BelowThreshold(expected));
    assert_eq!(fixture.balance(OWNER).await, 0);
}

#[tokio::test]
async fn one_signer_twice_is_not_two_signers() {
    let fixture = fixture().await;
    let signer = fixture.oracles[0].address();
    let refusal = fixture
        .refusal(fixture.signed("deposit", vec![mint(OWNER, 1)], &[0, 0]))
        .await;
    let expected = Oracle::DuplicateSigner { signer };
    assert_eq!(refusal, Oracle::OracleErrors::DuplicateSigner(expected));
}

#[tokio::test]
async fn a_stranger_among_enough_oracles_is_refused() {
    let fixture = fixture().await;
    let stranger = Account::named("stranger").unwrap();
    let mut execution = fixture.signed("deposit", vec![mint(OWNER, 1)], &[0, 1]);
    let settlement = &fixture.settlement;
    let digest = settlement.digest("2", execution.idempotency_key, &execution.actions);
    execution
        .signatures
        .push(stranger.sign_digest(digest).unwrap());
    let refusal = fixture.refusal(execution).await;
    let signer = stranger.address();
    let expected = Oracle::UnknownSigner { signer };
    assert_eq!(refusal, Oracle::OracleErrors::UnknownSigner(expected));
}

#[tokio::test]
async fn any_flipped_bit_is_refused() {
    let fixture = fixture().await;
    let good = fixture.signed("deposit", vec![mint(OWNER, 1)], &[0, 1]);
    let flip = |bytes: &Bytes, at: usize| {
        let mut bytes = bytes.to_vec();
        bytes[at] ^= 1;
        Bytes::from(bytes)
    };
    for at in [0, 31, 32, 63, 64] {
        let mut bad = good.clone();
        bad.signatures[1] = flip(&bad.signatures[1], at);
        fixture.settlement.submit(bad).await.unwrap_err();
    }
    let mut bad = good.clone();
    bad.actions[0] = flip(&bad.actions[0], 127);
    fixture.settlement.submit(bad).await.unwrap_err();
    let mut bad = good.clone();
    bad.idempotency_key = keccak256("another key");
    fixture.settlement.submit(bad).await.unwrap_err();
    assert_eq!(fixture.balance(OWNER).await, 0);
    fixture.settlement.submit(good).await.unwrap();
    assert_eq!(fixture.balance(OWNER).await, 1);
}

#[tokio::test]
async fn signatures_for_another_domain_are_refused() {
    let fixture = fixture().await;
    let actions = vec![mint(OWNER, 1)];
    let key = keccak256("deposit");
    let digest = fixture.settlement.digest("1", key, &actions);
    let sign = |at: usize| fixture.oracles[at].sign_digest(digest).unwrap();
    let other_version = Execution {
        idempotency_key: key,
        actions: actions.clone(),
        signatures: vec![sign(0), sign(1)],
    };
    assert!(matches!(
        fixture.refusal(other_version).await,
        Oracle::OracleErrors::UnknownSigner(_)
    ));
    let mut elsewhere = Settlement {
        oracle: OTHER,
        ..fixture.settlement
    };
    let foreign = Execution::signed(
        &elsewhere,
        key,
        actions,
        &[&fixture.oracles[0], &fixture.oracles[1]],
    );
    elsewhere.oracle = elsewhere
        .node
        .view(elsewhere.hub, &OracleOf {})
        .await
        .unwrap();
    elsewhere.submit(foreign.unwrap()).await.unwrap_err();
}

alloy::sol! {
    #[allow(missing_docs)]
    function oracle() external view returns (address);
}
use oracleCall as OracleOf;

#[tokio::test]
async fn high_s_and_other_spellings_of_a_signature_are_refused() {
    let fixture = fixture().await;
    let good = fixture.signed("deposit", vec![mint(OWNER, 1)], &[0, 1]);
    let order = U256::from_str_radix(
        "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141",
        16,
    )
    .unwrap();
    let raw = &good.signatures[0];
    let s = order - U256::from_be_slice(&raw[32..64]);
    let high_s = [&raw[..32], &s.to_be_bytes::<32>(), &[55 - raw[64]]].concat();
    let short_v = [&raw[..64], &[raw[64] - 27]].concat();
    for spelling in [high_s, short_v, raw[..64].to_vec(), Vec::new()] {
        let mut bad = good.clone();
        bad.signatures[0] = spelling.into();
        fixture.settlement.submit(bad).await.unwrap_err();
    }
    fixture.settlement.submit(good).await.unwrap();
}

#[tokio::test]
async fn an_idempotency_key_acts_once() {
    let fixture = fixture().await;
    let execution = fixture.signed("deposit", vec![mint(OWNER, 1)], &[0, 1]);
    fixture.settlement.submit(execution.clone()).await.unwrap();
    let again = fixture.signed("deposit", vec![mint(OWNER, 1)], &[1, 2]);
    for replay in [execution, again] {
        let expected = Oracle::AlreadyExecuted {
            idempotencyKey: replay.idempotency_key,
        };
        assert_eq!(
            fixture.refusal(replay).await,
            Oracle::OracleErrors::AlreadyExecuted(expected)
        );
    }
    assert!(
        fixture
            .settlement
            .is_executed(keccak256("deposit"))
            .await
            .unwrap()
    );
    assert_eq!(fixture.balance(OWNER).await, 1);
}

#[tokio::test]
async fn an_execution_is_applied_whole_or_not_at_all() {
    let fixture = fixture().await;
    let actions = vec![mint(OWNER, 5), transfer(OTHER, OWNER, 1)];
    let execution = fixture.signed("fill", actions, &[0, 1]);
    let error = fixture.settlement.submit(execution).await.unwrap_err();
    let refusal = Refusal::of(&error).unwrap();
    assert!(matches!(
        refusal,
        Refusal::Hub(Hub::HubErrors::InsufficientBalance(_))
    ));
    assert_eq!(fixture.balance(OWNER).await, 0);
    assert!(
        !fixture
            .settlement
            .is_executed(keccak256("fill"))
            .await
            .unwrap()
    );
}

#[tokio::test]
async fn nobody_but_the_oracle_contract_moves_balances() {
    let fixture = fixture().await;
    let settlement = &fixture.settlement;
    let mint = Payload::call(
        settlement.hub,
        &Hub::mintCall {
            to: OWNER,
            id: token(),
            amount: U256::from(1),
        },
    );
    for stranger in [settlement.deployer, OTHER] {
        let error = settlement
            .node
            .try_call(stranger, mint.clone())
            .await
            .unwrap_err();
        let only = Hub::HubErrors::OnlyOracle(Hub::OnlyOracle {});
        assert_eq!(Refusal::of(&error), Some(Refusal::Hub(only)));
    }
}
