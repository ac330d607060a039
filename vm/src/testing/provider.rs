//! The provider's questions: its own answer where it has one, else the script's.

use std::ops::RangeInclusive;

use async_trait::async_trait;

use super::{Script, board::Board};
use crate::{
    ChainReader, ReadError, StateReader,
    trade::{
        Accounts, Broadcast, Call, Called, Contracts, CurrencyInfo, DepositTx, Fate, FeeRate,
        Revert, ScanError, Scanner, Simulator, Trial, TxDetails, TxInspector, Writer,
    },
    types::{Address, Amount, Block, Bytes, Head, Transaction, TxRef, WithdrawalStatus},
};

impl<C: Send + Sync> Script<C> {
    /// Every read begins here.
    async fn begin(&self) -> Result<(), ReadError> {
        let hanging = self.with(|board| {
            board.asked += 1;
            board.says.hangs
        });
        if hanging {
            std::future::pending::<()>().await;
        }
        self.with(|board| board.failure.clone()).map_or(Ok(()), Err)
    }

    async fn read<T>(
        &self,
        read: impl FnOnce(&mut Board) -> Result<T, ReadError> + Send,
    ) -> Result<T, ReadError> {
        self.begin().await?;
        self.with(read)
    }
}

/// The provider's own answer, if it has one.
macro_rules! own {
    ($script:ident.$question:ident($($argument:expr),*)) => {
        if let Some(answer) = $script.answers.$question {
            $script.begin().await?;
            return answer($script, $($argument),*).await;
        }
    };
}

#[async_trait]
impl<C: Send + Sync> ChainReader for Script<C> {
    async fn head(&self) -> Result<Head, ReadError> {
        own!(self.head());
        self.read(|board| Ok(board.head())).await
    }

    async fn fresh_head(&self) -> Result<Head, ReadError> {
        own!(self.fresh_head());
        ChainReader::head(self).await
    }

    async fn contains(&self, block: &Block) -> Result<bool, ReadError> {
        own!(self.contains(block));
        self.read(|board| Ok(board.contains(block))).await
    }

    async fn transaction(&self, tx: &TxRef, head: &Head) -> Result<Transaction, ReadError> {
        own!(self.transaction(tx, head));
        self.read(|board| board.transaction(tx, head)).await
    }
}

#[async_trait]
impl<C: Send + Sync> StateReader for Script<C> {
    async fn settled(&self, head: &Head) -> Result<Option<Block>, ReadError> {
        own!(self.settled(head));
        self.read(|board| {
            board.anchor(&head.block)?;
            Ok(board.settled.map(|number| board.block(number)))
        })
        .await
    }

    async fn withdrawal(
        &self,
        encoded: &Bytes,
        _: Option<&TxRef>,
        block: &Block,
    ) -> Result<WithdrawalStatus, ReadError> {
        own!(self.withdrawal(encoded, block));
        self.read(|board| {
            board.anchor(block)?;
            let status = board.withdrawals.get(encoded).copied();
            Ok(status.unwrap_or(WithdrawalStatus::Pending))
        })
        .await
    }

    async fn sequence(&self, owner: &Address, block: &Block) -> Result<u64, ReadError> {
        own!(self.sequence(owner, block));
        self.read(|board| {
            board.anchor(block)?;
            Err(ReadError::Unavailable("sequences are not scripted".into()))
        })
        .await
    }

    async fn view(&self, to: &Address, data: &Bytes, block: &Block) -> Result<Bytes, ReadError> {
        own!(self.view(to, data, block));
        self.read(|board| {
            board.anchor(block)?;
            let key = (to.bytes().to_vec(), data.clone());
            let unknown = || ReadError::Unavailable("call not scripted".into());
            board.views.get(&key).cloned().ok_or_else(unknown)
        })
        .await
    }

    async fn bears_out(&self, said: &Bytes) -> Result<bool, ReadError> {
        own!(self.bears_out(said));
        self.read(|board| Ok(board.outputs.contains(said))).await
    }
}

#[async_trait]
impl<C: Send + Sync> Scanner for Script<C> {
    async fn head(&self) -> Result<Block, ReadError> {
        own!(self.tip());
        self.read(|board| Ok(board.block(board.head))).await
    }

