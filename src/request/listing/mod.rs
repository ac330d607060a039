//! A request as the listing shows it (guide: protocol 11.11). One reading ([`Case`]) gives version 3's record;
//! versions 2 and 1 are views of that.

mod fees;
mod protocol;
mod record;
mod route;
mod transactions;

use std::{collections::HashMap, sync::Arc};

use vm::spelled_alike;

use super::{
    Request,
    fact::{Deposit, Facts},
    quoted::{Currency, Details, Quoted},
    render,
    status::{self, Verdict},
    tx_details::TxDetails,
};

pub use record::{V1, V2, V3, v1, v2, v3};

/// Transactions in full, by network and text.
pub type TxDetailsMap = HashMap<(String, String), Arc<TxDetails>>;

/// A request with all that is known of it.
pub struct Case<'a> {
    pub request: &'a Request,
    pub facts: &'a Facts,
    pub tx_details: &'a TxDetailsMap,
    /// The number of a network of the market, by its name.
    pub number: &'a dyn Fn(&str) -> Option<u64>,
    /// Whoever asks owns the request's key.
    pub own: bool,
    /// The owner wants what only the owner may see.
    pub authenticated: bool,
    /// The order is wanted, where the edition has it.
    pub order: bool,
}

/// What all editions read of a case.
struct CaseView<'a> {
    case: &'a Case<'a>,
    quoted: Quoted,
    verdict: Verdict,
}

impl<'a> CaseView<'a> {
    fn of(case: &'a Case<'a>) -> Self {
        Self {
            quoted: Quoted::of(case.request),
            verdict: status::of(case.request, case.facts),
            case,
        }
    }

    fn details(&self) -> Option<&Details> {
        self.quoted.details.as_ref()
    }

    /// The deposit that is told as the one.
    fn deposit(&self) -> Option<&'a Deposit> {
        render::counting(self.case.request, self.case.facts)
    }

    /// The chain's number, as the request has it or else the market; `None` for a network of neither.
    fn chain(&self, network: &str) -> Option<u64> {
        let request = self.case.request;
        let legs = [&request.origin, &request.destination];
        let leg = legs.into_iter().find(|leg| leg.network == network);
        leg.map(|leg| leg.chain)
            .or_else(|| (self.case.number)(network))
    }

    /// Whether a currency of the quote is the one at this address of this network. Many networks have a currency at the
    /// same address.
    fn is_quoted(&self, quoted: &Currency, (network, address): (&str, &str)) -> bool {
        self.chain(network) == Some(quoted.chain_id) && spelled_alike(&quoted.address, address)
    }

    fn tx_details(&self, network: &str, transaction: &str) -> Option<&'a TxDetails> {
        let name = (network.to_owned(), transaction.to_owned());
        self.case.tx_details.get(&name).map(AsRef::as_ref)
    }

    /// Basis points that may be lost; the greater one of both sides.
    fn slippage(&self) -> Option<String> {
        let tolerances = self.details()?.slippage_tolerance.as_ref()?;
        let of = |percent: &str| percent.replace('.', "").parse::<u64>().unwrap_or_default();
        let [one, other] = [&tolerances.origin, &tolerances.destination];
        Some(of(&one.percent).max(of(&other.percent)).to_string())
    }
}

#[cfg(test)]
mod tests;
