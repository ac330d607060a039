//! The solver's payments over three nodes, of which two must agree: what lands, what never does, and when that is
//! believed.

use std::{collections::BTreeSet, sync::Arc};

use async_trait::async_trait;
use base64::{Engine, prelude::BASE64_STANDARD};
use ed25519_dalek::{Signer as _, SigningKey};
use serde_json::{Map, Value, json};
use solana_pubkey::Pubkey;
use spl_token_2022_interface::{
    extension::{
        BaseStateWithExtensionsMut, ExtensionType, StateWithExtensionsMut,
        scaled_ui_amount::ScaledUiAmountConfig,
        transfer_fee::{TransferFee, TransferFeeConfig},
    },
    state::Mint,
};
use vm::{
    Address, Amount, B256, Bytes, Chain, ChainSpec, Transaction, U256,
    quorum::Quorum,
    solana::programs::{
        ASSOCIATED, COMPUTE_BUDGET, LIGHTHOUSE, MEMO, SYSTEM, TOKEN, TOKEN_2022, associated,
    },
    trade::{
        Account, Attempt, Broadcast, Draft, FillTerms, Goal, Intent, Known, Message, PaymentTerms,
        Payout, Prepared, Providers, ProvidersContext, Scheme, Signer, Status, SubmitError, Trial,
        Unfit, Unsigned,
    },
};

use super::{
    bank::rent,
    build::{Tx, checked_transfer, key, system_transfer},
    node::{Node, World, hash, node, spec},
};

const ORDER: B256 = B256::repeat_byte(0xab);
/// Blocks above its own in which a blockhash is taken.
const LIFE: u64 = 150;
/// Blocks after which nothing that names a blockhash can land, by anybody's count.
const OVER: u64 = LIFE + 12;
const BEGIN: u64 = 200;
const SHOP: u8 = 0x50;
const MINT: u8 = 0x70;
/// Lamports for a unit of work above which nothing is signed.
const MOST: u128 = 1_000;

struct Key(SigningKey);

#[async_trait]
impl Signer for Key {
    fn scheme(&self) -> Scheme {
        Scheme::Ed25519
    }

    fn public_key(&self) -> Bytes {
        self.0.verifying_key().to_bytes().to_vec().into()
    }

    async fn sign(&self, message: Message<'_>) -> Result<Bytes, Unsigned> {
        let Message::Ed25519(bytes) = message else {
            return Err(Unsigned("another scheme".into()));
        };
        Ok(self.0.sign(bytes).to_bytes().to_vec().into())
    }
}

struct Rig {
    nodes: Vec<Node>,
    spec: Arc<ChainSpec>,
    chain: Chain,
    providers: Providers,
    account: Account,
    stored: Option<Bytes>,
}

impl Rig {
    async fn new() -> Self {
        let spec = spec(json!({}));
        let mut nodes = Vec::new();
        for _ in 0..3 {
            nodes.push(node(World::up_to(BEGIN)).await);
        }
        let readers = nodes.iter().map(|node| node.open(&spec));
        let reader = Quorum::new(&spec.id, readers.collect(), 2).unwrap();
        let chain = Chain {
            spec: spec.clone(),
            reader: Arc::new(reader),
            state: None,
        };
        let trades = nodes.iter().map(|node| node.trade(&spec));
        let context = ProvidersContext {
            spec: spec.clone(),
            number: 7,
            required: 2,
            limits: Some(Map::new()),
        };
        let open = spec.family.providers.unwrap();
        let providers = open(context, trades.collect()).unwrap().unwrap();
        let account = account(&providers, &chain);
        Self {
            nodes,
            spec,
            chain,
            providers,
            account,
            stored: None,
        }
    }

    fn solver(&self) -> Pubkey {
        Pubkey::try_from(self.account.address.bytes()).unwrap()
    }

    /// Changes all nodes alike.
    fn all(&self, change: impl Fn(&mut World)) {
        self.nodes.iter().for_each(|node| node.change(&change));
    }

    fn advance(&self, blocks: u64) {
        self.all(|world| world.advance(blocks));
    }

    fn draft(&self, payouts: &[(u8, u8, u64)]) -> Draft {
        let payouts = payouts.iter().map(|(to, currency, amount)| Payout {
            to: address(&key(*to)),
            currency: address(&key(*currency)),
            amount: U256::from(*amount),
        });
        let payouts: Vec<_> = payouts.collect();
        let made = self.spec.family.steps.unwrap().fill(&FillTerms {
            solver: &self.account.address,
            router: None,
            proxy: None,
            payments: &payouts,
            calls: &[],
            authorizations: &[],
            order: ORDER,
        });
        made.unwrap().draft
    }

    async fn prepared(&self, draft: Draft, held: &[Bytes]) -> Result<Prepared, SubmitError> {
        self.judged(draft, None, held).await
    }

