//! What an account tells its family of its open attempts.

use std::sync::{Arc, Mutex};

use alloy::primitives::U256;
use async_trait::async_trait;
use vm::{
    Bytes, Chain, CodecError,
    trade::{
        Account, Attempt, Broadcast, Goal, Known, OpenAccount, Outlook, Prepared, Signer, Status,
        SubmitError, Submitter,
    },
};

use super::rig::Rig;
use crate::{
    request::Request,
    sign::KeyRing,
    solver::{
        Solver,
        account::{SendLimits, SolverAccount},
        chain::TradingChain,
    },
};

/// What was named as held, and whether some is left to others, for each attempt that was prepared.
type Heard = Arc<Mutex<Vec<(Vec<Bytes>, bool)>>>;

/// Opens accounts of which it is heard what they name.
struct Listening {
    accounts: Arc<dyn OpenAccount>,
    heard: Heard,
}

impl OpenAccount for Listening {
    fn account(
        &self,
        chain: &Chain,
        key: Arc<dyn Signer>,
        most: u128,
    ) -> Result<Account, CodecError> {
        let mut account = self.accounts.account(chain, key, most)?;
        account.submitter = Arc::new(Heeding {
            submitter: account.submitter,
            heard: self.heard.clone(),
        });
        Ok(account)
    }
}

struct Heeding {
    submitter: Arc<dyn Submitter>,
    heard: Heard,
}

#[async_trait]
impl Submitter for Heeding {
    async fn look(&self, goal: Goal<'_>, first: bool) -> Result<Box<dyn Outlook>, SubmitError> {
        Ok(Box::new(Watched {
            outlook: self.submitter.look(goal, first).await?,
            heard: self.heard.clone(),
        }))
    }

    async fn replace(
        &self,
        attempt: &Attempt,
        cancel: bool,
    ) -> Result<Option<Attempt>, SubmitError> {
        self.submitter.replace(attempt, cancel).await
    }

    async fn send(&self, attempt: &Attempt) -> Result<Option<Broadcast>, SubmitError> {
        self.submitter.send(attempt).await
    }

    async fn status(&self, attempt: &Attempt) -> Result<Status, SubmitError> {
        self.submitter.status(attempt).await
    }

    async fn reached(&self) -> Result<Bytes, SubmitError> {
        self.submitter.reached().await
    }
}

struct Watched {
    outlook: Box<dyn Outlook>,
    heard: Heard,
}

#[async_trait]
impl Outlook for Watched {
    async fn prepare(self: Box<Self>, known: Known<'_>) -> Result<Prepared, SubmitError> {
        let Self { outlook, heard } = *self;
        let mut held = known.held.to_vec();
        held.sort_unstable();
        // Each attempt of this family holds one.
        assert_eq!(known.attempts.len(), held.len());
        heard.lock().unwrap().push((held, known.keeps));
        outlook.prepare(known).await
    }
}

/// The process starts; it is heard what its account of the network names.
async fn listening(rig: &Rig, network: &str) -> (Solver, Heard) {
    let mut solver = rig.solver().await;
    let heard = Heard::default();
    let mut chain = TradingChain::clone(&solver.accounts[network].chain);
    chain.providers.accounts = Arc::new(Listening {
        accounts: chain.providers.accounts,
        heard: heard.clone(),
    });
    let keys = KeyRing::of_secp256k1(rig.signer.clone());
    let limits = SendLimits {
        most_rate: 100_000,
        ..SendLimits::default()
    };
    let (chain, store) = (Arc::new(chain), rig.store.clone());
    let account = SolverAccount::open(chain, store, &keys, limits, rig.now).await;
    let name = network.to_owned();
    solver.accounts.insert(name, Arc::new(account.unwrap()));
    (solver, heard)
}

/// A family that chooses what an attempt holds by the payment must not choose what another attempt holds.
#[tokio::test]
async fn a_family_is_told_what_open_attempts_hold() {
    let mut rig = Rig::new();
    let orders = [
        rig.funded(1).await,
        rig.funded(2).await,
        rig.funded(3).await,
    ];
    let (solver, heard) = listening(&rig, "destination").await;
    for order in &orders {
        solver.advance(&order.id, rig.now).await.unwrap();
    }
    let resource = |number: u64| Bytes::from(number.to_be_bytes().to_vec());
    let told = std::mem::take(&mut *heard.lock().unwrap()).into_iter();
    let told: Vec<_> = told.map(|(held, _)| held).collect();
    let [none, one, two] = [vec![], vec![resource(0)], vec![resource(0), resource(1)]];
    assert_eq!(told, [none, one, two]);
    // What is done with holds nothing any more.
    for order in &orders {
        rig.settle(order).await;
    }
    rig.rest().await;
    let last = rig.funded(4).await;
    let (solver, heard) = listening(&rig, "destination").await;
    solver.advance(&last.id, rig.now).await.unwrap();
    assert_eq!(heard.lock().unwrap()[0].0, Vec::<Bytes>::new());
}

/// What strangers want can wait for what small payments hold.
#[tokio::test]
async fn refunds_of_what_paid_leave_nothing_to_others_where_the_order_came_with_a_key() {
    let mut rig = Rig::new();
    let stranger = rig.funded(1).await;
    let keyed = rig.quote(2, |it| it.api_key = Some("app".into())).await;
    rig.deposit(&keyed, |_| ()).await;
    let (solver, heard) = listening(&rig, "destination").await;
    for order in [&stranger, &keyed] {
        solver.advance(&order.id, rig.now).await.unwrap();
    }
    let keeps = |heard: &Heard| -> Vec<bool> {
        let heard = heard.lock().unwrap();
        heard.iter().map(|(_, keeps)| *keeps).collect()
    };
    assert_eq!(keeps(&heard), [true, false]);
    // What is given back at once, and what somebody deposited besides.
    let forced = |request: &mut Request| request.referrer = Some("debug-force-refund".into());
    let refund = rig.quote(3, forced).await;
    rig.deposit(&refund, |_| ()).await;
    let with_key = |request: &mut Request| {
        forced(request);
        request.api_key = Some("app".into());
    };
    let keyed = rig.quote(6, with_key).await;
    rig.deposit(&keyed, |_| ()).await;
    let excess = rig.quote(4, |_| ()).await;
    let more = U256::from(150_000_000);
    rig.deposit(&excess, |deposit| deposit.amount = more).await;
    let (solver, heard) = listening(&rig, "origin").await;
    for _ in 0..30 {
        for order in [&refund, &keyed, &excess] {
            solver.advance(&order.id, rig.now).await.unwrap();
        }
        rig.mine(1);
    }
    assert_eq!(keeps(&heard), [true, false, true]);
    // What never paid for its order.
    let short = rig.quote(5, |_| ()).await;
    let less = U256::from(99_999_999);
    rig.deposit(&short, |deposit| deposit.amount = less).await;
    let (solver, heard) = listening(&rig, "origin").await;
    for _ in 0..30 {
        solver.advance(&short.id, rig.now).await.unwrap();
        rig.mine(1);
    }
    assert_eq!(keeps(&heard), [true]);
}
