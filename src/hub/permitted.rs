//! The state of a chain, each read of which takes a permit.

use std::sync::Arc;

use async_trait::async_trait;
use vm::{
    Address, Block, Bytes, Chain, Head, ReadError, StateReader, TxRef, WithdrawalStatus,
    permits::Permits,
};

use crate::chains::permits::{ReadPermits, enter};

/// State whose reads take permits.
struct Permitted {
    state: Arc<dyn StateReader>,
    permits: Arc<Permits>,
}

/// `chain`, whose state is read with its permits.
pub fn permitted(chain: Chain, permits: &ReadPermits) -> Chain {
    let permits = permits.of(&chain.spec.id);
    let state = chain.state.clone();
    let state =
        state.map(|state| -> Arc<dyn StateReader> { Arc::new(Permitted { state, permits }) });
    Chain { state, ..chain }
}

#[async_trait]
impl StateReader for Permitted {
    async fn settled(&self, head: &Head) -> Result<Option<Block>, ReadError> {
        let _permit = enter(&self.permits).await?;
        self.state.settled(head).await
    }

    async fn withdrawal(
        &self,
        encoded: &Bytes,
        tx: Option<&TxRef>,
        block: &Block,
    ) -> Result<WithdrawalStatus, ReadError> {
        let _permit = enter(&self.permits).await?;
        self.state.withdrawal(encoded, tx, block).await
    }

    async fn sequence(&self, owner: &Address, block: &Block) -> Result<u64, ReadError> {
        let _permit = enter(&self.permits).await?;
        self.state.sequence(owner, block).await
    }

    async fn view(&self, to: &Address, data: &Bytes, block: &Block) -> Result<Bytes, ReadError> {
        let _permit = enter(&self.permits).await?;
        self.state.view(to, data, block).await
    }

    async fn bears_out(&self, said: &Bytes) -> Result<bool, ReadError> {
        let _permit = enter(&self.permits).await?;
        self.state.bears_out(said).await
    }
}
