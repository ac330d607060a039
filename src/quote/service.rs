//! The quoter: reads, prices, simulates, promises, stores.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use alloy::primitives::{B256, U256};
use vm::Address;

use super::{
    admission::Burden,
    answer::{Answer, PriceAnswer},
    body::Body,
    caller::{Caller, unkept},
    code::{Code, Refused},
    details::Sheet,
    figures::{Figures, Pricing},
    fill::{self, Fill, FillGas},
    holds::{Holds, stock},
    intent::{Ground, Intent, Side},
    offers::{Offers, Search},
    reads::Reads,
    route::Route,
    steps::{self, Plan},
    venue::{Capacity, Venue},
    whole::Verdicts,
};
use crate::{
    market::{Currency, Market},
    price::{PriceSource, SettlementPrice},
    request::Request,
    sign::Signer,
    store::{Batch, requests::Requests},
};

/// What a quoter works with.
pub struct Parts {
    pub market: Arc<Market>,
    /// By the network's name.
    pub venues: HashMap<String, Venue>,
    pub prices: Arc<dyn PriceSource>,
    pub settlement: Arc<dyn SettlementPrice>,
    pub offers: Offers,
    pub capacity: Arc<dyn Capacity>,
    /// The solver's key.
    pub signer: Arc<dyn Signer>,
    /// The network whose account the solver is paid on.
    pub solver_chain: String,
    pub requests: Requests,
    /// Seconds for which a price holds.
    pub validity: u64,
    /// Unix milliseconds.
    pub clock: fn() -> u64,
    /// 32 bytes that nobody can guess; `None` where the machine has none.
    pub entropy: fn() -> Option<B256>,
}

/// See the module.
pub struct Quoter {
    pub(super) parts: Parts,
    pub(super) solver: Address,
    pub(super) verdicts: Verdicts,
    pub(super) holds: Mutex<Holds>,
}

/// A valid intent with its amounts and what the solver will do.
pub(super) struct Priced<'m> {
    pub intent: Intent<'m>,
    pub route: Route<'m>,
    pub reads: Reads,
    pub figures: Figures,
    pub fill: Fill,
    pub fill_gas: FillGas,
    /// Unix milliseconds.
    pub now: u64,
}

impl Quoter {
    pub fn new(parts: Parts) -> Self {
        let account = parts.signer.address();
        let solver = Address::from_parts(&format!("{account:#x}"), account.to_vec());
        Self {
            parts,
            solver,
            verdicts: Verdicts::default(),
            holds: Mutex::default(),
        }
    }

    /// As [`Self::quote_for`], for nobody in particular but the API key with the label `key`.
    pub async fn quote(&self, body: &Body, key: Option<&str>) -> Result<Answer, Refused> {
        self.quote_for(body, Caller { key, by: 0 }).await
    }

    /// Quotes a body. The request is durable when the answer is given.
    pub async fn quote_for(&self, body: &Body, caller: Caller<'_>) -> Result<Answer, Refused> {
        self.room()?;
        let intent = self.intent(body, caller.key)?;
        let priced = self.priced(intent, caller.key).await?;
        let draft = self.draft(&priced, caller.key).await?;
        let requests = &self.parts.requests;
        let stored = requests.insert_by(&draft.request, caller.by, Batch::new());
        stored.await.map_err(unkept)?;
        self.hold(&priced, &draft.request, U256::ZERO);
        Ok(draft.answer)
    }

    /// Keeps what was promised for the key that asked; `before` of what is there is promised already.
    pub(super) fn hold(&self, priced: &Priced<'_>, request: &Request, before: U256) {
        let Some(key) = request.api_key.as_deref().filter(|_| !priced.intent.own) else {
            return;
        };
        let stock = stock(&priced.route);
        let there = priced.reads.available.saturating_sub(before);
        let amounts = (priced.figures.sum.given, there);
        let during = priced.now / 1000..=request.valid_until;
        let mut holds = self.holds.lock().unwrap_or_else(PoisonError::into_inner);
        if !holds.hold(&stock, key, amounts, during) {
            tracing::debug!(key, network = stock.0, "a quote holds nothing");
        }
    }

    /// What of `available` nobody holds.
    pub(super) fn free(&self, route: &Route<'_>, available: U256, now: u64) -> U256 {
        let mut holds = self.holds.lock().unwrap_or_else(PoisonError::into_inner);
        available.saturating_sub(holds.held(&stock(route), now))
    }

    /// Before any work: a quote that cannot be kept is none.
    pub(super) fn room(&self) -> Result<(), Refused> {
        let full = "the service keeps what is left of its disk for orders under way";
        let room = self.parts.requests.room();
        room.map_err(|_| Refused::new(Code::DiskReserve, full))
    }

    pub(super) fn entropy(&self) -> Result<B256, Refused> {
        let none = || Refused::new(Code::ServiceUnavailable, "no randomness");
        (self.parts.entropy)().ok_or_else(none)
    }

    /// Prices a body; nothing is stored.
    pub async fn price(&self, body: &Body, key: Option<&str>) -> Result<PriceAnswer, Refused> {
        let priced = self.priced(self.intent(body, key)?, key).await?;
        let planned = self.plan(&priced.plan(B256::repeat_byte(0xee))).await?;
        let sheet = priced.sheet(steps::gas(&planned, &priced.intent));
        Ok(PriceAnswer {
            fees: sheet.fees(),
            details: sheet.details(false),
        })
    }

