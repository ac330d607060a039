//! Fills that somebody can let fail, and which of them the breaker holds up. Nobody chooses for any other fill: what its
//! depositor has cost elsewhere does not count.

use std::collections::HashSet;

use alloy::primitives::B256;
use vm::{Address, spelled_alike};

use super::{Solver, View, account::SolverAccount};
use crate::request::{Request, fact::Deposit};

impl Solver {
    /// Whether somebody can choose to let the order's fill fail: whoever is paid on some chains, elsewhere whom it hands
    /// over to. Quotes have such orders pay for the choice; of all others the price holds.
    fn is_declinable(&self, request: &Request) -> bool {
        let account = self.accounts.get(&request.order.output.chain_id);
        let any = account.is_some_and(|account| account.chain.providers.declinable);
        any || self.hands_over(request)
    }

    /// Whether the order's fill hands over to an account that may have code, now or in the block. An exchange may end
    /// in native currency.
    pub(super) fn hands_over(&self, request: &Request) -> bool {
        let output = &request.order.output;
        let account = self.accounts.get(&output.chain_id);
        let account = account.filter(|account| account.chain.providers.contracts.is_some());
        let native = account.map_or("", |account| account.chain.native.text());
        let mut paid = output.payments.iter();
        !request.calls.is_empty()
            || !request.authorizations.is_empty()
            || !output.calls.is_empty()
            || paid.any(|one| spelled_alike(&one.currency, native))
    }

    /// Whether other code than that of listed tokens and pools runs in the order's fill, or that cannot be found out.
    /// An exchange may end in native currency, whatever it is paid with.
    pub(super) async fn runs_code(&self, request: &Request) -> bool {
        if !request.calls.is_empty() || !request.authorizations.is_empty() {
            return true;
        }
        let Ok(account) = self.account(&request.order.output.chain_id) else {
            return true;
        };
        let output = &request.order.output;
        let exchanges = !output.calls.is_empty();
        let native = account.chain.native.text();
        let paid = output.payments.iter();
        let paid = paid.filter(|one| !exchanges && spelled_alike(&one.currency, native));
        let given = exchanges.then_some(request.recipient.as_str());
        for to in paid.map(|one| one.recipient.as_str()).chain(given) {
            let Ok(to) = account.chain.family().address(to) else {
                return true;
            };
            if has_code(account, &to).await {
                return true;
            }
        }
        false
    }

    /// Whether the order's fill runs code of others, and such fills have cost too much on its chain.
    pub(super) async fn is_held(&self, view: &View) -> bool {
        let (request, now) = (&view.request, view.now / 1_000);
        let (network, key) = (&request.destination.network, request.api_key.as_deref());
        let held = self.breaker().holds((network, key), now);
        held && self.runs_code(request).await
    }

    /// Whether the breaker is open for orders like this one. It is not asked about a fill that nobody can let fail:
    /// whoever opens it would have an order given back when its price has moved against him.
    pub(super) fn is_too_costly(&self, view: &View, deposit: &Deposit) -> bool {
        let (request, now) = (&view.request, view.now / 1_000);
        self.is_declinable(request) && self.breaker().is_open(request, deposit, now)
    }

    /// Deposits of others whose depositors the breaker bars now: none, where nobody can let the fill fail.
    pub(super) fn barred(&self, view: &View) -> HashSet<B256> {
        if !self.is_declinable(&view.request) {
            return HashSet::new();
        }
        let (user, now) = (&view.request.user, view.now / 1_000);
        let breaker = self.breaker();
        let others = view.facts.deposits.iter();
        let others = others.filter(|deposit| !spelled_alike(&deposit.depositor, user));
        let barred = others.filter(|deposit| breaker.bars(deposit, now));
        barred.map(|deposit| deposit.onchain_id).collect()
    }
}

/// Whether an account has code, or that cannot be found out.
pub(super) async fn has_code(account: &SolverAccount, address: &Address) -> bool {
    account.chain.providers.is_contract(address).await != Ok(false)
}