    /// The same, where so many lamports may be charged besides work.
    async fn judged(
        &self,
        draft: Draft,
        besides: Option<u64>,
        held: &[Bytes],
    ) -> Result<Prepared, SubmitError> {
        let intent = Intent {
            draft,
            work: 100,
            besides: besides.map(Amount::from),
            spends: Vec::new(),
        };
        let submitter = &self.account.submitter;
        let outlook = submitter.look(Goal::Land(&intent), false).await?;
        let known = Known {
            account: self.stored.as_ref().map(AsRef::as_ref),
            held,
            attempts: &[],
            keeps: false,
        };
        outlook.prepare(known).await
    }

    /// An attempt to pay the shop so many lamports, kept and sent.
    async fn pays(&mut self, lamports: u64) -> Attempt {
        let draft = self.draft(&[(SHOP, 0, lamports)]);
        let prepared = self.prepared(draft, &[]).await.unwrap();
        self.stored = prepared.account;
        let said = self.account.submitter.send(&prepared.attempt).await;
        assert_eq!(said, Ok(Some(Broadcast::Accepted)));
        prepared.attempt
    }

    /// The newest transaction of an attempt is in the block of `slot`, for all nodes.
    fn land(&self, attempt: &Attempt, (slot, lamports): (u64, u64)) {
        let id = attempt.signed.last().unwrap().id.clone();
        let signature = bs58::decode(&id).into_vec().unwrap();
        let (solver, shop) = (self.solver(), key(SHOP));
        let shown = Tx::by(&[solver])
            .memo(&ORDER.to_string(), &[])
            .with(SYSTEM, &[solver, shop], system_transfer(lamports))
            .lamports(shop, 1_000_000, 1_000_000 + lamports)
            .shown(&signature, slot);
        self.all(|world| {
            world.transactions.insert(id.clone(), shown.clone());
        });
    }

    async fn status(&self, attempt: &Attempt) -> Status {
        self.account.submitter.status(attempt).await.unwrap()
    }

    async fn replaced(&self, attempt: &Attempt) -> Option<Attempt> {
        let replaced = self.account.submitter.replace(attempt, false).await;
        replaced.unwrap()
    }

    fn taken(&self) -> Vec<Vec<u8>> {
        self.nodes[0].state.world.lock().unwrap().bank.taken.clone()
    }
}

fn account(providers: &Providers, chain: &Chain) -> Account {
    let key = Arc::new(Key(SigningKey::from_bytes(&[1; 32])));
    providers.accounts.account(chain, key, MOST).unwrap()
}

fn address(key: &Pubkey) -> Address {
    Address::from_parts(&key.to_string(), key.to_bytes())
}

fn waits(status: &Status) -> Option<bool> {
    match status {
        Status::Waiting { known } => Some(*known),
        _ => None,
    }
}

fn contains(raw: &[u8], part: &[u8]) -> bool {
    raw.windows(part.len()).any(|window| window == part)
}

/// The bytes of the hash of the block at a slot.
fn blockhash(slot: u64) -> [u8; 32] {
    hash(slot, 0).parse::<Pubkey>().unwrap().to_bytes()
}

fn shown(owner: &Pubkey, data: &[u8]) -> Value {
    json!({"owner": owner.to_string(), "data": [BASE64_STANDARD.encode(data), "base64"]})
}

/// The bytes of a mint with room for extensions.
fn bare(extensions: &[ExtensionType]) -> Vec<u8> {
    let length = ExtensionType::try_calculate_account_len::<Mint>(extensions).unwrap();
    let mut data = vec![0; length];
    let mut state = StateWithExtensionsMut::<Mint>::unpack_uninitialized(&mut data).unwrap();
    state.base = Mint {
        decimals: 6,
        is_initialized: true,
        ..Mint::default()
    };
    state.pack_base();
    if !extensions.is_empty() {
        state.init_account_type().unwrap();
    }
    data
}

/// A mint whose amounts wallets multiply.
fn multiplied() -> Value {
    let mut data = bare(&[ExtensionType::ScaledUiAmount]);
    let mut state = StateWithExtensionsMut::<Mint>::unpack(&mut data).unwrap();
    state.init_extension::<ScaledUiAmountConfig>(true).unwrap();
    shown(&TOKEN_2022, &data)
}

/// A mint whose transfers cost so many hundredths of a per cent; `None`: of the older program.
fn mint(points: Option<u16>) -> Value {
    let extensions: &[ExtensionType] = match points {
        Some(_) => &[ExtensionType::TransferFeeConfig],
        None => &[],
    };
    let mut data = bare(extensions);
    let Some(points) = points else {
        return shown(&TOKEN, &data);
    };
    let mut state = StateWithExtensionsMut::<Mint>::unpack(&mut data).unwrap();
    let fee = TransferFee {
        epoch: 0.into(),
        maximum_fee: u64::MAX.into(),
        transfer_fee_basis_points: points.into(),
    };
    let fees = state.init_extension::<TransferFeeConfig>(true).unwrap();
    fees.older_transfer_fee = fee;
    fees.newer_transfer_fee = fee;
    shown(&TOKEN_2022, &data)
}

