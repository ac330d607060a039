//! A transaction as a quorum has it: the solver's own, or one that the solver acts on.

use crate::{Chain, CodecError, Head, ReadError, Transaction};

/// The transaction that the chain spells `id`, as seen from `head`.
pub async fn at(chain: &Chain, id: &str, head: &Head) -> Result<Transaction, ReadError> {
    let doubtful = |error: CodecError| ReadError::Doubtful(error.to_string());
    let tx = chain.spec.family.tx(id, None).map_err(doubtful)?;
    chain.reader.transaction(&tx, head).await
}

/// The solver's own transaction as a quorum has it now, if there is one.
pub async fn agreed(chain: &Chain, id: &str) -> Option<(Transaction, Head)> {
    let agreed = async {
        let head = chain.reader.fresh_head().await?;
        Ok::<_, ReadError>((at(chain, id, &head).await?, head))
    };
    let agreed = agreed.await.inspect_err(|error| {
        let network = chain.spec.id.as_str();
        tracing::warn!(network, %error, "no quorum on a transaction of the solver's");
    });
    let there = |(found, _): &(Transaction, Head)| *found != Transaction::Missing;
    agreed.ok().filter(there)
}
