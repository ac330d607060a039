//! Entries of the hub's generic mapping: no chain is read, because clients sign for them (guide: protocol 9.1).

use super::{Attestor, Error};
use crate::attest::{
    Refusal,
    mapping::{Entry, Network, Networks, NoFillOrRefundClaim, NonceMappingClaim},
    peers::{
        Question,
        answer::{Corroborated, Spelled},
    },
    statement::Statement,
};

/// An entry with its signatures, ours first.
#[derive(Clone, Debug)]
pub struct MappingAnswer {
    pub entry: Entry,
    pub signatures: Vec<Corroborated>,
}

impl Attestor {
    /// Attests which deposit a wallet's transfer is.
    pub async fn nonce_mapping(
        &self,
        claim: &NonceMappingClaim<'_>,
        question: Option<&Question>,
    ) -> Result<MappingAnswer, Error> {
        self.mapping(|networks| claim.judge(networks), question)
            .await
    }

    /// Attests that a solver has given an order up.
    pub async fn no_fill_or_refund(
        &self,
        claim: &NoFillOrRefundClaim<'_>,
        question: Option<&Question>,
    ) -> Result<MappingAnswer, Error> {
        self.mapping(|networks| claim.judge(networks), question)
            .await
    }

    async fn mapping(
        &self,
        judge: impl FnOnce(Networks<'_>) -> Result<Entry, Refusal>,
        question: Option<&Question>,
    ) -> Result<MappingAnswer, Error> {
        let entry = judge(&|chain| self.network(chain))?;
        let spelled = Spelled::mapping(&entry, &self.hub.settings)?;
        let mapping = &entry.mapping;
        let statement = Statement::mapping(mapping.user, mapping.id, spelled.digest);
        self.check_room(&statement).await?;
        let asked = self.ask(question);
        let [signatures] = self.signed([(spelled, &statement)], asked).await?;
        Ok(MappingAnswer { entry, signatures })
    }

    /// A configured chain, whether it can be read or not.
    fn network(&self, chain: &str) -> Option<Network> {
        let known = self.chains.get(chain)?;
        Some(Network {
            family: known.family?,
            hub_chain_id: known.hub_chain_id?,
        })
    }
}
