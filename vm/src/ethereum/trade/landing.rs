//! What is stored of accounts and attempts on EVM chains. Pure.
use super::queue::{self, Queue};
use crate::{
    CodecError,
    trade::{self, Label, Standing},
    types::Bytes,
};

/// Landing by nonces.
pub struct Landing;

impl trade::Landing for Landing {
    fn next(&self, account: &[u8]) -> Result<Option<Bytes>, CodecError> {
        Ok(Some(queue::resource(Queue::read(account)?.next)))
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
