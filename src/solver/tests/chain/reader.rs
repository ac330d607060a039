//! The chain as a quorum reads it, and what its contracts answer.

use alloy::primitives::{B256, Bytes, U256};
use vm::{Address, Amount, Block, Head, Payment, PaymentKind, Transaction, TxRef, trade::Call};

use super::{FINAL, FakeChain, USUAL, world::text};

impl FakeChain {
    pub(super) fn head(&self) -> Head {
        self.with(|world| Head {
            block: world.block(world.head()),
            tagged: None,
        })
    }

    pub(super) fn contains(&self, block: &Block) -> bool {
        self.with(|world| {
            block.number <= world.head() && world.block(block.number).hash == block.hash
        })
    }

    pub(super) fn settled(&self, head: &Head) -> Option<Block> {
        let final_one = head.block.number.checked_sub(FINAL)?;
        Some(self.with(|world| world.block(final_one)))
    }

    pub(super) fn sequence(&self, owner: &Address, block: &Block) -> u64 {
        let owner = owner.text().to_lowercase();
        self.with(|world| {
            let blocks = world.blocks.iter().take(block.number as usize + 1);
            let txs = blocks.flat_map(|(_, txs)| txs);
            txs.filter(|tx| text(&tx.draft, "from") == owner).count() as u64
        })
    }

    pub(super) fn transaction(&self, tx: &TxRef, head: &Head) -> Transaction {
        let hash = B256::from_slice(&tx.bytes);
        let address = |text: &str| vm::SETTLEMENT.address(text).unwrap();
        self.with(|world| match world.state().done.get(&hash) {
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
        })
    }

    /// What the second of these may take of the first one's, of the third.
    pub(super) fn allowance(&self, of: [&Address; 3]) -> Amount {
        let key = of.map(|address| address.text().to_lowercase()).into();
        let approved = self.with(|world| world.state().approvals.get(&key).copied());
        approved.unwrap_or_default()
    }

    /// Approval proxies hand calls to this; the oracle of data fees says what bytes cost.
    pub(super) fn called(&self, call: &Call) -> Bytes {
        if call.to.text().ends_with("f0") || call.to.text() == USUAL {
            let fee = self.with(|world| world.data_fee).unwrap_or_default();
            return U256::from(fee).to_be_bytes_vec().into();
        }
        let router = self.with(|world| world.router);
        router.as_bytes().to_vec().into()
    }
}