    async fn block(&self, height: u64) -> Result<Option<Block>, ReadError> {
        own!(self.block(&height));
        self.read(|board| Ok((height <= board.head).then(|| board.block(height))))
            .await
    }

    async fn deposits(&self, heights: RangeInclusive<u64>) -> Result<Vec<DepositTx>, ScanError> {
        own!(self.deposits(heights));
        self.with(|board| {
            let length = heights.end() - heights.start() + 1;
            if board.most.is_some_and(|most| length > most) {
                return Err(ScanError::TooLarge("ask for less".into()));
            }
            board.scanned.push(heights.clone());
            Ok(())
        })?;
        Ok(self.read(|board| Ok(board.within(&heights))).await?)
    }

    async fn omitted(
        &self,
        from: u64,
        end: &Block,
        shown: &[DepositTx],
    ) -> Result<Vec<DepositTx>, ScanError> {
        self.begin().await?;
        self.with(|board| board.omitted(&(from..=end.number), shown))
    }
}

#[async_trait]
impl<C: Send + Sync + 'static> Accounts for Script<C> {
    async fn balance(&self, owner: &Address, currency: &Address) -> Result<Amount, ReadError> {
        own!(self.balance(owner, currency));
        self.read(|board| Ok(board.says.balance)).await
    }

    async fn currency(&self, address: &Address) -> Result<Option<CurrencyInfo>, ReadError> {
        own!(self.currency(address));
        self.read(|_| Ok(None)).await
    }
}

#[async_trait]
impl<C: Send + Sync> Contracts for Script<C> {
    async fn allowance(
        &self,
        owner: &Address,
        spender: &Address,
        currency: &Address,
    ) -> Result<Amount, ReadError> {
        own!(self.allowance(owner, spender, currency));
        self.read(|board| Ok(board.says.allowance)).await
    }

    async fn is_contract(&self, address: &Address) -> Result<bool, ReadError> {
        own!(self.is_contract(address));
        self.read(|board| Ok(board.says.is_contract)).await
    }

    async fn calls(&self, calls: &[Call]) -> Vec<Called> {
        if let Err(failure) = self.begin().await {
            return vec![Err(failure); calls.len()];
        }
        match self.answers.calls {
            Some(answer) => answer(self, calls).await,
            None => vec![Ok(Ok(self.with(|board| board.says.returned.clone()))); calls.len()],
        }
    }

    async fn nonce(&self, owner: &Address, waiting: bool) -> Result<u64, ReadError> {
        own!(self.nonce(owner, &waiting));
        let (mined, pending) = self.read(|board| Ok(board.says.nonce)).await?;
        Ok(if waiting { pending } else { mined })
    }
}

#[async_trait]
impl<C: Send + Sync> Simulator for Script<C> {
    async fn estimate(&self, trial: &Trial<'_>) -> Result<Result<u64, Revert>, ReadError> {
        own!(self.estimate(trial));
        self.read(|board| Ok(board.says.estimate.clone())).await
    }

    async fn simulate(&self, calls: &[Call]) -> Result<Result<u64, Revert>, ReadError> {
        own!(self.simulate(calls));
        self.read(|board| Ok(board.says.estimate.clone())).await
    }
}

#[async_trait]
impl<C: Send + Sync> Writer for Script<C> {
    async fn rate(&self) -> Result<FeeRate, ReadError> {
        own!(self.rate());
        self.read(|board| Ok(board.says.rate)).await
    }

    async fn broadcast(&self, raw: &Bytes) -> Result<Broadcast, ReadError> {
        own!(self.broadcast(raw));
        self.read(|board| Ok(board.says.broadcast.clone())).await
    }

    async fn fate(&self, id: &Bytes) -> Result<Fate, ReadError> {
        own!(self.fate(id));
        self.read(|board| Ok(board.says.fate.clone())).await
    }
}

#[async_trait]
impl<C: Send + Sync> TxInspector for Script<C> {
    async fn inspect(&self, tx: &TxRef) -> Result<Option<TxDetails>, ReadError> {
        self.with(|board| board.inspected += 1);
        self.read(|board| Ok(board.inspect(tx))).await
    }
}