#[tokio::test]
async fn payment_lands_and_is_what_a_quorum_has() {
    let mut rig = Rig::new().await;
    let attempt = rig.pays(700).await;
    let [raw] = &rig.taken()[..] else {
        panic!("one transaction");
    };
    assert!(contains(raw, ORDER.to_string().as_bytes()));
    assert!(contains(raw, &blockhash(BEGIN)) && contains(raw, MEMO.as_ref()));
    assert_eq!(waits(&rig.status(&attempt).await), Some(false));
    rig.land(&attempt, (BEGIN + 3, 700));
    // In a block that is not finalized: it may be gone again.
    assert_eq!(waits(&rig.status(&attempt).await), Some(true));
    rig.advance(5);
    let Status::Included(included) = rig.status(&attempt).await else {
        panic!("not included");
    };
    assert_eq!((included.signed, included.success), (0, true));
    assert_eq!(included.block.number, BEGIN + 3);
    let Some((Transaction::Succeeded(receipt), _)) = included.agreed else {
        panic!("not agreed");
    };
    assert_eq!(receipt.references[0].as_ref(), ORDER.to_string());
    let paid = receipt
        .payments
        .iter()
        .find(|one| one.recipient == address(&key(SHOP)));
    assert_eq!(paid.unwrap().amount, U256::from(700));
    // What has landed is not made again, however long ago it was.
    rig.advance(400);
    assert_eq!(rig.replaced(&attempt).await, None);
}

#[tokio::test]
async fn expired_payment_is_made_anew_exactly_once() {
    let mut rig = Rig::new().await;
    let first = rig.pays(700).await;
    for _ in 0..OVER / 20 {
        assert_eq!(rig.replaced(&first).await, None);
        rig.advance(20);
    }
    rig.advance(20);
    let second = rig.replaced(&first).await.unwrap();
    assert_eq!(
        (second.id.clone(), second.signed.len()),
        (first.id.clone(), 2)
    );
    assert_ne!(second.signed[0].id, second.signed[1].id);
    assert_eq!(
        (&second.resources, &second.signed[0]),
        (&first.resources, &first.signed[0])
    );
    // It bids more, and its fee is reserved.
    assert!(second.spends[0].1 > first.spends[0].1);
    let said = rig.account.submitter.send(&second).await;
    assert_eq!(said, Ok(Some(Broadcast::Accepted)));
    assert_eq!(rig.replaced(&second).await, None);
    let now = rig.nodes[0].state.world.lock().unwrap().finalized;
    rig.land(&second, (now + 2, 700));
    rig.advance(200);
    let Status::Included(included) = rig.status(&second).await else {
        panic!("not included");
    };
    assert_eq!((included.signed, rig.taken().len()), (1, 2));
    assert_eq!(rig.replaced(&second).await, None);
}

/// Where blocks are full, nodes say all the same that something was taken for next to nothing.
#[tokio::test]
async fn payment_that_expires_bids_four_times_as_much_three_times() {
    let mut rig = Rig::new().await;
    let mut attempt = rig.pays(700).await;
    for fold in [1_u64, 4, 16, 64, 64] {
        let work = attempt.spends[0].1 - Amount::from(700 + 5_000);
        // A hundred units for ten lamports each, less what tells attempts from each other.
        let most = 1_000 * fold;
        let asked = Amount::from(most - 103)..=Amount::from(most);
        assert!(asked.contains(&work), "{fold}: {work}");
        rig.advance(OVER + 20);
        attempt = rig.replaced(&attempt).await.unwrap();
    }
}

#[tokio::test]
async fn node_that_knows_no_blockhash_proves_nothing() {
    let mut rig = Rig::new().await;
    let attempt = rig.pays(700).await;
    let message = "Transaction simulation failed: Blockhash not found".to_owned();
    rig.all(|world| world.bank.refuses = Some((-32_002, message.clone())));
    let said = rig.account.submitter.send(&attempt).await;
    assert_eq!(said, Ok(Some(Broadcast::Expired)));
    assert_eq!(rig.replaced(&attempt).await, None);
    // One that speaks so alone is not believed.
    rig.nodes[1].change(|world| world.bank.refuses = None);
    rig.nodes[2].change(|world| world.bank.refuses = None);
    let said = rig.account.submitter.send(&attempt).await;
    assert_eq!(said, Ok(Some(Broadcast::Accepted)));
    // A transaction that landed is sent once more.
    let message = "Transaction simulation failed: This transaction has already been processed";
    rig.all(|world| world.bank.refuses = Some((-32_002, message.to_owned())));
    let said = rig.account.submitter.send(&attempt).await;
    assert_eq!(said, Ok(Some(Broadcast::Accepted)));
}

#[tokio::test]
async fn slots_without_a_block_do_not_make_a_payment_expire() {
    let mut rig = Rig::new().await;
    let attempt = rig.pays(700).await;
    // As many slots, and half as many blocks.
    rig.all(|world| world.advance_skipping(OVER + 40));
    assert_eq!(rig.replaced(&attempt).await, None);
    rig.all(|world| world.advance_skipping(OVER + 40));
    assert!(rig.replaced(&attempt).await.is_some());
}

