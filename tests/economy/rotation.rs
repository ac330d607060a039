//! Nonces on a settlement chain that is no network of the market: the solver's, and those of keys that it had before.

use std::sync::Arc;

use alloy::primitives::B256;
use intentd::{
    sign::KeyRing,
    solver::{
        account::{Plan, SendLimits, SolverAccount},
        chain::TradingChain,
    },
    store::{Outcome, Store, rows::attempt::Owner},
};
use vm::trade::{Call, Draft, Intent};

use crate::{
    clock,
    market::CHAINS,
    world::{SOLVER, World, key},
};

/// The solver's key from now on.
const NEXT: &str = "0x2a871d0798f97d79848a013d4936a73bf4cc922c825d33c1cf7073dff6d409c6";

/// Something of `owner` has a nonce and a signed transaction, and the process dies before it is sent.
async fn promised(world: &World, owner: Owner) -> B256 {
    let chains = world.opened();
    let hub = chains.hub().unwrap();
    let (_, number, _) = CHAINS[2];
    let providers = hub.trading_providers.clone();
    let chain = TradingChain::plain(hub.chain.clone(), number, providers, hub.required).unwrap();
    let store: Arc<dyn Store> = world.store.clone();
    let (keys, now) = (KeyRing::of_secp256k1(key(SOLVER)), clock::millis());
    let limits = SendLimits::default();
    let account = SolverAccount::open(Arc::new(chain), store.clone(), &keys, limits, now);
    let account = account.await.unwrap();
    let plan = Plan {
        owner,
        intent: Intent {
            draft: Draft::call(Call::nothing(&account.owner)),
            work: 100_000,
            besides: None,
            spends: Vec::new(),
        },
        keeps: false,
    };
    let mut taken = account.take(&plan, now / 1_000).await.unwrap();
    let batch = std::mem::take(&mut taken.batch);
    let committed = store.commit(batch).await.unwrap();
    assert!(matches!(committed, Outcome::Applied { .. }));
    taken.attempt.signed[0].id.parse().unwrap()
}

async fn sent_within_minutes(world: &World, sent: B256) {
    world.pass(120).await;
    let relay = world.chain(CHAINS[2].0);
    assert!(relay.lock().find(&sent).is_some(), "it is sent by nobody");
}

#[tokio::test(start_paused = true)]
async fn what_a_former_key_was_to_send_to_the_settlement_chain_is_sent_and_ends() {
    clock::begin(0);
    let mut world = World::new(&[], None);
    let sent = promised(&world, Owner::Settlement(B256::repeat_byte(5))).await;
    let before = std::mem::replace(&mut world.signer, key(NEXT));
    world.former.push(before);
    world.start().await;
    sent_within_minutes(&world, sent).await;
    let on = |name: &str| {
        let accounts = world.accounts().iter();
        let accounts = accounts.filter(|account| account.chain.name == name);
        accounts.cloned().collect::<Vec<_>>()
    };
    // The former account's and the present one's, whose nonces are none of the other's.
    let accounts = on(CHAINS[2].0);
    let (former, present): (Vec<Arc<SolverAccount>>, Vec<Arc<SolverAccount>>) = accounts
        .into_iter()
        .partition(|account| account.name == CHAINS[2].0);
    assert_eq!((former.len(), present.len()), (1, 1));
    assert_eq!(former[0].attempts().await.unwrap(), []);
    assert_eq!(former[0].summary().await.unwrap().next, Some("1".into()));
    assert_eq!(present[0].summary().await.unwrap().next, None);
    // Where it never sent anything the former account has no lane.
    for (name, ..) in CHAINS.into_iter().take(2) {
        assert_eq!(on(name).len(), 1, "{name}");
    }
    world.stop().await;
}

/// As `intentd lane heal` leaves it.
#[tokio::test(start_paused = true)]
async fn a_nonce_that_is_nobodys_is_used_up_on_the_settlement_chain_too() {
    clock::begin(0);
    let mut world = World::new(&[], None);
    let sent = promised(&world, Owner::Gap).await;
    world.start().await;
    sent_within_minutes(&world, sent).await;
    let mut accounts = world.accounts().iter();
    let account = accounts
        .find(|account| account.name == CHAINS[2].0)
        .unwrap();
    assert_eq!(account.attempts().await.unwrap(), []);
    assert_eq!(account.summary().await.unwrap().next, Some("1".into()));
    world.stop().await;
}
