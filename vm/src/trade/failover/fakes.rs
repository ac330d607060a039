//! Providers that say what a test tells them to.

use crate::{
    testing::{self, Answers, Script, said},
    trade::{Call, Draft, Fate, FeeRate, Revert, TradingProvider},
    types::{Address, Amount, Block, Bytes, U256},
};

pub use crate::testing::Says;

pub fn honest() -> Says {
    Says {
        nonce: (7, 7),
        rate: FeeRate::new(30, 2),
        estimate: Ok(50_000),
        fate: Fate::Waiting,
        balance: Amount::from(9),
        allowance: Amount::from(9),
        ..Says::default()
    }
}

pub fn block(fork: u8) -> Block {
    testing::block(1, fork)
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

/// To each of them a byte of a call costs one.
pub fn providers(all: Vec<Says>) -> Vec<TradingProvider> {
    let providers = all.into_iter().map(|one| {
        let answers = Answers {
            calls: Some(|_, calls| {
                let fee = |call: &Call| U256::from(call.data.len()).to_be_bytes::<32>();
                let fees = calls.iter().map(|call| Ok(Ok(fee(call).into())));
                said(fees.collect())
            }),
            ..Answers::default()
        };
        Script::saying(one).answering((), answers).trading()
    });
    providers.collect()
}