#[tokio::test]
async fn fork_that_drops_a_payment_has_the_same_bytes_sent_again() {
    let mut rig = Rig::new().await;
    let attempt = rig.pays(700).await;
    rig.land(&attempt, (BEGIN + 3, 700));
    assert_eq!(waits(&rig.status(&attempt).await), Some(true));
    rig.all(|world| world.transactions.clear());
    assert_eq!(waits(&rig.status(&attempt).await), Some(false));
    assert_eq!(rig.replaced(&attempt).await, None);
    let said = rig.account.submitter.send(&attempt).await;
    assert_eq!(
        (said, rig.taken().len()),
        (Ok(Some(Broadcast::Accepted)), 1)
    );
    rig.land(&attempt, (BEGIN + 9, 700));
    rig.advance(9);
    assert!(matches!(rig.status(&attempt).await, Status::Included(_)));
}

#[tokio::test]
async fn liar_neither_ends_a_payment_nor_hides_it() {
    let mut rig = Rig::new().await;
    let attempt = rig.pays(700).await;
    rig.nodes[0].lie(|method, _, answer| {
        if method == "getBlock" && answer["result"].is_object() {
            answer["result"]["blockHeight"] = json!(1_000_000);
        }
    });
    assert_eq!(rig.replaced(&attempt).await, None);
    rig.land(&attempt, (BEGIN + 3, 700));
    rig.advance(OVER + 20);
    rig.nodes[0].lie(|method, _, answer| match method {
        "getTransaction" => *answer = json!({"result": null}),
        "getSignatureStatuses" => answer["result"]["value"] = json!([null]),
        _ => {}
    });
    assert_eq!(rig.replaced(&attempt).await, None);
    assert!(matches!(rig.status(&attempt).await, Status::Included(_)));
}

#[tokio::test]
async fn nodes_that_dropped_the_blocks_are_not_asked_whether_it_landed() {
    let mut rig = Rig::new().await;
    let attempt = rig.pays(700).await;
    rig.advance(OVER + 20);
    for node in &rig.nodes[1..] {
        node.change(|world| world.bank.first = BEGIN + 1);
    }
    let replaced = rig.account.submitter.replace(&attempt, false).await;
    assert!(
        matches!(replaced, Err(SubmitError::Read(_))),
        "{replaced:?}"
    );
    rig.nodes[1].change(|world| world.bank.first = BEGIN);
    assert!(rig.replaced(&attempt).await.is_some());
}

/// Machines behind one address: one shows the head, another one is behind.
#[tokio::test]
async fn nodes_that_lag_do_not_make_a_landed_payment_lost() {
    let mut rig = Rig::new().await;
    let attempt = rig.pays(700).await;
    rig.land(&attempt, (BEGIN + 3, 700));
    rig.advance(OVER + 20);
    for node in &rig.nodes[..2] {
        node.lie(|method, _, answer| match method {
            "getTransaction" => *answer = json!({"result": null}),
            "getSignatureStatuses" => {
                answer["result"] = json!({"context": {"slot": BEGIN + 1}, "value": [null]});
            }
            _ => {}
        });
    }
    let replaced = rig.account.submitter.replace(&attempt, false).await;
    assert!(
        matches!(replaced, Err(SubmitError::Read(_))),
        "{replaced:?}"
    );
    let cancelled = rig.account.submitter.replace(&attempt, true).await;
    let cancelled = cancelled.unwrap().unwrap();
    let status = rig.account.submitter.status(&cancelled).await;
    assert!(!matches!(status, Ok(Status::Expired)), "{status:?}");
}

/// They were started from a snapshot, and have nothing of what was before it.
#[tokio::test]
async fn nodes_that_lack_blocks_do_not_make_a_landed_payment_lost() {
    let mut rig = Rig::new().await;
    let attempt = rig.pays(700).await;
    rig.land(&attempt, (BEGIN + 3, 700));
    rig.advance(OVER + 20);
    for node in &rig.nodes[..2] {
        node.change(|world| {
            world.transactions.clear();
            (BEGIN + 2..BEGIN + 40).for_each(|slot| drop(world.blocks.remove(&slot)));
        });
    }
    let replaced = rig.account.submitter.replace(&attempt, false).await;
    assert!(
        matches!(replaced, Err(SubmitError::Read(_))),
        "{replaced:?}"
    );
}

