//! Landing on EVM chains, for what is stored of it. See [`crate::trade::Landing`].

use std::sync::Arc;

use super::{
    queue::{self, Queue},
    submit::Nonces,
};
use crate::{
    Chain, CodecError,
    trade::{self, Account, Failover, Label, Signer, Standing},
    types::Bytes,
};

/// See the module.
pub struct Landing;

impl trade::Landing for Landing {
    fn open(
        &self,
        chain: &Chain,
        providers: &Failover,
        key: Arc<dyn Signer>,
        most: u128,
    ) -> Result<Account, CodecError> {
        let family = chain.spec.family;
        let address = family.account(&alloy::hex::encode_prefixed(key.account()))?;
        let nonces = Arc::new(Nonces {
            chain: chain.clone(),
            providers: providers.clone(),
            key,
            account: address.clone(),
            native: family.native()?,
            most,
        });
        Ok(Account {
            address,
            submitter: nonces.clone(),
            costs: nonces,
        })
    }

    fn next(&self, account: &[u8]) -> Result<Bytes, CodecError> {
        Ok(queue::resource(Queue::read(account)?.next))
    }

    fn knows(&self, account: &[u8], attempt: &[u8]) -> Result<bool, CodecError> {
        Ok(queue::nonce(attempt)? < Queue::read(account)?.next)
    }

    fn label(&self, resource: &[u8]) -> Result<Label, CodecError> {
        Ok(Label {
            kind: "nonce",
            text: queue::nonce(resource)?.to_string(),
        })
    }

    fn standing(
        &self,
        account: &[u8],
        reached: &[u8],
        held: &[Bytes],
    ) -> Result<Standing, CodecError> {
        let held = held.iter().map(|resource| queue::nonce(resource));
        let held: Vec<_> = held.collect::<Result<_, _>>()?;
        Ok(Queue::read(account)?.standing(queue::nonce(reached)?, &held))
    }
}
