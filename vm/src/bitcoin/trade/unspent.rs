//! What accounts hold, by one provider's word.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use bitcoin::consensus::serialize;

use super::{
    coin,
    scan_source::{Blocks, Payee, Whose},
};
use crate::{
    ChainSpec, ReadError, SpecError,
    bitcoin::{
        network::Network,
        source::{Spender, shown_txid, txid},
    },
    trade::{Outputs, SpentBy, Unspent},
    types::{Address, Amount, B256, Bytes},
};

/// Shows the outputs of accounts.
pub struct Unspents<S> {
    network: &'static Network,
    source: Arc<S>,
    /// Accounts of our own.
    own: Mutex<HashSet<Address>>,
}

impl<S> Unspents<S> {
    pub fn new(spec: &ChainSpec, source: Arc<S>) -> Result<Self, SpecError> {
        let network = Network::of(&spec.additional)?;
        Ok(Self {
            network,
            source,
            own: Mutex::default(),
        })
    }

    fn whose(&self, owner: &Address) -> Whose {
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        match own.contains(owner) {
            true => Whose::Own,
            false => Whose::Others,
        }
    }
}

#[async_trait]
impl<S: Blocks> Outputs for Unspents<S> {
    async fn unspent(&self, owner: &Address) -> Result<Vec<Unspent>, ReadError> {
        let payee = payee(self.network, owner)?;
        let coins = self.source.unspent(&payee, self.whose(owner)).await?;
        let unspent = coins.into_iter().map(|coin| Unspent {
            output: coin::output(&coin.outpoint),
            amount: Amount::from(coin.value),
            height: coin.height,
        });
        Ok(unspent.collect())
    }

    fn watch(&self, owner: &Address) {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        own.insert(owner.clone());
    }

    async fn spenders(&self, outputs: &[Bytes]) -> Result<Vec<SpentBy>, ReadError> {
        let outputs = outputs.iter().map(|output| coin::outpoint(output));
        let outputs: Result<Vec<_>, _> = outputs.collect();
        let outputs = outputs.map_err(|error| ReadError::Doubtful(error.to_string()))?;
        let spenders = self.source.spenders(&outputs).await?.into_iter();
        let spenders = spenders.map(|spender| match spender {
            Spender::Nobody => SpentBy::Nobody,
            Spender::By(txid) => SpentBy::Transaction(shown_txid(&txid).into()),
            Spender::Somebody => SpentBy::Somebody,
        });
        Ok(spenders.collect())
    }

    async fn transaction(&self, id: &Bytes) -> Result<Option<Bytes>, ReadError> {
        let Ok(id) = B256::try_from(id.as_ref()) else {
            return Ok(None);
        };
        let txid = txid(&id);
        let found = self.source.raw(txid).await?;
        if found.as_ref().is_some_and(|it| it.compute_txid() != txid) {
            return Err(ReadError::Doubtful("another transaction".into()));
        }
        Ok(found.map(|found| serialize(&found).into()))
    }
}

/// An account as providers are asked about it.
pub fn payee(network: &Network, account: &Address) -> Result<Payee, ReadError> {
    let script = network.script(account.text());
    let script = script.map_err(|error| ReadError::Doubtful(error.to_string()))?;
    let address = account.text().to_owned();
    Ok(Payee { address, script })
}
