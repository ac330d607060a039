//! Everything that a quote must know of the world, read at the same time.

use alloy::primitives::U256;
use futures::TryFutureExt;
use vm::{
    Address,
    trade::{Fees, TradingProvider},
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
    pub origin_fees: GasPrice,
    pub destination_fees: GasPrice,
    /// What decides the amounts.
    pub deal: Deal,
    /// What the user has of the origin's currency.
    pub balance: U256,
    /// What the user has allowed the depository of the deposited currency.
    pub allowance: U256,
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

/// What a fill takes on its chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FillGas {
    pub units: u64,
    /// Wei that the chain charges for the transaction's bytes besides gas.
    pub data: U256,
}

/// Wei per gas unit.
#[derive(Clone, Copy, Debug)]
pub struct GasPrice(pub Fees);

impl GasPrice {
    /// Of a network now, by agreement of providers: it is what the user is charged.
    pub async fn of(venue: &PricingChain) -> Result<Self, Refused> {
        Ok(Self(venue.providers.recent_fees().await?))
    }

    /// What a transaction is expected to pay.
    pub fn price(self) -> U256 {
        U256::from(self.0.base).saturating_add(self.tip())
    }

    pub fn tip(self) -> U256 {
        U256::from(self.0.priority)
    }

    /// What a fill costs, in wei.
    pub fn cost(self, gas: FillGas) -> Option<U256> {
        let units = self.price().checked_mul(U256::from(gas.units))?;
        units.checked_add(gas.data)
    }

    /// What it must be ready to pay while the base fee grows for some blocks.
    pub fn most(self) -> U256 {
        let base = U256::from(self.0.base);
        base.saturating_add(base).saturating_add(self.tip())
    }
}

/// What is given counts in a deal that its user may still decline until the deposit is final: what both
/// sides may move by counts there, so that fees stay what they are.
fn optional(given: Rated, route: &Route<'_>) -> Rated {
    let pace = route.paid.network.block_seconds;
    let seconds = route.paid.spec.finality.usual(pace);
    let classes = [route.paid.currency.class, route.given.currency.class];
    let price = classes
        .into_iter()
        .fold(given.price, |price, class| price.optional(class, seconds));
    Rated { price, ..given }
}

/// Whether somebody can let the fill fail when what it gives has lost its worth: with his own code, or with the
/// pool that it exchanges in (wrapping needs none).
fn is_declinable(intent: &Intent<'_>, route: &Route<'_>, hands: Hands) -> bool {
    let to = &intent.destination;
    let pooled = route.swap_out && !(route.given.is_native() && to.is_wrapped());
    let calls = !intent.calls.is_empty() || !intent.authorizations.is_empty();
    !intent.own && (pooled || calls || to.is_native() && hands == Hands::Code)
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
pub async fn allowance(
    context: &Context,
    side: &Side<'_>,
    owner: &Address,
    spender: &Address,
) -> Result<U256, Refused> {
    let providers = &context.venue(side)?.providers;
    let allowed = providers.allowance(owner, spender, &side.address);
    allowed.err_into().await
}

/// For whom it is read.
struct Reading<'a, 'm> {
    context: &'a Context,
    intent: &'a Intent<'m>,
    route: &'a Route<'m>,
}

impl Reading<'_, '_> {
    async fn market(&self) -> Result<MarketData, Refused> {
        let (intent, route) = (self.intent, self.route);
        let accounts =
            async { futures::try_join!(self.balance(), self.allowance(), self.explicit()) };
        let fees = async {
            let origin = self.context.venue(&intent.origin)?;
            let destination = self.context.venue(&intent.destination)?;
            futures::try_join!(GasPrice::of(origin), GasPrice::of(destination))
        };
        let (worths, accounts, fees, available, settlement, hands) = futures::try_join!(
            self.worths(),
            accounts,
            fees,
            self.available(),
            self.settlement(),
            self.hands()
        )?;
        let [input, output, paid, given, origin_native, native] = worths;
        let deal = Deal {
            paid,
            given: match is_declinable(intent, route, hands) {
                true => optional(given, route),
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
            origin_fees: fees.0,
            destination_fees: fees.1,
            balance: accounts.0,
            allowance: accounts.1,
            explicit: accounts.2,
            available,
            hands,
        })
    }

    /// Of what comes in and goes out, what is deposited and given, and what gas is paid in on both sides.
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

    async fn balance(&self) -> Result<U256, Refused> {
        let (owner, side) = (&self.intent.user, &self.intent.origin);
        let ask = |trade: TradingProvider| async move {
            trade.accounts.balance(owner, &side.address).await
        };
        self.context.venue(side)?.ask(ask).err_into().await
    }

    async fn allowance(&self) -> Result<U256, Refused> {
        let paid = &self.route.paid;
        match &paid.spec.depository {
            Some(depository) if !self.intent.own => {
                allowance(self.context, paid, &self.intent.user, depository).await
            }
            _ => Ok(U256::ZERO),
        }
    }

    /// A bare transfer is offered to plain accounts only: transactions of others are sent by anybody, and
    /// calldata that the payer did not send funds no order.
    async fn explicit(&self) -> Result<bool, Refused> {
        if self.intent.explicit_deposit {
            return Ok(true);
        }
        let providers = &self.context.venue(&self.route.paid)?.providers;
        providers.is_contract(&self.intent.user).err_into().await
    }

    /// To whom the fill hands over: see [`Hands`].
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
        let providers = &self.context.venue(to)?.providers;
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
