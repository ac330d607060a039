//! Everything that a quote must know of the world, read at the same time.

use alloy::primitives::U256;
use futures::TryFutureExt;
use vm::{
    Address, ReadError,
    trade::{FeeRate, TradingProvider, Unspent},
};

use super::{
    code::{Code, Refused},
    context::Context,
    holds::stock,
    intent::{Intent, Side},
    pricing_chain::{CapacityError, Hands, PricingChain},
    route::Route,
    usd::{Rated, Worth},
};

/// A valid intent with its route and what was read for it: amounts, order and steps follow from it.
pub struct Case<'m> {
    pub intent: Intent<'m>,
    pub route: Route<'m>,
    pub market: MarketData,
    /// Unix milliseconds.
    pub now: u64,
}

impl Case<'_> {
    /// Seconds for which the price holds, `usual` ones unless the deposit's currency has its own, and those that a
    /// deposit may wait for its block beyond them.
    pub fn validity(&self, usual: u64) -> (u64, Option<u64>) {
        match self.route.paid.currency.price_holds {
            Some(holds) if !self.intent.own => (holds.seconds, holds.waiting),
            _ => (usual, None),
        }
    }

    /// Unix seconds.
    pub fn seconds(&self) -> u64 {
        self.now / 1000
    }
}

/// What was read.
#[derive(Clone, Debug)]
pub struct MarketData {
    pub input: Worth,
    pub output: Worth,
    pub paid: Worth,
    pub given: Worth,
    pub origin_native: Worth,
    pub origin_rate: FeeRate,
    /// What a unit of work costs the user's own transactions by it.
    pub own_rate: FeeRate,
    /// What the user is charged for the fill by.
    pub destination_rate: FeeRate,
    /// What decides the amounts.
    pub deal: Deal,
    /// What the user has of the origin's currency.
    pub balance: U256,
    /// The same piece by piece, where the deposit is made of that.
    pub unspent: Vec<Unspent>,
    /// What the depository may take of the user's deposited currency already.
    pub approved: U256,
    /// The user deposits through the depository's functions.
    pub explicit: bool,
    /// What the solver can give; without end where the user does everything.
    pub available: U256,
    pub hands: Hands,
}

/// Prices of what changes hands.
#[derive(Clone, Copy, Debug)]
pub struct Deal {
    pub paid: Rated,
    pub given: Rated,
    /// Of the destination's native currency.
    pub gas: Rated,
    /// What settling an order costs, usd e18.
    pub settlement: U256,
}

/// What a unit of work costs on a chain now, by agreement of providers.
pub async fn rate(chain: &PricingChain) -> Result<FeeRate, Refused> {
    Ok(chain.providers.failover.recent_rate().await?)
}

/// Refuses where providers are so far apart that a payment costs more than twice what is charged for it: such a fill would
/// wait from the beginning.
fn payable(chain: &PricingChain, rate: FeeRate) -> Result<(), Refused> {
    let signed = chain.providers.rate_as_signed(rate).expected();
    match signed > rate.expected().saturating_mul(2) {
        true => Err(ReadError::Quorum("fees: too far apart to fill by".into()).into()),
        false => Ok(()),
    }
}

/// The price of what is given in a deal that its user may decline until the deposit is final: it has room for what
/// the prices of both sides may move by until then. Fees stay what they are.
fn optional(given: Rated, route: &Route<'_>) -> Rated {
    let pace = route.paid.network.block_seconds;
    let waits = route
        .paid
        .currency
        .price_holds
        .and_then(|holds| holds.waiting);
    let finality = route.paid.spec.finality.usual(pace);
    let seconds = finality.saturating_add(waits.unwrap_or_default());
    let classes = [route.paid.currency.class, route.given.currency.class];
    given.optional(classes, seconds)
}

/// Reads for an intent; the first thing that cannot be read refuses the quote.
pub async fn read<'m>(
    context: &Context,
    intent: Intent<'m>,
    route: Route<'m>,
) -> Result<Case<'m>, Refused> {
    let now = (context.deps.clock)();
    let reading = Reading {
        context,
        intent: &intent,
        route: &route,
    };
    let market = reading.market().await?;
    Ok(Case {
        intent,
        route,
        market,
        now,
    })
}

/// What `spender` may take of `owner`'s, by agreement of providers: steps are left out for it.
pub async fn approved(
    context: &Context,
    side: &Side<'_>,
    owner: &Address,
    spender: &Address,
) -> Result<U256, Refused> {
    let providers = &context.chain(side)?.providers;
    let approved = providers.approved(owner, spender, &side.address);
    approved.err_into().await
}

/// The rates that [`MarketData`] has.
struct Rates {
    origin: FeeRate,
    own: FeeRate,
    destination: FeeRate,
}

/// What is read, and for which intent.
struct Reading<'a, 'm> {
    context: &'a Context,
    intent: &'a Intent<'m>,
    route: &'a Route<'m>,
}

impl Reading<'_, '_> {
    async fn market(&self) -> Result<MarketData, Refused> {
        let accounts =
            async { futures::try_join!(self.balance(), self.approved(), self.explicit()) };
        let (worths, accounts, rates, available, settlement, hands) = futures::try_join!(
            self.worths(),
            accounts,
            self.rates(),
            self.available(),
            self.settlement(),
            self.hands()
        )?;
        let [input, output, paid, given, origin_native, native] = worths;
        let ((balance, unspent), approved, explicit) = accounts;
        let deal = Deal {
            paid,
            given: match self.is_declinable(hands)? {
                true => optional(given, self.route),
                false => given,
            },
            gas: native,
            settlement,
        };
        Ok(MarketData {
            input: input.shown(),
            output: output.shown(),
            paid: paid.shown(),
            given: given.shown(),
            origin_native: origin_native.shown(),
            deal,
            origin_rate: rates.origin,
            own_rate: rates.own,
            destination_rate: rates.destination,
            balance,
            unspent,
            approved,
            explicit,
            available,
            hands,
        })
    }

