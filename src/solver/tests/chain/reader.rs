//! The chain as a quorum reads it.

use alloy::primitives::{B256, Bytes};
use async_trait::async_trait;
use vm::{
    Address, Block, ChainReader, Head, Payment, PaymentKind, ReadError, StateReader, Transaction,
    TxRef, WithdrawalStatus,
};

use super::{FINAL, FakeChain, world::text};

#[async_trait]
impl StateReader for FakeChain {
    async fn settled(&self, head: &Head) -> Result<Option<Block>, ReadError> {
        let final_one = head.block.number.checked_sub(FINAL);
        Ok(self.with(|world| final_one.map(|number| world.block(number))))
    }

    async fn withdrawal(
        &self,
        _: &Bytes,
        _: Option<&TxRef>,
        _: &Block,
    ) -> Result<WithdrawalStatus, ReadError> {
        Err(ReadError::Unavailable("no withdrawals here".into()))
    }

    async fn sequence(&self, owner: &Address, block: &Block) -> Result<u64, ReadError> {
        let owner = owner.text().to_lowercase();
        Ok(self.with(|world| {
            let blocks = world.blocks.iter().take(block.number as usize + 1);
            let txs = blocks.flat_map(|(_, txs)| txs);
            txs.filter(|tx| text(&tx.draft, "from") == owner).count() as u64
        }))
    }

    async fn view(&self, _: &Address, _: &Bytes, _: &Block) -> Result<Bytes, ReadError> {
        Err(ReadError::Unavailable("no head calls here".into()))
    }
}

#[async_trait]
impl ChainReader for FakeChain {
    async fn head(&self) -> Result<Head, ReadError> {
        Ok(self.with(|world| Head {
            block: world.block(world.head()),
            tagged: None,
        }))
    }

    async fn fresh_head(&self) -> Result<Head, ReadError> {
        ChainReader::head(self).await
    }

    async fn contains(&self, block: &Block) -> Result<bool, ReadError> {
        Ok(self.with(|world| {
            block.number <= world.head() && world.block(block.number).hash == block.hash
        }))
    }

    async fn transaction(&self, tx: &TxRef, head: &Head) -> Result<Transaction, ReadError> {
        let hash = B256::from_slice(&tx.bytes);
        let address = |text: &str| vm::SETTLEMENT.address(text).unwrap();
        Ok(self.with(|world| match world.state().done.get(&hash) {
            Some((at, _)) if *at > head.block.number => Transaction::Missing,
            None => match world.deposits.get(&hash) {
                Some(block) => Transaction::Succeeded(vm::testing::receipt(block.clone())),
                None => Transaction::Missing,
            },
            Some((at, None)) => Transaction::Failed(vm::testing::failure(world.block(*at))),
            Some((at, Some(effects))) => {
                let mut receipt = vm::testing::receipt(world.block(*at));
                for (index, (to, currency, amount)) in effects.iter().enumerate() {
                    receipt.payments.push(Payment {
                        index: u32::try_from(index).unwrap(),
                        kind: PaymentKind::Transfer,
                        recipient: address(to),
                        currency: address(currency),
                        amount: *amount,
                    });
                }
                Transaction::Succeeded(receipt)
            }
        }))
    }
}
