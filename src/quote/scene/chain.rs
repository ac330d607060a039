//! A chain that answers as the test says.

use alloy::primitives::{B256, Bytes, U256};
use async_trait::async_trait;
use vm::{
    Address, ReadError,
    trade::{
        Accounts, Broadcast, Call, Called, CurrencyInfo, Fate, Fees, Intended, Rehearsal, Revert,
        ScanError, Scanner, Sighting, Writer,
    },
};

use super::{PROXY, Scene, address};

#[async_trait]
impl Scanner for Scene {
    async fn head(&self) -> Result<vm::Block, ReadError> {
        Ok(vm::testing::block(77, 0))
    }

    async fn block(&self, _: u64) -> Result<Option<vm::Block>, ReadError> {
        Ok(None)
    }

    async fn deposits(&self, _: std::ops::RangeInclusive<u64>) -> Result<Vec<Sighting>, ScanError> {
        Ok(Vec::new())
    }

    async fn omitted(
        &self,
        _: u64,
        _: &vm::Block,
        _: &[Sighting],
    ) -> Result<Vec<Sighting>, ScanError> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl Accounts for Scene {
    async fn balance(&self, _: &Address, _: &Address) -> Result<U256, ReadError> {
        self.read(|world| world.balance)
    }

    async fn allowance(
        &self,
        _: &Address,
        spender: &Address,
        _: &Address,
    ) -> Result<U256, ReadError> {
        let proxy = *spender == address(PROXY);
        self.read(|world| {
            if proxy {
                world.allowed
            } else {
                world.allowance
            }
        })
    }

    async fn currency(&self, _: &Address) -> Result<Option<CurrencyInfo>, ReadError> {
        Ok(None)
    }

    async fn is_contract(&self, _: &Address) -> Result<bool, ReadError> {
        self.read(|world| world.code)
    }

    async fn calls(&self, calls: &[Call]) -> Vec<Called> {
        let answers = calls.iter().map(|_| {
            let fee = self.read(|world| world.data_fee)?.unwrap_or_default();
            Ok(Ok(U256::from(fee).to_be_bytes_vec().into()))
        });
        answers.collect()
    }
}

#[async_trait]
impl Rehearsal for Scene {
    async fn rehearse(&self, calls: &[Call]) -> Result<Result<u64, Revert>, ReadError> {
        self.read(|world| {
            if (world.fails)(calls) {
                return Err(Revert {
                    reason: "short".into(),
                    data: Bytes::new(),
                });
            }
            world.revert.clone().map_or(Ok(world.gas), Err)
        })
    }
}

#[async_trait]
impl Writer for Scene {
    async fn estimate(&self, intended: &Intended<'_>) -> Result<Result<u64, Revert>, ReadError> {
        if self.with(|world| world.mute) {
            return Err(ReadError::Unavailable("no estimates here".into()));
        }
        self.read(|world| {
            world.carried.push(intended.authorizations.to_vec());
            let more = world
                .gas_of_more
                .filter(|_| intended.call.value > U256::from(1));
            let gas = more.unwrap_or(world.gas);
            world.revert.clone().map_or(Ok(gas), Err)
        })
    }

    async fn fees(&self) -> Result<Fees, ReadError> {
        self.read(|world| Fees {
            base: world.fee,
            priority: 100_000_000,
        })
    }

    async fn nonce(&self, _: &Address, _: bool) -> Result<u64, ReadError> {
        Ok(0)
    }

    async fn broadcast(&self, _: &Bytes) -> Result<Broadcast, ReadError> {
        Ok(Broadcast::Accepted)
    }

    async fn fate(&self, _: &B256) -> Result<Fate, ReadError> {
        Ok(Fate::Unknown)
    }
}
