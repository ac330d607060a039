//! The stakes: what fills and refunds under way cost if they fail. Their recipients can make all of them fail together,
//! so that each kind of payment has a limit for each network. Pure.

use std::collections::HashMap;

use alloy::primitives::B256;

/// Seconds for which an unpaid failure counts.
const WINDOW: u64 = 3_600;
/// Thousandths of a dollar that may be at stake on a network at a time, where the market file does not say it. A single
/// payment is always possible, unless the market file says zero.
const MOST: u64 = 100_000;
/// Fills to accounts without code may have so many times [`MOST`] at stake.
const TO_ACCOUNTS: u64 = 3;
/// Thousandths of a dollar that payments may have at stake which give native currency back: to code, and to accounts
/// without code or for an API key's orders.
const MOST_BACK_TO_CODE: u64 = 20_000;
const MOST_BACK_TO_ACCOUNTS: u64 = 60_000;

/// A request, and the deposit of it that is given back; without one, its fill.
pub type Id = (B256, Option<B256>);

/// A kind of payment. The stakes of each kind are added up for each network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pot {
    /// Fills that run code of others.
    Code,
    /// Fills that pay native currency, or the rest of an exchange, to accounts without code. Those may have code by the
    /// time of the block.
    Account,
    /// Fills of an API key's orders.
    Key(String),
    /// Native currency that is given back to accounts with code.
    BackToCode,
    BackToAccount,
    /// Native currency that is given back for an API key's orders, to any account.
    BackOfKey(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stake {
    pub network: String,
    pub pot: Pot,
    /// Thousandths of a dollar.
    pub cost: u64,
    /// When it failed, in unix seconds, where nobody has paid for that yet.
    pub failed: Option<u64>,
}

/// What all payments have at stake, with the limits of that.
#[derive(Debug, Default)]
pub struct Stakes {
    /// Each stake, with how much of its cost counts as lost already.
    under_way: HashMap<Id, (Stake, u64)>,
    /// Limits of the market file by network, in thousandths of a dollar.
    most: HashMap<String, u64>,
}

impl Stake {
    fn is_old(&self, now: u64) -> bool {
        let failed = self.failed;
        failed.is_some_and(|at| now.saturating_sub(at) >= WINDOW)
    }
}

impl Stakes {
    /// With the limits of the market file, in thousandths of a dollar by network.
    pub fn of(most: HashMap<String, u64>) -> Self {
        Self {
            most,
            ..Self::default()
        }
    }

    fn most(&self, stake: &Stake) -> u64 {
        let said = self.most.get(&stake.network).copied().unwrap_or(MOST);
        match &stake.pot {
            Pot::Code | Pot::Key(_) => said,
            Pot::Account => said.saturating_mul(TO_ACCOUNTS),
            Pot::BackToCode => MOST_BACK_TO_CODE,
            Pot::BackToAccount | Pot::BackOfKey(_) => MOST_BACK_TO_ACCOUNTS,
        }
    }

    /// Counts a payment that is about to be sent; `false`: there is no room for it.
    pub fn begin(&mut self, id: Id, stake: Stake) -> bool {
        let free = self.has_room(Some(&id), &stake);
        if free {
            self.under_way.insert(id, (stake, 0));
        }
        free
    }

    /// Whether there is room for a stake, besides those of other ids than `id`.
    pub fn has_room(&self, id: Option<&Id>, stake: &Stake) -> bool {
        let others = self.under_way.iter().filter(|(known, (other, _))| {
            Some(*known) != id && other.network == stake.network && other.pot == stake.pot
        });
        let sum = others.fold(0_u64, |sum, (_, (other, _))| sum.saturating_add(other.cost));
        let most = self.most(stake);
        stake.cost == 0 || most > 0 && (sum == 0 || sum.saturating_add(stake.cost) <= most)
    }

    /// Counts a payment that is under way or has failed, unless its failure is too old and was never counted.
    pub fn see(&mut self, id: Id, stake: Stake, now: u64) {
        let lost = self.under_way.get(&id).map(|(_, lost)| *lost);
        if lost.is_some() || !stake.is_old(now) {
            self.under_way.insert(id, (stake, lost.unwrap_or_default()));
        }
    }

    pub fn known(&self, id: &Id) -> Option<&Stake> {
        self.under_way.get(id).map(|(stake, _)| stake)
    }

    /// Counts `loss` of a stake as lost.
    pub fn lose(&mut self, id: &Id, loss: u64) {
        if let Some((_, lost)) = self.under_way.get_mut(id) {
            *lost = lost.saturating_add(loss);
        }
    }

    /// Removes a stake.
    pub fn end(&mut self, id: &Id) {
        self.under_way.remove(id);
    }

    /// Removes failures that nobody has paid for within the hour, and returns those of fills, each with the part of its
    /// cost that does not count as lost yet. Failures whose refund is under way stay: they cost nothing for now.
    pub fn expire(&mut self, now: u64) -> Vec<(Stake, u64)> {
        let old = |stake: &Stake| stake.cost > 0 && stake.is_old(now);
        let gone = self.under_way.extract_if(|_, (stake, _)| old(stake));
        let fills = gone.filter(|((_, deposit), _)| deposit.is_none());
        fills
            .map(|(_, (stake, lost))| {
                let loss = stake.cost.saturating_sub(lost);
                (stake, loss)
            })
            .collect()
    }
}
