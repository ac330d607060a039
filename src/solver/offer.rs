//! What the solver would do now with the deposit that decides an order.

use alloy::primitives::B256;
use vm::{Amount, trade::Work};

use super::{
    Paid, Solver, SolverError, View,
    account::SolverAccount,
    claim, fill, inventory,
    judge::{self, Funding, Offer},
    repricing,
};
use crate::{
    request::reason::FailReason,
    store::{
        Batch,
        requests::RequestsError,
        rows::{
            self,
            attempt::Attempt,
            claim::Claim,
            pause::{self, Paused},
        },
    },
};

/// Payments for whose work native currency is kept.
const KEPT: u64 = 50;
/// How many times its fee an account must have to sign a payment: it is signed with a quarter more work, and ready for
/// twice the rate.
const SIGNED: Amount = Amount::from_limbs([3, 0, 0, 0]);

impl Solver {
    /// What the solver can promise of a currency: what it can spend, less the native currency that it keeps for fees.
    pub async fn sellable(&self, network: &str, currency: &str) -> Result<Amount, SolverError> {
        let available = self.available(network, currency).await?;
        let account = self.account(network)?;
        if account.chain.family().address(currency)? != account.chain.native {
            return Ok(available);
        }
        Ok(available.saturating_sub(unpromised(account).await?))
    }

    /// Whether a fill that takes so much of the native currency, its `fee` included, could be paid now. `needed` is
    /// nothing where it pays tokens plainly: such a fill may use what is kept for fees.
    pub async fn affords(
        &self,
        network: &str,
        needed: Amount,
        fee: Amount,
    ) -> Result<bool, SolverError> {
        let account = self.account(network)?;
        let available = account.available(&account.chain.native).await?;
        if needed.is_zero() {
            return Ok(available >= fee.saturating_mul(SIGNED));
        }
        Ok(available.saturating_sub(unpromised(account).await?) >= needed)
    }

    /// Whether a network has made a block within `most` seconds before `now` (unix seconds), as a quorum sees it. While
    /// a chain stands still, nobody knows when a deposit will be made, and its block may be dated back.
    pub async fn moves(&self, network: &str, most: u64, now: u64) -> Result<(), SolverError> {
        let chain = &self.account(network)?.chain;
        match now.saturating_sub(chain.tip().await?) {
            age if age > most => Err(SolverError::Stalled(network.to_owned(), age)),
            _ => Ok(()),
        }
    }

    /// What the solver pays now for `deposit`, which matches the order and is final; or why it pays nothing. Everything
    /// that depends on prices, fees and the solver's own state is worked out here, before the decision.
    pub(super) async fn offer(&self, view: &View, deposit: &B256) -> Result<Offer, SolverError> {
        if self.paused().await?.is_some() {
            return Ok(Offer::Held);
        }
        let (request, now) = (&view.request, view.now / 1_000);
        let deposit = view.deposit(deposit);
        if deposit.is_some_and(|deposit| self.is_too_costly(view, deposit)) {
            return Ok(Offer::Refuse(FailReason::SolverCapacityExceeded));
        }
        if self.is_held(view).await {
            return Ok(Offer::Held);
        }
        let Ok(amounts) = fill::quoted(request) else {
            return Ok(Offer::Refuse(FailReason::Unknown));
        };
        let late = deposit.is_some_and(|deposit| repricing::is_late(view, deposit));
        let together = deposit.map_or(1, |deposit| deposit.together);
        let offer = match deposit.is_some_and(|deposit| self.is_repriced(view, deposit)) {
            true => self.reprice((request, together), amounts, now).await,
            false => Offer::Pay(amounts, None),
        };
        if offer == Offer::Unpriced && !late {
            return Ok(Offer::Away);
        }
        if let Offer::Pay(amounts, _) = &offer
            && !self.enter((request, deposit), amounts, now).await?
        {
            return Ok(Offer::Held);
        }
        Ok(offer)
    }

    /// Fills the order, or fails it, as the offer of now says. An order that is not paid counts for no limit while it
    /// waits.
    pub(super) async fn fund(&self, view: &View, deposit: B256) -> Result<bool, SolverError> {
        let done = match self.try_fund(view, deposit).await {
            Ok(Paid::Sent) => return Ok(true),
            Ok(paid) => self.put_off(view, deposit, paid).await,
            Err(error @ SolverError::Requests(RequestsError::Refused)) => Err(error),
            // Whatever the error is, the order ends once it has waited for long enough.
            Err(error) => match self.put_off(view, deposit, Paid::Away).await {
                Ok(false) => Err(error),
                done => done,
            },
        };
        if self.is_unchanged(view).await {
            self.give_up(&view.request.id);
        }
        done
    }

    /// Takes an order that is not paid after all out of the limits and the stakes.
    pub(super) fn give_up(&self, request: &B256) {
        self.exposure.leave(request);
        self.breaker().ended(&(*request, None));
    }

