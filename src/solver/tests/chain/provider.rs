//! What each of the chain's providers says.

use std::{collections::BTreeSet, sync::Arc};

use alloy::primitives::{B256, Bytes, U256, keccak256};
use serde_json::Value;
use vm::{
    Address, Amount, ReadError,
    testing::{Answers, Script, said},
    trade::{Broadcast, CurrencyInfo, Fate, FeeRate, Revert, Spent, Trial},
};

use super::{
    FakeChain, Lies, USUAL,
    world::{PLENTY, nonce_of},
};

/// What one that burns gas uses.
const BURNT: u64 = 3_000_000;

/// One of a chain's providers.
pub(super) struct Provider {
    pub chain: Arc<FakeChain>,
    pub first: bool,
}

impl FakeChain {
    pub(super) fn provider(self: &Arc<Self>, first: bool) -> Arc<Script<Provider>> {
        let chain = self.clone();
        Script::at(0).answering(Provider { chain, first }, answers())
    }
}

fn answers() -> Answers<Provider> {
    Answers {
        head: Some(|own| said(Ok(own.chain.head()))),
        contains: Some(|own, block| said(Ok(own.chain.contains(block)))),
        transaction: Some(|own, tx, head| said(Ok(own.chain.transaction(tx, head)))),
        settled: Some(|own, head| said(Ok(own.chain.settled(head)))),
        sequence: Some(|own, owner, block| said(Ok(own.chain.sequence(owner, block)))),
        tip: Some(|own| said(Ok(own.chain.head().block))),
        balance: Some(|own, owner, currency| Box::pin(own.balance(owner, currency))),
        currency: Some(|own, _| Box::pin(own.currency())),
        allowance: Some(|own, owner, spender, currency| {
            Box::pin(own.approved([owner, spender, currency]))
        }),
        is_contract: Some(|own, address| {
            let charges = own.chain.with(|world| world.charges_for_bytes);
            said(Ok(charges || address.text() != USUAL))
        }),
        calls: Some(|own, calls| {
            let answers = calls.iter().map(|call| Ok(Ok(own.chain.called(call))));
            said(answers.collect())
        }),
        nonce: Some(|own, owner, waiting| Box::pin(own.nonce(owner, *waiting))),
        estimate: Some(|own, trial| Box::pin(own.estimate(trial))),
        rate: Some(|own| Box::pin(own.rate())),
        broadcast: Some(|own, raw| Box::pin(own.broadcast(raw))),
        fate: Some(|own, id| Box::pin(own.fate(id))),
        ..Answers::default()
    }
}

impl Provider {
    /// What this one says that is not so.
    async fn lies(&self) -> Lies {
        let lies = self
            .chain
            .with(|world| match self.first || world.everybody_lies {
                true => world.lies,
                false => Lies::default(),
            });
        if lies.hangs {
            tokio::time::sleep(std::time::Duration::from_secs(30)).await;
        }
        lies
    }

    async fn approved(&self, of: [&Address; 3]) -> Result<Amount, ReadError> {
        let lie = self.lies().await.approved;
        Ok(lie.unwrap_or_else(|| self.chain.allowance(of)))
    }

    async fn estimate(&self, trial: &Trial<'_>) -> Result<Result<u64, Revert>, ReadError> {
        let lies = self.lies().await;
        let poor = trial.most.is_some_and(|gas| gas < PLENTY);
        if lies.reverts || lies.work.is_some() && poor {
            return Ok(Err(refusal()));
        }
        if let Some(work) = lies.work {
            return Ok(Ok(work));
        }
        let call = trial.draft.as_call().unwrap();
        let data: Value = serde_json::from_slice(&call.data).unwrap_or(Value::Null);
        let order: Option<B256> = data["order"].as_str().and_then(|order| order.parse().ok());
        let from = call.from.text().to_lowercase();
        let (unsure, slow) = self.chain.with(|world| {
            let unsure = order.is_some_and(|order| world.unsure.contains(&order));
            world.estimates += usize::from(unsure);
            (unsure, world.slow)
        });
        if unsure {
            tokio::time::sleep(slow).await;
            return Err(ReadError::Unavailable("no agreement".into()));
        }
        Ok(self.chain.with(|world| {
            let among =
                |orders: &BTreeSet<B256>| order.is_some_and(|order| orders.contains(&order));
            // Who burns gas only when it is paid for sees what it costs.
            let burns = among(&world.burners);
            let gas = match burns && trial.rate.is_some_and(|rate| rate.base > 0) {
                true => BURNT,
                false => world.intrinsic(call.data.len()),
            };
            let forbidden = among(&world.revert_estimate)
                || world.wants_more(order, &data)
                || among(&world.greedy) && poor
                || trial.most.is_some_and(|most| most < gas);
            let done = world.state().effects(&from, &data);
            match (forbidden, done) {
                (false, Some(_)) => Ok(gas * lies.hundredths.unwrap_or(100) / 100),
                _ => Err(refusal()),
            }
        }))
    }