/// Two that have all blocks, and show a payment's block without it, against one that shows it.
#[tokio::test]
async fn node_that_shows_a_payment_speaks_against_those_that_only_know_nothing() {
    let mut rig = Rig::new().await;
    let attempt = rig.pays(700).await;
    rig.land(&attempt, (BEGIN + 3, 700));
    rig.advance(OVER + 20);
    // They hide the transaction, but not in its block.
    for node in &rig.nodes[..2] {
        node.lie(|method, _, answer| match method {
            "getTransaction" => *answer = json!({"result": null}),
            "getSignatureStatuses" => answer["result"]["value"] = json!([null]),
            _ => {}
        });
    }
    assert_eq!(rig.replaced(&attempt).await, None);
    // A liar alone holds nothing up: where it says that the payment is, the others show that it is not.
    let mut rig = Rig::new().await;
    let attempt = rig.pays(700).await;
    rig.advance(OVER + 20);
    rig.all(|world| world.skip(BEGIN + 7));
    rig.advance(1);
    for claimed in [BEGIN - 1, BEGIN + 3, BEGIN + 7, BEGIN + OVER + 23] {
        rig.nodes[0].lie(move |method, _, answer| {
            if method == "getSignatureStatuses" {
                let status =
                    json!({"slot": claimed, "err": null, "confirmationStatus": "finalized"});
                answer["result"]["value"] = json!([status]);
            }
        });
        assert!(rig.replaced(&attempt).await.is_some(), "{claimed}");
    }
}

#[tokio::test]
async fn equal_payments_under_one_blockhash_are_two_transactions() {
    let mut rig = Rig::new().await;
    let mut ids = BTreeSet::new();
    for _ in 0..5 {
        let attempt = rig.pays(700).await;
        ids.insert(attempt.signed[0].id.clone());
    }
    assert_eq!((ids.len(), rig.taken().len()), (5, 5));
    // What an open attempt holds is not taken.
    let lost = std::mem::take(&mut rig.stored);
    let first = rig.prepared(rig.draft(&[(SHOP, 0, 700)]), &[]).await;
    let held = first.unwrap().attempt.resources;
    let other = rig.prepared(rig.draft(&[(SHOP, 0, 700)]), &held).await;
    let other = other.unwrap().attempt;
    assert!(!held.contains(&other.resources[0]));
    rig.stored = lost;
}

#[tokio::test]
async fn payment_that_was_kept_before_a_crash_is_sent_as_it_was_signed() {
    let mut rig = Rig::new().await;
    let draft = rig.draft(&[(SHOP, 0, 700)]);
    let kept = rig.prepared(draft, &[]).await.unwrap().attempt;
    rig.advance(7);
    // Another process, which has nothing but what was stored.
    rig.account = account(&rig.providers, &rig.chain);
    assert_eq!(waits(&rig.status(&kept).await), Some(false));
    assert_eq!(rig.replaced(&kept).await, None);
    let said = rig.account.submitter.send(&kept).await;
    assert_eq!(said, Ok(Some(Broadcast::Accepted)));
    let [raw] = &rig.taken()[..] else {
        panic!("one transaction");
    };
    assert_eq!(bs58::encode(&raw[1..65]).into_string(), kept.signed[0].id);
    assert!(contains(raw, &blockhash(BEGIN)));
}

#[tokio::test]
async fn cancelled_attempt_is_over_once_nothing_of_it_can_land() {
    let mut rig = Rig::new().await;
    let attempt = rig.pays(700).await;
    let submitter = rig.account.submitter.clone();
    let cancelled = submitter.replace(&attempt, true).await.unwrap().unwrap();
    assert_eq!(cancelled.signed, attempt.signed);
    assert_eq!(submitter.send(&cancelled).await, Ok(None));
    assert_eq!(submitter.replace(&cancelled, false).await, Ok(None));
    assert_eq!(waits(&rig.status(&cancelled).await), Some(false));
    rig.advance(OVER + 2);
    assert_eq!(rig.status(&cancelled).await, Status::Expired);
    // It had landed all the same.
    rig.land(&cancelled, (BEGIN + 4, 700));
    assert!(matches!(rig.status(&cancelled).await, Status::Included(_)));
}

#[tokio::test]
async fn nothing_is_signed_above_the_limit_of_the_operator() {
    let mut rig = Rig::new().await;
    let dear = (u64::try_from(MOST).unwrap() + 1) * 1_000;
    let attempt = rig.pays(700).await;
    rig.all(|world| world.bank.bids = vec![dear; 150]);
    let refused = rig.prepared(rig.draft(&[(SHOP, 0, 700)]), &[]).await;
    assert_eq!(refused.unwrap_err(), SubmitError::Dear);
    rig.advance(OVER + 20);
    assert_eq!(rig.replaced(&attempt).await, None);
    // One that says so alone is not believed.
    for node in &rig.nodes[1..] {
        node.change(|world| world.bank.bids = vec![1_000; 150]);
    }
    assert!(rig.replaced(&attempt).await.is_some());
}

#[tokio::test]
async fn too_many_payouts_fit_no_transaction() {
    let rig = Rig::new().await;
    let draft = |count: u8| {
        let payouts: Vec<_> = (0x80..0x80 + count).map(|to| (to, 0, 700)).collect();
        rig.draft(&payouts)
    };
    let admitted = async |count| rig.providers.wallet.admit(&draft(count)).await.unwrap();
    assert_eq!(admitted(18).await, Ok(()));
    assert!(matches!(
        admitted(19).await,
        Err(Unfit::Large { most: 1_232, .. })
    ));
    assert!(rig.prepared(draft(19), &[]).await.is_err());
}

