//! Providers that say what a test tells them to.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;

use crate::{
    ReadError,
    trade::{
        Accounts, Broadcast, Call, Called, Contracts, CurrencyInfo, DepositTx, Draft, Fate,
        FeeRate, Revert, ScanError, Scanner, Simulator, TradingProvider, Trial, Writer,
    },
    types::{Address, Amount, B256, Block, Bytes, U256},
};

/// What a provider says.
#[derive(Clone)]
pub struct Says {
    pub hangs: bool,
    pub nonce: (u64, u64),
    pub rate: FeeRate,
    pub estimate: Result<u64, Revert>,
    pub fate: Fate,
    pub broadcast: Broadcast,
    pub balance: Amount,
}

pub fn honest() -> Says {
    Says {
        hangs: false,
        nonce: (7, 7),
        rate: FeeRate {
            base: 30,
            priority: 2,
        },
        estimate: Ok(50_000),
        fate: Fate::Waiting,
        broadcast: Broadcast::Accepted,
        balance: Amount::from(9),
    }
}

impl Says {
    async fn say<T: Send>(&self, what: T) -> Result<T, ReadError> {
        if self.hangs {
            tokio::time::sleep(Duration::from_secs(30)).await;
        }
        Ok(what)
    }
}

#[async_trait]
impl Writer for Says {
    async fn rate(&self) -> Result<FeeRate, ReadError> {
        self.say(self.rate).await
    }

    async fn broadcast(&self, _: &Bytes) -> Result<Broadcast, ReadError> {
        self.say(self.broadcast.clone()).await
    }

    async fn fate(&self, _: &Bytes) -> Result<Fate, ReadError> {
        self.say(self.fate.clone()).await
    }
}

#[async_trait]
impl Simulator for Says {
    async fn estimate(&self, _: &Trial<'_>) -> Result<Result<u64, Revert>, ReadError> {
        self.say(self.estimate.clone()).await
    }

    async fn simulate(&self, _: &[Call]) -> Result<Result<u64, Revert>, ReadError> {
        self.say(self.estimate.clone()).await
    }
}

#[async_trait]
impl Accounts for Says {
    async fn balance(&self, _: &Address, _: &Address) -> Result<Amount, ReadError> {
        self.say(self.balance).await
    }

    async fn currency(&self, _: &Address) -> Result<Option<CurrencyInfo>, ReadError> {
        self.say(None).await
    }
}

#[async_trait]
impl Contracts for Says {
    async fn allowance(&self, _: &Address, _: &Address, _: &Address) -> Result<Amount, ReadError> {
        self.say(self.balance).await
    }

    async fn is_contract(&self, _: &Address) -> Result<bool, ReadError> {
        self.say(false).await
    }

    /// What the bytes cost: one for each of the question.
    async fn calls(&self, calls: &[Call]) -> Vec<Called> {
        let fee = U256::from(calls[0].data.len());
        vec![self.say(Ok(fee.to_be_bytes::<32>().into())).await]
    }

    async fn nonce(&self, _: &Address, waiting: bool) -> Result<u64, ReadError> {
        let (mined, pending) = self.nonce;
        self.say(if waiting { pending } else { mined }).await
    }
}

#[async_trait]
impl Scanner for Says {
    async fn head(&self) -> Result<Block, ReadError> {
        self.say(block(1)).await
    }

    async fn block(&self, _: u64) -> Result<Option<Block>, ReadError> {
        self.say(None).await
    }

    async fn deposits(
        &self,
        _: std::ops::RangeInclusive<u64>,
    ) -> Result<Vec<DepositTx>, ScanError> {
        Ok(Vec::new())
    }

    async fn omitted(
        &self,
        _: u64,
        _: &Block,
        _: &[DepositTx],
    ) -> Result<Vec<DepositTx>, ScanError> {
        Ok(Vec::new())
    }
}

pub fn block(fork: u8) -> Block {
    Block {
        number: 5,
        hash: B256::repeat_byte(fork),
        parent: B256::ZERO,
        time: 9,
    }
}

pub fn account(byte: u8) -> Address {
    Address::from_parts(&format!("{byte}"), vec![byte; 20])
}

pub fn call() -> Call {
    Call {
        from: account(1),
        to: account(2),
        data: vec![1; 100].into(),
        value: Amount::ZERO,
    }
}

pub fn draft() -> Draft {
    Draft::call(call())
}

pub fn reverts() -> Result<u64, Revert> {
    Err(Revert {
        reason: "no".into(),
        data: Bytes::new(),
    })
}

/// Two honest ones and one that is changed; it stands first, where it is asked first.
pub fn three(change: impl FnOnce(&mut Says)) -> Vec<Says> {
    let mut odd = honest();
    change(&mut odd);
    vec![odd, honest(), honest()]
}

pub fn providers(said: Vec<Says>) -> Vec<TradingProvider> {
    let providers = said.into_iter().map(|says| {
        let says = Arc::new(says);
        TradingProvider {
            scanner: says.clone(),
            accounts: says.clone(),
            writer: says.clone(),
            simulator: Some(says.clone()),
            contracts: Some(says),
            inspector: Arc::new(crate::testing::Unseen),
        }
    });
    providers.collect()
}