    async fn try_fund(&self, view: &View, deposit: B256) -> Result<Paid, SolverError> {
        let offer = self.offer(view, &deposit).await?;
        match self.judged(view, &deposit, &offer) {
            Funding::Pay(amounts, besides) => self.fill(view, deposit, (amounts, besides)).await,
            Funding::Fail(reason) => Ok(Paid::Fails(reason)),
            Funding::Wait => Ok(Paid::Waits),
        }
    }

    /// Fails the order, or refuses the deposit, where it has waited for long enough; else stores since when it waits.
    /// Whether anything changed.
    async fn put_off(&self, view: &View, deposit: B256, paid: Paid) -> Result<bool, SolverError> {
        let offer = match paid {
            Paid::Sent => return Ok(true),
            Paid::Later | Paid::NotYet(_) | Paid::Refused(_) => return Ok(false),
            Paid::Fails(reason) => return self.decline(view, deposit, reason).await,
            Paid::Waits => return self.wait(view, deposit).await,
            Paid::Short => Offer::Short,
            Paid::Dear => Offer::Dear,
            Paid::Reverts => Offer::Reverts,
            Paid::Held => Offer::Held,
            Paid::Away => Offer::Away,
        };
        match self.judged(view, &deposit, &offer) {
            Funding::Fail(reason) => self.decline(view, deposit, reason).await,
            Funding::Wait | Funding::Pay(..) => self.wait(view, deposit).await,
        }
    }

    fn judged(&self, view: &View, deposit: &B256, offer: &Offer) -> Funding {
        let (families, margins) = (self.families(), self.margins());
        let case = view.case(self.patience, &families, &margins);
        judge::fund(&case, deposit, offer)
    }

    async fn wait(&self, view: &View, deposit: B256) -> Result<bool, SolverError> {
        let Some(next) = claim::wait(&view.claim, deposit, view.now / 1_000) else {
            return Ok(false);
        };
        self.decide(view, Batch::new(), &next, |_| ()).await?;
        Ok(true)
    }

    /// Whether `view` has all payments that were begun. A commit that failed by its answer may have been applied.
    async fn is_unchanged(&self, view: &View) -> bool {
        let key = rows::claim::key(&view.request.id);
        let row = self.requests.store().read(&key).await;
        let legs = |row: &[u8]| Some(Claim::decode(row).ok()?.legs.len());
        match row {
            Ok(None) => true,
            Ok(Some(row)) => legs(&row) == Some(view.claim.legs.len()),
            Err(_) => false,
        }
    }

    /// The network, or the settlement chain, on which the store knows less than the chain: nothing is paid anywhere, since
    /// what an older copy pays again may be on another network. Former accounts say nothing: operators empty them by hand.
    pub fn behind(&self) -> Option<&str> {
        let mut accounts = self.present();
        let behind = accounts.find(|account| account.is_behind())?;
        Some(&behind.chain.name)
    }

    /// Why fills are paused; `None` where they are not.
    pub async fn paused(&self) -> Result<Option<Paused>, SolverError> {
        let row = self.requests.store().read(&pause::key()).await?;
        Ok(row.as_deref().map(Paused::decode).transpose()?)
    }
}

/// The work for which an account keeps native currency. Only refunds of tokens and plain payments of tokens use what is
/// kept: without it they could not be paid for.
pub(super) fn kept(account: &SolverAccount) -> u64 {
    (account.chain.providers.usual)(Work::Kept).saturating_mul(KEPT)
}

/// What payments of native currency leave for those, in its smallest unit. Nothing where there are none: where no code runs
/// and only native currency is listed, each payment brings its own fee.
pub(super) async fn left_for_fees(account: &SolverAccount) -> Result<Amount, SolverError> {
    let (market, code) = (&account.chain.market, &account.chain.providers.contracts);
    let has_tokens = market.as_ref().is_none_or(|it| it.currencies.len() > 1);
    if code.is_none() && !has_tokens {
        return Ok(Amount::ZERO);
    }
    let rate = account.recent_rate().await?;
    let rate = account.chain.providers.rate_as_signed(rate);
    Ok(rate.of(kept(account)))
}

/// Whether the account has that much besides `attempt`, which is not stored yet. What was judged at the same time and
/// stored before counts: the account prepares one attempt at a time.
pub(super) async fn leaves_fees(
    account: &SolverAccount,
    attempt: &Attempt,
) -> Result<bool, SolverError> {
    let native = &account.chain.native;
    let needs = inventory::needs(&account.chain, attempt)?.into_iter();
    let needs = needs.filter(|(currency, _)| currency == native);
    let needed = needs.fold(left_for_fees(account).await?, |sum, (_, amount)| {
        sum.saturating_add(amount)
    });
    Ok(account.available(native).await? >= needed)
}

/// What the solver never promises: twice as much as is kept, since work may become dearer until a promise is paid.
async fn unpromised(account: &SolverAccount) -> Result<Amount, SolverError> {
    let rate = account.rate().await?;
    Ok(rate.of(kept(account).saturating_mul(2)))
}