/// The shop's account of the token.
fn shops() -> Pubkey {
    associated(&key(SHOP), &key(MINT), &TOKEN_2022).unwrap()
}

impl Rig {
    /// A rig with a token of Token-2022, of whose transfers so much is taken.
    async fn with_token(points: u16) -> Self {
        let rig = Self::new().await;
        rig.all(|world| {
            let text = key(MINT).to_string();
            world.accounts.insert(text, mint(Some(points)));
        });
        rig
    }

    /// Sets whether the shop has an account of the token, for all nodes.
    fn shop(&self, open: bool) {
        self.all(|world| {
            let account = shown(&TOKEN_2022, &[0; 182]);
            match open {
                true => world.accounts.insert(shops().to_string(), account),
                false => world.accounts.remove(&shops().to_string()),
            };
        });
    }

    async fn besides(&self, draft: &Draft) -> u64 {
        let besides = self.providers.fees.besides(&Trial::free(draft)).await;
        u64::try_from(besides.unwrap()).unwrap()
    }
}

#[tokio::test]
async fn new_accounts_are_paid_for_and_others_are_not_made() {
    let rig = Rig::with_token(0).await;
    let draft = rig.draft(&[(SHOP, MINT, 9_900)]);
    assert_eq!(rig.providers.wallet.admit(&draft).await, Ok(Ok(())));
    // 165 bytes, the kind, an immutable owner, what is withheld.
    let room = rent(165 + 1 + 4 + 12);
    assert_eq!(rig.besides(&draft).await, 5_000 + room);
    let attempt = rig.prepared(draft.clone(), &[]).await.unwrap().attempt;
    let sum = (address(&key(MINT)), Amount::from(9_900));
    assert_eq!(attempt.spends[1..], [sum]);
    assert!(attempt.spends[0].1 > Amount::from(room + 5_000));
    rig.account.submitter.send(&attempt).await.unwrap();
    let raw = rig.taken().remove(0);
    let transfer = [&[12][..], &9_900_u64.to_le_bytes(), &[6]].concat();
    assert!(contains(&raw, &transfer) && contains(&raw, TOKEN_2022.as_ref()));
    assert!(contains(&raw, ASSOCIATED.as_ref()));
    // The shop's account is there now. Who closes it before the payment lands is not paid a new one.
    rig.shop(true);
    assert_eq!(rig.besides(&draft).await, 5_000);
    let attempt = rig.prepared(draft.clone(), &[]).await.unwrap().attempt;
    assert!(attempt.spends[0].1 < Amount::from(room));
    rig.account.submitter.send(&attempt).await.unwrap();
    let raw = rig.taken().remove(1);
    // Whose it is, is looked at in the block.
    assert!(contains(&raw, &transfer) && contains(&raw, ASSOCIATED.as_ref()));
    // One node's word on an account is nobody's.
    rig.nodes[0].change(|world| drop(world.accounts.remove(&shops().to_string())));
    assert_eq!(rig.besides(&draft).await, 5_000);
}

#[tokio::test]
async fn account_that_was_closed_since_is_not_paid_for_by_a_later_version() {
    let rig = Rig::with_token(0).await;
    let draft = rig.draft(&[(SHOP, MINT, 9_900)]);
    rig.shop(true);
    let attempt = rig.prepared(draft.clone(), &[]).await.unwrap().attempt;
    rig.advance(OVER + 20);
    rig.shop(false);
    assert_eq!(rig.replaced(&attempt).await, None);
    rig.shop(true);
    let second = rig.replaced(&attempt).await.unwrap();
    assert_eq!(second.signed.len(), 2);
    // What was paid for stays paid for.
    rig.shop(false);
    let attempt = rig.prepared(draft, &[]).await.unwrap().attempt;
    rig.advance(OVER + 20);
    let second = rig.replaced(&attempt).await.unwrap();
    rig.advance(OVER + 20);
    assert!(rig.replaced(&second).await.is_some());
}

#[tokio::test]
async fn account_that_was_closed_since_it_was_judged_is_not_paid_for() {
    let rig = Rig::with_token(0).await;
    let draft = rig.draft(&[(SHOP, MINT, 9_900)]);
    let charged = rig.besides(&draft).await;
    rig.shop(true);
    let judged = rig.besides(&draft).await;
    assert_eq!((judged, charged > judged), (5_000, true));
    let signed = async |besides| rig.judged(draft.clone(), Some(besides), &[]).await;
    assert!(signed(judged).await.is_ok());
    rig.shop(false);
    let dearer = SubmitError::Dearer {
        asked: Amount::from(charged),
        most: Amount::from(judged),
    };
    assert_eq!(signed(judged).await, Err(dearer));
    assert!(signed(charged - 1).await.is_err());
    // It is paid for where it is charged, and where it is there again.
    assert!(signed(charged).await.is_ok());
    // One node's word on an account is nobody's.
    rig.shop(true);
    rig.nodes[0].change(|world| drop(world.accounts.remove(&shops().to_string())));
    assert!(signed(judged).await.is_ok());
    // Lamports make no account.
    let lamports = rig.draft(&[(SHOP, 0, 700)]);
    assert!(rig.judged(lamports, Some(judged), &[]).await.is_ok());
}