    async fn rate(&self) -> Result<FeeRate, ReadError> {
        let lies = self.lies().await;
        Ok(self.chain.with(|world| {
            let tip = world.tips[world.rates % 2];
            world.rates += 1;
            lies.fees.unwrap_or(FeeRate::new(world.base, tip))
        }))
    }

    async fn broadcast(&self, raw: &Bytes) -> Result<Broadcast, ReadError> {
        let lies = self.lies().await;
        if lies.refuses {
            return Ok(Broadcast::Refused("not by me".into()));
        }
        if lies.expired {
            return Ok(Broadcast::Expired);
        }
        if !self.first {
            return Ok(self.chain.with(|world| world.offered(raw)));
        }
        self.chain.fuse.burn().await;
        let said = self.chain.with(|world| {
            world.broadcasts.push(keccak256(raw));
            world.offered(raw)
        });
        self.chain.fuse.burn().await;
        Ok(said)
    }

    async fn fate(&self, id: &Bytes) -> Result<Fate, ReadError> {
        let transaction = &B256::from_slice(id);
        let lies = self.lies().await;
        Ok(self.chain.with(|world| {
            if lies.included {
                return Fate::Included {
                    block: world.block(world.head()),
                    depth: 0,
                    success: false,
                    spent: None,
                };
            }
            if let Some((at, effects)) = world.state().done.get(transaction) {
                return Fate::Included {
                    block: world.block(*at),
                    depth: world.head() - at,
                    success: effects.is_some(),
                    spent: world.spent.map(|gas| Spent {
                        work: U256::from(gas),
                        besides: None,
                    }),
                };
            }
            let waits = world.pool.iter().any(|tx| tx.hash == *transaction);
            if waits { Fate::Waiting } else { Fate::Unknown }
        }))
    }

    async fn balance(&self, owner: &Address, currency: &Address) -> Result<Amount, ReadError> {
        while self.chain.with(|world| world.dark) {
            tokio::task::yield_now().await;
        }
        match self.lies().await.poor {
            true => Ok(Amount::ZERO),
            false => Ok(self.chain.balance_of(owner.text(), currency.text())),
        }
    }

    async fn currency(&self) -> Result<Option<CurrencyInfo>, ReadError> {
        let decimals = match self.lies().await.decimals {
            Some(decimals) => Some(decimals),
            None => self.chain.with(|world| world.decimals),
        };
        let scaled = self.chain.with(|world| world.scaled);
        Ok(decimals.map(|decimals| CurrencyInfo {
            symbol: "USDC".into(),
            name: "USD Coin".into(),
            decimals,
            scaled,
        }))
    }

    async fn nonce(&self, owner: &Address, waiting: bool) -> Result<u64, ReadError> {
        let (lies, owner) = (self.lies().await, owner.text().to_lowercase());
        let nonce = self.chain.with(|world| {
            let mut nonce = world.nonce(&owner);
            while waiting && world.pool.iter().any(|tx| nonce_of(&tx.draft) == nonce) {
                nonce += 1;
            }
            nonce
        });
        Ok(nonce.saturating_add_signed(lies.nonce))
    }
}

fn refusal() -> Revert {
    Revert {
        reason: "refused".into(),
        data: Bytes::new(),
    }
}
