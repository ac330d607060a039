//! Everything that a quote must know of the world, read at the same time.

use alloy::primitives::U256;
use futures::TryFutureExt;
use vm::{
    Address,
    trade::{Fees, Trade},
};

use super::{
    code::{Code, Refused},
    fill::FillGas,
    intent::{Intent, Side, is_native, is_wrapped},
    route::Route,
    service::Quoter,
    usd::{Rated, Worth},
    venue::{CapacityError, Hands, Venue},
};
use crate::{market::Currency, price::PriceError};

/// What was read.
#[derive(Clone, Debug)]
pub struct Reads {
    pub input: Worth,
    pub output: Worth,
    pub paid: Worth,
    pub given: Worth,
    pub origin_native: Worth,
    pub destination_native: Worth,
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

/// Wei per gas unit.
#[derive(Clone, Copy, Debug)]
pub struct GasPrice(pub Fees);

impl GasPrice {
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
    let pooled = route.swap_out && !(is_native(&route.given) && is_wrapped(to));
    let calls = !intent.calls.is_empty() || !intent.authorizations.is_empty();
    !intent.own && (pooled || calls || is_native(to) && hands == Hands::Code)
}

impl From<PriceError> for Refused {
    fn from(error: PriceError) -> Self {
        match error {
            PriceError::Unknown(name) => {
                let what = format!("{name}: the currency cannot be priced");
                Self::new(Code::UnsupportedCurrency, what)
            }
            PriceError::Unavailable { currency, why } => {
                tracing::warn!(currency, why, "no quote: no price");
                let what = format!("{currency}: no price that can be believed right now");
                Self::new(Code::PriceFetchFailed, what)
            }
        }
    }
}

impl Quoter {
    /// Reads for `intent`; the first thing that cannot be read refuses the quote.
    pub(super) async fn reads(
        &self,
        intent: &Intent<'_>,
        route: &Route<'_>,
    ) -> Result<Reads, Refused> {
        let (origin, destination) = (&intent.origin, &intent.destination);
        let accounts = async {
            futures::try_join!(
                self.balance(origin, &intent.user),
                self.allowance(intent, route),
                self.explicit(intent, route)
            )
        };
        let fees = async { futures::try_join!(self.fees(origin), self.fees(destination)) };
        let (worths, accounts, fees, available, settlement, hands) = futures::try_join!(
            self.worths(intent, route),
            accounts,
            fees,
            self.available(intent, route),
            self.settlement(intent),
            self.hands(intent, route)
        )?;
        let [
            input,
            output,
            paid,
            given,
            origin_native,
            destination_native,
        ] = worths;
        Ok(Reads {
            input: input.shown(),
            output: output.shown(),
            paid: paid.shown(),
            given: given.shown(),
            origin_native: origin_native.shown(),
            destination_native: destination_native.shown(),
            deal: Deal {
                paid,
                given: match is_declinable(intent, route, hands) {
                    true => optional(given, route),
                    false => given,
                },
                gas: destination_native,
                settlement,
            },
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
    async fn worths(&self, intent: &Intent<'_>, route: &Route<'_>) -> Result<[Rated; 6], Refused> {
        let now = (self.parts.clock)() / 1000;
        let coins = [
            Some(intent.origin.currency),
            Some(intent.destination.currency),
            Some(route.paid.currency),
            Some(route.given.currency),
            intent.origin.network.native(),
            intent.destination.network.native(),
        ];
        let asked = coins.map(|currency| self.worth(currency, now));
        let worths = futures::future::try_join_all(asked).await?;
        let missing = |_| Refused::new(Code::UnknownError, "prices are missing");
        worths.try_into().map_err(missing)
    }

    /// What a currency is worth at `now`, unix seconds.
    pub(super) async fn worth(
        &self,
        currency: Option<&Currency>,
        now: u64,
    ) -> Result<Rated, Refused> {
        let currency =
            currency.ok_or_else(|| Refused::new(Code::UnsupportedRoute, "no native currency"))?;
        Ok(Rated {
            price: self.parts.prices.price(currency, now).await?,
            decimals: currency.decimals,
        })
    }

    async fn settlement(&self, intent: &Intent<'_>) -> Result<U256, Refused> {
        if intent.own {
            return Ok(U256::ZERO);
        }
        let now = (self.parts.clock)() / 1000;
        Ok(self.parts.settlement.settlement(now).await?)
    }

    pub(super) fn venue(&self, side: &Side<'_>) -> Result<&Venue, Refused> {
        self.parts.venues.get(&side.network.name).ok_or_else(|| {
            let what = format!("{} is not traded", side.network.display_name);
            Refused::new(Code::UnsupportedRoute, what)
        })
    }

    async fn balance(&self, side: &Side<'_>, owner: &Address) -> Result<U256, Refused> {
        let ask = |trade: Trade| async move { trade.accounts.balance(owner, &side.address).await };
        self.venue(side)?.ask(ask).err_into().await
    }

    /// What gas costs by agreement of providers: it is what the user is charged.
    async fn fees(&self, side: &Side<'_>) -> Result<GasPrice, Refused> {
        Ok(GasPrice(self.venue(side)?.providers.recent_fees().await?))
    }

    async fn allowance(&self, intent: &Intent<'_>, route: &Route<'_>) -> Result<U256, Refused> {
        match &route.paid.spec.depository {
            Some(depository) if !intent.own => {
                self.allowed(&intent.user, depository, &route.paid).await
            }
            _ => Ok(U256::ZERO),
        }
    }

    /// A bare transfer is offered to plain accounts only: transactions of others are sent by anybody, and
    /// calldata that the payer did not send funds no order.
    async fn explicit(&self, intent: &Intent<'_>, route: &Route<'_>) -> Result<bool, Refused> {
        if intent.explicit_deposit {
            return Ok(true);
        }
        let providers = &self.venue(&route.paid)?.providers;
        providers.is_contract(&intent.user).err_into().await
    }

    /// To whom the fill hands over: see [`Hands`].
    async fn hands(&self, intent: &Intent<'_>, route: &Route<'_>) -> Result<Hands, Refused> {
        if intent.own {
            return Ok(Hands::Nobody);
        }
        if !intent.calls.is_empty() || !intent.authorizations.is_empty() {
            return Ok(Hands::Code);
        }
        let to = &intent.destination;
        if !is_native(to) && !route.swap_out {
            return Ok(Hands::Nobody);
        }
        let providers = &self.venue(to)?.providers;
        Ok(match providers.is_contract(&intent.recipient).await? {
            true => Hands::Code,
            false => Hands::Account,
        })
    }

    /// What `spender` may take of `owner`'s, by agreement of providers: steps are left out for it.
    pub(super) async fn allowed(
        &self,
        owner: &Address,
        spender: &Address,
        side: &Side<'_>,
    ) -> Result<U256, Refused> {
        let providers = &self.venue(side)?.providers;
        let allowed = providers.allowance(owner, spender, &side.address);
        allowed.err_into().await
    }

    async fn available(&self, intent: &Intent<'_>, route: &Route<'_>) -> Result<U256, Refused> {
        if intent.own {
            return Ok(U256::MAX);
        }
        let (network, currency) = (&route.given.network.name, &route.given.address);
        let capacity = &self.parts.capacity;
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
        let now = (self.parts.clock)() / 1000;
        Ok(self.free(route, available.unwrap_or_default(), now))
    }
}