/// What is sent to arrive whole is in no price, and its issuer may raise the fee up to the whole.
#[tokio::test]
async fn nobody_is_paid_in_a_token_whose_transfers_cost() {
    let rig = Rig::with_token(100).await;
    let draft = rig.draft(&[(SHOP, MINT, 9_900)]);
    let refused = rig.providers.wallet.admit(&draft).await.unwrap();
    assert!(matches!(refused, Err(Unfit::Currency(_))), "{refused:?}");
    let prepared = rig.prepared(draft.clone(), &[]).await;
    assert!(
        matches!(prepared, Err(SubmitError::Codec(_))),
        "{prepared:?}"
    );
    // A refund ends: nodes are not asked again and again.
    let trial = Trial::free(&draft);
    let tried = rig.providers.wallet.simulate(&trial).await.unwrap();
    assert!(tried.unwrap_err().reason.contains("cost a fee"));
    // A fee that begins while a payment expires: no other version is signed.
    let rig = Rig::with_token(0).await;
    let draft = rig.draft(&[(SHOP, MINT, 9_900)]);
    let attempt = rig.prepared(draft, &[]).await.unwrap().attempt;
    rig.advance(OVER + 20);
    rig.all(|world| {
        let text = key(MINT).to_string();
        world.accounts.insert(text, mint(Some(1)));
    });
    assert_eq!(rig.replaced(&attempt).await, None);
}

#[tokio::test]
async fn what_is_no_mint_is_not_paid() {
    let rig = Rig::new().await;
    let draft = rig.draft(&[(SHOP, MINT, 5)]);
    let refused = rig.providers.wallet.admit(&draft).await.unwrap();
    assert!(matches!(refused, Err(Unfit::Codec(_))), "{refused:?}");
    // One node's mint is nobody's.
    rig.nodes[0].change(|world| {
        let text = key(MINT).to_string();
        world.accounts.insert(text, mint(None));
    });
    let refused = rig.providers.wallet.admit(&draft).await.unwrap();
    assert!(matches!(refused, Err(Unfit::Codec(_))), "{refused:?}");
    assert!(rig.prepared(draft, &[]).await.is_err());
}

#[tokio::test]
async fn token_accounts_are_no_recipients() {
    let rig = Rig::new().await;
    for (currency, owner) in [(0, TOKEN), (0, TOKEN_2022)] {
        let draft = rig.draft(&[(SHOP, currency, 5_000)]);
        assert_eq!(rig.providers.wallet.admit(&draft).await, Ok(Ok(())));
        rig.all(|world| {
            let account = shown(&owner, &[0; 165]);
            world.accounts.insert(key(SHOP).to_string(), account);
        });
        let refused = rig.providers.wallet.admit(&draft).await.unwrap();
        assert!(matches!(refused, Err(Unfit::Codec(_))), "{refused:?}");
        rig.all(|world| world.accounts.clear());
    }
}

#[tokio::test]
async fn work_is_what_a_quorum_finds() {
    let rig = Rig::new().await;
    let draft = rig.draft(&[(SHOP, 0, 5)]);
    let fine = json!({"err": null, "logs": [], "unitsConsumed": 22_300});
    let fails = json!({"err": {"InstructionError": [3, {"Custom": 1}]}, "logs": ["no"], "unitsConsumed": 1});
    rig.all(|world| world.bank.trial = fine.clone());
    rig.nodes[0].change(|world| world.bank.trial = fails.clone());
    let trial = Trial::free(&draft);
    assert_eq!(rig.providers.wallet.simulate(&trial).await, Ok(Ok(23)));
    rig.all(|world| world.bank.trial = fails.clone());
    let failed = rig.providers.wallet.simulate(&trial).await.unwrap();
    assert!(failed.unwrap_err().reason.contains("InstructionError"));
    // Signed with room it costs that much.
    assert!(rig.providers.pays_as_signed);
}