    /// What a body asks for.
    pub(super) fn intent(&self, body: &Body, key: Option<&str>) -> Result<Intent<'_>, Refused> {
        let spec = |name: &str| Some(self.parts.venues.get(name)?.spec.clone());
        let ground = Ground {
            market: &self.parts.market,
            spec: &spec,
            solver: &self.solver,
            keyed: key.is_some(),
        };
        Intent::of(body, &ground)
    }

    /// The amounts of an intent that the solver would take on.
    pub(super) async fn priced<'m>(
        &'m self,
        intent: Intent<'m>,
        key: Option<&str>,
    ) -> Result<Priced<'m>, Refused> {
        let route = Route::of(&intent)?;
        let now = (self.parts.clock)();
        let reads = self.reads(&intent, &route).await?;
        if reads.available.is_zero() {
            return Err(drained(route.given.currency, &route.given));
        }
        let pricing = Pricing {
            intent: &intent,
            route: &route,
            reads: &reads,
            offers: Search::new(&self.parts.offers),
        };
        let (figures, fill, fill_gas) = self.settled(&pricing, now).await?;
        let seconds = now / 1000;
        let burden = Burden::of((&route, &reads), &figures, (&fill, fill_gas), key);
        futures::try_join!(
            self.whole((&intent, &route), &reads, &figures, seconds),
            self.admitted(&intent, &route, burden, seconds)
        )?;
        let priced = Priced {
            intent,
            route,
            reads,
            figures,
            fill,
            fill_gas,
            now,
        };
        priced.sheet(U256::ZERO).check()?;
        Ok(priced)
    }

    /// Amounts and fill that agree on the gas: priced by the table, simulated with the real payment, and
    /// priced again with what that took.
    async fn settled(
        &self,
        pricing: &Pricing<'_, '_>,
        now: u64,
    ) -> Result<(Figures, Fill, FillGas), Refused> {
        let (intent, route) = (pricing.intent, pricing.route);
        let seconds = now / 1000;
        let mut gas = FillGas {
            units: fill::table(intent, None),
            data: U256::ZERO,
        };
        let mut figures = match pricing.figures(gas).await {
            // The table may be dearer than the chain.
            Err(refused) if refused.code == Code::AmountTooLow => {
                pricing.figures(FillGas::default()).await?
            }
            figures => figures?,
        };
        let mut fill = self.fill(intent, route, &figures, seconds)?;
        if !intent.own {
            enough(pricing, &figures)?;
            gas = self.taken(intent, &fill, gas).await?;
            limited(intent, &figures, gas.units)?;
            figures = pricing.figures(gas).await?;
            fill = self.fill(intent, route, &figures, seconds)?;
        }
        enough(pricing, &figures)?;
        Ok((figures, fill, gas))
    }

    /// What the fill takes. Where no node says, a plain payment takes what the table knows, unless its
    /// chain charges for bytes, too: that is in no table.
    async fn taken(
        &self,
        intent: &Intent<'_>,
        fill: &Fill,
        known: FillGas,
    ) -> Result<FillGas, Refused> {
        let plain = fill.calls.is_empty();
        let silent = |refused: &Refused| refused.code == Code::RpcHttpError;
        match self.simulate(intent, fill).await {
            Err(refused) if plain && silent(&refused) => {
                let venue = self.venue(&intent.destination)?;
                match venue.providers.limits().data_fees {
                    None => Ok(known),
                    Some(_) => Err(refused),
                }
            }
            taken => taken,
        }
    }
}

pub(super) fn drained(currency: &Currency, given: &Side<'_>) -> Refused {
    let what = format!(
        "amount: the solver has not enough {} on {}",
        currency.symbol, given.network.display_name
    );
    Refused::new(Code::InsufficientLiquidity, what)
}

fn enough(pricing: &Pricing<'_, '_>, figures: &Figures) -> Result<(), Refused> {
    if figures.sum.given > pricing.reads.available {
        let given = &pricing.route.given;
        return Err(drained(given.currency, given));
    }
    Ok(())
}

/// The calls may use what the caller allowed, besides what a transaction and its payments take.
fn limited(intent: &Intent<'_>, figures: &Figures, gas: u64) -> Result<(), Refused> {
    let allowed = fill::table(intent, Some(figures));
    let most = intent.destination.network.limits.calls_gas;
    let around = fill::table(intent, None).saturating_sub(fill::calls(intent));
    // Also a recipient's own code.
    if gas > around.saturating_add(most) {
        let what = format!(
            "txs, recipient: the destination transaction takes {gas} gas, their code may take {most}"
        );
        return Err(Refused::new(Code::DestinationTxFailed, what));
    }
    if intent.calls_gas.is_some() && gas > allowed {
        let what = format!(
            "txsGasLimit, gasLimitForDepositSpecifiedTxs: the destination transaction takes {gas} gas"
        );
        return Err(Refused::new(Code::DestinationTxFailed, what));
    }
    Ok(())
}

impl<'m> Priced<'m> {
    pub(super) fn sheet(&self, gas: U256) -> Sheet<'_, 'm> {
        Sheet {
            intent: &self.intent,
            route: &self.route,
            reads: &self.reads,
            figures: &self.figures,
            gas,
        }
    }

    /// What its steps follow from.
    pub(super) fn plan(&self, order_id: B256) -> Plan<'_, 'm> {
        Plan {
            intent: &self.intent,
            route: &self.route,
            reads: &self.reads,
            figures: &self.figures,
            order_id,
            now: self.now / 1000,
        }
    }

    /// What it asks of the solver.
    pub(super) fn burden<'k>(&self, key: Option<&'k str>) -> Burden<'k> {
        let fill = (&self.fill, self.fill_gas);
        Burden::of((&self.route, &self.reads), &self.figures, fill, key)
    }
}
