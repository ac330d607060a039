//! Balances by one provider's word: the sum of what an account can spend. There is no currency but the native one.

use std::sync::Arc;

use async_trait::async_trait;

use crate::{
    ReadError,
    trade::{self, CurrencyInfo, Outputs},
    types::{Address, Amount},
};

/// Reads balances through one provider.
pub struct Accounts {
    pub outputs: Arc<dyn Outputs>,
    pub native: Address,
}

#[async_trait]
impl trade::Accounts for Accounts {
    async fn balance(&self, owner: &Address, currency: &Address) -> Result<Amount, ReadError> {
        if *currency != self.native {
            return Ok(Amount::ZERO);
        }
        let unspent = self.outputs.unspent(owner).await?;
        let amounts = unspent.iter().map(|output| output.amount);
        Ok(amounts.fold(Amount::ZERO, Amount::saturating_add))
    }

    async fn currency(&self, _: &Address) -> Result<Option<CurrencyInfo>, ReadError> {
        Ok(None)
    }
}
