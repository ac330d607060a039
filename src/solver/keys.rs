//! The solver's keys: the one that promises now, and those that it promised with before.
//!
//! The present key's accounts pay what a former key promised: a fill counts whoever sends it, the hub pays the solver
//! whom the order names, and a claim carries the former key's signature where oracles ask for it. A former account
//! needs money only for the payments that it had under way. What hands over to code is paid by nobody then
//! ([`Solver::is_exposed`]).

use std::sync::Arc;

use vm::{
    B256, Family,
    protocol::{id, signature::eip191},
};

use super::{Solver, SolverError, account::SolverAccount};
use crate::{
    request::{Request, fact::Purpose},
    sign::{SignError, Signer},
    store::rows::claim::Leg,
};

/// The secp256k1 keys that the solver promises orders with, or has promised with. Clones share them.
#[derive(Clone)]
pub struct Keys {
    pub current: Arc<dyn Signer>,
    pub former: Arc<[Arc<dyn Signer>]>,
    /// The family of `SOLVER_CHAIN`: orders name their solver by an account of it.
    pub family: &'static Family,
}

impl Keys {
    /// The key that an order's solver has, if it is one of ours.
    fn of(&self, solver: &str) -> Option<&Arc<dyn Signer>> {
        let named = self.family.address(solver).ok()?;
        let same = |key: &&Arc<dyn Signer>| named.bytes() == key.address().as_slice();
        std::iter::once(&self.current)
            .chain(&*self.former)
            .find(same)
    }

    /// Whether an order that names `solver` was promised with one of these keys.
    pub fn own(&self, solver: &str) -> bool {
        self.of(solver).is_some()
    }

    /// The signature of the order's solver for the claim of a payment that used up `deposit`. Oracles ask for it where
    /// the deposit falls short of the order, and where another account than the order's solver gave it back.
    pub async fn vouched(
        &self,
        request: &Request,
        (purpose, deposit): (Purpose, B256),
    ) -> Result<Option<String>, SignError> {
        let Some(key) = self.of(&request.order.solver) else {
            return Ok(None);
        };
        let outcome = match purpose {
            Purpose::Fill => "fill",
            Purpose::Refund | Purpose::Excess => "refund",
        };
        let claim = id::claim(outcome, &[deposit], request.order_id);
        let signature = key.sign(&eip191(claim.as_slice())).await?;
        Ok(Some(alloy::hex::encode_prefixed(signature.as_bytes())))
    }
}

impl Solver {
    /// Whether the order was promised with a key of ours.
    pub(super) fn is_ours(&self, request: &Request) -> bool {
        self.keys.own(&request.order.solver)
    }

    /// Whether a payment of `account` that hands over to code could never be claimed: the code can deposit for the order in
    /// the payment's transaction, and oracles attest such a one only where the order's own solver sent it (guide:
    /// protocol 7.2).
    pub(super) fn is_exposed(&self, request: &Request, account: &SolverAccount) -> bool {
        let named = self.keys.family.address(&request.order.solver);
        named.is_ok_and(|named| named.bytes() != account.owner.bytes())
    }

    /// The account that made a payment.
    pub(super) fn account_of(&self, leg: &Leg) -> Result<&Arc<SolverAccount>, SolverError> {
        let accounts = self.accounts.values().chain(&self.former);
        let found = accounts
            .into_iter()
            .find(|account| account.name == leg.lane);
        found.ok_or_else(|| SolverError::Elsewhere(leg.lane.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sign::raw::RawKey;

    fn key(byte: u8) -> Arc<dyn Signer> {
        Arc::new(RawKey::parse(&alloy::hex::encode_prefixed([byte; 32])).unwrap())
    }

    #[test]
    fn a_solver_is_named_by_an_account_of_its_chains_family() {
        let [current, former, foreign] = [1, 2, 3].map(key);
        let text = |key: &Arc<dyn Signer>| format!("{:#x}", key.address());
        for (name, accounts) in [
            ("ethereum-vm", true),
            ("hyperliquid-vm", true),
            ("tron-vm", false),
            ("bitcoin-vm", false),
        ] {
            let keys = Keys {
                current: current.clone(),
                former: [former.clone()].into(),
                family: vm::family(name).unwrap(),
            };
            assert_eq!(keys.own(&text(&current)), accounts, "{name}");
            assert_eq!(keys.own(&text(&former)), accounts, "{name}");
            assert!(!keys.own(&text(&foreign)), "{name}");
            assert!(!keys.own("nobody"), "{name}");
        }
    }
}
