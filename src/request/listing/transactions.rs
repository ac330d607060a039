//! The transactions of a request: `inTxs`, `outTxs` and what failed.

use serde::Serialize;
use utoipa::ToSchema;

use super::CaseView;
use crate::{
    format,
    request::{
        Execution,
        fact::{Attempt, Inclusion, Purpose, Sent, Standing, State},
        render,
        tx_details::{Change, SHOWN, TxDetails, paying_first},
    },
};

/// A transaction; what has not been seen of it is `None`.
pub struct Moved<'a> {
    pub hash: &'a str,
    pub chain: Option<u64>,
    pub place: Option<&'a Inclusion>,
    /// `success` or `failure`, once it is in a block.
    pub status: Option<&'static str>,
    pub tx_details: Option<&'a TxDetails>,
}

/// What an EVM transaction says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = RecordCallData)]
pub struct CallData {
    pub from: String,
    /// Left out where it created a contract.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Left out when it was too long to keep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    pub value: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = RecordStateChange)]
pub struct StateChange {
    address: String,
    change: Balance,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RecordBalanceChange)]
struct Balance {
    /// `token`.
    kind: &'static str,
    data: Token,
    /// Smallest units; negative for a loss.
    balance_diff: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RecordToken)]
struct Token {
    /// `ft`.
    token_kind: &'static str,
    /// The native currency's marker for what is no token.
    token_address: String,
}

impl CallData {
    fn of(tx_details: &TxDetails) -> Self {
        Self {
            from: tx_details.from.clone(),
            to: tx_details.to.clone(),
            data: tx_details.data.as_ref().map(ToString::to_string),
            value: tx_details.value.to_string(),
        }
    }
}

impl StateChange {
    fn of(change: &Change) -> Self {
        Self {
            address: change.address.clone(),
            change: Balance {
                kind: "token",
                data: Token {
                    token_kind: "ft",
                    token_address: change.currency.clone(),
                },
                balance_diff: change.diff(),
            },
        }
    }
}

impl Moved<'_> {
    pub fn block(&self) -> Option<u64> {
        self.place.map(|place| place.number)
    }

    pub fn fee(&self) -> Option<String> {
        self.tx_details.map(|tx_details| tx_details.fee.to_string())
    }

    /// Dollars of the fee, at the price of then.
    pub fn fee_usd(&self) -> Option<String> {
        let micro = self.tx_details?.fee_micro()?;
        Some(format::usd(format::from_micro(micro)))
    }

    pub fn data(&self) -> Option<CallData> {
        self.tx_details.map(CallData::of)
    }

    pub fn changes(&self) -> Option<Vec<StateChange>> {
        let changes = self.tx_details.map(|tx_details| tx_details.changes.iter());
        changes.map(|changes| changes.map(StateChange::of).collect())
    }
}

impl<'a> CaseView<'a> {
    /// What the user sent, those whose blocks left the chain included.
    pub(super) fn incoming(&self) -> Vec<Moved<'a>> {
        let facts = self.case.facts;
        let deposits = paying_first(self.case.request, facts).map(|deposit| {
            let fine = deposit.standing != Standing::Reorged;
            let at = (deposit.network.as_str(), deposit.transaction.as_str());
            self.moved(at, Some(&deposit.place), Some(fine))
        });
        let user = self.case.request.execution == Execution::User;
        let own = self.own().filter(|one| user || one.place.is_none());
        once(own.chain(deposits))
    }

    /// Fills that failed, and what is [`render::paying`]; the user's own where nobody else acts.
    pub(super) fn outgoing(&self) -> Vec<Moved<'a>> {
        if self.case.request.execution == Execution::User {
            return once(self.own());
        }
        let (request, facts) = (self.case.request, self.case.facts);
        let failed = facts.attempts.iter().filter(|attempt| {
            attempt.purpose == Purpose::Fill && matches!(attempt.state, State::Reverted { .. })
        });
        let sent = failed.chain(render::paying(request, facts));
        once(sent.map(|attempt: &Attempt| {
            self.stated((&attempt.network, &attempt.transaction), &attempt.state)
        }))
    }

    fn own(&self) -> impl Iterator<Item = Moved<'a>> {
        let own = self.case.facts.own.iter();
        let own = own.filter(|sent| sent.state != State::Replaced);
        own.map(|sent: &Sent| self.stated((&sent.network, &sent.transaction), &sent.state))
    }

    fn stated(&self, at: (&'a str, &'a str), state: &'a State) -> Moved<'a> {
        let fine = state.place().map(|_| state.alive());
        self.moved(at, state.place(), fine)
    }

    fn moved(
        &self,
        (network, hash): (&'a str, &'a str),
        place: Option<&'a Inclusion>,
        fine: Option<bool>,
    ) -> Moved<'a> {
        let tx_details = self.tx_details(network, hash);
        let word = |fine| if fine { "success" } else { "failure" };
        Moved {
            hash,
            chain: self.chain(network),
            place,
            status: fine.map(word),
            tx_details: tx_details
                .filter(|tx_details| place.is_some_and(|place| tx_details.is_of(place))),
        }
    }

    /// The one that failed last: the user's where nobody else acts, else the solver's.
    pub(super) fn failed(&self) -> Option<Moved<'a>> {
        let reverted = |(network, hash, state): (&'a str, &'a str, &'a State)| {
            let State::Reverted { place, .. } = state else {
                return None;
            };
            Some(self.moved((network, hash), Some(place), Some(false)))
        };
        self.case.facts.sent().rev().find_map(reverted)
    }
}

fn once<'a>(all: impl Iterator<Item = Moved<'a>>) -> Vec<Moved<'a>> {
    let mut once: Vec<Moved<'a>> = Vec::new();
    for one in all {
        let full = once.len() >= SHOWN;
        match once.iter_mut().find(|known| known.hash == one.hash) {
            // A transaction whose block left the chain may have come back in another.
            Some(known) if known.status == Some("failure") => *known = one,
            Some(_) => {}
            None if full => {}
            None => once.push(one),
        }
    }
    once
}
