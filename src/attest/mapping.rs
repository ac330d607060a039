//! Entries of the hub's generic mapping that clients sign for (guide: protocol 6.2 and 9.1): a wallet's transfer is a
//! given deposit, or a solver gives an order up. Pure: no I/O, no clock.

use vm::{
    B256, ChainId, EvmAddress, Family, U256,
    protocol::{
        hub::alias,
        mapping,
        message::{self, Domain, GenericMapping, NoFillOrRefund, NonceMapping, TypedMessage},
        signature::{recover_wallet, signature_hex},
        text,
    },
};

use super::{Refusal, claim::malformed};

/// A configured chain for a typed signature.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    pub family: &'static Family,
    /// The chain's number at the hub.
    pub hub_chain_id: U256,
}

/// Finds a configured chain by its name.
pub type Networks<'a> = &'a (dyn Fn(&str) -> Option<Network> + Sync);

/// An entry to be signed, and its data in the answer's spelling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub mapping: GenericMapping,
    pub data: String,
}

/// A wallet's statement that its transfer with this `nonce` is the deposit for `id`; every field in the caller's
/// spelling.
#[derive(Clone, Copy, Debug)]
pub struct NonceMappingClaim<'a> {
    pub wallet_chain_id: &'a str,
    pub wallet: &'a str,
    /// Decimal digits.
    pub nonce: &'a str,
    pub id: &'a str,
    /// `None` in the first version, which the wallet signs under another domain.
    pub depositor: Option<&'a str>,
    /// The EVM chain that the wallet was connected to when it signed.
    pub signature_chain_id: &'a str,
    pub signature: &'a str,
}

impl NonceMappingClaim<'_> {
    /// The entry, if the wallet signed for it.
    pub fn judge(&self, networks: Networks<'_>) -> Result<Entry, Refusal> {
        let signed_on = signing_chain(self.signature_chain_id, networks)?;
        let wallet = account("wallet", self.wallet)?;
        let depositor = self.depositor.map(|text| account("depositor", text));
        let depositor = depositor.transpose()?;
        let id = word("id", self.id)?;
        let message = NonceMapping {
            chain_id: self.wallet_chain_id.to_owned(),
            wallet,
            depositor,
            id,
            nonce: self.nonce()?,
        };
        let domain = match depositor {
            Some(_) => Domain::nonce_mapping,
            None => Domain::first_nonce_mapping,
        };
        let digest = message.digest(&domain(signed_on.hub_chain_id));
        signed_by(wallet, self.signature, &digest)?;
        let user = hub_account(self.wallet_chain_id, "wallet", self.wallet, networks)?;
        let mapping = mapping::nonce_mapping(&user, self.nonce, id, depositor);
        Ok(Entry {
            mapping: mapping.map_err(|why| malformed("wallet", why))?,
            data: mapping::nonce_mapping_text(self.id, self.depositor),
        })
    }

    /// Entries are found by the nonce's text, so a second spelling would make a second entry.
    fn nonce(&self) -> Result<U256, Refusal> {
        text::number(self.nonce)
            .ok()
            .filter(|number| number.to_string() == self.nonce)
            .ok_or_else(|| malformed("nonce", "expected a decimal number"))
    }
}

/// A solver's statement that it will neither fill nor refund an order; every field in the caller's spelling.
#[derive(Clone, Copy, Debug)]
pub struct NoFillOrRefundClaim<'a> {
    pub solver_chain_id: &'a str,
    pub solver: &'a str,
    pub order_id: &'a str,
    pub signature: &'a str,
}

impl NoFillOrRefundClaim<'_> {
    /// The entry, if the solver signed for it.
    pub fn judge(&self, networks: Networks<'_>) -> Result<Entry, Refusal> {
        let signed_on = signing_chain(self.solver_chain_id, networks)?;
        let solver = account("solver", self.solver)?;
        let message = NoFillOrRefund {
            chain_id: self.solver_chain_id.to_owned(),
            solver,
            order_id: self.order()?,
        };
        let digest = message.digest(&Domain::no_fill_or_refund(signed_on.hub_chain_id));
        signed_by(solver, self.signature, &digest)?;
        let user = hub_account(self.solver_chain_id, "solver", self.solver, networks)?;
        let mapping = mapping::no_fill_or_refund(&user, self.order_id)
            .map_err(|why| malformed("solver", why))?;
        let data = mapping.data.to_string();
        Ok(Entry { mapping, data })
    }

    /// Entries are found by the order id's text, so each further spelling would make a further entry, which nobody
    /// finds.
    fn order(&self) -> Result<B256, Refusal> {
        let id = word("orderId", self.order_id)?;
        match id.to_string() == self.order_id {
            true => Ok(id),
            false => Err(malformed("orderId", "expected hex in lower case")),
        }
    }
}

/// Only EVM chains have typed signatures.
fn signing_chain(name: &str, networks: Networks<'_>) -> Result<Network, Refusal> {
    let network = networks(name).ok_or_else(|| Refusal::ChainNotAvailable(name.into()))?;
    if network.family.name != vm::SETTLEMENT.name {
        return Err(Refusal::SignatureChain);
    }
    Ok(network)
}

fn signed_by(signer: EvmAddress, signature: &str, digest: &B256) -> Result<(), Refusal> {
    let recovered = signature_hex(signature).and_then(|bytes| recover_wallet(&bytes, digest));
    if recovered == Ok(signer) {
        return Ok(());
    }
    Err(Refusal::ClientSignature)
}

/// The hub account (alias), in the spelling of entries.
fn hub_account(
    chain: &str,
    field: &'static str,
    account: &str,
    networks: Networks<'_>,
) -> Result<String, Refusal> {
    let network = networks(chain).ok_or_else(|| Refusal::ChainNotAvailable(chain.into()))?;
    let address = network.family.account(account);
    let address = address.map_err(|why| malformed(field, why))?;
    Ok(alias(&ChainId::new(chain), &address).to_checksum(None))
}

fn account(field: &'static str, text: &str) -> Result<EvmAddress, Refusal> {
    message::address(text).map_err(|why| malformed(field, why))
}

/// Parses an id; zero stands for none and is refused.
fn word(field: &'static str, text: &str) -> Result<B256, Refusal> {
    let word = message::word(text).map_err(|why| malformed(field, why))?;
    if word.is_zero() {
        return Err(malformed(field, "must not be zero"));
    }
    Ok(word)
}

#[cfg(test)]
mod tests;