    async fn rates(&self) -> Result<Rates, Refused> {
        let from = self.context.chain(&self.intent.origin)?;
        let to = self.context.chain(&self.intent.destination)?;
        let (origin, destination) = futures::try_join!(rate(from), rate(to))?;
        if !self.intent.own {
            payable(to, destination)?;
        }
        Ok(Rates {
            origin,
            own: from.providers.rate_as_signed(origin),
            destination,
        })
    }

    /// Whether somebody can let the fill fail when what it gives has lost its worth: by an account of a chain where any
    /// payment can be let fail, with code of their own, or with the pool that it exchanges in (wrapping needs none).
    fn is_declinable(&self, hands: Hands) -> Result<bool, Refused> {
        let (intent, route, to) = (self.intent, self.route, &self.intent.destination);
        let any = self.context.chain(to)?.providers.declinable;
        let pooled = route.swap_out && !(route.given.is_native() && to.is_wrapped());
        let calls = !intent.calls.is_empty() || !intent.authorizations.is_empty();
        Ok(!intent.own && (any || pooled || calls || to.is_native() && hands == Hands::Code))
    }

    /// Of what comes in and goes out, what is deposited and given, and the native currencies of both sides.
    async fn worths(&self) -> Result<[Rated; 6], Refused> {
        let (intent, route) = (self.intent, self.route);
        let now = self.context.now();
        let coins = [
            Some(intent.origin.currency),
            Some(intent.destination.currency),
            Some(route.paid.currency),
            Some(route.given.currency),
            intent.origin.network.native(),
            intent.destination.network.native(),
        ];
        let asked = coins.map(|currency| self.context.worth(currency, now));
        let worths = futures::future::try_join_all(asked).await?;
        let missing = |_| Refused::new(Code::UnknownError, "prices are missing");
        worths.try_into().map_err(missing)
    }

    async fn settlement(&self) -> Result<U256, Refused> {
        if self.intent.own {
            return Ok(U256::ZERO);
        }
        let settlement = &self.context.deps.settlement;
        Ok(settlement.settlement(self.context.now()).await?)
    }

    async fn balance(&self) -> Result<(U256, Vec<Unspent>), Refused> {
        let (owner, side) = (&self.intent.user, &self.intent.origin);
        let providers = &self.context.chain(side)?.providers;
        if let Some(funding) = &providers.funding {
            let unspent = funding.unspent(owner).await??;
            let amounts = unspent.iter().map(|one| one.amount);
            let balance = amounts.fold(U256::ZERO, U256::saturating_add);
            return Ok((balance, unspent));
        }
        let ask = |provider: TradingProvider| async move {
            provider.accounts.balance(owner, &side.address).await
        };
        Ok((providers.failover.first(ask).await?, Vec::new()))
    }

    async fn approved(&self) -> Result<U256, Refused> {
        let paid = &self.route.paid;
        match &paid.spec.depository {
            Some(depository) if !self.intent.own => {
                approved(self.context, paid, &self.intent.user, depository).await
            }
            _ => Ok(U256::ZERO),
        }
    }

    /// A bare transfer is offered to plain accounts only: anybody sends the transactions of contracts, and an order
    /// that stands in data which the payer did not send is not funded by it.
    async fn explicit(&self) -> Result<bool, Refused> {
        if self.intent.explicit_deposit {
            return Ok(true);
        }
        let providers = &self.context.chain(&self.route.paid)?.providers;
        providers.is_contract(&self.intent.user).err_into().await
    }

    /// To whom the fill gives more than a token.
    async fn hands(&self) -> Result<Hands, Refused> {
        let intent = self.intent;
        if intent.own {
            return Ok(Hands::Nobody);
        }
        if !intent.calls.is_empty() || !intent.authorizations.is_empty() {
            return Ok(Hands::Code);
        }
        let to = &intent.destination;
        if !to.is_native() && !self.route.swap_out {
            return Ok(Hands::Nobody);
        }
        let providers = &self.context.chain(to)?.providers;
        if providers.contracts.is_none() {
            return Ok(Hands::Nobody);
        }
        Ok(match providers.is_contract(&intent.recipient).await? {
            true => Hands::Code,
            false => Hands::Account,
        })
    }

    async fn available(&self) -> Result<U256, Refused> {
        if self.intent.own {
            return Ok(U256::MAX);
        }
        let (context, route) = (self.context, self.route);
        let (network, currency) = (&route.given.network.name, &route.given.address);
        let capacity = &context.deps.capacity;
        let available = futures::try_join!(
            capacity.available(network, currency),
            capacity.sound(&route.paid.network.name),
            capacity.sound(network)
        );
        let (available, (), ()) = available.map_err(|error| {
            tracing::warn!(%error, "no quote");
            match error {
                CapacityError::Stalled(why) => Refused::new(Code::ServiceUnavailable, why),
                CapacityError::Unknown(_) => {
                    Refused::new(Code::ServiceUnavailable, "the solver does not answer")
                }
            }
        })?;
        let (available, now) = (available.unwrap_or_default(), context.now());
        Ok(context.holds().free(&stock(route), available, now))
    }
}