#[tokio::test]
async fn balances_are_of_lamports_and_of_the_associated_account() {
    let rig = Rig::new().await;
    let solver = rig.solver();
    rig.all(|world| {
        world.bank.lamports.insert(solver.to_string(), 77);
        world.accounts.insert(key(MINT).to_string(), mint(None));
    });
    let balance = async |currency: Pubkey| {
        let currency = address(&currency);
        let balance = rig
            .providers
            .failover
            .balance(&rig.account.address, &currency);
        balance.await.unwrap()
    };
    assert_eq!(balance(SYSTEM).await, U256::from(77));
    assert_eq!(balance(key(MINT)).await, U256::ZERO);
    let mut data = vec![0; 165];
    data[..32].copy_from_slice(key(MINT).as_ref());
    data[32..64].copy_from_slice(solver.as_ref());
    data[64..72].copy_from_slice(&9_u64.to_le_bytes());
    data[108] = 1;
    let account = associated(&solver, &key(MINT), &TOKEN).unwrap();
    rig.all(|world| {
        let shown = shown(&TOKEN, &data);
        world.accounts.insert(account.to_string(), shown);
    });
    assert_eq!(balance(key(MINT)).await, U256::from(9));
    let decimals = rig.providers.failover.decimals(&address(&key(MINT))).await;
    assert_eq!(decimals, Ok(Some((6, false))));
    let none = rig.providers.failover.decimals(&address(&key(0x71))).await;
    assert_eq!(none, Ok(None));
    // One node's word on what wallets show is nobody's.
    for (nodes, scaled) in [(1, false), (3, true)] {
        for node in &rig.nodes[..nodes] {
            node.change(|world| drop(world.accounts.insert(key(MINT).to_string(), multiplied())));
        }
        let decimals = rig.providers.failover.decimals(&address(&key(MINT))).await;
        assert_eq!(decimals, Ok(Some((6, scaled))));
    }
}

#[tokio::test]
async fn keys_of_another_scheme_open_no_account() {
    struct Other;

    #[async_trait]
    impl Signer for Other {
        fn scheme(&self) -> Scheme {
            Scheme::Secp256k1
        }

        fn public_key(&self) -> Bytes {
            vec![2; 33].into()
        }

        async fn sign(&self, _: Message<'_>) -> Result<Bytes, Unsigned> {
            Err(Unsigned("never".into()))
        }
    }

    let rig = Rig::new().await;
    let open = |key| rig.providers.accounts.account(&rig.chain, key, MOST);
    assert!(open(Arc::new(Other)).is_err());
    let account = rig.spec.family.keys.unwrap().account;
    assert!(account(&[1; 31]).is_err() && account(&[2; 33]).is_err());
    let solver = rig.account.address.clone();
    assert_eq!(account(solver.bytes()), Ok(solver));
}

/// The draft by which the user `key(1)` pays the shop.
fn own(currency: Pubkey, amount: u64) -> B256 {
    let steps = spec(json!({})).family.steps.unwrap();
    let draft = steps.send(&PaymentTerms {
        from: &address(&key(1)),
        to: &address(&key(SHOP)),
        currency: &address(&currency),
        amount: U256::from(amount),
        order: ORDER,
    });
    draft.unwrap().digest()
}

#[test]
fn users_payment_is_told_by_its_instructions_whatever_the_wallet_bids() {
    let (user, shop) = (key(1), key(SHOP));
    let memo = |tx: Tx| tx.memo(&ORDER.to_string(), &[]);
    let native = |tx: Tx| memo(tx).with(SYSTEM, &[user, shop], system_transfer(7));
    let bare = native(Tx::by(&[user]));
    let bidding = native(Tx::by(&[user]).with(COMPUTE_BUDGET, &[], vec![3, 1]));
    let guarded = native(Tx::by(&[user])).with(LIGHTHOUSE, &[user], vec![5]);
    let sponsored = native(Tx::by(&[key(9), user]));
    for tx in [&bare, &bidding, &guarded, &sponsored] {
        assert_eq!(tx.receipt().outer_call, Some(own(SYSTEM, 7)));
    }
    assert_ne!(bare.receipt().outer_call, Some(own(SYSTEM, 8)));
    let [from, to] = [user, shop].map(|owner| associated(&owner, &key(MINT), &TOKEN).unwrap());
    let made = |tx: Tx| {
        let accounts = [user, to, shop, key(MINT), SYSTEM, TOKEN];
        tx.with(ASSOCIATED, &accounts, vec![1])
    };
    let pays = |tx: Tx| tx.with(TOKEN, &[from, key(MINT), to, user], checked_transfer(7));
    let tokens = pays(memo(made(Tx::by(&[user]))));
    assert_eq!(tokens.receipt().outer_call, Some(own(key(MINT), 7)));
    assert_eq!(
        tokens.clone().failed().decoded().outer_call(),
        Some(own(key(MINT), 7))
    );
    for other in [
        // Whose account it is, nothing says.
        pays(memo(Tx::by(&[user]))),
        // Somebody else signs, too; a program of somebody's; two memos; nothing is paid.
        native(Tx::by(&[user, key(9)])),
        native(Tx::by(&[user])).with(key(8), &[user], vec![1]),
        memo(bare.clone()),
        memo(Tx::by(&[user])),
    ] {
        assert_eq!(other.receipt().outer_call, None);
    }
}

/// What a decoded transaction is told by.
trait OuterCall {
    fn outer_call(&self) -> Option<B256>;
}

impl OuterCall for Transaction {
    fn outer_call(&self) -> Option<B256> {
        match self {
            Transaction::Failed(failure) => failure.outer_call,
            Transaction::Succeeded(receipt) => receipt.outer_call,
            Transaction::Missing => None,
        }
    }
}
